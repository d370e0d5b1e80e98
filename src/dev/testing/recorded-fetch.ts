import { Buffer } from 'node:buffer';
import { checkOptions } from '../../core/errors/author-fault.js';
import { counted } from '../../core/kernel/counted.js';
import { canonicalJson, type Fields, isRecord, parsedJson } from '../../core/kernel/json.js';
import { nodeFiles } from '../../core/kernel/node-module.js';
import { FILLED_TEXT, FUNCTION, oneOf, optionTable, required } from '../../core/kernel/options.js';
import { isBodiless } from './faulty-fetch.js';
import { writeText } from './write-text.js';

/** Bytes in JSON: a string if they are text, otherwise base64. */
type RecordedBytes = string | { readonly base64: string };

/** The compared parts of a request. */
interface RecordedRequest {
  readonly method: string;
  /** Without user name, password, and secrets in the query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: { readonly json: unknown } | RecordedBytes;
}

/** A response with its body in the original chunks. */
interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly RecordedBytes[];
  /** The connection was lost before the end of the body. */
  readonly isCut?: true;
}

/** A line of a recording: a request with its response or failure. */
interface Exchange {
  readonly request: RecordedRequest;
  readonly response?: RecordedResponse;
  /** Instead of a response: the request failed. */
  readonly failure?: { readonly message: string; readonly code?: string };
}

/** A string if it restores the same bytes. */
function recordedBytes(bytes: Uint8Array): RecordedBytes {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') };
  }
}

/** The parts of a request that must be equal: path and content, not the server. */
function comparedPart({ method, url, body }: RecordedRequest): Fields {
  const { pathname, search } = new URL(url);
  const content = isRecord(body) && 'json' in body ? body.json : body;
  return { method, url: pathname + search, ...(content === undefined ? {} : { body: content }) };
}

/** Equal for equal requests. */
function requestKey(request: RecordedRequest): string {
  return canonicalJson(comparedPart(request));
}

