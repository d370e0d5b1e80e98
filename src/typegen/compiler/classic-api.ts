import type { SignatureHandle, SymbolHandle, TypeHandle } from './compiler-view.js';
import type { ProjectOptions } from './project-options.js';
import type { SourceFile } from './source-file.js';
import type { SyntaxNode } from './syntax-node.js';

/** The part of the classic compiler API (`typescript` 5.9 and 6.0) that is used; its own types are not at hand under 7. */
export interface ClassicApi {
  readonly version: string;
  readonly SyntaxKind: Readonly<Record<string, number>>;
  readonly TypeFlags: Readonly<Record<string, number>>;
  readonly ObjectFlags: Readonly<Record<string, number>>;
  readonly SymbolFlags: Readonly<Record<string, number>>;
  readonly ElementFlags: Readonly<Record<string, number>>;
  readonly SignatureKind: { readonly Call: number };
  readonly sys: object;
  getParsedCommandLineOfConfigFile(path: string, options: object, host: object): ClassicConfig | undefined;
  createCompilerHost(options: object): object;
  createProgram(options: {
    readonly rootNames: readonly string[];
    readonly options: object;
    readonly projectReferences?: readonly object[];
    readonly host: object;
    readonly oldProgram?: ClassicProgram;
  }): ClassicProgram;
  flattenDiagnosticMessageText(text: unknown, newLine: string): string;
}

/** A parsed tsconfig.json. */
export interface ClassicConfig {
  readonly fileNames: readonly string[];
  readonly options: ProjectOptions;
  readonly projectReferences?: readonly object[];
  readonly errors: readonly ClassicDiagnostic[];
}

/** A complaint of the compiler. */
export interface ClassicDiagnostic {
  readonly messageText: unknown;
  readonly start?: number;
  readonly file?: SourceFile;
}

/** A program of the classic API. */
export interface ClassicProgram {
  getSourceFiles(): readonly SourceFile[];
  getTypeChecker(): ClassicChecker;
  getSyntacticDiagnostics(): readonly ClassicDiagnostic[];
}

/** A type of the classic API. */
export interface ClassicType extends TypeHandle {
  readonly symbol?: ClassicSymbol;
  readonly aliasSymbol?: ClassicSymbol;
  readonly types?: readonly ClassicType[];
  readonly texts?: readonly string[];
  readonly target?: ClassicType & { readonly elementFlags?: readonly number[] };
  readonly value?: string | number | { readonly negative: boolean; readonly base10Value: string };
  readonly intrinsicName?: string;
}

/** A symbol of the classic API. */
export interface ClassicSymbol extends SymbolHandle {
  readonly declarations?: readonly SyntaxNode[];
}

/** A signature of the classic API. */
export interface ClassicSignature {
  readonly parameters: readonly ClassicSymbol[];
}

/** The checker of the classic API. */
export interface ClassicChecker {
  getSymbolAtLocation(node: SyntaxNode): ClassicSymbol | undefined;
  getTypeAtLocation(node: SyntaxNode): ClassicType;
  getTypeFromTypeNode(node: SyntaxNode): ClassicType;
  getTypeOfSymbol(symbol: SymbolHandle): ClassicType;
  getDeclaredTypeOfSymbol(symbol: SymbolHandle): ClassicType;
  getAliasedSymbol(symbol: SymbolHandle): ClassicSymbol;
  getExportsOfModule(symbol: SymbolHandle): readonly ClassicSymbol[];
  isArrayType(type: TypeHandle): boolean;
  isTupleType(type: TypeHandle): boolean;
  getTypeArguments(type: TypeHandle): readonly ClassicType[];
  getPropertiesOfType(type: TypeHandle): readonly ClassicSymbol[];
  getBaseTypes(type: TypeHandle): readonly ClassicType[];
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: ClassicType; readonly type: ClassicType }[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly ClassicSignature[];
  getReturnTypeOfSignature(signature: SignatureHandle): ClassicType;
  typeToString(type: TypeHandle): string;
}
