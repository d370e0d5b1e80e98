import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type {
  ConversationStore,
  StoredConversation,
  StoredMessage,
} from '../../../core/contract/conversation-store.js';
import { type LLMProvider, type Message, MODEL, PROVIDER } from '../../../core/contract/llm-provider.js';
import type { Logger } from '../../../core/contract/ports.js';
import { TELEMETRY, type Telemetry } from '../../../core/contract/telemetry.js';
import { checkArguments, checkOptions } from '../../../core/errors/author-fault.js';
import { MAX_TIMER_MS } from '../../../core/kernel/async.js';
import { type Fields, isRecord, withoutUndefined } from '../../../core/kernel/json.js';
import { KeyQueue } from '../../../core/kernel/key-queue.js';
import { bytesOf, type NodeHandler, nodeListener, sendsJson } from '../../../core/kernel/node-http.js';
import {
  COUNT_LIMIT,
  either,
  exactly,
  FILLED_TEXT,
  FUNCTION,
  LOGGER,
  listOf,
  type OptionRule,
  objectOf,
  optionTable,
  protecting,
  RECORD,
  required,
  secret,
  TEXT,
  withMethods,
} from '../../../core/kernel/options.js';
import { safeLog } from '../../../run/call/log.js';
import { SentMessages } from '../../../run/loop/messages.js';
import { askRecorded } from '../../../run/loop/request.js';
import { isSameOwner, ownerOf } from '../../../run/loop/run-owner.js';
import { parseToolRequest, type ToolRequest } from '../../../run/text/text-tool-calls.js';
import {
  type ChatError,
  type ChatErrorCode,
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  isConversationId,
  type TurnReply,
} from '../chat-protocol.js';
import { MemoryConversationStore } from './conversation-store.js';

type TextListener = (text: string) => void | Promise<void>;

interface TurnRequest {
  readonly conversationId: string;
  readonly messages: readonly ChatMessage[];
  /** Identifies the turn: the same id gets the same reply again. */
  readonly turnId?: string;
  /** The user, if the assistant distinguishes users. */
  readonly owner?: unknown;
  /** The turn that must be the last one, if the client specifies it. */
  readonly after?: string;
  readonly systemPrompt?: string;
  readonly signal: AbortSignal;
  readonly onText?: TextListener;
}

/** The conversation; `undefined` for another owner, who must not find out that it exists. */
function ownConversation(
  conversation: StoredConversation | undefined,
  owner: unknown,
): StoredConversation | undefined {
  if (conversation === undefined || isSameOwner(conversation.owner, owner)) return conversation;
  throw new AssistantFault('conversation_not_found', 'there is no such conversation, or it has expired');
}

/** The reply to a request that was sent again because its response was lost. */
async function replayed(request: TurnRequest, conversation: StoredConversation): Promise<TurnReply> {
  const response = toChatResponse(request.conversationId, conversation);
  if (response.message.content !== '') await request.onText?.(response.message.content);
  return { turnId: conversation.turnId, response };
}

/**
 * Drops results that nothing waits for. The protocol has no role for the others, so they are user messages with a mark
 * that distinguishes them from the user's text; the mark is removed from all other text, even within a result.
 */
function honoured(
  messages: readonly ChatMessage[],
  conversation: StoredConversation | undefined,
): readonly StoredMessage[] {
  const isPending = pendingRequest(conversation) !== undefined;
  return messages
    .filter(({ role }) => role === 'user' || isPending)
    .map((message): StoredMessage => {
      // A forged mark loses its bracket.
      const content = message.content.replace(IMITATION, '(');
      if (message.role === 'user') return { role: 'user', content };
      const name = message.name.replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, LONGEST_NAME);
      return { role: 'user', content: `[tool_result:${name}]\n${content}` };
    });
}

/**
 * Passes a reply's text on while it is written, unless it may still become a tool request: `content` is then `''`, and
 * no part may have been shown. Text that does not start with `{` cannot be a request.
 */
export class TextGate {
  readonly #show: TextListener;
  #received = '';
  #state: 'blank' | 'held' | 'open' = 'blank';

  constructor(show: TextListener) {
    this.#show = show;
  }

