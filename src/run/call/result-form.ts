import types from 'node:util/types';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type Content,
  type ContentPart,
  ToolResult,
  type ToolResultFields,
  toolResult,
} from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { isAsyncIterable, isThenable } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isObject, isPlainData, textOfJson } from '../../core/kernel/json.js';
import type { CallEnvironment } from './invocation.js';
import { type DescribeError, describeThrown, failedResult, writeFailure } from './result-text.js';

/** The call that the work belongs to. */
export interface WorkOf {
  readonly tool: ToolDefinition;
  readonly environment: CallEnvironment;
  readonly context: Reporter;
}

/** Runs work of a tool and writes its outcome; never rejects. */
export async function settleWork(
  { tool, environment, context }: WorkOf,
  work: () => unknown,
): Promise<ToolResult> {
  const { describeError } = environment;
  try {
    return writeResult(tool, await runWork(work, { tool, environment, context }), describeError);
  } catch (error) {
    return writeFailure(tool.name, error, describeError);
  }
}

/** The settled value of work; values that a generator yields are progress, as in the tool's own body. */
export async function runWork(work: () => unknown, of: WorkOf): Promise<unknown> {
  return settled(await work(), of);
}

/**
 * Prepares the value that a tool returned: awaits promises, drains generators, and converts objects that JSON does
 * not represent. Most values need no preparation.
 */
export function settled(value: unknown, of: WorkOf): unknown {
  if (!isObject(value)) return value;
  const { tool, environment } = of;
  try {
    if (isPlainData(value) || isToolResultLike(value, tool)) return value;
    if (value instanceof Error || types.isNativeError(value)) return value;
  } catch (error) {
    throw unreadableResult(error);
  }
  if (isIterator(value)) return settled(drainNow(value, of.context), of);
  if (Symbol.asyncIterator in value && streamOf(value) === undefined)
    return drain(value as AsyncIterable<unknown>, of.context).then((last) => settled(last, of));
  return new ResultForm(of.context, (error) =>
    describeThrown(tool.name, error, environment.describeError),
  ).of(value);
}

/** Whether a value can be written without further preparation. For an unreadable value, `false`: the later attempt may fail. */
export function isReady(value: unknown): boolean {
  if (!isObject(value) || value instanceof ToolResult) return true;
  try {
    return isPlainData(value) || value instanceof ResultForm;
  } catch {
    return false;
  }
}

/** An object and its ancestors, to detect cycles. */
interface Around {
  readonly value: object;
  readonly outer: Around | undefined;
  readonly levels: number;
}

/** Each level needs stack. */
const MOST_LEVELS = 500;
const FIX = 'Return plain data';

/**
 * Converts a returned value to JSON: promises are awaited, `Map` and `Set` get the form of parameters of these types,
 * and bytes and files become parts, with their names in their place.
 */
export class ResultForm {
  json: unknown;
  /** Why a part of it cannot be converted: a sentence without its full stop. */
  problem: string | undefined;
  readonly #reporter: Reporter;
  readonly #describe: (error: unknown) => string;
  readonly #files: (ContentPart | undefined)[] = [];

  /** `reporter` stops the reading once the call has been answered; `describe` writes an error inside the result. */
  constructor(reporter: Reporter, describe: (error: unknown) => string) {
    this.#reporter = reporter;
    this.#describe = describe;
  }

  /** Converts the value. Rejects with errors of the tool's own objects. */
  async of(value: object): Promise<ResultForm> {
    this.json = await this.#form(value);
    return this;
  }

  get files(): readonly ContentPart[] {
    return this.#files.filter((part) => part !== undefined);
  }

