import type { TypeFault } from './type-result.js';

const FIX =
  '@Param({ type: () => X }), items: () => X for an array, enum: [...] for a union of literals, ' +
  'or schema: {...}; or generate the schemas from the types';

const GENERAL_CAUSES: readonly string[] = [
  'the type is an interface, a union or `any`, which do not exist at run time',
  'the class is imported with `import type`',
  'the build tool emits no decorator metadata (esbuild, tsx)',
  'the class was not loaded yet, because two files import each other',
];

/** What the metadata says instead of a type, and what that means. */
const CAUSES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [Array, 'the metadata of an array does not say of what'],
  [Set, 'the metadata of a Set does not say of what'],
  [Map, 'the metadata of a Map does not say of what'],
  [Function, 'the type is a function, which JSON cannot carry'],
  [Promise, 'the type is a promise, which JSON cannot carry'],
  [BigInt, 'JSON has no bigint'],
  [Symbol, 'JSON has no symbols'],
]);

/** The fault of a type that is not known: never a guess (design §2), always the causes and the fix. */
export function unknownType(found: unknown): TypeFault {
  const cause = CAUSES.get(found);
  return {
    ok: false,
    problem: `its type is not known (${describe(found)})`,
    causes: cause === undefined ? GENERAL_CAUSES : [cause, ...GENERAL_CAUSES],
    fix: FIX,
  };
}

/** The fault of a type reference that leads nowhere: `() => X` where X is undefined. */
export function emptyReference(cause?: unknown): TypeFault {
  const detail = cause instanceof Error ? `threw: ${cause.message}` : 'gave undefined';
  return {
    ok: false,
    problem: `its type reference ${detail}`,
    causes: [
      'two files import each other, and the class was not loaded yet',
      'the class is imported with `import type`',
    ],
    fix: 'type: () => X, with X imported as a value and the import cycle broken',
  };
}

function describe(found: unknown): string {
  if (found === undefined) return 'there is no metadata';
  return typeof found === 'function' ? `the metadata says ${found.name}` : `found ${String(found)}`;
}
