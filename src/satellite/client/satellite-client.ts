import { randomUUID } from 'node:crypto';
import { SafeLog } from '../../call/log.js';
import { ToolRegistry } from '../../call/tool-registry.js';
import { type CallRecord, type CallScope, SCOPE_RULES } from '../../contract/call.js';
import type { Logger } from '../../contract/ports.js';
import { checkOptions, invalidArguments, invalidOptions, refuseOptions } from '../../errors/author-fault.js';
import {
  COUNT_LIMIT,
  FILLED_TEXT,
  FUNCTION,
  HEADERS,
  instanceOf,
  LIMIT,
  LOGGER,
  MILLISECONDS,
  type OptionFault,
  type OptionRule,
  optionTable,
  type RulesOf,
  required,
  secret,
  TEXT,
} from '../../kernel/options.js';
import type { ToolRequest } from '../../text/tool-call-parser.js';
import { ChatTransport } from './chat-transport.js';
import { type SatelliteListener, type SatelliteOutcome, SatelliteRun } from './satellite-run.js';

/** What one `send` or `resume` brings along; tools find it in their context. */
export interface SatelliteRunOptions extends Pick<CallScope, 'channel' | 'chatId' | 'data' | 'container'> {
  readonly signal?: AbortSignal;
  readonly onEvent?: SatelliteListener;
}

/** Options of {@link SatelliteClient.send}. */
export interface SatelliteSendOptions extends SatelliteRunOptions {
  /** Which conversation to go on with, or the id of a new one; default: a new one. */
  readonly conversationId?: string;
}

const RUN_RULES: RulesOf<SatelliteRunOptions> = {
  channel: SCOPE_RULES.channel,
  chatId: SCOPE_RULES.chatId,
  data: SCOPE_RULES.data,
  container: SCOPE_RULES.container,
  signal: SCOPE_RULES.signal,
  onEvent: FUNCTION,
};

const RESUME_OPTIONS = optionTable<SatelliteRunOptions>('SatelliteClient.resume', RUN_RULES);

const SEND_OPTIONS = optionTable<SatelliteSendOptions>('SatelliteClient.send', {
  ...RUN_RULES,
  conversationId: FILLED_TEXT,
});

/**
 * The satellite's side of the tool_request protocol: asks an assistant, runs what it requests on a
 * local registry, sends the results, and goes on until there is a plain answer. It keeps nothing: the
 * conversation is the server's, and its id is all that a program needs to go on after a restart.
 *
 * @example
 * ```ts
 * const satellite = new SatelliteClient({ url: 'https://assistant.example.org', tools: registry });
 * const outcome = await satellite.send('Is it raining in Lisbon?');
 * if (outcome.status !== 'completed') await satellite.resume(outcome.conversationId);
 * ```
 */
export class SatelliteClient {
  readonly #options: SatelliteClientOptions;
  readonly #transport: ChatTransport;

  /** @throws InvalidOptionsError (521) where the options are wrong. */
  constructor(options: SatelliteClientOptions) {
    checkOptions(options, CLIENT_OPTIONS);
    this.#options = options;
    const { maxRetries = 5, timeoutMs = 300_000, maxReplyBytes = 10 * 2 ** 20 } = options;
    this.#transport = new ChatTransport({ ...options, maxRetries, timeoutMs, maxReplyBytes });
  }

  /**
   * Says something to the assistant and does what it asks for. Rejects only options that are none. A program that may be killed gives
   * the id of a new conversation itself, and keeps it before it sends.
   */
  async send(text: string, options: SatelliteSendOptions = {}): Promise<SatelliteOutcome> {
    refuseOptions([
      ...invalidArguments({ of: SEND_OPTIONS.of, given: { text }, rules: { text: TEXT } }),
      ...invalidOptions(options, SEND_OPTIONS),
    ]);
    const { conversationId = randomUUID(), ...others } = options;
    return this.#run(conversationId, others).send(text);
  }

