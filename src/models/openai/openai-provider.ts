import { APIError, type ClientOptions, OpenAI } from 'openai';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import {
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type ProviderIdentity,
  REQUEST,
  type ResponseForm,
} from '../../core/contract/llm-provider.js';
import { checkArguments, checkOptions, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ProviderError } from '../../core/errors/provider-error.js';
import {
  ADDRESS,
  ANY_VALUE,
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
} from '../../core/kernel/options.js';
import { strictSchema } from '../../tools/schema/strict/strict-schema.js';
import { type StrictMode, StrictTools } from '../../tools/schema/strict/strict-tools.js';
import { describeFailure, excerptOf, isPassing, placeOf } from '../wire/describe-failure.js';
import { readServerEvents } from '../wire/server-events.js';
import { jsonRecord, jsonText, type WireRecord } from '../wire/wire-json.js';
import { ChatReply, toChatBody } from './chat-completions.js';
import { modelFamily, modelName } from './model-families.js';
import { ResponsesReply, toResponsesBody } from './responses.js';

type Api = 'chat' | 'responses';

/** Models of OpenAI without response schemas. https://platform.openai.com/docs/guides/structured-outputs */
const WITHOUT_FORMAT = /^(gpt-3|gpt-4($|-)|gpt-4o-2024-05|chatgpt-|o1-(mini|preview)|davinci|babbage)/;

/** Request fields that are omitted after a server refused them, with the words of its refusal. */
const REFUSABLE: Readonly<Record<string, RegExp>> = {
  stream_options: /stream_options/,
  // Models without reasoning have nothing to encrypt.
  include: /encrypted.?content/i,
};

