import type { CompilerView, SymbolHandle, SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';

/** Something in a type that cannot be said as a schema. `problem` continues the path: "… is a function". */
export interface TypeProblem {
  readonly path: string;
  readonly problem: string;
  readonly fix?: string;
}

/** A type and where it is written; the node gives the author's own order and the comments of aliases. */
export interface TypePlace {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
  /** Within the parameter or the result: `page.filters[]`. */
  readonly path: string;
}

/** A type on the way to being written; a second visit shows that it contains itself. */
export interface OpenType {
  readonly key: string;
  name?: string;
}

/** Everything that the parts of one walk share. */
export interface TypeWalk {
  readonly view: CompilerView;
  /** Arguments come in and are revived; results go out as JSON shows them. */
  readonly direction: 'in' | 'out';
  readonly open: OpenType[];
  /** Names of the types that contain themselves, by key. */
  readonly names: Map<string, string>;
  readonly definitions: Map<string, WrittenSchema>;
  readonly faults: TypeProblem[];
  readonly warnings: TypeProblem[];
  /** The schema of a part; here, because the parts and the whole would import each other in a circle. */
  write(place: TypePlace): Written;
  /** What decorators say of a property: its type, or that it is no argument (or no part of a result) at all. */
  decoration(declaration: SyntaxNode): Decoration | undefined;
  /** The reference to a class whose instances are made, and its description ordered; or why there is none. */
  classReference(symbol: SymbolHandle): ClassReference;
}

/** `typed`: a decorator says the type, so that nothing is wrong with what TypeScript says. `excluded`: it is no data. */
export type Decoration = 'typed' | 'excluded';

/** How a class is referred to. `structural`: it is described as a plain object. */
export type ClassReference =
  | { readonly kind: 'reference'; readonly reference: CodeReference }
  | { readonly kind: 'structural' }
  | { readonly kind: 'fault'; readonly problem: string; readonly fix: string };

/** A schema, and notes about its values that belong to whatever description it gets. */
export interface Written {
  readonly schema: WrittenSchema;
  readonly notes?: readonly string[];
}

/** Whether a type has one of the flags of these names. */
export function hasFlag(
  { view }: Pick<TypeWalk, 'view'>,
  type: TypeHandle,
  ...names: readonly string[]
): boolean {
  return names.some((name) => (type.flags & (view.typeFlags[name] ?? 0)) !== 0);
}

/** The types of a union, the type itself if it is not one; without `undefined`, which JSON does not have. */
export function definedParts(walk: Pick<TypeWalk, 'view'>, type: TypeHandle): readonly TypeHandle[] {
  const isUnion = hasFlag(walk, type, 'Union') && !hasFlag(walk, type, 'Boolean');
  const parts = isUnion ? walk.view.constituents(type) : [type];
  return parts.filter((part) => !hasFlag(walk, part, 'Undefined', 'Void'));
}

/** Whether `undefined` is among the values of a type. */
export function admitsUndefined(walk: Pick<TypeWalk, 'view'>, type: TypeHandle): boolean {
  if (hasFlag(walk, type, 'Undefined', 'Void')) return true;
  const isUnion = hasFlag(walk, type, 'Union') && !hasFlag(walk, type, 'Boolean');
  return isUnion && definedParts(walk, type).length < walk.view.constituents(type).length;
}

/** Notes a fault; the schema that stands in for what cannot be written. */
export function fault(walk: TypeWalk, path: string, what: Omit<TypeProblem, 'path'>): Written {
  walk.faults.push({ path, ...what });
  return { schema: {} };
}

/** A schema as it will be printed: JSON Schema whose `instanceOf` are references to code. */
export type WrittenSchema = Readonly<Record<string, unknown>>;

/** Where a name comes from, if it is not global. */
interface NameOrigin {
  /** The absolute path of the file that exports it. */
  readonly file?: string;
  /** The package that exports it, as an import names it. */
  readonly package?: string;
  /** What its own file calls it, where that is something else. */
  readonly localName?: string;
}

/** An exported name of a module, or a global one; printed as it is, with an import where it needs one. */
export class CodeReference {
  constructor(
    /** The exported name; `default` for a default export. */
    readonly name: string,
    readonly origin: NameOrigin = {},
  ) {}
}