/** The first difference between the recorded and the sent value; keys in the order of the recording. */
function firstDifference(
  recorded: unknown,
  sent: unknown,
  path = '',
): { readonly path: string; readonly recorded: string; readonly sent: string } | undefined {
  if (isHolder(recorded) && isHolder(sent) && Array.isArray(recorded) === Array.isArray(sent)) {
    for (const key of Object.keys({ ...recorded, ...sent })) {
      const [one, other] = [recorded, sent].map((holder) =>
        Object.hasOwn(holder, key) ? holder[key] : undefined,
      );
      const difference = firstDifference(one, other, below(path, key, sent));
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  if (Object.is(recorded, sent)) return undefined;
  // Cuts long texts to the surroundings of their first difference.
  const [one = '', other = ''] = [recorded, sent].map((value) =>
    value === undefined ? 'nothing' : JSON.stringify(value),
  );
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  const from = at > SHOWN - BEFORE ? at - BEFORE : 0;
  const excerpt = (text: string) =>
    `${from > 0 ? '…' : ''}${text.slice(from, from + SHOWN)}${from + SHOWN < text.length ? '…' : ''}`;
  return { path, recorded: excerpt(one), sent: excerpt(other) };
}

function isHolder(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function below(path: string, key: string, holder: object): string {
  if (Array.isArray(holder)) return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

const SHOWN = 120;
const BEFORE = 30;

/** Options of {@link recordedFetch}. */
export interface RecordedFetchOptions {
  /** File of the recording: one JSON line per request. */
  readonly file: string;
  /** `'auto'` (the default) replays an existing file, and records a missing one. */
  readonly mode?: 'record' | 'replay' | 'auto';
  /** The `fetch` to record; default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
  /** Changes texts before they are written or compared. */
  readonly redact?: (text: string) => string;
}

/** A `fetch` that records responses, or replays them. */
export interface RecordedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  readonly mode: 'record' | 'replay';
  /**
   * For replays: throws if a request was not recorded (its first difference), or if recorded requests were not made.
   */
  assertUsedUp(): void;
}

const OPTIONS = optionTable<RecordedFetchOptions>('recordedFetch', {
  file: required(FILLED_TEXT),
  mode: oneOf('record', 'replay', 'auto'),
  fetch: FUNCTION,
  redact: FUNCTION,
});

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * Records the traffic of a provider to a file, and replays it without a server. Keys, cookies, names of organisations
 * and secrets in queries are never written. In a replay, each request gets the response that was recorded for it. A
 * request that was not recorded rejects with its first difference.
 *
 * @throws InvalidOptionsError for invalid options; Error if there is no recording to replay, or a line is unreadable.
 *
 * @example
 * ```ts
 * const fetch = recordedFetch({ file: 'test/orders.jsonl' });
 * const provider = new OpenAIProvider({ fetch, apiKey: process.env.OPENAI_API_KEY ?? 'none', maxRetries: 0 });
 * const run = await runToolLoop({ provider, model: 'gpt-5', tools }, messages);
 * fetch.assertUsedUp();
 * ```
 */
export function recordedFetch(options: RecordedFetchOptions): RecordedFetch {
  checkOptions(options, OPTIONS);
  const { file, mode = 'auto', fetch = globalThis.fetch, redact = (text) => text } = options;
  const isReplay = mode === 'replay' || (mode === 'auto' && nodeFiles().existsSync(file));
  if (!isReplay) {
    const record = recorder(file, fetch, redact);
    return Object.assign(record, { mode: 'record' as const, assertUsedUp: () => {} });
  }
  const replay = new Replay(file, readRecording(file), redact);
  return Object.assign(replay.answer, { mode: 'replay' as const, assertUsedUp: () => replay.assertUsedUp() });
}

type Redact = (text: string) => string;

/** The recorded headers: no others change how a client reads a body. */
const KEPT_HEADERS = ['accept', 'content-type', 'retry-after', 'retry-after-ms', 'x-should-retry'];
const SECRET_NAME = /auth|key|token|secret|cookie|credential|password|passwd|signature|session|^sig$|^code$/i;
const OWNER_ID = /^(org|proj|acct|user)[-_]/;
/** Shorter values may be normal words in a text. */
const MIN_SECRET = 8;
const REMOVED = '[removed]';

/** Reads a request to its end, with its recordable parts. */
async function readRequest(input: string | URL | Request, init: RequestInit | undefined, redact: Redact) {
  const request = new Request(input, init);
  const bytes = new Uint8Array(await request.arrayBuffer());
  const { headers, method, url } = request;
  const secrets = secretsOf(headers, new URL(url));
  const hide = (text: string) =>
    redact(secrets.reduce((rest, secret) => rest.replaceAll(secret, REMOVED), text));
  const shownUrl = new URL(url);
  shownUrl.username = '';
  shownUrl.password = '';
  for (const name of new Set(shownUrl.searchParams.keys()))
    if (SECRET_NAME.test(name)) shownUrl.searchParams.set(name, REMOVED);
  const body = bytes.length === 0 ? {} : { body: shownBody(bytes, headers.get('content-type') ?? '', hide) };
  return {
    shown: { method, url: shownUrl.href, headers: keptHeaders(headers), ...body },
    url,
    init: {
      ...init,
      method,
      headers,
      ...(bytes.length === 0 ? {} : { body: bytes }),
      signal: request.signal,
    },
    hide,
  };
}

/** Credentials: a body may repeat them, for example in an error message. */
function secretsOf(headers: Headers, { searchParams, password }: URL): readonly string[] {
  const named = [...headers, ...searchParams];
  const values = named
    .filter(([name, value]) => SECRET_NAME.test(name) || OWNER_ID.test(value))
    .flatMap(([, value]) => value.split(/[;,]/))
    // The value in `Bearer …` and `sid=…`.
    .map((value) => value.trim().replace(/^[\w-]+(?: +|=(?=[^=]))/, ''));
  return [...values, password]
    .filter((value) => value.length >= MIN_SECRET)
    .sort((one, other) => other.length - one.length);
}

function keptHeaders(headers: Headers): Readonly<Record<string, string>> {
  return Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value.replace(/boundary=.*/, 'boundary=-')]];
    }),
  );
}

