import type { ValueType } from './value-type.js';

/** Why a value cannot be described, and what to write instead. */
export interface TypeFault {
  readonly ok: false;
  /** `its type is not known (the metadata says Object)`. */
  readonly problem: string;
  readonly causes: readonly string[];
  readonly fix: string;
}

/** A type, or why there is none. */
export type TypeResult = { readonly ok: true; readonly type: ValueType } | TypeFault;

/** A fault of one property of a DTO class. */
export type PropertyFault = Omit<TypeFault, 'ok'> & { readonly property: string };

/** Wraps a type that is known. */
export function known(type: ValueType): TypeResult {
  return { ok: true, type };
}

/** Applies a change to a type that is known. */
export function mapType(result: TypeResult, change: (type: ValueType) => ValueType): TypeResult {
  return result.ok ? known(change(result.type)) : result;
}
