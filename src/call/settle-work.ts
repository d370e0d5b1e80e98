import types from 'node:util/types';
import type { ToolDefinition } from '../contract/tool.js';
import type { ToolResult } from '../contract/tool-result.js';
import { unreadableResult } from '../kernel/error-message.js';
import { drain, drainNow, type Reporter } from './drain.js';
import type { CallEnvironment } from './invocation.js';
import { describeThrown, isToolResultLike, writeFailure, writeResult } from './result.js';
import { formOf, streamOf } from './result-form.js';

/** Whose work it is. */
export interface WorkOf {
  readonly tool: ToolDefinition;
  readonly environment: CallEnvironment;
  readonly context: Reporter;
}

/** Runs work of a tool and writes whatever comes of it; never rejects. */
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

/** What work gives, settled; what a generator yields meanwhile is progress, as where it is the tool's own body. */
export async function runWork(work: () => unknown, of: WorkOf): Promise<unknown> {
  return settled(await work(), of);
}

/**
 * What a tool returned, ready to be written: what is still to come of it has been awaited, generators have been
 * drained, and what JSON does not show has a form that it does. Most results are ready as they are.
 */
export function settled(value: unknown, of: WorkOf): unknown {
  if (typeof value !== 'object' || value === null || isReady(value, of.tool)) return value;
  const { tool, environment } = of;
  if ('next' in value && typeof value.next === 'function' && Symbol.iterator in value)
    return settled(drainNow(value as unknown as Iterable<unknown>, of.context), of);
  if (Symbol.asyncIterator in value && streamOf(value) === undefined)
    return drain(value as AsyncIterable<unknown>, of.context).then((last) => settled(last, of));
  return formOf(value, {
    reporter: of.context,
    describe: (error) => describeThrown(tool.name, error, environment.describeError),
  });
}

function isReady(value: object, tool: ToolDefinition): boolean {
  try {
    return (
      isPlainData(value) ||
      isToolResultLike(value, tool) ||
      value instanceof Error ||
      types.isNativeError(value)
    );
  } catch (error) {
    throw unreadableResult(error);
  }
}

/** How deep data is looked into before it counts as odd: it may be a ring. */
const MAX_DEPTH = 100;

/**
 * Whether JSON shows all there is in an object: texts, finite numbers, lists, and objects with fields of their
 * own. It runs for each result, so that it makes nothing; what it is not sure of is left to `formOf`.
 */
export function isPlainData(value: object, depth = 0): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== lastOrdinary) {
    if (Array.isArray(value)) return isPlainList(value, depth);
    if (prototype !== null && !isOrdinary(prototype))
      return value instanceof Date && !Number.isNaN(value.getTime());
  }
  let isEmpty = true;
  for (const key in value) {
    isEmpty = false;
    const part = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof part !== 'string' && !isPlainPart(part, depth)) return false;
  }
  return !isEmpty || (isBase(prototype) && Reflect.ownKeys(value).length === 0);
}

function isPlainList(list: readonly unknown[], depth: number): boolean {
  for (let index = 0; index < list.length; index += 1) {
    const item = list[index];
    if (typeof item !== 'string' && !isPlainPart(item, depth)) return false;
  }
  return true;
}

function isPlainPart(part: unknown, depth: number): boolean {
  if (typeof part === 'object') return part === null || (depth < MAX_DEPTH && isPlainData(part, depth + 1));
  if (typeof part === 'number') return Number.isFinite(part);
  return typeof part === 'string' || typeof part === 'boolean' || part === undefined;
}

function isBase(prototype: object | null): boolean {
  return prototype === null || prototype === Object.prototype;
}

/** Rows of a list are of the same class. */
let lastOrdinary: object | undefined;

/** Of each prototype whether its objects are their own fields and nothing else. */
const ordinary = new WeakMap<object, boolean>();

/** What objects have that are more than their fields: values to come, to go through, to read, or to be told by. */
const MEANINGFUL = [
  ...['toJSON', 'then', 'message', 'getStream', 'arrayBuffer', 'byteLength'],
  ...[Symbol.iterator, Symbol.asyncIterator],
];

function isOrdinary(prototype: object): boolean {
  const known = ordinary.get(prototype);
  if (known !== undefined) {
    if (known) lastOrdinary = prototype;
    return known;
  }
  const answer = MEANINGFUL.every((name) => !(name in prototype));
  ordinary.set(prototype, answer);
  return answer;
}