/** JSON is stored as JSON, so that recordings are readable; forms without their random boundary. */
function shownBody(bytes: Uint8Array, type: string, hide: Redact): NonNullable<RecordedRequest['body']> {
  const boundary = /boundary="?([^";]+)/.exec(type)?.[1];
  const same =
    boundary === undefined
      ? bytes
      : Buffer.from(Buffer.from(bytes).toString('latin1').replaceAll(boundary, '-'), 'latin1');
  const body = recordedBytes(same);
  if (typeof body !== 'string') return body;
  const text = hide(body);
  const json = /json/i.test(type) ? parsedJson(text) : undefined;
  return json === undefined ? text : { json };
}

/** Writes lines in the order of the requests, whichever response completes first. */
function recorder(file: string, fetch: Fetch, redact: Redact): Fetch {
  const { appendFileSync } = nodeFiles();
  writeText(file, '');
  const waiting = new Map<number, Exchange>();
  let [begun, written] = [0, 0];
  const keep = (index: number, exchange: Exchange): void => {
    waiting.set(index, exchange);
    for (let next = waiting.get(written); next !== undefined; next = waiting.get(written)) {
      waiting.delete(written++);
      appendFileSync(file, `${JSON.stringify(next)}\n`);
    }
  };
  return async (input, init) => {
    const index = begun++;
    const { shown: request, url, init: sent, hide } = await readRequest(input, init, redact);
    try {
      const response = await fetch(url, sent);
      return recorded(response, hide, (copy) => keep(index, { request, response: copy }));
    } catch (error) {
      const { message, cause } = Object(error) as Fields;
      const { code } = Object(cause) as Fields;
      const failure = { message: String(message), ...(typeof code === 'string' ? { code } : {}) };
      keep(index, { request, failure });
      throw error;
    }
  };
}

/** A copy of the response whose body is read to its end, even if the reader does not read it. */
function recorded(
  response: Response,
  hide: Redact,
  keep: (recorded: NonNullable<Exchange['response']>) => void,
): Response {
  const { status, headers } = response;
  const parts: Uint8Array[] = [];
  const end = (rest: { readonly isCut?: true }) =>
    keep({ status, headers: keptHeaders(headers), chunks: shownParts(parts, hide), ...rest });
  if (response.body === null) {
    end({});
    return response;
  }
  const reader = response.body.getReader();
  const start = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        parts.push(read.value);
        controller.enqueue(read.value);
      }
    } catch (error) {
      end({ isCut: true });
      return controller.error(error);
    }
    end({});
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void start(controller).catch(() => {}),
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

/** Merges the chunks into one if a secret may span two of them. */
function shownParts(parts: readonly Uint8Array[], hide: Redact): readonly RecordedBytes[] {
  const shown = parts.map((part) => {
    const recorded = recordedBytes(part);
    return typeof recorded === 'string' ? hide(recorded) : recorded;
  });
  const whole = recordedBytes(Buffer.concat(parts));
  if (typeof whole !== 'string') return shown;
  const text = hide(whole);
  const isAllShown = shown.every((part) => typeof part === 'string') && shown.join('') === text;
  return text === whole || isAllShown ? shown : [text];
}

/** A recording to replay; each exchange is used for one request. */
class Replay {
  readonly #file: string;
  readonly #redact: Redact;
  readonly #exchanges: readonly Exchange[];
  /** Unused exchanges by request; the first is at the end of the list. */
  readonly #unused: ReadonlyMap<string, Exchange[]>;
  readonly #used = new Set<Exchange>();
  #asked = 0;
  #divergence: Error | undefined;

