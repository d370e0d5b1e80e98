import { type ClientOptions, OpenAI } from 'openai';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  REQUEST,
} from '../../contract/llm-provider.js';
import { checkArguments, checkOptions, InvalidOptionsError } from '../../errors/author-fault.js';
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
  optionTable,
  RECORD,
  secret,
  TEXT,
  withMethods,
} from '../../kernel/options.js';
import { toChatBody, toChatStreamBody } from './chat/chat-body.js';
import { ChatReply } from './chat/chat-reply.js';
import { describeFailure, uselessReply } from './describe-failure.js';
import { familyKey } from './model-family.js';
import { jsonRecord, jsonText, parseJsonRecord, type WireRecord } from './wire-json.js';

type ChatParams = OpenAI.ChatCompletionCreateParamsNonStreaming;
type StreamParams = OpenAI.ChatCompletionCreateParamsStreaming;

/**
 * Models behind OpenAI's Chat Completions wire: OpenAI itself, and with `baseURL` every compatible server.
 *
 * When no reply could be had, both methods throw a `ProviderError` whose message is one line that names what to do
 * (`401 from https://api.openai.com/v1: the key was refused …`) and whose `cause` is the client's error. An
 * aborted request throws the client's own abort error. The constructor throws InvalidOptionsError (521), also where
 * neither a key nor a base URL is known.
 *
 * @example
 * ```ts
 * const local = new OpenAIProvider({ baseURL: 'http://127.0.0.1:11434/v1' });
 * const reply = await local.chat({
 *   model: 'qwen3',
 *   messages: [{ role: 'user', content: 'Hello' }],
 *   options: { max_tokens: 50 },
 * });
 * console.log(reply.content, reply.usage?.totalTokens);
 * ```
 */
export class OpenAIProvider implements LLMProvider {
  readonly #client: OpenAI;
  /** A fact about the server, not about a request: it refused `stream_options` once. */
  #refusesUsage = false;

  constructor(options: OpenAIProviderOptions = {}) {
    this.#client = createClient(options);
  }

  /** Items of one family of models are understood by that family alone, and by no other API. */
  itemKey(model: string): string {
    return familyKey('chat', model);
  }

