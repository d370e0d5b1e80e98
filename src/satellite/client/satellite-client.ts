import { randomUUID } from 'node:crypto';
import type { CallRecord } from '../../contract/call-record.js';
import { type CallScope, SCOPE_RULES } from '../../contract/call-scope.js';
import type { ToolRequest } from '../../detection/parse-tool-request.js';
import {
  checkOptions,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../errors/invalid-options.js';
import { SafeLog } from '../../invocation/safe-log.js';
import { FILLED_TEXT, FUNCTION, TEXT } from '../../kernel/option-rules.js';
import { optionTable, type RulesOf } from '../../kernel/options.js';
import { ChatTransport } from './chat-transport.js';
import { CLIENT_OPTIONS, type SatelliteClientOptions } from './satellite-client-options.js';
import type { SatelliteListener } from './satellite-event.js';
import type { SatelliteOutcome } from './satellite-outcome.js';
import { SatelliteRun } from './satellite-run.js';

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
