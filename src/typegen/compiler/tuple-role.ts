import type { Numbers, TupleElement } from './compiler-view.js';

/** What an element of a tuple is, from the compiler's flags. */
export function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
