import type { JsonObject } from '../contract/json-schema.js';
import type { Logger } from '../contract/ports.js';
import type { RunState } from '../contract/run-state.js';
import { Conversations } from '../conversation/conversations.js';
import {
  type ConversationsConfig,
  type ConversationsOptions,
  keepsConversations,
} from '../conversation/conversations-options.js';
import { checkOptions } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import {
  BOOLEAN,
  COUNT,
  FUNCTION,
  LOGGER,
  MILLISECONDS,
  oneOf,
  optionTable,
  protecting,
  type RulesOf,
  required,
  TEXT,
  withMethods,
} from '../kernel/options.js';
import { LOOP_ALIASES, LOOP_RULES } from '../loop/options.js';
import type { ProtocolName } from './protocols.js';

/** A run of a chat that waits: whose it is, and what for. */
type AskingRun = Pick<RunState, 'owner' | 'pending'>;

/** How a chat handler answers. */
export interface ChatOptions {
  /**
   * Who asks, as any JSON, such as `{ user: 'u1' }`: the owner of the chats that it begins, and of no others.
   * `undefined`, `null` or an error: nobody, and the request is refused with 401.
   */
  readonly authenticate: (request: Request) => unknown;
  /**
   * Whether a request may answer what waits in the chat of another owner: only where this says `true`. It reads and
   * answers the questions, and nothing else of the chat; the turn goes on in its owner's scope.
   */
  readonly mayAnswer?: (request: Request, run: AskingRun) => boolean | Promise<boolean>;
  /**
   * `ui-messages`: the AI SDK's UI message stream; `ag-ui`: AG-UI 1.0; `events`: the numbered events as they are.
   * Default `ui-messages`.
   */
  readonly protocol?: ProtocolName;
  /** Whether a reader that leaves ends the turn; default false: it goes on, and readers may come back. */
  readonly abortOnLeave?: boolean;
  /** What the reader is told of a turn that failed; default: nothing but that it failed. */
  readonly describeError?: (error: JsonObject) => string;
  /** Bytes of a request at most; default 4 MiB: the AI SDK sends the whole chat each time. */
  readonly maxRequestBytes?: number;
  /** Milliseconds of silence after which a reader gets a sign of life; default 15,000. */
  readonly heartbeatMs?: number;
  readonly logger?: Logger;
}

/** What chats live in: a chat's id is that of its conversation. */
export type ChatConversations = Pick<Conversations, 'prompt' | 'answer' | 'abort' | 'events' | 'snapshot'>;

/** A chat handler over conversations that are there. */
export interface ConversationsChatOptions extends ChatOptions {
  readonly conversations: ChatConversations;
}

/** A chat handler that makes its conversations itself: the config of their runs, and where they are kept. */
export interface LoopChatOptions
  extends ChatOptions,
    Omit<ConversationsConfig, 'logger'>,
    Pick<ConversationsOptions, 'store' | 'engine' | 'scope' | 'leaseMs' | 'pollMs' | 'takesTurns'> {
  readonly conversations?: undefined;
}

/** What a chat handler is made from. */
export type ChatHandlerOptions = ConversationsChatOptions | LoopChatOptions;

const CHAT_RULES: RulesOf<ChatOptions> = {
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

/** What says in NestJS whose a chat is, and in what scope a turn goes on. */
const COMPANIONS = { owner: 'authenticate: (request) => …, which says whose the chats of a request are' };

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

const { runId: _1, signal: _2, ...RUN_RULES } = LOOP_RULES;

const OVER_LOOP = optionTable<Omit<LoopChatOptions, 'conversations'>>(
  OF,
  {
    ...RUN_RULES,
    ...CHAT_RULES,
    systemPrompt: TEXT,
    checkpoint: oneOf('step', 'call'),
    store: required({
      accepts: keepsConversations,
      fix: "new SqliteRunStore({ path: 'chats.sqlite' }), or another store that keeps conversations",
    }),
    scope: protecting(FUNCTION),
    pollMs: MILLISECONDS,
    takesTurns: BOOLEAN,
  },
  {
    ...LOOP_ALIASES,
    ...COMPANIONS,
    scopeOf: 'scope: ({ owner }) => ({ data: { … } })',
    config: 'its options here: { provider, model, tools }',
  },
);

/** A chat handler's options, and the conversations that it has made itself. */
export interface ReadChatOptions extends ChatOptions {
  readonly conversations: ChatConversations;
  readonly own?: Conversations;
}

/**
 * Reads the options; makes the conversations where none are given.
 *
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export function readChatOptions(options: ChatHandlerOptions): ReadChatOptions {
  if (isOverConversations(options)) {
    checkOptions(options, OVER_CONVERSATIONS);
    return options;
  }
  checkOptions(options, OVER_LOOP);
  const { authenticate, mayAnswer, protocol, abortOnLeave, describeError, ...others } = options;
  const { maxRequestBytes, heartbeatMs, ...rest } = others;
  const { logger, store, engine, scope, leaseMs, pollMs, takesTurns, conversations: _, ...config } = rest;
  const own = new Conversations({
    ...defined({ logger, engine, scope, leaseMs, pollMs, takesTurns }),
    store,
    config,
  });
  const chat = {
    authenticate,
    ...defined({ mayAnswer, protocol, abortOnLeave, describeError, maxRequestBytes, heartbeatMs, logger }),
  };
  return { ...chat, conversations: own, own };
}

/** Whoever gives neither has misspelt what most begin with. */
function isOverConversations(options: ChatHandlerOptions): options is ConversationsChatOptions {
  if (!isRecord(options)) return false;
  return options.conversations !== undefined || !('provider' in options || 'store' in options);
}

function defined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}
