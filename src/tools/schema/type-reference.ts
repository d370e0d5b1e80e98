import { Buffer } from 'node:buffer';
import { type ClassType, type EnumSource, Integer } from '../../core/contract/declaration.js';
import type { UnplacedFault } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import { authorHasRun } from '../validators/transform-rules.js';
import { TEXTUAL_TYPES, type ValueType } from './value-type.js';

const SCALAR_TOKENS = { string: String, number: Number, boolean: Boolean, integer: Integer };
const ANY_OBJECT: ValueType = { kind: 'schema', schema: { type: 'object' } };

/** The types of tokens and type names. */
const TOKENS: ReadonlyMap<unknown, ValueType> = new Map<unknown, ValueType>([
  ...(['string', 'number', 'boolean', 'integer'] as const).flatMap((name) => {
    const type: ValueType = { kind: 'scalar', name };
    return [[name, type] as const, [SCALAR_TOKENS[name], type] as const];
  }),
  ['object', ANY_OBJECT],
  [Object, ANY_OBJECT],
  [Date, { kind: 'date' }],
  [URL, { kind: 'url' }],
  [Uint8Array, { kind: 'bytes' }],
  [Buffer, { kind: 'buffer' }],
]);

/** Built-in classes without a content type, or that JSON cannot represent. */
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
 * The type of a reference: a token, a function that returns a token, a name such as `'integer'`, an enum object, or
 * an array of one of these (`type: () => X`).
 */
export function resolveTypeReference(reference: unknown, groups?: readonly string[]): TypeResult {
  const token = TOKENS.get(reference);
  if (token !== undefined) return knownType(token);
  if (isThunk(reference)) {
    let referred: unknown;
    authorHasRun();
    try {
      referred = reference();
    } catch (error) {
      return emptyReference(error);
    }
    return isThunk(referred) ? unknownType(referred) : resolveTypeReference(referred, groups);
  }
  if (Array.isArray(reference)) {
    return mapType(resolveTypeReference(reference[0], groups), (items) => ({ kind: 'array', items }));
  }
  if (reference === undefined) return emptyReference();
  if (isEnumObject(reference)) return knownType({ kind: 'enum', values: enumValues(reference) });
  if (typeof reference !== 'function' || UNKNOWN.has(reference)) return unknownType(reference);
  return knownType({ kind: 'class', class: reference as unknown as ClassType, groups });
}

/** The type in decorator metadata. Unlike in a reference, `Object` is not a type there. */
export function resolveDesignType(designType: unknown, groups?: readonly string[]): TypeResult {
  if (designType === undefined || designType === Object) return unknownType(designType);
  if (isThunk(designType) || typeof designType === 'string') return unknownType(designType);
  return resolveTypeReference(designType, groups);
}

/** Arrow functions have no `prototype`; classes and `String`, `Date`, … do. */
function isThunk(reference: unknown): reference is () => unknown {
  return typeof reference === 'function' && !Object.hasOwn(reference, 'prototype');
}

/**
 * The values of an enum in the order of declaration, without duplicates: a list unchanged, or a TypeScript enum
 * object without the reverse mapping of numeric members (`{ A: 0, 0: 'A' }`).
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

/** Whether a value is a TypeScript enum object, which swc emits instead of `String` or `Number`. */
export function isEnumObject(value: unknown): value is Readonly<Record<string, string | number>> {
  if (!isRecord(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every((value) => typeof value === 'string' || typeof value === 'number');
}

/** Why a value cannot be described, and the fix. */
export type TypeFault = { readonly ok: false } & UnplacedFault;

/** A type, or why it is unknown. */
export type TypeResult = { readonly ok: true; readonly type: ValueType } | TypeFault;

/** A fault of one property of a DTO class. */
export type PropertyFault = UnplacedFault & { readonly property: string };

/** Wraps a known type. */
export function knownType(type: ValueType): TypeResult {
  return { ok: true, type };
}

/** Changes a known type. */
export function mapType(result: TypeResult, change: (type: ValueType) => ValueType): TypeResult {
  return result.ok ? knownType(change(result.type)) : result;
}

const FIX =
  '@Param({ type: () => X }), items: () => X for an array, enum: [...] for a union of literals, ' +
  'or schema: {...}';

const GENERATE = '`npx toolwright generate` writes it from the types, and the application imports the file';
const UNTYPED = 'it has no type annotation: write one';
const TYPE_IMPORT = 'the class is imported with `import type`';
/** The likeliest cause of a type that is not known. */
export const NO_METADATA =
  'the build tool emits no decorator metadata (esbuild, tsx, or `emitDecoratorMetadata` is off): run ' +
  '`npx toolwright generate` and import the file that it writes';
const CYCLE = 'the class was not loaded yet, because two files import each other';

/** The possible causes of metadata without a type, likeliest first. A function, so that bundles can omit the texts. */
function causesOf(found: unknown): readonly string[] {
  switch (found) {
    case undefined:
      return [NO_METADATA, CYCLE, 'the parameter is the context of the call: mark it with @Context()'];
    case Array:
    case Set:
    case Map:
      return [
        `the metadata of ${found === Array ? 'an array' : 'a Set or Map'} does not contain the types of its items: ${GENERATE}`,
      ];
    case Function:
      return [TYPE_IMPORT, 'the type is a function, which JSON cannot carry'];
    case Promise:
      return ['the type is a promise, which JSON cannot carry'];
    case BigInt:
      return ['JSON has no bigint'];
    case Symbol:
      return ['JSON has no symbols'];
    default: {
      const erased = `the type is an interface, a union or \`any\`, which do not exist at run time: ${GENERATE}`;
      return found === Object ? [erased, UNTYPED, TYPE_IMPORT] : [erased, TYPE_IMPORT];
    }
  }
}

/** The fault of an unknown type: never a guess, always the causes and the fix. */
export function unknownType(found: unknown): TypeFault {
  const named =
    typeof found === 'function' ? `the metadata contains ${found.name}` : `found ${String(found)}`;
  const place = found === undefined ? 'there is no metadata' : named;
  return {
    ok: false,
    problem: `its type is not known (${place})`,
    causes: causesOf(found),
    fix: FIX,
  };
}

/** The fault of a type reference without a result: `() => X` with X undefined. */
export function emptyReference(cause?: unknown): TypeFault {
  const detail = cause instanceof Error ? `threw: ${cause.message}` : 'gave undefined';
  return {
    ok: false,
    problem: `its type reference ${detail}`,
    causes: ['two files import each other, and the class was not loaded yet', TYPE_IMPORT],
    fix: 'type: () => X, with X imported as a value and the import cycle broken',
  };
}

/** The decorator metadata of a type, so that a described type can replace metadata and be compared with it. */
export function designToken(type: ValueType): unknown {
  switch (type.kind) {
    case 'scalar':
      return scalarToken(type.name === 'integer' ? 'number' : type.name);
    case 'enum': {
      const [kind, ...others] = new Set(type.values.map((value) => typeof value));
      return others.length === 0 && kind !== undefined ? scalarToken(kind) : Object;
    }
    case 'array':
      return type.collection === 'set' ? Set : Array;
    case 'record':
      return type.collection === 'map' ? Map : Object;
    case 'class':
      return type.class;
    case 'any':
    case 'tagged':
    case 'schema':
    case 'described':
      return undefined;
    default:
      return TEXTUAL_TYPES.get(type.kind)?.class;
  }
}

function scalarToken(name: string): unknown {
  if (name === 'string') return String;
  return name === 'number' ? Number : Boolean;
}
