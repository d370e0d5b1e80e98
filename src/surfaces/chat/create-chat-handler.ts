import { type Answer, isNobody } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Logger } from '../../core/contract/ports.js';
import type { RunState } from '../../core/contract/run-state.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { filterFields, isRecord, omitFields, withoutUndefined } from '../../core/kernel/json.js';
import { type NodeHandler, nodeListener } from '../../core/kernel/node-http.js';
import {
  BOOLEAN,
  COUNT,
  FUNCTION,
  LOGGER,
  MILLISECONDS,
  oneOf,
  optionTable,
  PAUSE,
  protecting,
  type RulesOf,
  required,
  TEXT,
  withMethods,
} from '../../core/kernel/options.js';
import { logFailure } from '../../run/call/failure-log.js';
import { Conversations, closedConversations } from '../../run/conversation/conversations.js';
import {
  type ConversationsCloseOptions,
  type ConversationsConfig,
  type ConversationsOptions,
  keepsConversations,
} from '../../run/conversation/conversations-options.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';
import { LOOP_ALIASES, LOOP_RULES } from '../../run/loop/options.js';
import { isSameOwner, ownerOf } from '../../run/loop/run-owner.js';
import {
  addressOf,
  type ChatAddress,
  type ChatProtocol,
  digestOf,
  HttpFault,
  type PostedChat,
  readJson,
  type WriteFrames,
} from './client-requests.js';
import { frameStream } from './frame-stream.js';
import { ANSWERED_ALREADY, type ProtocolName, protocolOf } from './protocols.js';
import {
  type AskedChat,
  type EventSource,
  isOver,
  onlyQuestions,
  questionEvents,
  type ReadEvent,
  readAnsweredTurn,
  readOwnAnswers,
  readPromptedTurn,
  readRest,
} from './turn-readings.js';

/** The owner and the pending calls of a run that waits for answers. */
type AskingRun = Pick<RunState, 'owner' | 'pending'>;

/** Options of a chat handler. */
export interface ChatOptions {
  /**
   * Identifies the user, as any JSON such as `{ user: 'u1' }`. The user owns the chats that it starts, and sees no
   * others. `undefined`, `null` or an error: the request is refused with 401.
   */
  readonly authenticate: (request: Request) => unknown;
  /**
   * Whether a request may answer in the chat of another owner. Only `true` permits it. The request can read and
   * answer the questions, but nothing else of the chat. The turn continues in its owner's scope.
   */
  readonly mayAnswer?: (request: Request, run: AskingRun) => boolean | Promise<boolean>;
  /**
   * `ui-messages`: the AI SDK's UI message stream; `ag-ui`: AG-UI 1.0; `events`: the numbered events unchanged. Default
   * `ui-messages`.
   */
  readonly protocol?: ProtocolName;
  /** Whether the turn ends when its reader disconnects. Default false: it continues, and readers may reconnect. */
  readonly abortOnLeave?: boolean;
  /** The error text for the reader of a failed turn; default: a general sentence. */
  readonly describeError?: (error: JsonObject) => string;
  /** The most bytes of a request; default 4 MiB, because the AI SDK sends the whole chat each time by default. */
  readonly maxRequestBytes?: number;
  /** Milliseconds of silence until a heartbeat; default 15,000. */
  readonly heartbeatMs?: number;
  readonly logger?: Logger;
}

/** The conversations behind the chats; a chat has the id of its conversation. */
export type ChatConversations = Pick<Conversations, 'prompt' | 'answer' | 'abort' | 'events' | 'snapshot'>;

/** A chat handler for existing conversations. */
export interface ConversationsChatOptions extends ChatOptions {
  readonly conversations: ChatConversations;
}

/** A chat handler that creates its conversations: the config of their runs, and their store. */
export interface LoopChatOptions
  extends ChatOptions,
    Omit<ConversationsConfig, 'logger'>,
    Pick<ConversationsOptions, 'store' | 'engine' | 'scope' | 'leaseMs' | 'pollMs' | 'takesTurns'> {
  readonly conversations?: undefined;
}

/** Options of {@link createChatHandler}. */
export type ChatHandlerOptions = ConversationsChatOptions | LoopChatOptions;

export const CHAT_RULES: RulesOf<ChatOptions> = {
  authenticate: required(FUNCTION),
  mayAnswer: protecting({ ...FUNCTION, fix: '(request, run) => true or false' }),
  protocol: oneOf('ui-messages', 'ag-ui', 'events'),
  abortOnLeave: BOOLEAN,
  describeError: FUNCTION,
  maxRequestBytes: COUNT,
  heartbeatMs: MILLISECONDS,
  logger: LOGGER,
};

const OF = 'createChatHandler';

