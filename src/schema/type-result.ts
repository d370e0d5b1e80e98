import { type ValueType } from './value-type.js';

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

const FIX =
  '@Param({ type: () => X }), items: () => X for an array, enum: [...] for a union of literals, ' +
  'or schema: {...}';

const GENERATE = '`npx toolwright generate` writes it from the types, and the application imports the file';
const ERASED = `the type is an interface, a union or \`any\`, which do not exist at run time: ${GENERATE}`;
const UNTYPED = 'it has no type annotation: write one';
const TYPE_IMPORT = 'the class is imported with `import type`';
const NO_METADATA =
  'the build tool emits no decorator metadata (esbuild, tsx, or `emitDecoratorMetadata` is off): run ' +
  '`npx toolwright generate` and import the file that it writes';
const CYCLE = 'the class was not loaded yet, because two files import each other';

/** What the metadata says instead of a type, and what that can mean, the likeliest first. */
const CAUSES: ReadonlyMap<unknown, readonly string[]> = new Map<unknown, readonly string[]>([
  [undefined, [NO_METADATA, CYCLE, 'a context is wanted: then @Context() says so']],
  [Array, [`the metadata of an array does not say of what: ${GENERATE}`]],
  [Set, [`the metadata of a Set does not say of what: ${GENERATE}`]],
  [Map, [`the metadata of a Map does not say of what: ${GENERATE}`]],
  [Object, [ERASED, UNTYPED, TYPE_IMPORT]],
  [Function, [TYPE_IMPORT, 'the type is a function, which JSON cannot carry']],
  [Promise, ['the type is a promise, which JSON cannot carry']],
  [BigInt, ['JSON has no bigint']],
  [Symbol, ['JSON has no symbols']],
]);

/** The fault of a type that is not known: never a guess, always the causes and the fix. */
export function unknownType(found: unknown): TypeFault {
  return {
    ok: false,
    problem: `its type is not known (${nameFound(found)})`,
    causes: CAUSES.get(found) ?? [ERASED, TYPE_IMPORT],
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

function nameFound(found: unknown): string {
  if (found === undefined) return 'there is no metadata';
  return typeof found === 'function' ? `the metadata says ${found.name}` : `found ${String(found)}`;
}