  /** A value in JSON form, or a promise of it. Never throws. */
  #form(value: unknown, around?: Around): unknown {
    switch (typeof value) {
      case 'number':
        return Number.isFinite(value) ? value : String(value);
      case 'bigint':
      case 'symbol':
        return String(value);
      case 'function':
        return this.#fail(`it contains the function ${value.name || 'without a name'}. Return its result`);
      case 'object':
        return value === null ? null : this.#within(value, around);
      default:
        return value;
    }
  }

  #within(value: object, around: Around | undefined): unknown {
    for (let outer = around; outer !== undefined; outer = outer.outer)
      if (outer.value === value) return this.#fail(`it contains itself (circular). ${FIX}`);
    const levels = (around?.levels ?? 0) + 1;
    if (levels > MOST_LEVELS) return this.#fail(`it has more than ${MOST_LEVELS} levels. Return less of it`);
    let formed: unknown;
    try {
      formed = this.#object(value, { value, outer: around, levels });
    } catch (error) {
      formed = Promise.reject(unreadableResult(error));
    }
    // If the outer value fails first, this rejection would be unhandled and end the process.
    if (formed instanceof Promise) formed.catch(() => {});
    return formed;
  }

  #object(value: object, around: Around): unknown {
    const bytes = bytesOf(value);
    if (bytes !== undefined) return this.#attach({ bytes });
    if (Array.isArray(value) || ArrayBuffer.isView(value))
      return this.#list(Array.from(value as unknown as Iterable<unknown>), around);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    if (isThenable(value)) return this.#later(Promise.resolve(value), around);
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      const shown: unknown = value.toJSON('');
      if (shown !== value) return this.#form(shown, around);
    }
    if (value instanceof Error || types.isNativeError(value)) return this.#error(value, around);
    if (value instanceof Map || types.isMap(value)) return this.#map([...value], around);
    if (value instanceof Set || types.isSet(value)) return this.#list([...value], around);
    return this.#source(value, around) ?? this.#fields(value, around);
  }

  /** Values that must be read first; `undefined` for others. */
  #source(value: object, around: Around): unknown {
    if (isResponse(value)) return this.#later(this.#response(value), around);
    if (isBlob(value)) return this.#later(this.#blob(value), around);
    const stream = streamOf(value);
    if (stream !== undefined) return this.#later(this.#stream(stream), around);
    if (types.isRegExp(value)) return String(value);
    if (types.isBoxedPrimitive(value)) return this.#form(value.valueOf(), around);
    if (isIterator(value)) return this.#list(toList(value), around);
    if (Symbol.asyncIterator in value)
      return this.#later(toListLater(value as AsyncIterable<unknown>, this.#reporter), around);
    return undefined;
  }

  /** For an object that JSON shows as `{}`, its other form if it has one. */
  #fields(value: object, around: Around): unknown {
    const fields = Object.entries(value);
    const data = fields.filter(isData);
    if (data.length > 0) return this.#entries(data, around);
    if (fields.some(([, field]) => field === undefined)) return {};
    if (fields.length === 0) {
      if (Symbol.iterator in value) {
        const list = toList(value as Iterable<unknown>);
        return isPairs(value, list) ? this.#map(list, around) : this.#list(list, around);
      }
      if (value.toString !== Object.prototype.toString && typeof value.toString === 'function')
        return String(value);
      if (hasNoMembers(value)) return {};
    }
    const name = value.constructor?.name;
    const what = name === undefined || name === 'Object' ? 'an object' : `an object of the class ${name}`;
    return this.#fail(`of ${what} JSON contains nothing. ${FIX}, or add a toJSON() method`);
  }

  #list(items: readonly unknown[], around: Around): Promise<readonly unknown[]> {
    return Promise.all(items.map((item) => this.#form(item, around)));
  }

  async #entries(entries: readonly (readonly [string, unknown])[], around: Around): Promise<object> {
    const values = await this.#list(
      entries.map(([, field]) => field),
      around,
    );
    return Object.fromEntries(entries.map(([key], index) => [key, values[index]] as const));
  }

  /** An object, in the form of a `Map` parameter; pairs if the keys are not names. */
  #map(pairs: readonly (readonly [unknown, unknown])[], around: Around): unknown {
    const names = pairs.map(([key]) => (NAMES.has(typeof key) ? String(key) : undefined));
    const isObject = names.every((name) => name !== undefined) && new Set(names).size === names.length;
    if (!isObject) return this.#list(pairs, around);
    return this.#entries(
      pairs.map(([, field], index) => [names[index] ?? '', field] as const),
      around,
    );
  }

  async #error(error: Error, around: Around): Promise<unknown> {
    const message = this.#describe(error);
    if (message !== errorMessage(error)) return { message };
    const fields = await this.#entries(Object.entries(error).filter(isData), around);
    return { name: error.name, message, ...fields };
  }

  async #later(promise: Promise<unknown>, around: Around): Promise<unknown> {
    return this.#form(await promise, around);
  }

  /** Adds bytes as a part for the model, and returns their name for the text. `number` names unnamed bytes. */
  #attach({ bytes, mimeType, filename }: NamedBytes, number = this.#files.push(undefined)): string | null {
    if (bytes.byteLength > MAX_BYTES) return this.#fail(TOO_LARGE);
    const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
    const isWebp = head.startsWith('RIFF') && head.startsWith('WEBP', 8);
    const known = TYPES.find(({ beginning }) => beginning !== undefined && head.startsWith(beginning));
    const sniffed = isWebp ? 'image/webp' : (known?.type ?? UNKNOWN);
    const [type = UNKNOWN] = (mimeType || sniffed).split(';', 1);
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    const isImage = type.startsWith('image/');
    const { extension = 'bin' } = TYPES.find((other) => other.type === type) ?? {};
    const name = isImage ? `image-${number}` : filename || `file-${number}.${extension}`;
    this.#files[number - 1] = isImage
      ? { type: 'image', data, mimeType: type }
      : { type: 'file', data, mimeType: type, filename: name };
    return `[${name}: ${type}, ${bytes.byteLength} bytes]`;
  }

  async #blob(blob: Blob & { readonly name?: string }): Promise<unknown> {
    // Reserves its position among the files before it is read.
    const number = this.#files.push(undefined);
    if (blob.size > MAX_BYTES) return this.#fail(TOO_LARGE);
    const bytes = new Uint8Array(await blob.arrayBuffer());
    return this.#attach({ bytes, mimeType: blob.type, filename: blob.name }, number);
  }

  async #response(response: Response): Promise<unknown> {
    const { status, statusText, bodyUsed, body } = response;
    if (bodyUsed)
      return this.#fail('the body of its Response was already read. Return the text that was read');
    const state = `HTTP ${status} ${statusText}`.trimEnd();
    const mimeType = response.headers.get('content-type') ?? '';
    const read = body === null ? '' : await this.#stream({ chunks: body as never, mimeType });
    if (!response.ok) throw new Error(read === '' ? state : `${state}: ${read}`);
    return read === '' ? state : read;
  }

  /** Texts become one text, bytes a file, and other values an array. */
  async #stream({ chunks, mimeType, filename }: ByteStream): Promise<unknown> {
    const items = await toListLater(chunks, this.#reporter, MAX_BYTES);
    if (items.every((item) => typeof item === 'string')) return items.join('');
    const pieces = items.map((item) => bytesOf(Object(item)));
    if (!pieces.every((piece) => piece !== undefined)) return items;
    const bytes = Buffer.concat(pieces);
    const isText = filename === undefined && mimeType !== undefined && TEXTUAL.test(mimeType);
    return isText ? bytes.toString() : this.#attach({ bytes, mimeType, filename });
  }

  #fail(problem: string): null {
    this.problem ??= problem;
    return null;
  }
}

