import { isConnectionLost, ProviderError } from '../../core/errors/provider-error.js';
import { causesOf } from '../../core/kernel/error-message.js';
import { jsonRecord, jsonText } from './wire-json.js';

/** The address of a failed request, and what may have ended it. */
interface FailedRequest {
  readonly baseURL: string;
  /** The environment variable that may contain the key: `OPENAI_API_KEY`. */
  readonly keyVariable: string;
  readonly signal?: AbortSignal;
  /** How often the client retries. */
  readonly maxRetries?: number;
}

const CONNECTION_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused; is the server running?'],
  ['ENOTFOUND', 'no such host; check the base URL'],
  ['EAI_AGAIN', 'the host name could not be looked up; check the network'],
  ['EHOSTUNREACH', 'no route to the host; check the network'],
  ['ENETUNREACH', 'no route to the network; check the network'],
  ['ECONNRESET', 'the connection was cut; try again'],
  ['EPIPE', 'the connection was cut; try again'],
  ['UND_ERR_SOCKET', 'the connection was cut; try again'],
  ['ETIMEDOUT', 'no answer in time; check the network'],
  ['UND_ERR_CONNECT_TIMEOUT', 'no answer in time; check the network'],
  ['CERT_HAS_EXPIRED', 'its TLS certificate has expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its TLS certificate is self-signed; see NODE_EXTRA_CA_CERTS'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its TLS certificate is self-signed; see NODE_EXTRA_CA_CERTS'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its TLS certificate is not trusted; see NODE_EXTRA_CA_CERTS'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its TLS certificate is for another host; check the base URL'],
]);

const STATUS_FAULTS: ReadonlyMap<number, readonly [problem: string, remedy: string]> = new Map([
  [400, ['the request was refused', '']],
  [401, ['the key was refused', 'check apiKey or {keyVariable}']],
  [402, ['the account has no credit left', '']],
  [403, ['the key does not permit this request', 'check the permissions of the key and of the account']],
  [404, ['not found', 'check the model name, and that the base URL is right (most end with /v1)']],
  [408, ['the server timed out', 'try again']],
  [413, ['the request is too large', 'shorten the messages']],
  [422, ['the request was refused', '']],
  [429, ['too many requests, or no quota left', 'try again later']],
]);

/**
 * The error to throw for a failed request: a one-line message with the problem and the fix, and the client's own
 * error as `cause`. After an abort, it is the client's error itself.
 */
export function describeFailure(
  error: unknown,
  { baseURL, keyVariable, signal, maxRetries = 0 }: FailedRequest,
): unknown {
  if (signal?.aborted) return error;
  if (ProviderError.is(error)) return error;
  const { status, headers } = jsonRecord(error);
  // The client retries until there is an answer; a stream that is interrupted later was tried once.
  const isWithoutAnswer = /^(connection error|request timed out)/i.test(messageOf(error));
  const retryable = isRetryable(error);
  const wasRetried = retryable && (typeof status === 'number' || isWithoutAnswer);
  const sentence = sentenceFor(error, placeOf(baseURL)).replace('{keyVariable}', keyVariable);
  return new ProviderError(oneLine(sentence), {
    cause: error,
    retryable,
    tries: wasRetried ? 1 + maxRetries : undefined,
    status: typeof status === 'number' ? status : undefined,
    retryAfterMs: retryAfterOf(headers),
  });
}

/** A base URL for messages: without user name, password and query, which may be secret. */
export function placeOf(baseURL: string): string {
  if (!URL.canParse(baseURL)) return baseURL;
  const { protocol, host, pathname } = new URL(baseURL);
  return `${protocol}//${host}${pathname.replace(/\/$/, '')}`;
}

/** The beginning of a text, on one line, for use inside a message. */
export function excerptOf(text: string): string {
  const line = oneLine(text);
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

function sentenceFor(error: unknown, place: string): string {
  const { status, name } = jsonRecord(error);
  const message = messageOf(error);
  if (typeof status === 'number') {
    const failed = ['the server failed', 'try again later'] as const;
    const [problem, remedy] =
      STATUS_FAULTS.get(status) ?? (status >= 500 ? failed : ['the request failed', '']);
    // The server's own message; for an HTML page (usually of a proxy), only its title.
    let said = message.replace(`${status} `, '').replace('status code (no body)', '').trim();
    if (said.startsWith('<')) said = /<title[^>]*>([^<]*)/i.exec(said)?.[1] ?? 'an HTML page';
    const detail = excerptOf(said);
    return `${status} from ${place}: ${problem}${detail ? ` (${detail})` : ''}${remedy ? `; ${remedy}` : ''}`;
  }
  if (/timed? ?out/i.test(message)) return `${place} did not answer in time; raise timeoutMs or try again`;
  const causes = causesOf(error);
  const [fault] = causes.flatMap((cause) => CONNECTION_FAULTS.get(jsonText(jsonRecord(cause).code)) ?? []);
  if (fault !== undefined) return `cannot reach ${place}: ${fault}`;
  if (name === 'SyntaxError') return `${place} answered with broken JSON: ${excerptOf(message)}`;
  // `fetch` repeats a URL that it refuses, including the password in it.
  const detail = excerptOf(
    messageOf(causes.at(-1))
      .replace(/(\w+:\/\/)[^\s/@]+@/g, '$1')
      .replace(/(\w+:\/\/[^\s?]+)\?\S*/g, '$1'),
  );
  if (detail === 'bad port') return `cannot reach ${place}: the fetch standard blocks this port; use another`;
  // The client's message for failures before an answer.
  if (message === 'Connection error.') return `cannot reach ${place}: ${detail}`;
  return `the request to ${place} failed: ${detail}`;
}

function messageOf(error: unknown): string {
  return jsonText(jsonRecord(error).message) || String(error);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Statuses below 500 that are not caused by the request itself. */
const PASSING_STATUSES = new Set([408, 409, 425, 429]);
/** Error codes for permanent problems, although the server sends 429 or no status. */
const LASTING_CODES = /quota|billing|invalid|not_found|authentication|permission|unsupported|policy|image/i;

function isRetryable(error: unknown): boolean {
  const { status, code, type, headers, name } = jsonRecord(error);
  const asked = headerOf(headers, 'x-should-retry');
  if (asked === 'true' || asked === 'false') return asked === 'true';
  if (LASTING_CODES.test(`${jsonText(code)} ${jsonText(type)}`)) return false;
  if (typeof status === 'number') return isPassing(status);
  if (/timed? ?out/i.test(messageOf(error)) || name === 'SyntaxError') return true;
  // An error inside a stream has no status.
  return isConnectionLost(error) || jsonRecord(error).error !== undefined;
}

/** Whether a request that was refused with this status may succeed later. */
export function isPassing(status: number): boolean {
  return status >= 500 || PASSING_STATUSES.has(status);
}

/** The pause that the headers of a refusal request, in milliseconds. */
export function retryAfterOf(headers: unknown): number | undefined {
  const exact = Number.parseFloat(headerOf(headers, 'retry-after-ms'));
  if (exact >= 0) return exact;
  const text = headerOf(headers, 'retry-after');
  const seconds = /^\s*[\d.]+\s*$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  const waits = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1_000;
  return Number.isFinite(waits) ? Math.max(0, Math.round(waits)) : undefined;
}

/** Reads `Headers`, or the plain object of a custom client. */
function headerOf(headers: unknown, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  return jsonText(jsonRecord(headers)[name]);
}