  push(text: string): void | Promise<void> {
    this.#received += text;
    if (this.#state === 'open') return this.#show(text);
    if (this.#state !== 'blank') return;
    // Only white space so far.
    const begun = text.trimStart();
    if (begun === '') return;
    this.#state = begun.startsWith('{') ? 'held' : 'open';
    if (this.#state === 'open') return this.#show(this.#received);
  }

  /** Ends the reply: sends the rest of the final text, if that continues what was sent. */
  async end(content: string): Promise<void> {
    if (!content.startsWith(this.#received)) return;
    const rest = this.#state === 'open' ? content.slice(this.#received.length) : content;
    if (rest !== '') await this.#show(rest);
  }
}

/**
 * The pending request, read from the last message. So each reply sets or clears it, and it cannot differ from the
 * stored messages. A reply that was cut off requests nothing.
 */
function pendingRequest(conversation: StoredConversation | undefined): ToolRequest | undefined {
  if (conversation === undefined) return undefined;
  const { messages, finishReason } = conversation;
  if (finishReason === 'length' || finishReason === 'content_filter') return undefined;
  const request = parseToolRequest(messages.at(-1)?.content);
  try {
    JSON.stringify(request);
    return request;
  } catch {
    // Deep nesting can be parsed, but not serialized without a stack overflow; then it is text.
    return undefined;
  }
}

/** The last reply of a conversation, as sent to clients. */
function toChatResponse(id: string, conversation: StoredConversation): ChatResponse {
  const request = pendingRequest(conversation);
  const content = request === undefined ? (conversation.messages.at(-1)?.content ?? '') : '';
  return withoutUndefined({
    conversation_id: id,
    message: { role: 'assistant', content },
    finish_reason: conversation.finishReason,
    tool_request: request,
  });
}

const LONGEST_NAME = 64;

/** Matches invisible characters between the letters, which would hide a forged mark here, but not from the model. */
const hidden = (word: string): string => [...word].join('\\p{Cf}*');

const IMITATION = new RegExp(
  `[[［【〔⟦](?=[\\s\\p{Cf}]*${hidden('tool')}[\\s\\p{Cf}_-]*${hidden('result')})`,
  'giu',
);

/** Answers a request; rejects only for an invalid argument. */
export type AssistantHandler = (request: Request) => Promise<Response>;

/**
 * The assistant's side of the tool_request protocol as a Web-standard handler, for Hono and similar servers;
 * `toNodeHandler` mounts it in Node's `http`, Express and NestJS.
 *
 * `POST /v1/chat` takes a `ChatRequest` and returns a `ChatResponse`, or with `Accept: text/event-stream` events:
 * `text-delta`, then `response` or `error`. `GET /v1/chat/{conversation_id}` returns the last reply again. No tool is
 * ever executed here, and the model is asked at most once per request; the satellite continues. Errors are a
 * `ChatError` with a status; `docs/guides/satellite.md` lists them.
 *
 * @throws InvalidOptionsError (521) for invalid options.
 *
 * @example
 * ```ts
 * const handler = createAssistantHandler({
 *   provider,
 *   model: 'gpt-5',
 *   systemPrompt: toolRequestPrompt(registry.toProviderDefs()),
 *   store: new SqliteConversationStore({ path: 'conversations.db' }),
 *   token: 'a-long-secret',
 * });
 * createServer(toNodeHandler(handler)).listen(8080);
 * ```
 */
export function createAssistantHandler(options: AssistantHandlerOptions): AssistantHandler {
  checkOptions(options, ASSISTANT_OPTIONS);
  const service = new ChatService(options);
  return async (request) => {
    checkArguments({
      of: 'the handler of createAssistantHandler',
      given: { request },
      rules: { request: REQUEST },
    });
    const response = await route(request, service, options).catch((thrown: unknown) => {
      const { status, body, headers } = service.faultOf(thrown, request);
      return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...headers } });
    });
    for (const [name, value] of Object.entries(corsHeaders(request, options.cors)))
      response.headers.set(name, value);
    return response;
  };
}

const REQUEST = withMethods(
  ['text'],
  'a Request of the Web; in Node’s http, toNodeHandler(handler) makes one',
);

/**
 * Mounts a handler in Node's `http`, Express, Fastify or NestJS. The handler sees the whole path, even below an Express
 * mount point, so set its `basePath`. A body that a parser has already read is taken from `request.body`.
 *
 * @example
 * ```ts
 * const handler = createAssistantHandler({ provider, model });
 * createServer(toNodeHandler(handler)).listen(8080);
 * ```
 */
export function toNodeHandler(handler: AssistantHandler): NodeHandler {
  checkArguments({ of: 'toNodeHandler', given: { handler }, rules: { handler: HANDLER } });
  return nodeListener(handler);
}

const HANDLER = { ...FUNCTION, fix: 'createAssistantHandler({ provider, model })' };

async function route(
  request: Request,
  service: ChatService,
  { basePath = '', token, rateLimit, cors }: AssistantHandlerOptions,
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : '';
  const [, id] = /^\/v1\/chat(?:\/([^/]+))?$/.exec(path) ?? [undefined, null];
  if (id === null) throw new AssistantFault('not_found', 'this path does not exist');
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  if (cors !== undefined && isPreflight) return new Response(null, { status: 204, headers: ALLOWED });
  const method = id === undefined ? 'POST' : 'GET';
  if (request.method !== method)
    throw new AssistantFault('method_not_allowed', `this path supports only ${method}`, { allow: method });
  checkToken(request, token);
  await enforceRateLimit(request, rateLimit);
  if (id === undefined) return service.post(request);
  let decoded: string;
  try {
    decoded = decodeURIComponent(id);
  } catch {
    throw new AssistantFault('invalid_request', 'the path is not valid percent-encoding');
  }
  return service.get(decoded, request);
}

/** The two endpoints of an assistant; faults are thrown. */
class ChatService {
  readonly log: Logger;
  readonly #options: AssistantHandlerOptions;
  readonly #store;
  /** Finds the provider that each provider item came from. */
  readonly #sent: SentMessages;
  /**
   * Requests of one conversation run one after another, so that a second message sent in a hurry is not refused.
   * Requests of other processes do not wait; the store accepts only one of them.
   */
  readonly #queue = new KeyQueue();

  constructor(options: AssistantHandlerOptions) {
    this.#options = options;
    this.#store = options.store ?? new MemoryConversationStore();
    this.log = safeLog(options.logger);
    this.#sent = new SentMessages([], options.logger);
  }

  async post(request: Request): Promise<Response> {
    const { maxBodyBytes = 2 ** 20, heartbeatMs = 15_000 } = this.#options;
    const body = readAssistantRequest(await readBody(request, maxBodyBytes));
    const { systemPrompt } = this.#options;
    const turn: TurnRequest = {
      conversationId: body.conversation_id ?? randomUUID(),
      messages: body.messages,
      turnId: turnIdOf(request.headers.get('idempotency-key'), 'Idempotency-Key'),
      after: turnIdOf(request.headers.get('if-match')?.replace(/^"(.*)"$/, '$1'), 'If-Match'),
      systemPrompt: typeof systemPrompt === 'function' ? await systemPrompt(request) : systemPrompt,
      owner: await this.#ownerOf(request),
      signal: request.signal,
    };
    const isStream = /(^|,)\s*text\/event-stream\s*(;|,|$)/i.test(request.headers.get('accept') ?? '');
    if (!isStream) return jsonReply(await this.#inOrder(turn));
    return eventStreamResponse(
      async (send, signal) => {
        try {
          const onText = (text: string): Promise<void> => send('text-delta', { text });
          const { response, turnId } = await this.#inOrder({ ...turn, signal, onText });
          await send('response', response, turnId);
        } catch (thrown) {
          await send('error', this.faultOf(thrown, { signal }).body);
        }
      },
      { heartbeatMs, signal: request.signal },
    );
  }

  /** `GET /v1/chat/{conversation_id}`: the last reply again, with its pending request. */
  async get(conversationId: string, request: Request): Promise<Response> {
    const id = checkConversationId(conversationId);
    const owner = await this.#ownerOf(request);
    const conversation = ownConversation(await this.#store.load(id), owner);
    if (conversation === undefined)
      throw new AssistantFault('conversation_not_found', 'there is no such conversation, or it has expired');
    return jsonReply({ turnId: conversation.turnId, response: toChatResponse(id, conversation) });
  }

  /** Converts anything that was thrown to a fault. */
  faultOf(thrown: unknown, { signal }: Pick<Request, 'signal'>): AssistantFault {
    if (thrown instanceof AssistantFault) return thrown;
    // The client has left: there is no error to report.
    if (signal.aborted) return new AssistantFault('internal_error', 'the client disconnected');
    this.log.error('Request failed', { error: thrown });
    return new AssistantFault('internal_error', 'the server failed');
  }

  async #ownerOf(request: Request): Promise<unknown> {
    const { owner } = this.#options;
    return owner && ownerOf({ owner: await owner(request) });
  }

  #inOrder(turn: TurnRequest): Promise<TurnReply> {
    return this.#queue.run(turn.conversationId, () => this.#take(turn), turn.signal);
  }

  /**
   * Runs one turn: sends the messages to the model and returns its reply. Nothing is executed, and the model is asked at
   * most once. Everything is stored together at the end, so that a failure leaves the conversation and its pending
   * request unchanged.
   *
   * Throws an {@link AssistantFault}, or the signal's reason.
   */
  async #take(request: TurnRequest): Promise<TurnReply> {
    const { maxMessages = 1000 } = this.#options;
    const { conversationId: id, turnId = randomUUID() } = request;
    const conversation = ownConversation(await this.#store.load(id), request.owner);
    if (conversation?.turnId === turnId) return replayed(request, conversation);
    if (request.after !== undefined && request.after !== conversation?.turnId)
      throw new AssistantFault('conversation_changed', 'the conversation has continued, or has expired');
    const added = honoured(request.messages, conversation);
    if (added.length === 0) {
      // All results are unexpected: the model is not asked, and its last reply is still valid.
      if (conversation !== undefined) return replayed(request, conversation);
      const message = { role: 'assistant', content: '' } as const;
      return { response: { conversation_id: id, message, finish_reason: 'stop' } };
    }
    const messages = [...(conversation?.messages ?? []), ...added];
    if (messages.length >= maxMessages)
      throw new AssistantFault(
        'conversation_full',
        'the conversation has too many messages; start a new conversation',
      );
    const gate = request.onText && new TextGate(request.onText);
    const reply = await this.#ask({ ...request, gate }, messages);
    const { content, reasoning, finishReason } = reply;
    // Provider items of a reply with calls may refer to calls that will never be answered.
    const providerItems = reply.toolCalls.length === 0 ? reply.providerItems : undefined;
    const answer = withoutUndefined({ role: 'assistant', content, reasoning, providerItems } as const);
    const turn = {
      id: turnId,
      after: conversation?.turnId,
      ...withoutUndefined({ owner: request.owner }),
      messages: [...added, answer],
      finishReason,
    };
    if (!(await this.#store.append(id, turn))) {
      // Another process stored a turn first: the same request sent again, or another one.
      const current = ownConversation(await this.#store.load(id), request.owner);
      if (current !== undefined && current.turnId === request.turnId)
        return replayed({ ...request, onText: undefined }, current);
      throw new AssistantFault('conflict', 'the conversation was changed by another request meanwhile');
    }
    const response = toChatResponse(id, { ...turn, turnId });
    if (response.tool_request === undefined) await gate?.end(content);
    return { turnId, response };
  }

  async #ask(
    { conversationId, systemPrompt, signal, gate }: TurnRequest & { readonly gate?: TextGate },
    messages: readonly Message[],
  ) {
    const { provider, model, llmOptions, telemetry } = this.#options;
    const system: readonly Message[] = systemPrompt ? [{ role: 'system', content: systemPrompt }] : [];
    const history = this.#sent.for(provider.itemKey?.(model), [...system, ...messages]);
    const reply = await askRecorded(telemetry, {
      provider,
      request: { model, messages: history, options: llmOptions ?? {}, signal },
      onPart: gate && ((part) => (part.type === 'text-delta' ? gate.push(part.text) : undefined)),
    });
    if (reply.ok) {
      const { length } = reply.response.toolCalls;
      if (length > 0) this.log.warn('Native tool calls ignored', { conversationId, count: length });
      return reply.response;
    }
    if (reply.reason === 'aborted') throw signal.reason;
    this.log.error('Provider failed', { conversationId, error: reply.error.cause });
    throw new AssistantFault('provider_failed', 'the model gave no usable reply');
  }
}

function turnIdOf(value: string | null | undefined, header: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isConversationId(value)) return value;
  throw new AssistantFault('invalid_request', `${header} must be 1 to 128 letters, digits and . _ ~ : @ -`);
}

function jsonReply({ turnId, response }: TurnReply): Response {
  const etag = turnId && { etag: `"${turnId}"` };
  return Response.json(response, { headers: { 'cache-control': 'no-store', ...etag } });
}

/**
 * Sends an event, and waits while the client does not read. The client may report `id` as the last event it received.
 */
type SendEvent = (event: string, data: unknown, id?: string) => Promise<void>;

interface EventStreamOptions {
  /** Milliseconds between comments. A client that reads nothing for several times this long counts as gone. */
  readonly heartbeatMs: number;
  /** Ends the work, as a client that disconnects does. */
  readonly signal: AbortSignal;
}

/** The most bytes buffered for a slow reader; its work waits beyond that. */
const MOST_WAITING = 64 * 1024;

const SILENT_HEARTBEATS = 4;

/**
 * A response with server-sent events. It starts immediately, so that proxies and clients see it live. `work` must not
 * reject; the stream ends when it resolves.
 */
function eventStreamResponse(
  work: (send: SendEvent, signal: AbortSignal) => Promise<void>,
  { heartbeatMs, signal }: EventStreamOptions,
): Response {
  const encoder = new TextEncoder();
  const gone = new AbortController();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let heartbeat: NodeJS.Timeout | undefined;
  /** Resolves when the client continues to read. */
  let reading: PromiseWithResolvers<void> | undefined;
  const isFull = (): boolean => !gone.signal.aborted && (controller.desiredSize ?? 0) <= 0;
  const write = (text: string): void => {
    if (!gone.signal.aborted) controller.enqueue(encoder.encode(text));
  };
  const resume = (): void => {
    reading?.resolve();
    reading = undefined;
  };
  const leave = (reason: unknown): void => {
    clearInterval(heartbeat);
    gone.abort(reason);
    resume();
  };
  const giveUp = (): void => {
    const reason = new Error('the client does not read its events');
    controller.error(reason);
    leave(reason);
  };
  const send: SendEvent = async (event, data, id) => {
    const name = id === undefined ? '' : `id: ${id}\n`;
    write(`event: ${event}\n${name}data: ${JSON.stringify(data)}\n\n`);
    if (!isFull()) return;
    reading ??= Promise.withResolvers<void>();
    const timer = setTimeout(giveUp, Math.min(heartbeatMs * SILENT_HEARTBEATS, MAX_TIMER_MS)).unref();
    await reading.promise;
    clearTimeout(timer);
  };
  // A client that does not read needs no heartbeat, which would only add to the buffer.
  const beat = (): void => (isFull() ? undefined : write(': still there\n\n'));
  const start = (opened: ReadableStreamDefaultController<Uint8Array>): void => {
    controller = opened;
    heartbeat = setInterval(beat, Math.min(heartbeatMs, MAX_TIMER_MS));
    void work(send, AbortSignal.any([signal, gone.signal])).finally(() => {
      clearInterval(heartbeat);
      if (!gone.signal.aborted) controller.close();
    });
  };
  const strategy = new ByteLengthQueuingStrategy({ highWaterMark: MOST_WAITING });
  const body = new ReadableStream<Uint8Array>({ start, pull: resume, cancel: leave }, strategy);
  return new Response(body, { headers: EVENT_STREAM });
}

/** Prevents proxies from buffering the events. */
const EVENT_STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** Throws an {@link AssistantFault} unless the request has the token; takes constant time for wrong tokens. */
function checkToken({ headers }: Request, token: string | undefined): void {
  if (token === undefined) return;
  const [, sent = ''] = /^bearer +(.*)$/i.exec(headers.get('authorization') ?? '') ?? [];
  // Digests have the same length for every input.
  const digest = (text: string) => createHash('sha256').update(text).digest();
  if (timingSafeEqual(digest(sent.trim()), digest(token.trim()))) return;
  throw new AssistantFault('unauthorized', 'a bearer token is required', { 'www-authenticate': 'Bearer' });
}

/** The pages that may send requests from their scripts. */
export interface CorsOptions {
  /** Origins such as `https://app.example.org`, or `'*'` for all. */
  readonly origins: readonly string[] | '*';
}

type Headers = Readonly<Record<string, string>>;

const ALLOWED: Headers = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': 'authorization, content-type, if-match, idempotency-key',
  'access-control-max-age': '600',
};

/** Headers for browsers; empty if the page's origin is not allowed. */
function corsHeaders({ headers }: Request, cors: CorsOptions | undefined): Headers {
  if (cors === undefined) return {};
  const origin = headers.get('origin');
  const vary: Headers = cors.origins === '*' ? {} : { vary: 'Origin' };
  if (origin === null || !(cors.origins === '*' || cors.origins.includes(origin))) return vary;
  return {
    ...vary,
    'access-control-allow-origin': cors.origins === '*' ? '*' : origin,
    'access-control-expose-headers': 'etag, retry-after',
  };
}

/** Whether to serve a request; `retryAfterSeconds` becomes the header `Retry-After`. */
export type RateLimitDecision = boolean | { readonly allow: boolean; readonly retryAfterSeconds?: number };

/** Decides about a request by its method, URL and headers; its body has not been read. */
export type RateLimit = (request: Request) => RateLimitDecision | Promise<RateLimitDecision>;

/** Throws an {@link AssistantFault} unless the hook allows it. */
async function enforceRateLimit(request: Request, rateLimit: RateLimit | undefined): Promise<void> {
  if (rateLimit === undefined) return;
  // The hook gets a copy, so that it cannot consume the body.
  const { method, url, headers } = request;
  const decision = await rateLimit(new Request(url, { method, headers }));
  if (decision === true || (typeof decision === 'object' && decision?.allow === true)) return;
  const seconds = typeof decision === 'object' ? Number(decision?.retryAfterSeconds) : Number.NaN;
  const retryAfter = { 'retry-after': String(Math.max(0, Math.ceil(seconds))) };
  throw new AssistantFault('rate_limited', 'too many requests', Number.isFinite(seconds) ? retryAfter : {});
}

const FIELDS: Readonly<Record<ChatMessage['role'], readonly string[]>> = {
  user: ['role', 'content'],
  tool_result: ['role', 'name', 'content'],
};

function readAssistantRequest(body: unknown): ChatRequest {
  const fields = object(body, 'the body');
  refuseOthers(fields, ['conversation_id', 'messages'], 'the body');
  const { conversation_id: id, messages } = fields;
  if (!Array.isArray(messages) || messages.length === 0)
    throw wrong('messages must be an array with at least one message');
  return {
    // Clients in other languages write null for omitted fields.
    ...(id === undefined || id === null ? {} : { conversation_id: checkConversationId(id) }),
    messages: messages.map((message, index) => readMessage(message, `messages[${index}]`)),
  };
}

/** Checks the id of a conversation. Throws an {@link AssistantFault} if it is invalid. */
function checkConversationId(value: unknown): string {
  if (isConversationId(value)) return value;
  const rule = '1 to 128 letters, digits and . _ ~ : @ -, beginning with a letter or a digit';
  throw wrong(`conversation_id must be ${rule}`);
}

function readMessage(value: unknown, where: string): ChatMessage {
  const message = object(value, where);
  const { role, name, content } = message;
  if (role !== 'user' && role !== 'tool_result') throw wrong(`${where}.role must be "user" or "tool_result"`);
  refuseOthers(message, FIELDS[role], where);
  if (typeof content !== 'string') throw wrong(`${where}.content must be a string`);
  if (role === 'user') {
    // Some providers refuse blank messages, which would look like a failure of theirs.
    if (content.trim() === '') throw wrong(`${where}.content must not be blank`);
    return { role, content };
  }
  if (typeof name !== 'string' || name.trim() === '')
    throw wrong(`${where}.name must be a string, not blank`);
  return { role, name, content };
}

function object(value: unknown, where: string): Fields {
  if (isRecord(value)) return value;
  throw wrong(`${where} must be an object`);
}

function refuseOthers(fields: Fields, known: readonly string[], where: string): void {
  const other = Object.keys(fields).find((name) => !known.includes(name));
  if (other !== undefined)
    throw wrong(`${where} has an unknown field ${JSON.stringify(other.slice(0, 100))}`);
}

function wrong(problem: string): AssistantFault {
  return new AssistantFault('invalid_request', problem);
}

/** Parses the JSON body. Throws an {@link AssistantFault} if it is not JSON, or too large. */
async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  if (!sendsJson(request))
    throw new AssistantFault('unsupported_media_type', 'the content type must be application/json');
  const isTooLarge = Number(request.headers.get('content-length')) > maxBytes;
  const reading = isTooLarge ? undefined : bytesOf(request, maxBytes);
  const bytes = await reading?.catch(() => {
    throw new AssistantFault('invalid_request', 'the body is incomplete');
  });
  if (bytes === undefined)
    throw new AssistantFault('body_too_large', `the body has more than ${maxBytes} bytes`);
  let problem = 'the body is not UTF-8';
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    problem = 'the body is not JSON';
    return JSON.parse(text);
  } catch {
    throw new AssistantFault('invalid_json', problem);
  }
}