/** Larger results are not useful for a model. */
const MAX_BYTES = 32 * 2 ** 20;
const TOO_LARGE = `it contains a file of more than ${MAX_BYTES / 2 ** 20} MB. Return a link to the file`;

function isData([, field]: readonly [string, unknown]): boolean {
  return typeof field !== 'function' && field !== undefined;
}

/** Types of keys that are names in JSON. */
const NAMES = new Set(['string', 'number', 'boolean', 'bigint']);

/** Iterables of keys and values, such as `Headers` and `FormData`. */
function isPairs(value: object, list: readonly unknown[]): list is readonly (readonly [unknown, unknown])[] {
  const { entries, get } = value as Readonly<Record<string, unknown>>;
  return (
    typeof entries === 'function' &&
    typeof get === 'function' &&
    list.every((item) => Array.isArray(item) && item.length === 2)
  );
}

/** Whether an object shows nothing: no symbols, and no methods or getters of a class. */
function hasNoMembers(value: object): boolean {
  if (Reflect.ownKeys(value).length > 0) return false;
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  const isPlainClass = Object.getPrototypeOf(prototype) === Object.prototype;
  return isPlainClass && Object.getOwnPropertyNames(prototype).every((name) => name === 'constructor');
}

/** Bytes with their known properties. */
interface NamedBytes {
  readonly bytes: Uint8Array;
  readonly mimeType?: string;
  readonly filename?: string;
}