/**
 * Models behind OpenAI's Chat Completions API (OpenAI itself, and with `baseURL` every compatible server), or with
 * `api: 'responses'` behind OpenAI's Responses API.
 *
 * If there is no reply, both methods throw a `ProviderError`. Its message is one line that contains the fix
 * (`401 from https://api.openai.com/v1: the key was refused …`), and its `cause` is the client's error. An aborted
 * request throws the client's own abort error. The constructor throws InvalidOptionsError (521), also if there is
 * neither a key nor a base URL.
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
  readonly #api: Api;
  readonly #store: boolean;
  readonly #strict: StrictTools;
  readonly #knows: Pick<OpenAIProviderOptions, 'responseFormat' | 'toolSearch'>;
  #identity: ProviderIdentity | undefined;
  /** Facts about the server, not about a request. */
  readonly #refused = new Set<string>();

  constructor(options: OpenAIProviderOptions = {}) {
    this.#client = createClient(options);
    this.#api = options.api ?? 'chat';
    this.#store = options.store ?? false;
    this.#strict = new StrictTools(options.strict);
    this.#knows = options;
  }

  /** Only the same model family at the same API understands the items. */
  itemKey(model: string): string {
    return `openai.${this.#api}/${modelFamily(model)}`;
  }

  /** Determined by the address of the server. */
  identity(): ProviderIdentity {
    this.#identity ??= serverIdentity(this.#client.baseURL);
    return this.#identity;
  }

  /** The option `responseFormat`; without it, `true` for models of OpenAI at OpenAI, except the oldest. */
  supportsResponseFormat(model: string): boolean {
    const { responseFormat } = this.#knows;
    return responseFormat ?? (isOpenAI(this.#client.baseURL) && !WITHOUT_FORMAT.test(modelName(model)));
  }

  /** The strict form of the schema, if it has one. */
  responseForm(schema: JsonSchema): ResponseForm | undefined {
    const strict = strictSchema(schema);
    return strict.isStrict ? strict : undefined;
  }

  /**
   * The option `toolSearch`; without it, `true` for models of OpenAI at OpenAI from GPT-5.4 on, with the Responses
   * API.
   */
  takesFoundTools(model: string): boolean {
    // https://developers.openai.com/api/docs/guides/tools-tool-search
    const [, major, minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(modelName(model)) ?? [];
    const isNew = Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 4);
    const isKnown = this.#knows.toolSearch ?? (isOpenAI(this.#client.baseURL) && isNew);
    return this.#api === 'responses' && isKnown;
  }

  /** Sends a request and returns the whole reply. */
  async chat(given: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'OpenAIProvider.chat', given: { request: given }, rules: { request: REQUEST } });
    const request = this.#strict.request(given);
    const reply = this.#replyTo(request);
    try {
      const timeout = new BodyTimeout(this.#client.timeout, request.signal);
      const body = await this.#unlessRefused(request, 'chat', async (body) => {
        const response = await this.#create(body, timeout.signal).asResponse();
        return timeout.limit(readBody(response));
      });
      reply.add(body);
      return this.#strict.response(this.#responseOf(reply, body, true), given);
    } catch (error) {
      throw this.#describe(error, request.signal);
    }
  }

  /** Sends a request, streams the reply, and ends with the whole reply. */
  async *stream(given: LLMRequest): AsyncGenerator<LLMStreamPart, void, undefined> {
    checkArguments({ of: 'OpenAIProvider.stream', given: { request: given }, rules: { request: REQUEST } });
    const request = this.#strict.request(given);
    const reply = this.#replyTo(request);
    let last: unknown;
    let isDone = false;
    try {
      const timeout = new BodyTimeout(this.#client.timeout, request.signal);
      const opened = await this.#unlessRefused(request, 'stream', async (body): Promise<OpenedReply> => {
        const response = await this.#create(body, timeout.signal).asResponse();
        // A server without streaming answers with the whole completion, and a wrong address with an HTML page.
        const isWhole = /json|html/i.test(response.headers.get('content-type') ?? '');
        if (!isWhole) return readEvents(response, timeout);
        return { chunks: [await timeout.limit(readBody(response))], isDone: () => true };
      });
      for await (const chunk of opened.chunks) {
        last = chunk;
        yield* reply.add(chunk);
      }
      isDone = opened.isDone();
    } catch (error) {
      throw this.#describe(error, request.signal);
    }
    // The client ends an aborted stream as if it were complete.
    request.signal?.throwIfAborted();
    const response = this.#responseOf(reply, last, isDone);
    yield* reply.end();
    yield { type: 'response', response: this.#strict.response(response, given) };
  }

  #replyTo({ model, tools }: LLMRequest): ChatReply | ResponsesReply {
    const itemKey = this.itemKey(model);
    return this.#api === 'chat' ? new ChatReply(itemKey) : new ResponsesReply(itemKey, tools);
  }

  #create(body: WireRecord, signal: AbortSignal | undefined) {
    const { chat, responses } = this.#client;
    return this.#api === 'chat'
      ? chat.completions.create(body as unknown as OpenAI.ChatCompletionCreateParams, { signal })
      : responses.create(body as unknown as OpenAI.Responses.ResponseCreateParams, { signal });
  }

  /** Sends a request, and repeats it without a field that the server refused. */
  async #unlessRefused<Answer>(
    request: LLMRequest,
    method: 'chat' | 'stream',
    send: (body: WireRecord) => Promise<Answer>,
  ): Promise<Answer> {
    const itemKey = this.itemKey(request.model);
    let body: WireRecord;
    if (this.#api === 'responses') {
      const withEncrypted = !this.#refused.has('include');
      body = toResponsesBody(request, { itemKey, store: this.#store, withEncrypted });
      if (method === 'stream') body = { ...body, stream: true };
    } else {
      const withUsage = !this.#refused.has('stream_options');
      body = toChatBody(request, { itemKey, ...(method === 'stream' && { stream: { withUsage } }) });
    }
    try {
      return await send(body);
    } catch (error) {
      const { status, message } = jsonRecord(error);
      if (status !== 400 && status !== 422) throw error;
      const refused = Object.keys(REFUSABLE).find((field) => REFUSABLE[field]?.test(jsonText(message)));
      if (refused === undefined || !(refused in body) || this.#refused.has(refused)) throw error;
      this.#refused.add(refused);
      return this.#unlessRefused(request, method, send);
    }
  }

  #responseOf(reply: ChatReply | ResponsesReply, body: unknown, isDone: boolean): LLMResponse {
    const response = reply.response(isDone);
    if (response !== undefined) return response;
    const { error, choices, type } = jsonRecord(body);
    const isCut = !isDone || jsonText(type).startsWith('response.');
    const code = Number(jsonRecord(error).code);
    // Gateways report the status of the upstream server in the body.
    const status = code >= 400 && code < 600 ? code : undefined;
    const mayPass = (isCut || Array.isArray(choices)) && !error;
    const retryable = status === undefined ? mayPass : isPassing(status);
    const problem = this.#describeUseless(body, isCut);
    throw new ProviderError(`${placeOf(this.#client.baseURL)} ${problem}`, { status, retryable });
  }

  /** Explains why a body with status 200 is not a reply, as the end of a sentence that begins with the server. */
  #describeUseless(body: unknown, isCut: boolean): string {
    if (typeof body === 'string' && body.trim() !== '')
      return `answered with text that is not JSON (${excerptOf(body)}); check the base URL (most end with /v1)`;
    const { error, choices } = jsonRecord(body);
    const said = jsonText(error) || jsonText(jsonRecord(error).message);
    if (said) return `reported an error: ${excerptOf(said)}`;
    if (isCut) return 'ended the stream before the reply was complete; try again';
    if (Array.isArray(choices)) return 'returned no choices; try again';
    const name = this.#api === 'chat' ? 'Chat Completions' : 'Responses';
    return `did not return a completion; check that it serves ${name} at the base URL`;
  }

  #describe(error: unknown, signal: AbortSignal | undefined): unknown {
    const { baseURL, maxRetries } = this.#client;
    return describeFailure(error, { baseURL, keyVariable: 'OPENAI_API_KEY', maxRetries, signal });
  }
}

