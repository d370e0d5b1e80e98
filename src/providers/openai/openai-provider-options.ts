import type { ClientOptions, OpenAI } from 'openai';
import {
  ADDRESS,
  ANYTHING,
  BOOLEAN,
  either,
  FUNCTION,
  HEADERS,
  LIMIT,
  LOGGER,
  type OptionRule,
  oneOf,
  RECORD,
  secret,
  TEXT,
  withMethods,
} from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';

/** What the client of `openai` takes and gets as it is. */
type ClientExtras = Pick<
  ClientOptions,
  | 'project'
  | 'timeout'
  | 'defaultHeaders'
  | 'defaultQuery'
  | 'fetch'
  | 'fetchOptions'
  | 'logLevel'
  | 'logger'
  | 'dangerouslyAllowBrowser'
>;

/** Where requests of an `OpenAIProvider` go, and how; options of the `openai` client are passed on to it. */
export interface OpenAIProviderOptions extends ClientExtras {
  /** Default: `OPENAI_API_KEY`. May be left out where `baseURL` is a server that needs none. */
  readonly apiKey?: string | (() => Promise<string>);
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

const READY_CLIENT = 'client: new OpenAI({ … }), with this option of the client';

/** What only a client takes that was made by hand. */
const FOR_CLIENTS: Readonly<
  Record<Exclude<keyof ClientOptions, keyof OpenAIProviderOptions>, typeof READY_CLIENT>
> = {
  adminAPIKey: READY_CLIENT,
  webhookSecret: READY_CLIENT,
  dataResidency: READY_CLIENT,
  workloadIdentity: READY_CLIENT,
  x509Transport: READY_CLIENT,
  credential: READY_CLIENT,
  provider: READY_CLIENT,
};

const TIMEOUT: OptionRule = {
  accepts: (value) => typeof value === 'number' && value > 0,
  fix: 'milliseconds, more than 0',
};
/** The client takes other forms of headers too. */
const CLIENT_HEADERS = secret({ ...RECORD, fix: HEADERS.fix });

export const PROVIDER_OPTIONS = optionTable<OpenAIProviderOptions>(
  'OpenAIProvider',
  {
    apiKey: secret(either(TEXT, FUNCTION)),
    baseURL: ADDRESS,
    organization: TEXT,
    headers: HEADERS,
    timeoutMs: TIMEOUT,
    maxRetries: LIMIT,
    client: withMethods(['request'], 'new OpenAI({ … })'),
    project: TEXT,
    timeout: TIMEOUT,
    defaultHeaders: CLIENT_HEADERS,
    defaultQuery: secret(RECORD),
    fetch: FUNCTION,
    fetchOptions: ANYTHING,
    logLevel: oneOf('off', 'error', 'warn', 'info', 'debug'),
    logger: LOGGER,
    dangerouslyAllowBrowser: BOOLEAN,
  },
  { ...FOR_CLIENTS, model: 'the model of the run: runToolLoop({ provider, model })' },
);