/** Options of NestJS that this handler replaces with others. */
const COMPANIONS = { owner: 'authenticate: (request) => …, which returns the owner of the chats' };

const OVER_CONVERSATIONS = optionTable<ConversationsChatOptions>(
  OF,
  {
    ...CHAT_RULES,
    conversations: required(
      withMethods(
        ['prompt', 'answer', 'abort', 'events', 'snapshot'],
        'new Conversations({ store, config })',
      ),
    ),
  },
  { ...COMPANIONS, scopeOf: 'scope: ({ owner }) => ({ data: { … } }) of the Conversations' },
);

const RUN_RULES = omitFields(LOOP_RULES, 'runId', 'signal');

const OVER_LOOP = optionTable<Omit<LoopChatOptions, 'conversations'>>(
  OF,
  {
    ...RUN_RULES,
    ...CHAT_RULES,
    systemPrompt: TEXT,
    checkpoint: oneOf('step', 'call'),
    store: required({
      accepts: keepsConversations,
      fix: "new SqliteRunStore({ path: 'chats.sqlite' }), or another store of conversations",
    }),
    scope: protecting(FUNCTION),
    pollMs: MILLISECONDS,
    takesTurns: BOOLEAN,
  },
  {
    ...LOOP_ALIASES,
    ...COMPANIONS,
    scopeOf: 'scope: ({ owner }) => ({ data: { … } })',
    config: 'set its options here: { provider, model, tools }',
  },
);

/** The options of a chat handler, and the conversations that it has created. */
interface ReadChatOptions extends ChatOptions {
  readonly conversations: ChatConversations;
  readonly own?: Conversations;
}

/**
 * Reads the options; creates the conversations if none are given.
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
function readChatOptions(options: ChatHandlerOptions): ReadChatOptions {
  if (isOverConversations(options)) {
    checkOptions(options, OVER_CONVERSATIONS);
    return options;
  }
  checkOptions(options, OVER_LOOP);
  const { store, engine, scope, leaseMs, pollMs, takesTurns, conversations: _, ...others } = options;
  const isOfRuns = (name: string): boolean => !Object.hasOwn(CHAT_RULES, name);
  const config = filterFields({ ...withoutUndefined(others) }, isOfRuns) as unknown as ConversationsConfig;
  const { logger } = others;
  const settings = withoutUndefined({ logger, engine, scope, leaseMs, pollMs, takesTurns });
  const own = new Conversations({ ...settings, store, config });
  return { ...others, conversations: own, own };
}

/** Without `conversations`, `provider` and `store`, a name is misspelled; `conversations` is the usual one. */
function isOverConversations(options: ChatHandlerOptions): options is ConversationsChatOptions {
  if (!isRecord(options)) return false;
  return options.conversations !== undefined || !('provider' in options || 'store' in options);
}

/** A chat over HTTP, for Web-standard servers and for Node's. */
export interface ChatHandler {
  /** Handles a request; for Hono, Next, Bun, Deno and workers. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** A request listener for `http`, and a handler for Express and Fastify. */
  readonly node: NodeHandler;
  /**
   * Refuses requests (503), and closes the conversations that the handler created, as {@link Conversations.close};
   * then their responses end. Given conversations stay open; requests are refused, too, once they are closed.
   */
  readonly close: (options?: ConversationsCloseOptions) => Promise<void>;
}

/**
 * Serves chats with a model and tools over HTTP. Chats are stored in `store`, or in the given `conversations`. `POST`
 * accepts what `useChat` of the AI SDK sends and streams the turn; `GET …/{id}/stream` streams the rest of a turn, and
 * `DELETE` of the same URL ends it. Of a client's messages, only the last message and the answers to pending calls are
 * used. A chat belongs to the user who started it. `docs/guides/chat.md` lists the statuses.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'chats.sqlite' });
 * const authenticate = (request: Request) => request.headers.get('x-user');
 * const chat = createChatHandler({ provider, model: 'gpt-5', tools, store, authenticate });
 * createServer(chat.node).listen(8080);
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export function createChatHandler(options: ChatHandlerOptions): ChatHandler {
  const read = readChatOptions(options);
  const service = new ChatService(read);
  let isClosed = false;
  const fetch = async (request: Request): Promise<Response> => {
    checkArguments({
      of: 'the handler of createChatHandler',
      given: { request },
      rules: { request: REQUEST },
    });
    if (isClosed || closedConversations.has(read.conversations))
      return new HttpFault(503, 'The server is shutting down.').response;
    return service.answer(request).catch((thrown: unknown) => {
      const known = knownFault(thrown);
      if (known === undefined) logFailure(read.logger, { what: 'A chat request failed', error: thrown });
      return (known ?? new HttpFault(500, 'The request failed.')).response;
    });
  };
  const close = async (options: ConversationsCloseOptions = {}): Promise<void> => {
    checkOptions(options, CLOSE_OPTIONS);
    isClosed = true;
    await read.own?.close(options);
  };
  return { fetch, node: nodeListener(fetch), close };
}

const CLOSE_OPTIONS = optionTable<ConversationsCloseOptions>('ChatHandler.close', { timeoutMs: PAUSE });

const REQUEST = withMethods(['text'], 'a Request of the Web; Node’s http takes the handler’s `node`');

const METHODS = ['POST', 'GET', 'DELETE'];
const DEFAULT_REQUEST_BYTES = 4 * 2 ** 20;

/** A request with its user and the state of the chat. */
interface Asked {
  readonly request: Request;
  readonly chatId: string;
  readonly person: unknown;
  /** The chat belongs to another owner, for whom the user may answer. */
  readonly isHelper: boolean;
  readonly view: ConversationView | undefined;
}

