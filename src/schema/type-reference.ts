import { Buffer } from 'node:buffer';
import { type ClassType, type EnumSource, Integer } from '../contract/declaration.js';
import { authorHasRun } from '../validators/loaded-copies.js';
import { emptyReference, known, mapType, type TypeResult, unknownType } from './type-result.js';
import { type ValueType } from './value-type.js';

/** What tokens, and names where somebody wrote one, stand for. */
const TOKENS: ReadonlyMap<unknown, ValueType> = new Map<unknown, ValueType>([
  [String, { kind: 'scalar', name: 'string' }],
  [Number, { kind: 'scalar', name: 'number' }],
  [Boolean, { kind: 'scalar', name: 'boolean' }],
  [Integer, { kind: 'scalar', name: 'integer' }],
  ['string', { kind: 'scalar', name: 'string' }],
  ['number', { kind: 'scalar', name: 'number' }],
  ['boolean', { kind: 'scalar', name: 'boolean' }],
  ['integer', { kind: 'scalar', name: 'integer' }],
  ['object', { kind: 'schema', schema: { type: 'object' } }],
  [Object, { kind: 'schema', schema: { type: 'object' } }],
  [Date, { kind: 'date' }],
  [URL, { kind: 'url' }],
  [Uint8Array, { kind: 'bytes' }],
  [Buffer, { kind: 'buffer' }],
]);

/** Built-in classes that say nothing of what they hold, or that JSON cannot carry. */
const UNKNOWN: ReadonlySet<unknown> = new Set<unknown>([
  Array,
  Function,
  Promise,
  Map,
  Set,
  WeakMap,
  WeakSet,
  BigInt,
  Symbol,
  RegExp,
  Error,
  ArrayBuffer,
]);

/**
 * The type that a reference names: a token, a function that gives one, a name such as `'integer'`, an enum
 * object, or any of them in an array of one (`type: () => X`).
 */
export function resolveTypeReference(reference: unknown, groups?: readonly string[]): TypeResult {
  const token = TOKENS.get(reference);
  if (token !== undefined) return known(token);
  if (isThunk(reference)) return resolveThunk(reference, groups);
  if (Array.isArray(reference)) {
    return mapType(resolveTypeReference(reference[0], groups), (items) => ({ kind: 'array', items }));
  }
  if (reference === undefined) return emptyReference();
  if (isEnumObject(reference)) return known({ kind: 'enum', values: enumValues(reference) });
  if (typeof reference !== 'function' || UNKNOWN.has(reference)) return unknownType(reference);
  return known({ kind: 'class', class: reference as unknown as ClassType, groups });
}

/** The type that decorator metadata names. Other than in a reference, `Object` there means nothing. */
export function resolveDesignType(designType: unknown, groups?: readonly string[]): TypeResult {
  if (designType === undefined || designType === Object) return unknownType(designType);
  if (isThunk(designType) || typeof designType === 'string') return unknownType(designType);
  return resolveTypeReference(designType, groups);
}

/** Arrow functions have no `prototype`; classes and `String`, `Date`, … do. */
function isThunk(reference: unknown): reference is () => unknown {
  return typeof reference === 'function' && !Object.hasOwn(reference, 'prototype');
}

function resolveThunk(thunk: () => unknown, groups: readonly string[] | undefined): TypeResult {
  let reference: unknown;
  authorHasRun();
  try {
    reference = thunk();
  } catch (error) {
    return emptyReference(error);
  }
  return isThunk(reference) ? unknownType(reference) : resolveTypeReference(reference, groups);
}

/**
 * The values of an enum in the order of declaration: a list as it is, or a TypeScript enum object without
 * the reverse mapping that numeric members have (`{ A: 0, 0: 'A' }`). Doubles are dropped.
 */
export function enumValues(source: EnumSource): readonly unknown[] {
  if (Array.isArray(source)) return [...new Set(source)];
  const members = source as Readonly<Record<string, string | number>>;
  const isReverse = (key: string) => {
    const value = members[key];
    return typeof value === 'string' && members[value] === Number(key) && String(Number(key)) === key;
  };
  const keys = Object.keys(members).filter((key) => !isReverse(key));
  return [...new Set(keys.map((key) => members[key]))];
}

/** Whether a value is a TypeScript enum object, which swc puts where tsc puts `String` or `Number`. */
export function isEnumObject(value: unknown): value is Readonly<Record<string, string | number>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every((one) => typeof one === 'string' || typeof one === 'number');
}