/** Whether an address is one of OpenAI's own, in any region. */
function isOpenAI(baseURL: string): boolean {
  return URL.canParse(baseURL) && /(^|\.)api\.openai\.com$/.test(new URL(baseURL).hostname);
}

/**
 * Provider names of hosts in the OpenTelemetry conventions (`gen_ai.provider.name`). Other hosts are
 * OpenAI-compatible servers, and are named accordingly.
 */
const HOSTS: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(^|\.)services\.ai\.azure\.com$/, 'azure.ai.inference'],
  [/(^|\.)anthropic\.com$/, 'anthropic'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(^|\.)moonshot\.(ai|cn)$/, 'moonshot_ai'],
  [/(^|\.)perplexity\.ai$/, 'perplexity'],
  [/(^|\.)x\.ai$/, 'x_ai'],
  [/(^|\.)cohere\.(ai|com)$/, 'cohere'],
  [/^generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/aiplatform\.googleapis\.com$/, 'gcp.vertex_ai'],
  [/^bedrock-[\w-]+\.[\w-]+\.amazonaws\.com$/, 'aws.bedrock'],
];

const PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };

/** The service at an address. */
function serverIdentity(baseURL: string): ProviderIdentity {
  if (!URL.canParse(baseURL)) return { name: 'openai' };
  const { hostname: address, port, protocol } = new URL(baseURL);
  const [, name] = HOSTS.find(([host]) => host.test(address)) ?? [undefined, 'openai'];
  const known = port === '' ? PORTS[protocol] : Number(port);
  return { name, address, ...(known !== undefined && { port: known }) };
}

/**
 * Limits how long a body, or the next event of a stream, is awaited, as the client limits the headers. The client has
 * such a timeout from version 7 on, but not for streams.
 */
class BodyTimeout {
  readonly #late = new AbortController();
  readonly #timeoutMs: number;
  /** Aborted after the timeout, and with the signal of the request. */
  readonly signal: AbortSignal;