  /** One request, one whole reply. */
  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'OpenAIProvider.chat', given: { request }, rules: { request: REQUEST } });
    const itemKey = this.itemKey(request.model);
    const body = await this.#send(toChatBody(request, itemKey), request.signal);
    const reply = new ChatReply(itemKey);
    reply.add(body);
    return this.#responseOf(reply, body);
  }

  /** One request, the reply as it comes, and the whole of it at the end. */
  async *stream(request: LLMRequest): AsyncGenerator<LLMStreamPart, void, undefined> {
    checkArguments({ of: 'OpenAIProvider.stream', given: { request }, rules: { request: REQUEST } });
    const reply = new ChatReply(this.itemKey(request.model));
    let last: unknown;
    try {
      for await (const chunk of await this.#open(request)) {
        last = chunk;
        yield* reply.add(chunk);
      }
    } catch (error) {
      throw this.#describe(error, request.signal);
    }
    // The client ends an aborted stream as if it had been complete.
    request.signal?.throwIfAborted();
    const response = this.#responseOf(reply, last);
    yield* reply.end();
    yield { type: 'response', response };
  }

  async #send(body: WireRecord, signal?: AbortSignal): Promise<unknown> {
    try {
      const params = body as unknown as ChatParams;
      const { completions } = this.#client.chat;
      const send = (ended: AbortSignal) => completions.create(params, { signal: ended });
      return asJson(await bodyInTime(send, { timeoutMs: this.#client.timeout, signal }));
    } catch (error) {
      throw this.#describe(error, signal);
    }
  }

  async #open(request: LLMRequest): Promise<AsyncIterable<unknown> | Iterable<unknown>> {
    const { signal } = request;
    const itemKey = this.itemKey(request.model);
    const body = toChatStreamBody(request, { itemKey, withUsage: !this.#refusesUsage });
    try {
      const params = body as unknown as StreamParams;
      const { data, response } = await this.#client.chat.completions
        .create(params, { signal })
        .withResponse();
      // A server that cannot stream answers with the whole completion, and a wrong address with a page.
      const isWhole = /json|html/i.test(response.headers.get('content-type') ?? '');
      return isWhole ? [asJson(await response.text())] : data;
    } catch (error) {
      if (!('stream_options' in body) || !refusesStreamOptions(error)) throw error;
      this.#refusesUsage = true;
      return this.#open(request);
    }
  }

  #responseOf(reply: ChatReply, body: unknown): LLMResponse {
    const response = reply.response();
    if (response === undefined) throw uselessReply(body, this.#client.baseURL);
    return response;
  }

  #describe(error: unknown, signal: AbortSignal | undefined): unknown {
    const { baseURL, maxRetries } = this.#client;
    return describeFailure(error, { baseURL, maxRetries, signal });
  }
}

/** Servers that forget the content type have their JSON delivered as text. */
function asJson(body: unknown): unknown {
  return typeof body === 'string' ? (parseJsonRecord(body) ?? body) : body;
}

function refusesStreamOptions(error: unknown): boolean {
  const { status, message } = jsonRecord(error);
  return (status === 400 || status === 422) && jsonText(message).includes('stream_options');
}

/** A request on its way, as the client gives it. */
interface SentRequest<Body> extends Promise<Body> {
  /** Settles when the headers of the answer are there. */
  asResponse(): Promise<unknown>;
}

/**
 * Sends a request and waits no longer for the body of the answer than for its headers. The client does so from
 * version 7 on; older ones would wait for ever.
 *
 * @throws what the client throws; Error where time is up.
 */
async function bodyInTime<Body>(
  send: (signal: AbortSignal) => SentRequest<Body>,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<Body> {
  const late = new AbortController();
  const sent = send(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  await sent.asResponse();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    return await sent;
  } catch (error) {
    throw late.signal.aborted ? new Error('Request timed out.', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}

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

const PROVIDER_OPTIONS = optionTable<OpenAIProviderOptions>(
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

/** The client that sends the requests: the given one, or one made from the options and the environment. */
function createClient(options: OpenAIProviderOptions): OpenAI {
  checkOptions(options, PROVIDER_OPTIONS);
  const { client, headers, timeoutMs, ...others } = options;
  if (client !== undefined) return client;
  const baseURL = options.baseURL ?? addressOf(environment('OPENAI_BASE_URL'));
  return new OpenAI({
    ...others,
    baseURL,
    apiKey: keyFor(options.apiKey || environment('OPENAI_API_KEY'), baseURL),
    defaultHeaders: headers ?? options.defaultHeaders,
    timeout: timeoutMs ?? options.timeout,
    // Every failure is thrown with its text; the client would write it to the console a second time.
    logLevel: options.logLevel ?? (environment('OPENAI_LOG') === undefined ? 'off' : undefined),
  });
}

function keyFor(key: OpenAIProviderOptions['apiKey'], baseURL: string | undefined) {
  if (key) return key;
  if (baseURL === undefined) {
    throw new InvalidOptionsError([
      {
        where: PROVIDER_OPTIONS.of,
        option: 'apiKey',
        problem: 'there is no API key',
        fix: 'set OPENAI_API_KEY, or pass apiKey; or pass baseURL for a server that needs no key',
      },
    ]);
  }
  // The client insists on a key, and local servers do not look at it.
  return 'no-key-needed';
}

function addressOf(address: string | undefined): string | undefined {
  if (address === undefined || ADDRESS.accepts(address)) return address;
  const problem = `OPENAI_BASE_URL is '${address}'`;
  throw new InvalidOptionsError([
    { where: PROVIDER_OPTIONS.of, option: 'OPENAI_BASE_URL', problem, fix: ADDRESS.fix },
  ]);
}

function environment(name: string): string | undefined {
  return process.env[name]?.trim() || undefined;
}
