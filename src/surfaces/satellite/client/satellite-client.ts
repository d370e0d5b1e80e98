import { randomUUID } from 'node:crypto';
import { type CallRecord, type CallScope, SCOPE_RULES } from '../../../core/contract/call.js';
import type { Logger } from '../../../core/contract/ports.js';
import {
  checkOptions,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../../core/errors/author-fault.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { withoutUndefined } from '../../../core/kernel/json.js';
import {
  COUNT_LIMIT,
  FILLED_TEXT,
  FUNCTION,
  HEADERS,
  instanceOf,
  LIMIT,
  LOGGER,
  MILLISECONDS,
  type OptionRule,
  optionTable,
  type RulesOf,
  required,
  secret,
  TEXT,
} from '../../../core/kernel/options.js';
import { SafeLog } from '../../../run/call/log.js';
import { answerText } from '../../../run/call/result-text.js';
import { ToolRegistry } from '../../../run/call/tool-registry.js';
import type { LoopEvent } from '../../../run/loop/events.js';
import type { ToolRequest } from '../../../run/text/tool-call-parser.js';
import type { ChatMessage } from '../chat-protocol.js';
import { ChatTransport, type ServerReply } from './chat-transport.js';

/** Options of one `send` or `resume`; tools find them in their context. */
export interface SatelliteRunOptions extends Pick<CallScope, 'channel' | 'chatId' | 'data' | 'container'> {
  readonly signal?: AbortSignal;
  readonly onEvent?: SatelliteListener;
}

/** Options of {@link SatelliteClient.send}. */
export interface SatelliteSendOptions extends SatelliteRunOptions {
  /** The conversation to continue, or the id of a new one; default: a new conversation. */
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
 * The satellite's side of the tool_request protocol: asks an assistant, runs the requested tools in a local registry,
 * sends the results, and continues until there is an answer without a tool request. It stores nothing: the server has
 * the conversation, and a program needs only its id to continue after a restart.
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

  /** @throws InvalidOptionsError (521) for invalid options. */
  constructor(options: SatelliteClientOptions) {
    checkOptions(options, CLIENT_OPTIONS);
    this.#options = options;
    const { maxRetries = 5, timeoutMs = 300_000, maxReplyBytes = 10 * 2 ** 20 } = options;
    this.#transport = new ChatTransport({ ...options, maxRetries, timeoutMs, maxReplyBytes });
  }

  /**
   * Sends text to the assistant and runs the tools that it requests. Rejects only for invalid options. A program that
   * may be killed should choose the id of a new conversation itself, and store it before sending.
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
   * Continues a conversation: runs the pending request, or returns the last answer. A tool that ran before a crash, but
   * whose result did not arrive, runs again with the same `context.callId`.
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
    return new SatelliteRun({
      ...options,
      conversationId,
      transport: this.#transport,
      client: this.#options,
      log: new SafeLog(this.#options.logger),
    });
  }
}

/** Options of a `SatelliteClient`. */
export interface SatelliteClientOptions {
  /** The assistant's address, before `/v1/chat`: `https://assistant.example.org`. */
  readonly url: string | URL;
  /** The tools. All limits and policies of the registry apply. */
  readonly tools: ToolRegistry;
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The most requests of one `send` or `resume`; default 20. */
  readonly maxIterations?: number;
  /** How often a failed request is sent again; default 5. */
  readonly maxRetries?: number;
  /** Milliseconds for one request, until its reply is complete; default 300,000. */
  readonly timeoutMs?: number;
  /** The most bytes of a reply, including all its events; default 10 MiB. */
  readonly maxReplyBytes?: number;
  /** Milliseconds for tools without a `timeoutMs`; default 120,000. */
  readonly toolTimeoutMs?: number;
  /** The most characters of a result, for tools without a limit. The server accepts 1 MiB. Default: 100,000. */
  readonly maxResultChars?: number;
  readonly logger?: Logger;
}

const URL_OPTION: OptionRule = {
  // `/v1/chat` is appended; `fetch` refuses URLs with user and password.
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
    explain: (value, option) => {
      const problem = `${option} holds what no header can`;
      const fix = `${option}: letters, digits and -`;
      return FILLED_TEXT.accepts(value) ? [{ option, problem, fix }] : [];
    },
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

interface SatelliteRunServices extends SatelliteRunOptions {
  readonly conversationId: string;
  readonly transport: ChatTransport;
  readonly client: SatelliteClientOptions;
  readonly log: SafeLog;
}

/** One `send` or `resume`: asks, runs tools and answers until there is an answer without a tool request. */
class SatelliteRun {
  readonly #services: SatelliteRunServices;
  readonly #toolCalls: CallRecord[] = [];
  #iterations = 0;

  constructor(services: SatelliteRunServices) {
    this.#services = services;
  }

  send(text: string): Promise<SatelliteOutcome> {
    return this.#finish(() => this.#post({ role: 'user', content: text }));
  }

  resume(): Promise<SatelliteOutcome> {
    const { transport, conversationId } = this.#services;
    return this.#finish(() => transport.get(conversationId, this.#listener()));
  }

  async #finish(first: () => Promise<ServerReply>): Promise<SatelliteOutcome> {
    const { conversationId, signal } = this.#services;
    this.#emit({ type: 'run-start', conversationId });
    let outcome: SatelliteOutcome;
    try {
      signal?.throwIfAborted();
      outcome = await this.#answerRequests(await first());
    } catch (cause) {
      const name = signal?.aborted ? 'RunAborted' : 'ProviderFailed';
      const error = new ToolwrightError(name, errorMessage(cause), { cause });
      outcome = { ...this.#progress(), status: signal?.aborted ? 'aborted' : 'failed', error };
    }
    this.#emit({ type: 'run-end', outcome });
    return outcome;
  }

  async #answerRequests(first: ServerReply): Promise<SatelliteOutcome> {
    const { client, signal } = this.#services;
    const { maxIterations = 20 } = client;
    let reply = first;
    for (;;) {
      const { tool_request: request, message, finish_reason: finishReason } = reply.response;
      if (request === undefined)
        return { ...this.#progress(), status: 'completed', content: message.content, finishReason };
      if (this.#iterations >= maxIterations) {
        const problem = `${maxIterations} requests were made, and the assistant still asks for ${request.name}`;
        const error = new ToolwrightError('ToolLoopLimitReached', problem);
        return { ...this.#progress(), status: 'limit', pending: request, error };
      }
      const record = await this.#call(request, reply.turnId);
      // After an abort, the result is not the tool's; the request stays pending.
      signal?.throwIfAborted();
      reply = await this.#post(
        { role: 'tool_result', name: request.name, content: answerText(record) },
        reply,
      );
    }
  }

  async #post(message: ChatMessage, answered?: ServerReply): Promise<ServerReply> {
    const { transport, conversationId } = this.#services;
    this.#emit({ type: 'step-start', iteration: this.#iterations + 1 });
    const request = { conversation_id: conversationId, messages: [message] };
    const reply = await transport.post(request, answered?.turnId, this.#listener());
    this.#iterations += 1;
    return reply;
  }

  /** A call that would wait for an answer is an error here, as in `execute`. */
  async #call({ name, arguments: args }: ToolRequest, turnId: string | undefined): Promise<CallRecord> {
    const { client, channel, chatId, data, container, signal, conversationId } = this.#services;
    const {
      tools,
      toolTimeoutMs = tools.toolTimeoutMs ?? 120_000,
      maxResultChars = 100_000,
      logger,
    } = client;
    // The id of the turn that requested it: the same after a restart, so that tools can recognize a repeated call.
    const callId = turnId ?? `call_${this.#toolCalls.length + 1}`;
    const about = { callId, tool: name, arguments: args };
    this.#emit({ type: 'call-start', ...about });
    const scope: CallScope = {
      ...{ channel, chatId, data, container, signal, conversationId, callId },
      onUpdate: (update) => this.#emit({ type: 'call-progress', ...about, update }),
    };
    const limits = withoutUndefined({ toolTimeoutMs, maxResultChars, logger });
    const { record } = await tools.invoke({ id: callId, name, arguments: args }, scope, limits);
    this.#toolCalls.push(record);
    this.#emit({ type: 'call-end', callId, tool: name, result: record.result, record });
    return record;
  }

  #progress() {
    const { conversationId } = this.#services;
    return { conversationId, content: '', iterations: this.#iterations, toolCalls: this.#toolCalls };
  }

  #listener() {
    return {
      signal: this.#services.signal,
      onText: (text: string) => this.#emit({ type: 'text-delta', text }),
      onRetry: (retry: { readonly attempt: number; readonly delayMs: number; readonly error: Error }) =>
        this.#emit({ type: 'retry', ...retry }),
    };
  }

  #emit(event: SatelliteEvent): void {
    const { onEvent, log } = this.#services;
    const fail = (error: unknown): void =>
      log.warn('Satellite listener failed', { event: event.type, error });
    try {
      // A listener may be async; its rejection must be reported, too.
      Promise.resolve(onEvent?.(event)).catch(fail);
    } catch (error) {
      fail(error);
    }
  }
}

