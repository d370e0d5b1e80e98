import { posix } from 'node:path';
import {
  type CheckerPart,
  type CommonChecker,
  type Compiler,
  type CompilerView,
  cachedView,
  fileOf,
  isOwnSource,
  mappedFolders,
  type ProjectOptions,
  type ProjectRoots,
  type SignatureHandle,
  type SourceFile,
  type SymbolHandle,
  type SyntaxNode,
  sourceText,
  type TypeHandle,
  tupleRole,
} from './compiler-view.js';

/** A compiler with the classic API: TypeScript 5.9 and 6.0. */
export function classicCompiler(api: ClassicApi): Compiler {
  let program: ClassicProgram | undefined;
  return {
    version: api.version,
    open(project) {
      const complaints: ClassicDiagnostic[] = [];
      const host = {
        ...api.sys,
        onUnRecoverableConfigFileDiagnostic: (item: ClassicDiagnostic) => complaints.push(item),
      };
      const config = api.getParsedCommandLineOfConfigFile(project, {}, host);
      complaints.push(...(config?.errors ?? []));
      const compilerOptions = config?.options ?? {};
      program = api.createProgram({
        rootNames: config?.fileNames ?? [],
        options: compilerOptions,
        projectReferences: config?.projectReferences,
        // As in editors and TypeScript 7: referenced projects need not be built.
        host: { ...api.createCompilerHost(compilerOptions), useSourceOfProjectReferenceRedirect: () => true },
        oldProgram: program,
      });
      complaints.push(...program.getSyntacticDiagnostics());
      const problems = complaints.map((item) => describe(api, item));
      const roots = { project, roots: config?.fileNames ?? [], mapped: mappedFolders(compilerOptions) };
      return cachedView(viewOf({ api, program, problems, roots, options: compilerOptions }));
    },
    close: () => {
      program = undefined;
    },
  };
}

interface Opened {
  readonly api: ClassicApi;
  readonly program: ClassicProgram;
  readonly problems: readonly string[];
  readonly roots: ProjectRoots;
  readonly options: ProjectOptions;
}

function viewOf({ api, program, problems, roots, options }: Opened): CompilerView {
  const checker = program.getTypeChecker();
  return {
    version: api.version,
    options,
    folder: posix.dirname(roots.project),
    syntaxKinds: api.SyntaxKind,
    typeFlags: api.TypeFlags,
    objectFlags: api.ObjectFlags,
    symbolFlags: api.SymbolFlags,
    problems: () => problems,
    projectFiles: () =>
      program
        .getSourceFiles()
        .filter(({ fileName }) => isOwnSource(fileName, roots))
        .map(sourceText)
        .sort((a, b) => (a.path < b.path ? -1 : 1)),
    fileOf: (node) => sourceText(fileOf(node)),
    ...checkerPart(api, checker),
  };
}

