import { Buffer } from 'node:buffer';
import { canonicalJson, isRecord } from '../kernel/json.js';

/** Bytes as JSON: as text where they are some, otherwise in base64. */
export type RecordedBytes = string | { readonly base64: string };

/** A request, as far as it has to be the same again. */
export interface RecordedRequest {
  readonly method: string;
  /** Without a user's name, password and the secrets in its query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: { readonly json: unknown } | RecordedBytes;
}

/** A response, its body in the parts in which it came. */
interface RecordedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly RecordedBytes[];
  /** The connection was lost before the end of the body. */
  readonly isCut?: true;
}

/** One line of a recording: what was sent, and what came of it. */
export interface Exchange {
  readonly request: RecordedRequest;
  readonly response?: RecordedResponse;
  /** Instead of a response: the request failed. */
  readonly failure?: { readonly message: string; readonly code?: string };
}

/** Text where it gives the same bytes again. */
export function recordedBytes(bytes: Uint8Array): RecordedBytes {
  const text = textOf(bytes);
  return text ?? { base64: Buffer.from(bytes).toString('base64') };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The bytes that were recorded. */
export function bytesOf(recorded: RecordedBytes): Uint8Array {
  if (typeof recorded === 'string') return new TextEncoder().encode(recorded);
  return new Uint8Array(Buffer.from(recorded.base64, 'base64'));
}

/** What of a request must be the same: where on the server it goes and what it says; not to which server. */
export function comparedPart({ method, url, body }: RecordedRequest): Readonly<Record<string, unknown>> {
  const { pathname, search } = new URL(url);
  const said = isRecord(body) && 'json' in body ? body.json : body;
  return { method, url: pathname + search, ...(said === undefined ? {} : { body: said }) };
}

/** Equal for requests that are the same. */
export function requestKey(request: RecordedRequest): string {
  return canonicalJson(comparedPart(request));
}

/** The first place at which two values differ. */
interface Difference {
  readonly path: string;
  readonly recorded: string;
  readonly sent: string;
}

/** The first place at which what is sent is not what was recorded; object keys in the order of the recording. */
export function firstDifference(recorded: unknown, sent: unknown, path = ''): Difference | undefined {
  if (!isHolder(recorded) || !isHolder(sent) || Array.isArray(recorded) !== Array.isArray(sent))
    return Object.is(recorded, sent) ? undefined : describe(recorded, sent, path);
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(sent)])) {
    const difference = firstDifference(fieldOf(recorded, key), fieldOf(sent, key), below(path, key, sent));
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function isHolder(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function fieldOf(holder: object, key: string): unknown {
  return Object.hasOwn(holder, key) ? (holder as Readonly<Record<string, unknown>>)[key] : undefined;
}

function below(path: string, key: string, holder: object): string {
  if (Array.isArray(holder)) return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

const SHOWN = 120;
const BEFORE = 30;

/** Of long texts what is around the place at which they part. */
function describe(recorded: unknown, sent: unknown, path: string): Difference {
  const [one, other] = [shown(recorded), shown(sent)];
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  const from = at > SHOWN - BEFORE ? at - BEFORE : 0;
  return { path, recorded: excerpt(one, from), sent: excerpt(other, from) };
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

function excerpt(text: string, from: number): string {
  const end = from + SHOWN;
  return `${from > 0 ? '…' : ''}${text.slice(from, end)}${end < text.length ? '…' : ''}`;
}