/** A sequence of bytes or texts. */
interface ByteStream extends Omit<NamedBytes, 'bytes'> {
  readonly chunks: AsyncIterable<unknown>;
}

type Known = Readonly<Record<string, unknown>>;

/** The bytes of an object; `undefined` for other objects. */
function bytesOf(value: object): Uint8Array | undefined {
  if (types.isUint8Array(value)) return value;
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
  const isBytes = value instanceof Uint8ClampedArray || types.isDataView(value);
  return isBytes ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined;
}

/** A `Response` of `fetch`. */
function isResponse(value: object): value is Response {
  const { arrayBuffer, status, headers } = value as Known;
  return typeof arrayBuffer === 'function' && typeof status === 'number' && typeof headers === 'object';
}

function isBlob(value: object): value is Blob & { readonly name?: string } {
  const { arrayBuffer, size, type } = value as Known;
  return typeof arrayBuffer === 'function' && typeof size === 'number' && typeof type === 'string';
}

/** A stream of Node or the web, or an object that contains one, such as NestJS's `StreamableFile`. */
function streamOf(value: object): ByteStream | undefined {
  const { getStream, getHeaders, pipe, pipeTo } = value as Known;
  if (typeof getStream === 'function') {
    const headers: unknown = typeof getHeaders === 'function' ? getHeaders.call(value) : undefined;
    const inner: unknown = getStream.call(value);
    // The content type of a `StreamableFile`, except for Nest's meaningless default.
    const { type, disposition } = (headers ?? {}) as Known;
    const mimeType = typeof type === 'string' && type !== UNKNOWN ? type : undefined;
    const [, filename] =
      /filename="?([^";]+)/i.exec(typeof disposition === 'string' ? disposition : '') ?? [];
    return isAsyncIterable(inner) ? { chunks: inner, mimeType, filename } : undefined;
  }
  const isStream = typeof pipe === 'function' || typeof pipeTo === 'function';
  return isStream && isAsyncIterable(value) ? { chunks: value } : undefined;
}

const UNKNOWN = 'application/octet-stream';

/** Content types of text. */
const TEXTUAL = /^text\/|[/+](?:json|xml|yaml|javascript|x-www-form-urlencoded)\b/i;

/** File types with their first bytes and name extensions. */
const TYPES: readonly { readonly type: string; readonly beginning?: string; readonly extension?: string }[] =
  [
    { type: 'image/png', beginning: '\x89PNG\r\n\x1a\n' },
    { type: 'image/jpeg', beginning: '\xff\xd8\xff' },
    { type: 'image/gif', beginning: 'GIF8' },
    { type: 'application/pdf', beginning: '%PDF-', extension: 'pdf' },
    { type: 'application/zip', beginning: 'PK\x03\x04', extension: 'zip' },
    { type: 'application/json', extension: 'json' },
    { type: 'text/plain', extension: 'txt' },
    { type: 'text/csv', extension: 'csv' },
    { type: 'text/html', extension: 'html' },
  ];

/** Receives progress as long as the call is waited for: its context. */
interface Reporter {
  /** The call was answered before its tool had ended. */
  readonly isStopped: boolean;
  progress(update: unknown): void;
}