  /**
   * Goes on with a conversation where it is: runs the request that is pending, if there is one, or gives the last
   * answer again. A tool that ran before a crash, but whose result did not arrive, runs again, with the same
   * `context.callId`.
   */
  async resume(conversationId: string, options: SatelliteRunOptions = {}): Promise<SatelliteOutcome> {
    const rules = { conversationId: FILLED_TEXT };
    refuseOptions([
      ...invalidArguments({ of: RESUME_OPTIONS.of, given: { conversationId }, rules }),
      ...invalidOptions(options, RESUME_OPTIONS),
    ]);
    return this.#run(conversationId, options).resume();
  }

  #run(conversationId: string, options: SatelliteRunOptions): SatelliteRun {
    const { maxIterations = 20, logger } = this.#options;
    return new SatelliteRun({
      conversationId,
      ...options,
      transport: this.#transport,
      maxIterations,
      log: new SafeLog(logger),
      call: (request, scope) => this.#call(request, scope),
    });
  }

  /** The whole staircase; what would have to wait for somebody is an error here, as in `execute`. */
  async #call({ name, arguments: args }: ToolRequest, scope: CallScope): Promise<CallRecord> {
    const { tools, maxResultChars = 100_000, logger } = this.#options;
    const call = { id: scope.callId ?? randomUUID(), name, arguments: args };
    const toolTimeoutMs = this.#options.toolTimeoutMs ?? tools.toolTimeoutMs ?? 120_000;
    const limits = { toolTimeoutMs, maxResultChars };
    const { record } = await tools.invoke(call, scope, logger ? { ...limits, logger } : limits);
    return record;
  }
}

/** Options of a `SatelliteClient`. */
export interface SatelliteClientOptions {
  /** Where the assistant is, before `/v1/chat` and without a query: `https://assistant.example.org`. */
  readonly url: string | URL;
  /** What can be run here; all limits and policies of the registry hold. */
  readonly tools: ToolRegistry;
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Requests of one `send` or `resume` at most (20). */
  readonly maxIterations?: number;
  /** How often a request is sent again that did not come through (5). */
  readonly maxRetries?: number;
  /** Milliseconds for one request, until its whole reply is there (300,000). */
  readonly timeoutMs?: number;
  /** Bytes of a reply at most, all its events included (10 mebibytes). */
  readonly maxReplyBytes?: number;
  /** Milliseconds for tools that set no `timeoutMs` (120,000). */
  readonly toolTimeoutMs?: number;
  /** Characters of a result at most, for tools that set no limit; the server takes a mebibyte (100,000). */
  readonly maxResultChars?: number;
  readonly logger?: Logger;
}

const URL_OPTION: OptionRule = {
  // `/v1/chat` goes behind it; `fetch` refuses users and passwords.
  accepts: (value) => {
    const url = URL.parse(String(value));
    return (
      /^https?:$/.test(url?.protocol ?? '') && !(url?.search || url?.hash || url?.username || url?.password)
    );
  },
  fix: "'https://assistant.example.org'",
  explain: (value, option) => {
    const url = URL.parse(String(value));
    if (!url?.username && !url?.password) return [];
    return [
      { option, problem: 'url holds a user or a password', fix: "headers: { authorization: 'Basic …' }" },
    ];
  },
};

const CLIENT_OPTIONS = optionTable<SatelliteClientOptions>('SatelliteClient', {
  url: required(URL_OPTION),
  tools: required(instanceOf(ToolRegistry, 'new ToolRegistry()')),
  token: secret({
    accepts: (value) => FILLED_TEXT.accepts(value) && HEADERS.accepts({ authorization: `Bearer ${value}` }),
    fix: "'letters-and-digits'",
    explain: (value, option) => (FILLED_TEXT.accepts(value) ? [unsendable(option)] : []),
  }),
  headers: HEADERS,
  maxIterations: COUNT_LIMIT,
  maxRetries: LIMIT,
  timeoutMs: MILLISECONDS,
  maxReplyBytes: COUNT_LIMIT,
  toolTimeoutMs: MILLISECONDS,
  maxResultChars: LIMIT,
  logger: LOGGER,
});

function unsendable(option: string): OptionFault {
  return { option, problem: `${option} holds what no header can`, fix: `${option}: letters, digits and -` };
}
