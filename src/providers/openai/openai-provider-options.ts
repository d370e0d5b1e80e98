import type { OpenAI } from 'openai';

/** Where requests of an `OpenAIProvider` go, and how. */
export interface OpenAIProviderOptions {
  /** Default: `OPENAI_API_KEY`. May be left out where `baseURL` is a server that needs none. */
  readonly apiKey?: string;
  /** Address of a compatible server, e.g. `http://127.0.0.1:11434/v1`. Default: `OPENAI_BASE_URL`, then OpenAI. */
  readonly baseURL?: string;
  /** Default: `OPENAI_ORG_ID`. */
  readonly organization?: string;
  /** Sent with every request, besides the client's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds until a request without an answer is given up (default: 10 minutes). */
  readonly timeoutMs?: number;
  /** How often a request is sent again after a lost connection, 408, 409, 429 or 5xx (default: 2). */
  readonly maxRetries?: number;
  /** A ready client, e.g. one for Azure; all other options are then left unused. */
  readonly client?: OpenAI;
}