/** Each value of an async iterable is progress; the generator's return value is the result. */
export async function drain(values: AsyncIterable<unknown>, context: Reporter): Promise<unknown> {
  const iterator = values[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done) return next.value;
    // The call has been answered; `return` runs the generator's `finally` blocks.
    if (context.isStopped) return (await iterator.return?.())?.value;
    context.progress(next.value);
  }
}

/** The same for a synchronous iterator. If it returns nothing, the yielded values are the result. */
function drainNow(values: Iterable<unknown>, context: Reporter): unknown {
  let returned: unknown;
  const yielded = toList(
    (function* reported(): Generator<unknown> {
      returned = yield* values;
    })(),
    context,
  );
  return returned === undefined ? yielded : returned;
}

function isIterator(value: object): value is Iterable<unknown> {
  return 'next' in value && typeof value.next === 'function' && Symbol.iterator in value;
}

/** More values are not useful for a model; an iterator may be endless. */
const MAX_VALUES = 100_000;

/** All values of an iterable; each of them is progress for `reporter`. */
function toList(values: Iterable<unknown>, reporter?: Reporter): readonly unknown[] {
  const list: unknown[] = [];
  for (const value of values) {
    reporter?.progress(value);
    list.push(value);
    if (list.length > MAX_VALUES) throw new TooMuch(`${MAX_VALUES} values`);
  }
  return list;
}

/** All values of an async iterable, as long as the call is waited for; `maxBytes` limits texts and bytes. */
async function toListLater(
  values: AsyncIterable<unknown>,
  reporter: Reporter,
  maxBytes = Infinity,
): Promise<readonly unknown[]> {
  const list: unknown[] = [];
  let bytes = 0;
  for await (const value of values) {
    list.push(value);
    if (typeof value === 'string') bytes += value.length;
    else if (ArrayBuffer.isView(value)) bytes += value.byteLength;
    if (reporter.isStopped) break;
    if (list.length > MAX_VALUES) throw new TooMuch(`${MAX_VALUES} values`);
    if (bytes > maxBytes) throw new TooMuch(`${maxBytes / 2 ** 20} MB`);
  }
  return list;
}

class TooMuch extends ToolwrightError {
  constructor(limit: string) {
    const message = `The tool ran, but its result has more than ${limit}. Return a part of it, or a link.`;
    super('ToolExecutionFailed', message);
  }
}

/** Writes a settled return value (`settled`) as a result. Never throws. */
export function writeResult(tool: WritingTool, value: unknown, describe?: DescribeError): ToolResult {
  try {
    const result = write(tool, value, describe);
    const lack = result.content?.map(lackOf).find((found) => found !== undefined);
    if (lack === undefined) return result;
    return failedResult('ToolExecutionFailed', `The tool ran, but its result cannot be sent: ${lack}.`);
  } catch (error) {
    return writeFailure(tool.name, unreadableResult(error), describe);
  }
}

/** The facts that the text of a result depends on. */
type WritingTool = Pick<ToolDefinition, 'name' | 'returnsContent'>;

function write(tool: WritingTool, value: unknown, describe: DescribeError | undefined): ToolResult {
  if (typeof value === 'string') return toolResult(value);
  if (typeof value === 'number') return toolResult(`${value === 0 ? 0 : value}`);
  if (value === undefined || value === null) return toolResult('ok');
  if (typeof value === 'function' || typeof value === 'symbol')
    return unwritable(`it is a ${typeof value}. Return data`);
  // Plain objects, as most results are, need no class checks.
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    if (ToolResult.is(value)) return isSane(value) ? value : saneResult(value);
    if (value instanceof ResultForm) {
      const { json, files, problem } = value;
      if (problem !== undefined) return unwritable(problem);
      const text = typeof json === 'string' ? json : (JSON.stringify(json) ?? 'ok');
      if (files.length === 0) return toolResult(text);
      return new ToolResult({ forLLM: text, content: [{ type: 'text', content: text }, ...files] });
    }
    if (value instanceof Error || types.isNativeError(value)) return writeFailure(tool.name, value, describe);
  }
  if (isResultFields(value)) return saneResult(value);
  if (hasContent(value, tool))
    return new ToolResult({ forLLM: textOf(value.content), content: value.content, details: value.details });
  return toolResult(textOfJson(value) as string);
}