const STATUS: Readonly<Record<ChatErrorCode, number>> = {
  invalid_json: 400,
  invalid_request: 400,
  unauthorized: 401,
  not_found: 404,
  conversation_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  conversation_changed: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  conversation_full: 422,
  rate_limited: 429,
  internal_error: 500,
  provider_failed: 502,
};

/** A refused request, with a message for its sender. */
class AssistantFault extends Error {
  readonly code: ChatErrorCode;
  readonly headers: Headers;

  constructor(code: ChatErrorCode, message: string, headers: Headers = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return STATUS[this.code];
  }

  get body(): ChatError {
    return { error: { code: this.code, message: this.message } };
  }
}

/** The system prompt; a function receives the request. */
export type SystemPrompt = string | ((request: Request) => string | Promise<string>);

/** Options of `createAssistantHandler`. */
export interface AssistantHandlerOptions {
  readonly provider: LLMProvider;
  readonly model: string;
  /**
   * First message of every request to the provider. It is not stored. Use `toolRequestPrompt` to describe the tools.
   */
  readonly systemPrompt?: SystemPrompt;
  /** Passed to the provider unchanged. */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** Default: a `MemoryConversationStore`, which a restart clears. */
  readonly store?: ConversationStore;
  /** Receives failures of the provider and the store. */
  readonly logger?: Logger;
  /** Records the requests to the model: `openTelemetry()`. */
  readonly telemetry?: Telemetry;
  /** The token that clients send as `Authorization: Bearer …`; default: all clients are accepted. */
  readonly token?: string;
  /**
   * Identifies the user, as JSON. A conversation belongs to its first user; for others, it does not exist. Default:
   * clients are not distinguished.
   */
  readonly owner?: (request: Request) => unknown;
  /** Called before the body of a request is read. */
  readonly rateLimit?: RateLimit;
  /** The pages of other origins that may send requests; default: none. */
  readonly cors?: CorsOptions;
  /** The path of the handler before `/v1/chat`; default: `''`. */
  readonly basePath?: string;
  /** The most bytes of a body; default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** The most messages of a conversation, including replies; default 1,000. */
  readonly maxMessages?: number;
  /** Milliseconds between comments in an event stream; default 15,000. */
  readonly heartbeatMs?: number;
}

