import type { ProjectOptions } from './project-options.js';
import type { SyntaxNode } from './syntax-node.js';

/** A file of the project. */
export interface SourceText {
  /** Absolute, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly node: SyntaxNode;
  /** Declarations only: of a package, or of the language itself. */
  readonly isDeclaration: boolean;
}

/** A type; compared by `id`, because one compiler makes a new object for each look at it. */
export interface TypeHandle {
  readonly id: number;
  readonly flags: number;
  readonly objectFlags?: number;
}

/** A symbol; the same symbol is the same object. */
export interface SymbolHandle {
  readonly name: string;
  readonly flags: number;
}

/** A call or construct signature. */
export type SignatureHandle = object;

/** An index signature: `[key: string]: T`. */
export interface IndexFacts {
  readonly key: TypeHandle;
  readonly value: TypeHandle;
}

/** One element of a tuple type. */
export interface TupleElement {
  readonly type: TypeHandle;
  readonly role: 'required' | 'optional' | 'rest' | 'variadic';
}

/** The numbers behind the names that the analyser uses. They differ between compilers. */
export type Numbers = Readonly<Record<string, number>>;

/** What its type checker is asked. */
export interface CheckerPart {
  /** Says that types and names below a node will be asked for, so that it can be done at once. */
  prepare(node: SyntaxNode): void;
  symbolAt(node: SyntaxNode): SymbolHandle | undefined;
  typeAt(node: SyntaxNode): TypeHandle;
  typeFromNode(node: SyntaxNode): TypeHandle;
  typeOfSymbol(symbol: SymbolHandle): TypeHandle;
  declaredType(symbol: SymbolHandle): TypeHandle;
  unalias(symbol: SymbolHandle): SymbolHandle;
  declarations(symbol: SymbolHandle): readonly SyntaxNode[];
  /** Files of the declarations, absolute; cheaper than the declarations themselves. */
  declaringFiles(symbol: SymbolHandle): readonly string[];
  exportsOf(symbol: SymbolHandle): readonly SymbolHandle[];

  symbolOf(type: TypeHandle): SymbolHandle | undefined;
  aliasOf(type: TypeHandle): SymbolHandle | undefined;
  /** Of a union or an intersection. */
  constituents(type: TypeHandle): readonly TypeHandle[];
  literalOf(type: TypeHandle): string | number | boolean | bigint | undefined;
  templateOf(type: TypeHandle): { readonly texts: readonly string[]; readonly types: readonly TypeHandle[] };
  isArray(type: TypeHandle): boolean;
  isTuple(type: TypeHandle): boolean;
  tupleElements(type: TypeHandle): readonly TupleElement[];
  typeArguments(type: TypeHandle): readonly TypeHandle[];
  propertiesOf(type: TypeHandle): readonly SymbolHandle[];
  baseTypes(type: TypeHandle): readonly TypeHandle[];
  indexesOf(type: TypeHandle): readonly IndexFacts[];
  callSignatures(type: TypeHandle): readonly SignatureHandle[];
  parametersOf(signature: SignatureHandle): readonly SymbolHandle[];
  returnType(signature: SignatureHandle): TypeHandle;
  /** For people: it may differ between compilers and is never part of what is generated. */
  textOf(type: TypeHandle): string;
}

/**
 * What the analyser asks a compiler: the small common part of the classic API (TypeScript 5.9, 6.0) and of
 * the API of TypeScript 7. Flags and syntax kinds are looked up by name.
 */
export interface CompilerView extends CheckerPart {
  readonly version: string;
  readonly options: ProjectOptions;
  /** That of tsconfig.json, absolute, with `/`. */
  readonly folder: string;
  readonly syntaxKinds: Numbers;
  readonly typeFlags: Numbers;
  readonly objectFlags: Numbers;
  readonly symbolFlags: Numbers;
  /** The project's own files and those of mapped libraries, by their paths; no declarations, no packages. */
  projectFiles(): readonly SourceText[];
  /** What the compiler could not read at all: a missing or broken tsconfig.json, syntax errors. */
  problems(): readonly string[];
  fileOf(node: SyntaxNode): SourceText;
}
