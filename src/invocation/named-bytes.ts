import types from 'node:util/types';
import type { ContentPart } from '../contract/content-part.js';

/** Bytes with what is known of them. */
export interface NamedBytes {
  readonly bytes: Uint8Array;
  readonly mimeType?: string;
  readonly filename?: string;
}

/** Where bytes or texts come from, one after the other. */
export interface ByteStream {
  readonly chunks: AsyncIterable<unknown>;
  readonly mimeType?: string;
  readonly filename?: string;
}

/** More than this is no answer for a model. */
export const MAX_BYTES = 32 * 2 ** 20;

type Known = Readonly<Record<string, unknown>>;

/** The bytes that an object is; nothing where it is something else. */
export function bytesOf(value: object): Uint8Array | undefined {
  if (types.isUint8Array(value)) return value;
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
  const isBytes = value instanceof Uint8ClampedArray || types.isDataView(value);
  return isBytes ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined;
}

/** A `Response` of `fetch`. */
export function isResponse(value: object): value is Response {
  const { arrayBuffer, status, headers } = value as Known;
  return typeof arrayBuffer === 'function' && typeof status === 'number' && typeof headers === 'object';
}

/** A `Blob` or `File`. */
export function isBlob(value: object): value is Blob & { readonly name?: string } {
  const { arrayBuffer, size, type } = value as Known;
  return typeof arrayBuffer === 'function' && typeof size === 'number' && typeof type === 'string';
}

/** A stream of Node or of the web, or an object around one, as NestJS's `StreamableFile` is. */
export function streamOf(value: object): ByteStream | undefined {
  const { getStream, getHeaders, pipe, pipeTo } = value as Known;
  if (typeof getStream === 'function') {
    const headers: unknown = typeof getHeaders === 'function' ? getHeaders.call(value) : undefined;
    const inner: unknown = getStream.call(value);
    return isIterable(inner) ? { chunks: inner, ...headersOf(headers) } : undefined;
  }
  const isStream = typeof pipe === 'function' || typeof pipeTo === 'function';
  return isStream && isIterable(value) ? { chunks: value } : undefined;
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** What a `StreamableFile` says of its content; Nest's defaults say nothing. */
function headersOf(headers: unknown): { readonly mimeType?: string; readonly filename?: string } {
  const { type, disposition } = (headers ?? {}) as Known;
  const filename =
    typeof disposition === 'string' ? /filename="?([^";]+)/i.exec(disposition)?.[1] : undefined;
  return {
    ...(typeof type === 'string' && type !== UNKNOWN ? { mimeType: type } : {}),
    ...(filename === undefined ? {} : { filename }),
  };
}

/** Bytes as a part for the model. `number` names one that has no name. */
export function partOf({ bytes, mimeType, filename }: NamedBytes, number: number): ContentPart {
  const type = (mimeType || sniff(bytes)).split(';', 1)[0] ?? UNKNOWN;
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  if (type.startsWith('image/')) return { type: 'image', data, mimeType: type };
  return {
    type: 'file',
    data,
    mimeType: type,
    filename: filename || `file-${number}.${EXTENSIONS[type] ?? 'bin'}`,
  };
}

const UNKNOWN = 'application/octet-stream';

/** How files of some types begin. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF8', 'image/gif'],
  ['%PDF-', 'application/pdf'],
  ['PK\x03\x04', 'application/zip'],
];

const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/json': 'json',
  'text/plain': 'txt',
  'text/csv': 'csv',
  'text/html': 'html',
};

function sniff(bytes: Uint8Array): string {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  if (head.startsWith('RIFF') && head.startsWith('WEBP', 8)) return 'image/webp';
  return BEGINNINGS.find(([beginning]) => head.startsWith(beginning))?.[1] ?? UNKNOWN;
}

/** Whether a content type says that bytes are text. */
export function isTextual(mimeType: string): boolean {
  return /^text\/|[/+](?:json|xml|yaml|javascript|x-www-form-urlencoded)\b/i.test(mimeType);
}