const ORIGINS: OptionRule = {
  ...either(exactly('*'), listOf(FILLED_TEXT, '')),
  fix: "['https://app.example.org', …], or '*'",
};

const BASE_PATH: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^(\/[^/?#]+)*$/.test(value),
  fix: "'/assistant'",
};

const ASSISTANT_OPTIONS = optionTable<AssistantHandlerOptions>('createAssistantHandler', {
  provider: required(PROVIDER),
  model: required(MODEL),
  systemPrompt: either(TEXT, FUNCTION),
  llmOptions: RECORD,
  store: withMethods(['load', 'append'], "new SqliteConversationStore({ path: 'conversations.sqlite' })"),
  logger: LOGGER,
  telemetry: TELEMETRY,
  token: protecting(secret({ ...FILLED_TEXT, fix: 'a secret that the clients send' })),
  owner: protecting(FUNCTION),
  rateLimit: protecting(FUNCTION),
  cors: objectOf<CorsOptions>(
    { origins: required(ORIGINS) },
    { fix: "{ origins: ['https://app.example.org'] }" },
  ),
  basePath: BASE_PATH,
  maxBodyBytes: COUNT_LIMIT,
  maxMessages: {
    accepts: (value) => COUNT_LIMIT.accepts(value) && value !== 1,
    fix: 'a whole number, 2 or more, or Infinity',
  },
  heartbeatMs: {
    accepts: (value) => Number.isFinite(value) && Number(value) >= 1,
    fix: 'a number, 1 or more',
  },
});
