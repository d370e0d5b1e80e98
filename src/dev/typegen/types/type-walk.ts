import type { DescribedSchema } from '../../../core/contract/declaration.js';
import type { CompilerView, SymbolHandle, SyntaxNode, TypeHandle } from '../compiler/load-compiler.js';

/** A part of a type that has no schema. `problem` continues the path: "… is a function". */
export interface TypeProblem {
  readonly path: string;
  readonly problem: string;
  readonly fix?: string;
}

/** A type with its node, which provides the author's order and the comments of aliases. */
export interface TypePlace {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
  /** Path within the parameter or the result: `page.filters[]`. */
  readonly path: string;
}

/** A type that is being written; a second visit shows that it is recursive. */
export interface OpenType {
  readonly key: string;
  name?: string;
}

export interface WithView {
  readonly view: CompilerView;
}

/** Shared by all parts of a walk. */
export interface TypeWalk extends WithView {
  /** Arguments (`in`) are hydrated; results (`out`) are described as JSON. */
  readonly direction: 'in' | 'out';
  readonly open: OpenType[];
  /** Names of recursive types, by key. */
  readonly names: Map<string, string>;
  readonly definitions: Map<string, WrittenSchema>;
  readonly faults: TypeProblem[];
  readonly warnings: TypeProblem[];
  /** The number of properties so far, nested ones included. */
  properties: number;
  /** What a property's decorators define: its type, or that it is not part of arguments or results. */
  decoration(declaration: SyntaxNode): Decoration | undefined;
  /**
   * The reference to a class whose instances are created, which also requests its description; or a fault.
   */
  classReference(symbol: SymbolHandle): ClassReference;
}

/** `typed`: a decorator defines the type, so the TypeScript type is not checked. `excluded`: it is not data. */
export type Decoration = 'typed' | 'excluded';

/** How a class is described. `structural`: as a plain object. */
export type ClassReference =
  | { readonly kind: 'reference'; readonly reference: CodeReference }
  | { readonly kind: 'structural' }
  | { readonly kind: 'fault'; readonly problem: string; readonly fix: string };

/** Whether a type has one of the named flags. */
export function hasFlag({ view }: WithView, type: TypeHandle, ...names: readonly string[]): boolean {
  return names.some((name) => (type.flags & (view.typeFlags[name] ?? 0)) !== 0);
}

/** Whether a node has one of the named modifiers. */
export function hasModifier(
  { modifiers = [] }: SyntaxNode,
  { syntaxKinds }: CompilerView,
  ...names: readonly string[]
): boolean {
  return modifiers.some(({ kind }) => names.some((name) => kind === syntaxKinds[name]));
}

/** The first declaration of a type. */
export function declarationOf(type: TypeHandle, view: CompilerView): SyntaxNode | undefined {
  const symbol = view.symbolOf(type);
  return symbol && view.declarations(symbol)[0];
}

export function isClassSymbol(
  symbol: SymbolHandle | undefined,
  { symbolFlags }: CompilerView,
): symbol is SymbolHandle {
  return symbol !== undefined && (symbol.flags & (symbolFlags.Class ?? 0)) !== 0;
}

/** The types of a union, or the type itself; without `undefined`, which JSON lacks. */
export function definedParts(walk: WithView, type: TypeHandle): readonly TypeHandle[] {
  return allParts(walk, type).filter((part) => !hasFlag(walk, part, 'Undefined', 'Void'));
}

/** Whether a type includes `undefined`. */
export function admitsUndefined(walk: WithView, type: TypeHandle): boolean {
  return allParts(walk, type).some((part) => hasFlag(walk, part, 'Undefined', 'Void'));
}

function allParts(walk: WithView, type: TypeHandle): readonly TypeHandle[] {
  return isUnion(walk, type) ? walk.view.constituents(type) : [type];
}

/** Whether a type has alternatives that its author wrote. */
export function isUnion(walk: WithView, type: TypeHandle): boolean {
  return hasFlag(walk, type, 'Union') && !hasFlag(walk, type, 'Boolean');
}

/** Records a fault; returns a placeholder schema. */
export function fault(walk: TypeWalk, path: string, what: Omit<TypeProblem, 'path'>): WrittenSchema {
  walk.faults.push({ path, ...what });
  return {};
}

/** Notes about the values of a schema, which are added to its description at the end. */
export const NOTES = Symbol('notes');

/** A schema to print: `instanceOf` contains code references. */
export type WrittenSchema = DescribedSchema & { readonly [NOTES]?: readonly string[] };

/** The origin of a name that is not global. */
interface NameOrigin {
  /** The absolute path of the file that exports it. */
  readonly file?: string;
  /** The package that exports it, as in an import. */
  readonly package?: string;
  /** Its name within its file, if that differs. */
  readonly localName?: string;
}

/** An exported name of a module, or a global name; printed as code, with an import if it needs one. */
export class CodeReference {
  constructor(
    /** The exported name; `default` for a default export. */
    readonly name: string,
    readonly origin: NameOrigin = {},
  ) {}
}