function checkerPart(api: ClassicApi, checker: ReturnType<ClassicProgram['getTypeChecker']>): CheckerPart {
  return {
    // Nothing to prepare: the checker runs in this process.
    prepare: () => {},
    symbolAt: (node) => checker.getSymbolAtLocation(node),
    typeAt: (node) => checker.getTypeAtLocation(node),
    typeFromNode: (node) => checker.getTypeFromTypeNode(node),
    typeOfSymbol: (symbol) => checker.getTypeOfSymbol(symbol),
    declaredType: (symbol) => checker.getDeclaredTypeOfSymbol(symbol),
    unalias: (symbol) =>
      symbol.flags & (api.SymbolFlags.Alias ?? 0) ? checker.getAliasedSymbol(symbol) : symbol,
    declarations: (symbol) => (symbol as ClassicSymbol).declarations ?? [],
    declaringFiles: (symbol) =>
      ((symbol as ClassicSymbol).declarations ?? []).map((node) => fileOf(node).fileName),
    exportsOf: (symbol) => checker.getExportsOfModule(symbol),
    symbolOf: (type) => (type as ClassicType).symbol,
    aliasOf: (type) => (type as ClassicType).aliasSymbol,
    constituents: (type) => (type as ClassicType).types ?? [],
    literalOf,
    templateOf: (type) => {
      const { texts = [], types = [] } = type as ClassicType;
      return { texts, types };
    },
    isArray: (type) => checker.isArrayType(type),
    isTuple: (type) => checker.isTupleType(type),
    tupleElements(type) {
      const flags = (type as ClassicType).target?.elementFlags ?? [];
      return checker
        .getTypeArguments(type)
        .map((element, index) => ({ type: element, role: tupleRole(flags[index] ?? 0, api.ElementFlags) }));
    },
    typeArguments: (type) => checker.getTypeArguments(type),
    propertiesOf: (type) => checker.getPropertiesOfType(type),
    baseTypes: (type) => checker.getBaseTypes((type as ClassicType).target ?? type),
    indexesOf: (type) =>
      checker.getIndexInfosOfType(type).map((info) => ({ key: info.keyType, value: info.type })),
    callSignatures: (type) => checker.getSignaturesOfType(type, api.SignatureKind.Call),
    parametersOf: (signature) => (signature as ClassicSignature).parameters,
    returnType: (signature) => checker.getReturnTypeOfSignature(signature),
    textOf: (type) => checker.typeToString(type),
  };
}

function literalOf(type: object): string | number | boolean | bigint | undefined {
  const { value, intrinsicName } = type as ClassicType;
  if (typeof value === 'object') return BigInt(`${value.negative ? '-' : ''}${value.base10Value}`);
  if (value !== undefined) return value;
  return intrinsicName === 'true' ? true : intrinsicName === 'false' ? false : undefined;
}

function describe(api: ClassicApi, { messageText, file, start = 0 }: ClassicDiagnostic): string {
  const text = api.flattenDiagnosticMessageText(messageText, ' ');
  if (file === undefined) return text;
  return `${file.fileName}:${file.text.slice(0, start).split('\n').length}: ${text}`;
}

/** The used part of the classic compiler API (`typescript` 5.9 and 6.0), whose types TypeScript 7 does not have. */
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

interface ClassicConfig {
  readonly fileNames: readonly string[];
  readonly options: ProjectOptions;
  readonly projectReferences?: readonly object[];
  readonly errors: readonly ClassicDiagnostic[];
}

/** A diagnostic of the compiler. */
interface ClassicDiagnostic {
  readonly messageText: unknown;
  readonly start?: number;
  readonly file?: SourceFile;
}

interface ClassicProgram {
  getSourceFiles(): readonly SourceFile[];
  getTypeChecker(): ClassicChecker;
  getSyntacticDiagnostics(): readonly ClassicDiagnostic[];
}

interface ClassicType extends TypeHandle {
  readonly symbol?: ClassicSymbol;
  readonly aliasSymbol?: ClassicSymbol;
  readonly types?: readonly ClassicType[];
  readonly texts?: readonly string[];
  readonly target?: ClassicType & { readonly elementFlags?: readonly number[] };
  readonly value?: string | number | { readonly negative: boolean; readonly base10Value: string };
  readonly intrinsicName?: string;
}

interface ClassicSymbol extends SymbolHandle {
  readonly declarations?: readonly SyntaxNode[];
}

interface ClassicSignature {
  readonly parameters: readonly ClassicSymbol[];
}

interface ClassicChecker extends CommonChecker<ClassicType, ClassicSymbol> {
  getSymbolAtLocation(node: SyntaxNode): ClassicSymbol | undefined;
  getTypeAtLocation(node: SyntaxNode): ClassicType;
  getTypeFromTypeNode(node: SyntaxNode): ClassicType;
  getTypeOfSymbol(symbol: SymbolHandle): ClassicType;
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: ClassicType; readonly type: ClassicType }[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly ClassicSignature[];
  getReturnTypeOfSignature(signature: SignatureHandle): ClassicType;
}
