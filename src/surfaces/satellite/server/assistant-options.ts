import type { ConversationStore } from '../../../core/contract/conversation-store.js';
import { type LLMProvider, MODEL, PROVIDER } from '../../../core/contract/llm-provider.js';
import type { Logger } from '../../../core/contract/ports.js';
import { TELEMETRY, type Telemetry } from '../../../core/contract/telemetry.js';
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
import type { CorsOptions, RateLimit } from './chat-request.js';

/** The system prompt; a function receives the request. */
export type SystemPrompt = string | ((request: Request) => string | Promise<string>);

/** Options of `createAssistantHandler`. */
export interface AssistantHandlerOptions {
  readonly provider: LLMProvider;
  readonly model: string;
  /** Goes first in every request to the provider, and is not stored. `toolRequestPrompt` words the tools. */
  readonly systemPrompt?: SystemPrompt;
  /** Passed to the provider as they are. */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** Default: a `MemoryConversationStore`, which a restart empties. */
  readonly store?: ConversationStore;
  /** Receives failures of the provider and the store, with causes that no client sees. */
  readonly logger?: Logger;
  /** Records the requests to the model: `openTelemetry()`. */
  readonly telemetry?: Telemetry;
  /** What clients send as `Authorization: Bearer …`; without it everybody may ask. */
  readonly token?: string;
  /**
   * Names who asks, as JSON: a conversation is its first one's, and for everybody else there is none of that id.
   * Default: clients are not distinguished, and whoever knows the id of a conversation may go on with it.
   */
  readonly owner?: (request: Request) => unknown;
  /** Asked before the body of a request is read. */
  readonly rateLimit?: RateLimit;
  /** Which pages of other origins may ask; default: none. */
  readonly cors?: CorsOptions;
  /** Where the handler is mounted, before `/v1/chat`; default: `''`. */
  readonly basePath?: string;
  /** Bytes of a body at most (a mebibyte). */
  readonly maxBodyBytes?: number;
  /** Messages of a conversation at most, replies included (1,000). */
  readonly maxMessages?: number;
  /** Milliseconds between two comments in an event stream, which keep the connection open (15,000). */
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

export const ASSISTANT_OPTIONS = optionTable<AssistantHandlerOptions>('createAssistantHandler', {
  provider: required(PROVIDER),
  model: required(MODEL),
  systemPrompt: either(TEXT, FUNCTION),
  llmOptions: RECORD,
  store: withMethods(['load', 'append'], "new SqliteConversationStore({ path: 'conversations.sqlite' })"),
  logger: LOGGER,
  telemetry: TELEMETRY,
  token: protecting(secret({ ...FILLED_TEXT, fix: 'a secret that the clients know' })),
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
