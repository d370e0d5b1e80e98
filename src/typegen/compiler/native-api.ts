import type { SymbolHandle, TypeHandle } from './compiler-view.js';
import type { ProjectOptions } from './project-options.js';
import type { SourceFile } from './source-file.js';
import type { SyntaxNode } from './syntax-node.js';

/** The part of TypeScript 7's API (`typescript/unstable/sync`) that is used. */
export interface NativeModule {
  readonly API: new (options: { readonly cwd: string }) => NativeApi;
  readonly TypeFlags: Readonly<Record<string, number>>;
  readonly ObjectFlags: Readonly<Record<string, number>>;
  readonly SymbolFlags: Readonly<Record<string, number>>;
  readonly ElementFlags: Readonly<Record<string, number>>;
  readonly SignatureKind: { readonly Call: number };
}

/** The syntax half of the same API (`typescript/unstable/ast`). */
export interface NativeSyntax {
  readonly SyntaxKind: Readonly<Record<string, number>>;
}

/** A running compiler. */
export interface NativeApi {
  updateSnapshot(params: {
    readonly openProjects?: readonly string[];
    readonly closeProjects?: readonly string[];
    readonly fileChanges?: { readonly invalidateAll: true } | { readonly changed: readonly string[] };
  }): NativeSnapshot;
  close(): void;
}

/** The state of the projects at one time. */
export interface NativeSnapshot {
  getProject(path: string): NativeProject | undefined;
  dispose(): void;
}

/** A project. */
export interface NativeProject {
  readonly rootFiles: readonly string[];
  readonly compilerOptions: ProjectOptions;
  readonly program: NativeProgram;
  readonly checker: NativeChecker;
}

/** The files of a project. */
export interface NativeProgram {
  getSourceFileNames(): readonly string[];
  getSourceFile(path: string): SourceFile | undefined;
  getSyntacticDiagnostics(): readonly NativeDiagnostic[];
  getConfigFileParsingDiagnostics(): readonly NativeDiagnostic[];
}

/** A complaint of the compiler. */
export interface NativeDiagnostic {
  readonly fileName?: string;
  readonly pos: number;
  readonly text: string;
}

/** A declaration that is not read yet. */
export interface NativeNodeHandle {
  readonly path: string;
  resolve(): SyntaxNode | undefined;
}

/** A symbol of TypeScript 7. */
export interface NativeSymbol extends SymbolHandle {
  readonly declarations: readonly NativeNodeHandle[];
}

/** A type of TypeScript 7. */
export interface NativeType extends TypeHandle {
  readonly value?: string | number | boolean | bigint;
  readonly texts?: readonly string[];
  readonly elementFlags?: readonly number[];
  /** The handle of the generic type, where there is one. */
  readonly target?: number;
  getSymbol(): NativeSymbol | undefined;
  getAliasSymbol(): NativeSymbol | undefined;
  getTypes(): readonly NativeType[] | undefined;
  getTarget(): NativeType;
}

/** A signature of TypeScript 7. */
export interface NativeSignature {
  getParameters(): readonly NativeSymbol[];
}

/** The checker of TypeScript 7. */
export interface NativeChecker {
  getSymbolAtLocation(node: SyntaxNode): NativeSymbol | undefined;
  getSymbolAtLocation(nodes: readonly SyntaxNode[]): readonly (NativeSymbol | undefined)[];
  getTypeAtLocation(node: SyntaxNode): NativeType | undefined;
  getTypeAtLocation(nodes: readonly SyntaxNode[]): readonly (NativeType | undefined)[];
  getTypeFromTypeNode(node: SyntaxNode): NativeType | undefined;
  getTypeOfSymbol(symbol: SymbolHandle): NativeType | undefined;
  getTypeOfSymbol(symbols: readonly SymbolHandle[]): readonly (NativeType | undefined)[];
  getDeclaredTypeOfSymbol(symbol: SymbolHandle): NativeType;
  getAliasedSymbol(symbol: SymbolHandle): NativeSymbol;
  getExportsOfModule(symbol: SymbolHandle): readonly NativeSymbol[];
  getAnyType(): NativeType;
  isArrayType(type: TypeHandle): boolean;
  isTupleType(type: TypeHandle): boolean;
  getTypeArguments(type: TypeHandle): readonly NativeType[];
  getPropertiesOfType(type: TypeHandle): readonly NativeSymbol[];
  getBaseTypes(type: TypeHandle): readonly NativeType[];
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: NativeType; readonly valueType: NativeType }[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly NativeSignature[];
  getReturnTypeOfSignature(signature: object): NativeType | undefined;
  typeToString(type: TypeHandle): string;
}