function unwritable(problem: string): ToolResult {
  return failedResult(
    'ToolExecutionFailed',
    `The tool ran, but its result cannot be written as JSON: ${problem}.`,
  );
}

/** Whether a method returned a result for the model, instead of plain data. */
export function isToolResultLike(value: unknown, tool?: WritingTool): boolean {
  return ToolResult.is(value) || isResultFields(value) || hasContent(value, tool);
}

/** Untyped authors may return fields of wrong types. */
function isSane({ forLLM, forUser, silent, isError, async, content }: ToolResult): boolean {
  return (
    typeof forLLM === 'string' &&
    (forUser === undefined || typeof forUser === 'string') &&
    typeof silent === 'boolean' &&
    typeof isError === 'boolean' &&
    typeof async === 'boolean' &&
    (content === undefined || (Array.isArray(content) && content.every(isPart)))
  );
}

/** Converts fields of wrong types: content must be text, and parts must be parts. Flags become booleans in any case. */
function saneResult(result: ToolResultFields): ToolResult {
  const { forLLM, forUser, content } = result as { readonly [Key in keyof ToolResultFields]: unknown };
  return new ToolResult({
    ...result,
    forLLM: String(forLLM ?? ''),
    forUser: forUser === undefined || forUser === null ? undefined : String(forUser),
    content: Array.isArray(content) ? content.filter(isPart) : undefined,
  });
}

/** The text of parts, one line for each. */
export function textOf(content: Content): string {
  return content.flatMap((part) => (part.type === 'text' ? [part.content] : [])).join('\n');
}

const RESULT_FIELDS: ReadonlySet<string> = new Set([
  ...['forLLM', 'forUser', 'silent', 'isError', 'async', 'error', 'content', 'details'],
]);

/** An object with further fields is data, because they would be lost. */
function isResultFields(value: unknown): value is ToolResultFields {
  return (
    isObject(value) &&
    'forLLM' in value &&
    typeof value.forLLM === 'string' &&
    Object.keys(value).every((key) => RESULT_FIELDS.has(key))
  );
}

/** Whether a value is content parts: if no other fields would be lost, or if the tool's form requires parts. */
function hasContent(
  value: unknown,
  tool: WritingTool | undefined,
): value is { readonly content: Content; readonly details?: unknown } {
  return (
    isObject(value) &&
    'content' in value &&
    Array.isArray(value.content) &&
    value.content.every(isPart) &&
    (tool?.returnsContent === true ||
      (value.content.length > 0 && Object.keys(value).every((key) => key === 'content' || key === 'details')))
  );
}

/** The missing field without which a part cannot be sent. */
function lackOf(part: ContentPart): string | undefined {
  if (part.type === 'text') return undefined;
  const what = part.type === 'image' ? 'an image' : 'a file';
  if (typeof part.mimeType !== 'string') return `${what} part needs \`mimeType\``;
  const isNamed = part.type === 'image' || typeof part.filename === 'string';
  return isNamed ? undefined : `${what} part needs \`filename\``;
}

/** Whether a value is a content part. */
export function isPart(part: unknown): part is ContentPart {
  if (!isObject(part) || !('type' in part)) return false;
  if (part.type === 'text') return 'content' in part && typeof part.content === 'string';
  return (part.type === 'image' || part.type === 'file') && 'data' in part && typeof part.data === 'string';
}

/** The error for a result that cannot be read: its getters, `toJSON` and traps are the tool's code. */
function unreadableResult(cause: unknown): Error {
  if (cause instanceof TooMuch) return cause;
  return new TypeError(`The tool ran, but its result cannot be written as JSON: ${errorMessage(cause)}`, {
    cause,
  });
}
