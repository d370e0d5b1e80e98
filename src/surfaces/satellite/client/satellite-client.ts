import { randomUUID } from 'node:crypto';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { type CallRecord, type CallScope, SCOPE_RULES } from '../../../core/contract/call.js';
import type { Logger } from '../../../core/contract/ports.js';
import {
  checkOptions,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../../core/errors/author-fault.js';
import { ToolwrightError } from '../../../core/errors/toolwright-error.js';
import { anySignal, callListener, MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { isRecord, parsedJson, withoutUndefined } from '../../../core/kernel/json.js';
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
import { retryAfterOf } from '../../../models/wire/describe-failure.js';
import { readServerEvents } from '../../../models/wire/server-events.js';
import { safeLog } from '../../../run/call/log.js';
import { answerText } from '../../../run/call/result-text.js';
import { ToolRegistry } from '../../../run/call/tool-registry.js';
import type { LoopEvent } from '../../../run/loop/events.js';
import type { ToolRequest } from '../../../run/text/text-tool-calls.js';
import {
  type ChatErrorCode,
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  isConversationId,
  type TurnReply,
} from '../chat-protocol.js';

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

const { channel, chatId, data, container, signal } = SCOPE_RULES;

const RUN_RULES: RulesOf<SatelliteRunOptions> = {
  ...{ channel, chatId, data, container, signal },
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
    this.#transport = new ChatTransport(options);
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
      log: safeLog(this.#options.logger),
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
      { option, problem: 'url contains a user or a password', fix: "headers: { authorization: 'Basic …' }" },
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
      const problem = `${option} contains characters that a header cannot have`;
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
  readonly log: Logger;
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

  async #finish(first: () => Promise<TurnReply>): Promise<SatelliteOutcome> {
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

  async #answerRequests(first: TurnReply): Promise<SatelliteOutcome> {
    const { client, signal } = this.#services;
    const { maxIterations = 20 } = client;
    let reply = first;
    for (;;) {
      const { tool_request: request, message, finish_reason: finishReason } = reply.response;
      if (request === undefined)
        return { ...this.#progress(), status: 'completed', content: message.content, finishReason };
      if (this.#iterations >= maxIterations) {
        const problem = `${maxIterations} requests were made, and the assistant still calls ${request.name}`;
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

  async #post(message: ChatMessage, answered?: TurnReply): Promise<TurnReply> {
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
      onRetry: (retry: Retry) => this.#emit({ type: 'retry', ...retry }),
    };
  }

  #emit(event: SatelliteEvent): void {
    const { onEvent, log } = this.#services;
    callListener(
      () => onEvent?.(event),
      (error) => log.warn('Satellite listener failed', { event: event.type, error }),
    );
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
  | ({ readonly type: 'retry' } & Retry)
  | { readonly type: 'run-end'; readonly outcome: SatelliteOutcome };

/** A request that is sent again. */
interface Retry {
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: Error;
}

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

interface ReplyListener {
  readonly signal: AbortSignal | undefined;
  readonly onText: (text: string) => void;
  readonly onRetry: (retry: Retry) => void;
}

const LONGEST_DELAY_MS = 30_000;

/**
 * Sends requests and retries them. Retrying is safe even if the first request may have arrived: its `Idempotency-Key`
 * identifies the turn, and the server repeats the reply of a turn that it has.
 */
class ChatTransport {
  readonly #options: SatelliteClientOptions;
  readonly #address: string;

  constructor(options: SatelliteClientOptions) {
    this.#options = options;
    this.#address = `${String(options.url).replace(/\/+$/, '')}/v1/chat`;
  }

  /** `after` is the turn that a result answers; the server refuses the result if the conversation has continued. */
  post(request: ChatRequest, after: string | undefined, listener: ReplyListener): Promise<TurnReply> {
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...(after === undefined ? {} : { 'if-match': `"${after}"` }),
    };
    const body = JSON.stringify(request);
    return this.#send(this.#address, { method: 'POST', headers, body }, listener);
  }

  get(conversationId: string, listener: ReplyListener): Promise<TurnReply> {
    return this.#send(`${this.#address}/${encodeURIComponent(conversationId)}`, {}, listener);
  }

  async #send(address: string, request: RequestInit, listener: ReplyListener): Promise<TurnReply> {
    const { maxRetries = 5 } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(address, request, listener);
      } catch (thrown) {
        listener.signal?.throwIfAborted();
        const error = toAssistantError(thrown);
        const { code, status = 0, retryAfterMs = 0 } = error;
        // The provider of a server has already been retried.
        const isPassing =
          ['unreachable', 'conflict', 'rate_limited'].includes(code) ||
          (code !== 'provider_failed' && [429, 502, 503, 504].includes(status));
        if (attempt > maxRetries || !isPassing) throw error;
        // Random, so that many satellites do not reconnect to a server at the same moment.
        const growing = Math.min(250 * 2 ** (attempt - 1), 5000) * (0.5 + Math.random() / 2);
        const delayMs = Math.min(Math.max(growing, retryAfterMs), LONGEST_DELAY_MS);
        listener.onRetry({ attempt, delayMs, error });
        await wait(delayMs, undefined, { signal: listener.signal });
      }
    }
  }

  async #sendOnce(
    address: string,
    request: RequestInit,
    { signal, onText }: ReplyListener,
  ): Promise<TurnReply> {
    const { token, headers, timeoutMs = 300_000, maxReplyBytes = 10 * 2 ** 20 } = this.#options;
    const own = token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
    // Not `AbortSignal.timeout`: Node would retain the combined signal of each request until that time.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, MAX_TIMER_MS));
    // Do not follow redirects: a redirected POST may become a GET.
    const options = {
      ...request,
      headers: { ...own, ...request.headers },
      signal: anySignal(signal, late.signal),
      redirect: 'manual',
    } as const;
    try {
      return await readReply(await fetch(address, options), { onText, maxBytes: maxReplyBytes });
    } catch (cause) {
      if (!late.signal.aborted) throw cause;
      const problem = `the assistant sent no complete reply within ${timeoutMs} ms`;
      throw new AssistantError('timed_out', problem, { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}

function toAssistantError(thrown: unknown): AssistantError {
  if (thrown instanceof AssistantError) return thrown;
  // The message `fetch failed` has its details in its cause.
  const reason = (thrown as Partial<Error> | undefined)?.cause ?? thrown;
  return new AssistantError('unreachable', `the assistant cannot be reached: ${errorMessage(reason)}`, {
    cause: thrown,
  });
}

/** Reads a reply from a JSON body or from events. Throws an {@link AssistantError} if it is invalid. */
async function readReply(
  response: Response,
  { onText, maxBytes }: Pick<ReplyListener, 'onText'> & { readonly maxBytes: number },
): Promise<TurnReply> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  const body = ReadableStream.from(atMost(maxBytes, response.body ?? []));
  if (response.ok && isStream) {
    for await (const { event, data, id } of readServerEvents(body, { dropsCut: true })) {
      if (event === 'response') return { turnId: id, response: checkReply(parsedJson(data)) };
      if (event === 'error') throw readError(data);
      const delta = event === 'text-delta' ? (parsedJson(data) as { readonly text?: unknown } | null) : null;
      if (typeof delta?.text === 'string') onText(delta.text);
    }
    throw new AssistantError('unreachable', 'the stream of the assistant ended before its reply');
  }
  const text = await readText(body);
  if (!response.ok) throw readError(text, response);
  const [, turnId] = /^(?:W\/)?"(.*)"$/.exec(response.headers.get('etag') ?? '') ?? [];
  return { turnId, response: checkReply(parsedJson(text)) };
}

/** Leaving the iteration closes the connection. */
async function* atMost(
  maxBytes: number,
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes)
      throw new AssistantError('reply_too_large', `the assistant sent more than ${maxBytes} bytes`);
    yield chunk;
  }
}

function readError(text: string, { status, headers }: Partial<Response> = {}): AssistantError {
  const body = parsedJson(text) as {
    readonly error?: { readonly code?: unknown; readonly message?: unknown };
  } | null;
  const { code, message } = body?.error ?? {};
  const details = { status, retryAfterMs: retryAfterOf(headers) };
  if (typeof code === 'string' && typeof message === 'string')
    return new AssistantError(code as AssistantError['code'], message, details);
  return new AssistantError('invalid_response', `the assistant answered with status ${status}`, details);
}

/** The server may be another implementation; some write null for omitted fields. */
function checkReply(value: unknown): ChatResponse {
  const { tool_request: request, ...reply } = (value ?? {}) as Partial<ChatResponse>;
  const hasRequest = request !== undefined && request !== null;
  const isReply =
    isConversationId(reply.conversation_id) &&
    typeof reply.message?.content === 'string' &&
    typeof reply.finish_reason === 'string' &&
    (!hasRequest || (typeof request.name === 'string' && isRecord(request.arguments)));
  if (isReply) return { ...(reply as ChatResponse), ...(hasRequest ? { tool_request: request } : {}) };
  throw new AssistantError('invalid_response', 'the assistant answered with something that is not a reply');
}

/**
 * Why an assistant did not reply: its own code; `unreachable` if no response arrived; `timed_out` or `reply_too_large`
 * beyond the client's limits; `invalid_response` for a response that violates the protocol.
 *
 * @example
 * ```ts
 * const outcome = await satellite.send('Is it raining in Lisbon?');
 * if (outcome.status === 'failed' && outcome.error.cause instanceof AssistantError)
 *   console.error(outcome.error.cause.code, outcome.error.cause.status);
 * ```
 */
export class AssistantError extends Error {
  override readonly name = 'AssistantError';
  readonly code: ChatErrorCode | 'unreachable' | 'timed_out' | 'reply_too_large' | 'invalid_response';
  /** HTTP status, if there was a response. */
  readonly status?: number;
  /** Milliseconds that the server asked to wait before a retry. */
  readonly retryAfterMs?: number;

  constructor(
    code: AssistantError['code'],
    message: string,
    details: Pick<AssistantError, 'status' | 'retryAfterMs' | 'cause'> = {},
  ) {
    super(message, { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}