/** How to read and encode a turn, and whether it continues a message that the reader has. */
interface Reading {
  readonly read: (source: EventSource) => AsyncIterable<ReadEvent>;
  readonly frames: WriteFrames;
  readonly goesOn: boolean;
}

class ChatService {
  readonly #options: ReadChatOptions;
  readonly #protocol: ChatProtocol;

  constructor(options: ReadChatOptions) {
    this.#options = options;
    this.#protocol = protocolOf(options);
  }

  async answer(request: Request): Promise<Response> {
    const person = await this.#personOf(request);
    const { maxRequestBytes = DEFAULT_REQUEST_BYTES, conversations } = this.#options;
    const { method } = request;
    if (!METHODS.includes(method)) throw new HttpFault(405, 'This path supports only POST, GET and DELETE.');
    const wanted =
      method === 'POST'
        ? this.#protocol.readPost(await readJson(request, maxRequestBytes))
        : addressOf(request);
    const { chatId } = wanted;
    const isHistory = 'isHistory' in wanted && wanted.isHistory;
    const view = await conversations.snapshot(chatId);
    const isHelper = view !== undefined && !isSameOwner(view.owner, person);
    const mayHelp = method !== 'DELETE' && !isHistory;
    if (isHelper && !(mayHelp && (await this.#mayAnswer(request, view)))) throw somebodyElses();
    const asked = { request, chatId, person, isHelper, view };
    if ('decide' in wanted) return this.#post(asked, wanted);
    if (isHistory) {
      const messages = await this.#protocol.history(this.#chat(asked, request.signal));
      return Response.json(messages, { headers: { 'cache-control': 'no-store' } });
    }
    if (method === 'GET') return this.#reconnect(asked, wanted);
    // A chat that does not exist yet must not have pending answers for its first owner.
    if (view !== undefined) await conversations.abort(chatId);
    return new Response(null, { status: 204 });
  }

  /** Whether a user may answer in the chat of another owner: only a plain `true` allows it. */
  async #mayAnswer(request: Request, { owner, pending }: ConversationView): Promise<boolean> {
    const { mayAnswer, logger } = this.#options;
    if (mayAnswer === undefined || owner === undefined) return false;
    try {
      return (await mayAnswer(request, { owner, pending })) === true;
    } catch (error) {
      logFailure(logger, { what: '`mayAnswer` of a chat failed; the request was refused', error });
      return false;
    }
  }

  /** The owner of the request; any value that does not identify a user is refused. */
  async #personOf(request: Request): Promise<unknown> {
    const nobody = new HttpFault(401, 'Who are you?');
    let person: unknown;
    try {
      person = await this.#options.authenticate(request);
    } catch (error) {
      logFailure(this.#options.logger, { what: 'A chat request was not authenticated', error });
      throw nobody;
    }
    if (isNobody(person)) throw nobody;
    return ownerOf({ owner: person });
  }

  async #post(asked: Asked, posted: PostedChat): Promise<Response> {
    const { chatId, person, isHelper, view, request } = asked;
    const { conversations } = this.#options;
    try {
      const decision = await posted.decide(this.#chat(asked, request.signal));
      if (isHelper && decision.kind !== 'answers') throw somebodyElses();
      // Equal answers of two users are different entries.
      const key = isHelper ? `${decision.key} by ${await digestOf(person)}` : decision.key;
      if (decision.kind === 'prompt') {
        const { content, replaces } = decision;
        const entry = withoutUndefined({ key, owner: person, onlyOwner: true, replaces });
        await conversations.prompt(chatId, content, entry);
      }
      if (decision.kind === 'answers') {
        const by = isHelper ? { owner: view?.owner, answeredBy: person } : { owner: person };
        const { answers } = decision;
        await conversations.answer(chatId, answers, { key, ...by }).catch(async (error: unknown) => {
          throw (await this.#answerFault(error, chatId, answers)) ?? error;
        });
      }
      const goesOn = decision.kind === 'answers' || (decision.kind === 'again' && decision.of === 'answers');
      // Answers are streamed from the state before they were stored, because the turn may have continued since.
      const now = goesOn ? view : await conversations.snapshot(chatId);
      if (now === undefined) throw new HttpFault(409, 'The chat was deleted.');
      if (!isHelper && !isSameOwner(now.owner, person)) throw somebodyElses();
      const read = (source: EventSource): AsyncIterable<ReadEvent> => {
        const readTurn = isHelper ? readOwnAnswers : goesOn ? readAnsweredTurn : readPromptedTurn;
        return readTurn(source, now, key);
      };
      const { frames } = posted;
      return this.#stream({ ...asked, view: now }, { read, frames, goesOn: goesOn && !isHelper });
    } catch (thrown) {
      const fault = knownFault(thrown);
      if (isHelper && fault?.isPrompt) throw somebodyElses();
      if (fault === undefined || fault.status === 403) throw thrown;
      return posted.refuse(fault);
    }
  }

  /** The response to invalid answers: 422 if their calls still wait; 409 if they were answered already. */
  async #answerFault(
    error: unknown,
    chatId: string,
    answers: readonly Answer[],
  ): Promise<HttpFault | undefined> {
    if (!ToolwrightError.is(error) || error.statusCode === undefined) return undefined;
    if (error.name !== 'InvalidAnswer') return new HttpFault(error.statusCode, error.message);
    const { pending = [] } = (await this.#options.conversations.snapshot(chatId)) ?? {};
    return answers.every(({ id }) => pending.some((wait) => wait.id === id))
      ? new HttpFault(422, error.message)
      : new HttpFault(409, ANSWERED_ALREADY);
  }

  async #reconnect(asked: Asked, address: ChatAddress): Promise<Response> {
    const { isHelper, view, request } = asked;
    const { frames, isWhole } = this.#protocol.reconnect(address);
    const lastEvent = request.headers.get('last-event-id') ?? '';
    const seen = !isWhole && /^\d{1,15}$/.test(lastEvent) ? Number(lastEvent) : undefined;
    const { source } = this.#chat(asked, request.signal);
    const isNone =
      view === undefined || (isHelper ? view.status !== 'suspended' : await isOver(source, view, seen));
    if (isNone && !isWhole) return new Response(null, { status: 204 });
    const read = (source: EventSource): AsyncIterable<ReadEvent> => {
      if (isNone) return ReadableStream.from<ReadEvent>([]);
      if (isHelper) return ReadableStream.from(questionEvents(view, view.pending));
      return readRest(source, view, seen);
    };
    return this.#stream(asked, { read, frames, goesOn: false });
  }

  #chat({ chatId, view }: Asked, signal: AbortSignal): AskedChat {
    return { view, source: { conversations: this.#options.conversations, chatId, signal } };
  }

  #stream(asked: Asked, { read, frames, goesOn }: Reading): Response {
    const { abortOnLeave, heartbeatMs, conversations, logger } = this.#options;
    const left = new AbortController();
    const chat = this.#chat(asked, AbortSignal.any([asked.request.signal, left.signal]));
    let hasBegun = false;
    const noting = async function* (): AsyncGenerator<ReadEvent, undefined> {
      for await (const event of read(chat.source)) {
        hasBegun = event.event.type !== 'turn-end';
        yield event;
      }
    };
    const onLeave = async (): Promise<void> => {
      left.abort();
      // Before its own turn has started, abort would end another turn.
      if (!abortOnLeave || !hasBegun || asked.isHelper) return;
      try {
        await conversations.abort(asked.chatId);
      } catch (error) {
        logFailure(logger, { what: 'The turn of a client that disconnected could not be aborted', error });
      }
    };
    const shown = asked.isHelper ? onlyQuestions(chat) : chat;
    const leave = () => void onLeave();
    const body = frameStream(frames(noting(), { goesOn, asked: shown }), leave, heartbeatMs);
    return new Response(body, { headers: this.#protocol.headers });
  }
}

/** The response to a client's error; `undefined` for other errors. */
function knownFault(thrown: unknown): HttpFault | undefined {
  if (thrown instanceof HttpFault) return thrown;
  if (!ToolwrightError.is(thrown)) return undefined;
  if (thrown.name === 'RunNotAllowed') return somebodyElses();
  if (thrown.name === 'ConversationNotReady') return new HttpFault(409, 'The message was already replaced.');
  return undefined;
}

function somebodyElses(): HttpFault {
  return new HttpFault(403, 'The chat belongs to another user.');
}