  constructor(timeoutMs: number, signal: AbortSignal | undefined) {
    this.#timeoutMs = timeoutMs;
    this.signal = signal ? AbortSignal.any([signal, this.#late.signal]) : this.#late.signal;
  }

  /** @throws Error after the timeout. */
  async limit<Part>(part: Promise<Part>): Promise<Part> {
    const timer = setTimeout(() => this.#late.abort(), this.#timeoutMs);
    try {
      return await part;
    } catch (error) {
      throw this.#late.signal.aborted ? new Error('Request timed out.', { cause: error }) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  async *limitEach<Part>(parts: AsyncGenerator<Part>): AsyncGenerator<Part> {
    try {
      for (;;) {
        const { done, value } = await this.limit(parts.next());
        if (done) return;
        yield value;
      }
    } finally {
      await parts.return(undefined);
    }
  }
}

/** A reply that is being received, and whether the server marked it as complete. */
interface OpenedReply {
  readonly chunks: AsyncIterable<unknown> | Iterable<unknown>;
  readonly isDone: () => boolean;
}

/** The events of a stream as JSON. A stream that is closed without `[DONE]` may have been cut off. */
function readEvents({ body, headers }: Response, timeout: BodyTimeout): OpenedReply {
  let isDone = false;
  async function* chunks(): AsyncGenerator<unknown> {
    for await (const { event, data } of body === null ? [] : timeout.limitEach(readServerEvents(body))) {
      isDone = data === '[DONE]';
      if (isDone) return;
      const chunk: unknown = JSON.parse(data);
      const { error = event === 'error' ? chunk : undefined } = jsonRecord(chunk);
      if (error) throw new APIError(undefined, jsonRecord(error), undefined, headers);
      yield chunk;
    }
  }
  return { chunks: chunks(), isDone: () => isDone };
}

/** Servers that omit the content type still send JSON; other content stays text. */
async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text !== '' && /json/i.test(response.headers.get('content-type') ?? '')) throw error;
    return text;
  }
}

/** Options that are passed to the `openai` client unchanged. */
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

/** Options of an `OpenAIProvider`: its server and its requests. Options of the `openai` client are passed on to it. */
export interface OpenAIProviderOptions extends ClientExtras {
  /** Default: `OPENAI_API_KEY`. Not needed if the server at `baseURL` requires no key. */
  readonly apiKey?: string | (() => Promise<string>);
  /** URL of a compatible server, e.g. `http://127.0.0.1:11434/v1`. Default: `OPENAI_BASE_URL`, then OpenAI. */
  readonly baseURL?: string;
  /** Default: `OPENAI_ORG_ID`. */
  readonly organization?: string;
  /** Sent with every request, in addition to the client's own headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds without an answer, or without the next event of a stream, until a request fails (default: 10 minutes). */
  readonly timeoutMs?: number;
  /**
   * How often the client itself repeats a request after a lost connection, 408, 409, 429 or 5xx (default: 0). Prefer
   * `providerRetries` of a run, which has a limit for pauses and then uses `fallback`.
   */
  readonly maxRetries?: number;
  /** The API of OpenAI to use (default: `chat`, which compatible servers support too). */
  readonly api?: Api;
  /**
   * For `responses`: whether the server stores replies, so that requests contain only new messages; default: `false`.
   */
  readonly store?: boolean;
  /**
   * Which tools are sent in their strict form: all, all except tools with `strict: false` (`'auto'`), or none.
   * Default: the tools with `strict: true`.
   */
  readonly strict?: StrictMode;
  /**
   * Whether models support a response schema. `output` of a run then uses it instead of a tool. Default: `true` at
   * OpenAI except for its oldest models, `false` at other servers.
   */
  readonly responseFormat?: boolean;
  /**
   * For `responses`: whether deferred tools are sent as answers to the model’s `tool_search` (default: `true` at
   * OpenAI from GPT-5.4 on).
   */
  readonly toolSearch?: boolean;
  /**
   * An existing client, for example for Azure; give it `maxRetries: 0`. Of the other options, only `api`, `store`,
   * `strict` and `responseFormat` are used.
   */
  readonly client?: OpenAI;
}

const READY_CLIENT = 'client: new OpenAI({ … }), created with this option';

/** Options that only a manually created client supports. */
const FOR_CLIENTS: Record<Exclude<keyof ClientOptions, keyof OpenAIProviderOptions>, string> = {
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
/** The client also accepts other forms of headers. */
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
    api: oneOf('chat', 'responses'),
    strict: either(BOOLEAN, oneOf('auto')),
    store: BOOLEAN,
    responseFormat: BOOLEAN,
    toolSearch: BOOLEAN,
    client: withMethods(['request'], 'new OpenAI({ … })'),
    project: TEXT,
    timeout: TIMEOUT,
    defaultHeaders: CLIENT_HEADERS,
    defaultQuery: secret(RECORD),
    fetch: FUNCTION,
    fetchOptions: ANY_VALUE,
    logLevel: oneOf('off', 'error', 'warn', 'info', 'debug'),
    logger: LOGGER,
    dangerouslyAllowBrowser: BOOLEAN,
  },
  { ...FOR_CLIENTS, model: 'the model of the run: runToolLoop({ provider, model })' },
);

/** The client for the requests: the given one, or one created from the options and the environment. */
function createClient(options: OpenAIProviderOptions): OpenAI {
  checkOptions(options, PROVIDER_OPTIONS);
  const { api, store, strict, responseFormat, client, headers, timeoutMs, ...others } = options;
  if (client !== undefined) return client;
  const address = environment('OPENAI_BASE_URL');
  if (options.baseURL === undefined && address !== undefined && !ADDRESS.accepts(address))
    throw invalid('OPENAI_BASE_URL', `OPENAI_BASE_URL is '${address}'`, ADDRESS.fix);
  const baseURL = options.baseURL ?? address;
  const key = options.apiKey || environment('OPENAI_API_KEY');
  if (!key && baseURL === undefined) {
    const fix = 'set OPENAI_API_KEY, or pass apiKey; or pass baseURL for a server that needs no key';
    throw invalid('apiKey', 'there is no API key', fix);
  }
  return new OpenAI({
    ...others,
    baseURL,
    // The client requires a key, and local servers ignore it.
    apiKey: key || 'no-key-needed',
    defaultHeaders: headers ?? options.defaultHeaders,
    timeout: timeoutMs ?? options.timeout,
    maxRetries: options.maxRetries ?? 0,
    // Every failure is thrown with its text; the client would also write it to the console.
    logLevel: options.logLevel ?? (environment('OPENAI_LOG') === undefined ? 'off' : undefined),
  });
}

function invalid(option: string, problem: string, fix: string): InvalidOptionsError {
  return new InvalidOptionsError([{ where: PROVIDER_OPTIONS.of, option, problem, fix }]);
}

function environment(name: string): string | undefined {
  return process.env[name]?.trim() || undefined;
}