/**
 * Events of a satellite in order: those of the loop, and `retry` when a request is sent again. Discard text of the step
 * before `retry`: it will be written again.
 */
export type SatelliteEvent =
  | { readonly type: 'run-start'; readonly conversationId: string }
  | Extract<
      LoopEvent,
      { readonly type: 'step-start' | 'text-delta' | 'call-start' | 'call-progress' | 'call-end' }
    >
  | { readonly type: 'retry'; readonly attempt: number; readonly delayMs: number; readonly error: Error }
  | { readonly type: 'run-end'; readonly outcome: SatelliteOutcome };

/** Receives events, and is not awaited; its errors are logged and have no effect. */
export type SatelliteListener = (event: SatelliteEvent) => unknown;

/** The fields of every outcome. */
interface Progress {
  /** The id for `resume` and the next `send`. */
  readonly conversationId: string;
  /** The assistant's answer; `''` unless `completed`. */
  readonly content: string;
  /** Number of answered requests. */
  readonly iterations: number;
  /** All calls that were made here, including failed ones, in order. */
  readonly toolCalls: readonly CallRecord[];
}

/**
 * The outcome: `completed` with an answer; `limit` after `maxIterations` requests, with the tool request still pending
 * on the server; `aborted`; or `failed`, with an {@link AssistantError} as the error's cause. After all but
 * `completed`, `resume` continues the conversation.
 */
export type SatelliteOutcome =
  | (Progress & { readonly status: 'completed'; readonly finishReason: string })
  | (Progress & { readonly status: 'limit'; readonly pending: ToolRequest; readonly error: ToolwrightError })
  | (Progress & { readonly status: 'aborted' | 'failed'; readonly error: ToolwrightError });