  constructor(file: string, exchanges: readonly Exchange[], redact: Redact) {
    this.#file = file;
    this.#redact = redact;
    this.#exchanges = exchanges;
    this.#unused = Map.groupBy([...exchanges].reverse(), ({ request }) => requestKey(request));
  }

  readonly answer: Fetch = async (input, init) => {
    const number = ++this.#asked;
    const { shown, init: sent } = await readRequest(input, init, this.#redact);
    sent.signal.throwIfAborted();
    // After a difference, further requests would be compared with the wrong lines.
    if (this.#divergence !== undefined) throw this.#divergence;
    const exchange = this.#unused.get(requestKey(shown))?.pop();
    if (exchange === undefined) {
      this.#divergence = new Error(this.#describe(number, shown));
      throw this.#divergence;
    }
    this.#used.add(exchange);
    const { response, failure } = exchange;
    if (response === undefined) {
      const { message = 'fetch failed', code } = failure ?? {};
      const cause = code === undefined ? {} : { cause: Object.assign(new Error(code), { code }) };
      throw new TypeError(message, cause);
    }
    const { status, headers } = response;
    return new Response(isBodiless(status) ? null : bodyOf(response, sent.signal), { status, headers });
  };

  assertUsedUp(): void {
    if (this.#divergence !== undefined) throw this.#divergence;
    const left = this.#exchanges.length - this.#used.size;
    if (left > 0)
      throw new Error(
        `${left} of ${this.#exchanges.length} recorded requests in ${this.#file} were not made`,
      );
  }

  #describe(number: number, sent: RecordedRequest): string {
    const { method, url } = comparedPart(sent);
    const what = `request ${number} (${method} ${url})`;
    const line = this.#exchanges.findIndex((exchange) => !this.#used.has(exchange));
    const expected = this.#exchanges[line];
    if (expected === undefined)
      return `${what} is not in the recording ${this.#file}, which has ${counted(this.#exchanges.length, 'request')}`;
    const difference = firstDifference(comparedPart(expected.request), comparedPart(sent));
    return [
      `${what} differs from line ${line + 1} of ${this.#file}: ${difference?.path}`,
      `- recorded: ${difference?.recorded}`,
      `+ sent:     ${difference?.sent}`,
      "If the new request is right, record it again: set mode: 'record', or remove the file.",
    ].join('\n');
  }
}

/** One chunk per pull, as recorded. */
function bodyOf({ chunks, isCut }: RecordedResponse, signal: AbortSignal): ReadableStream<Uint8Array> {
  let next = 0;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const chunk = chunks[next++];
    if (signal.aborted) controller.error(signal.reason);
    else if (typeof chunk === 'string') controller.enqueue(new TextEncoder().encode(chunk));
    else if (chunk !== undefined) controller.enqueue(new Uint8Array(Buffer.from(chunk.base64, 'base64')));
    else if (isCut) controller.error(new TypeError('terminated'));
    else controller.close();
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Reads the exchanges of a file, one JSON line each. */
function readRecording(file: string): readonly Exchange[] {
  const { existsSync, readFileSync } = nodeFiles();
  if (!existsSync(file))
    throw new Error(`the recording ${file} does not exist; create it with mode: 'record'`);
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, index) => {
      if (line.trim() === '') return [];
      const exchange = parsedJson(line);
      const { request, response, failure } = isRecord(exchange) ? exchange : {};
      const { method, url } = isRecord(request) ? request : {};
      const hasEnd = isRecord(response) ? Array.isArray(response.chunks) : isRecord(failure);
      if (typeof method !== 'string' || !URL.canParse(String(url)) || !hasEnd)
        throw new Error(`${file}:${index + 1} is not a line of a recording`);
      return [exchange as unknown as Exchange];
    });
}
