import { Buffer } from 'node:buffer';
import type { ClassType } from '../contract/class-type.js';
import { Integer } from '../contract/integer.js';
import { enumValues, isEnumObject } from './enum-values.js';
import { known, mapType, type TypeResult } from './type-result.js';
import { emptyReference, unknownType } from './unknown-type.js';
import type { ValueType } from './value-type.js';

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
  try {
    reference = thunk();
  } catch (error) {
    return emptyReference(error);
  }
  return isThunk(reference) ? unknownType(reference) : resolveTypeReference(reference, groups);
}
