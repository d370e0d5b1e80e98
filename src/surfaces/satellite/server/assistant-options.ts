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
