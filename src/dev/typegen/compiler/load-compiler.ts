import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A compiler, or why there is none, as a sentence for the user. */
type LoadedCompiler =
  | { readonly ok: true; readonly compiler: Compiler }
  | { readonly ok: false; readonly problem: string };

const CLASSIC_VERSIONS: readonly string[] = ['5.9', '6.0'];

/** Loads the project's own TypeScript, whose errors its author sees. The folder is that of tsconfig.json. */
export async function loadCompiler(folder: string): Promise<LoadedCompiler> {
  const require = createRequire(pathToFileURL(join(folder, 'tsconfig.json')));
  let manifest: string;
  try {
    manifest = require.resolve('typescript/package.json');
  } catch {
    return {
      ok: false,
      problem: `there is no TypeScript in ${folder}: npm install --save-dev typescript`,
    };
  }
  const { version } = require(manifest) as { readonly version: string };
  const minor = version.split('.', 2).join('.');
  // ts-jest compiles this file to CommonJS, in which `import()` would be a `require` of a URL.
  if (CLASSIC_VERSIONS.includes(minor))
    return { ok: true, compiler: classicCompiler(require('typescript') as ClassicApi) };
  const dialect = NATIVE_DIALECTS.get(minor);
  const compiler = dialect && (await loadNative(require, dialect, version));
  if (compiler !== undefined) return { ok: true, compiler };
  const working = [...CLASSIC_VERSIONS, ...NATIVE_DIALECTS.keys()]
    .join(', ')
    .replace(/, (?=[^,]+$)/, ' and ');
  return {
    ok: false,
    problem: `TypeScript ${version} in ${folder} is not supported: ${working} work`,
  };
}

/** `undefined` if the package's API differs from that of its version: a nightly build may have an older one. */
async function loadNative(
  require: NodeJS.Require,
  dialect: NativeDialect,
  version: string,
): Promise<Compiler | undefined> {
  let paths: readonly string[];
  try {
    paths = dialect.modules.map((name) => require.resolve(name));
  } catch {
    return undefined;
  }
  const [main, syntax] = await Promise.all(paths.map((path) => import(pathToFileURL(path).href)));
  const api = { ...main, ...syntax } as NativeModule;
  return dialect.method in Object(api.API?.prototype) ? nativeCompiler({ version, dialect, api }) : undefined;
}

/** The native compiler: the API of its package, and the dialect of its version. */
interface NativeParts {
  readonly version: string;
  readonly dialect: NativeDialect;
  readonly api: NativeModule;
}

/** A compiler for TypeScript 7, which runs in a separate process and answers over a pipe. */
function nativeCompiler({ version, dialect, api }: NativeParts): Compiler {
  let running: NativeApi | undefined;
  let opened: OpenedProject | undefined;
  return {
    version,
    open(path) {
      running ??= new api.API({ cwd: posix.dirname(path) });
      opened = dialect.open(running, path, opened);
      const { project } = opened;
      if (project === undefined) throw new Error(`TypeScript ${version} opened no project at ${path}`);
      return nativeView(api, path, project);
    },
    close() {
      running?.close();
      running = undefined;
      opened = undefined;
    },
  };
}

function nativeView(api: NativeModule, path: string, project: NativeProject): CompilerView {
  const { program, checker, roots, options } = project;
  const names = program.getSourceFileNames();
  // Handles contain normalized paths: in lower case if the file system ignores case.
  const nameOf = new Map(
    names.flatMap((name) => [[name.toLowerCase(), name] as const, [name, name] as const]),
  );
  const spelt = (file: string) => nameOf.get(file) ?? nameOf.get(file.toLowerCase()) ?? file;
  return viewOf({
    api,
    path,
    roots,
    options,
    problems: () =>
      [...program.getConfigFileParsingDiagnostics(), ...program.getSyntacticDiagnostics()].map((problem) =>
        describe(problem, program.getSourceFile(problem.fileName ?? '')),
      ),
    files: (isWanted) => names.filter(isWanted).flatMap((name) => program.getSourceFile(name) ?? []),
    answers: answersOf(checker, api, {
      ...batchedAnswers(checker, api.SyntaxKind),
      declarations: (symbol) => (symbol as NativeSymbol).declarations.flatMap((node) => node.resolve() ?? []),
      declaringFiles: (symbol) => (symbol as NativeSymbol).declarations.map(({ path }) => spelt(path)),
      aliasOf: (type) => (type as NativeType).getAliasSymbol(),
      constituents: (type) => (type as NativeType).getTypes() ?? [],
      literalOf: (type) => (type as NativeType).value,
      targetOf: (type: NativeType) => (type.target === undefined ? type : type.getTarget()),
      indexesOf: (type) =>
        checker.getIndexInfosOfType(type).map((info) => ({ key: info.keyType, value: info.valueType })),
    }),
  });
}

function describe({ fileName, pos, text }: NativeDiagnostic, file: SourceFile | undefined): string {
  if (fileName === undefined) return text;
  // A broken tsconfig.json is not a file of the program.
  if (file === undefined) return `${fileName}: ${text}`;
  return `${fileName}:${lineAt(file.text, pos)}: ${text}`;
}

/** Combines frequent requests, because each request to TypeScript 7 is a message to another process. */
function batchedAnswers(checker: NativeChecker, kinds: Numbers) {
  const types = new WeakMap<object, TypeHandle | undefined>();
  const symbols = new WeakMap<object, SymbolHandle | undefined>();
  // A node that cannot have a type: the classic API returns `any` for it.
  const orAny = (type: TypeHandle | undefined) => type ?? checker.getAnyType();
  return {
    prepare(root: SyntaxNode) {
      const { typed, named } = askedNodes(root, kinds);
      const typesFound = typed.length > 0 ? checker.getTypeAtLocation(typed) : [];
      const symbolsFound = named.length > 0 ? checker.getSymbolAtLocation(named) : [];
      for (const [index, node] of typed.entries()) types.set(node, typesFound[index]);
      for (const [index, node] of named.entries()) symbols.set(node, symbolsFound[index]);
    },
    withTypes(of: readonly SymbolHandle[]) {
      const found = of.length > 0 ? checker.getTypeOfSymbol(of) : [];
      for (const [index, symbol] of of.entries()) types.set(symbol, found[index]);
      return of;
    },
    symbolAt: (node: SyntaxNode) => symbols.get(node) ?? checker.getSymbolAtLocation(node),
    typeAt: (node: SyntaxNode) => orAny(types.get(node) ?? checker.getTypeAtLocation(node)),
    typeFromNode: (node: SyntaxNode) => orAny(types.get(node) ?? checker.getTypeFromTypeNode(node)),
    typeOfSymbol: (symbol: SymbolHandle) => orAny(types.get(symbol) ?? checker.getTypeOfSymbol(symbol)),
  };
}

/** Collects the nodes below a node that the analysis will ask about, without function bodies. */
function askedNodes(root: SyntaxNode, kinds: Numbers) {
  const typeKinds = new Set([
    kinds.Parameter,
    kinds.TypeReference,
    kinds.UnionType,
    kinds.LiteralType,
    kinds.ArrayType,
    kinds.TupleType,
    kinds.TypeOperator,
    kinds.ParenthesizedType,
  ]);
  // Parameters and written types, for their types.
  const typed: SyntaxNode[] = [];
  // Names of types and decorators, for their symbols.
  const named: SyntaxNode[] = [];
  const visit = (node: SyntaxNode): undefined => {
    if (node.kind === kinds.Block) return;
    if (typeKinds.has(node.kind)) typed.push(node);
    if (node.typeName !== undefined && node.kind === kinds.TypeReference) named.push(node.typeName);
    const callee = node.kind === kinds.Decorator ? calleeOf(node, kinds) : undefined;
    if (callee !== undefined) named.push(lastName(callee, kinds));
    node.forEachChild(visit);
  };
  visit(root);
  return { typed, named };
}

/** What a decorator calls, or is. */
export function calleeOf({ expression }: SyntaxNode, kinds: Numbers): SyntaxNode | undefined {
  return expression?.kind === kinds.CallExpression ? expression?.expression : expression;
}

/** `Tool` in `toolwright.Tool`. */
export function lastName(callee: SyntaxNode, kinds: Numbers): SyntaxNode {
  return (callee.kind === kinds.PropertyAccessExpression && callee.name) || callee;
}

/** The used part of TypeScript 7's API. */
interface NativeModule extends CompilerNumbers {
  readonly API: new (options: { readonly cwd: string }) => NativeApi;
}

/** A running compiler; each version is called in its own way. */
interface NativeApi {
  close(): void;
}

/** The state of the projects at one time. */
interface NativeSnapshot {
  dispose(): void;
}

/** An open project. */
interface NativeProject {
  readonly program: NativeProgram;
  readonly checker: NativeChecker;
  readonly roots: readonly string[];
  readonly options: ProjectOptions;
}

/** The open project; at most one at a time. */
interface OpenedProject {
  readonly path: string;
  readonly snapshot: NativeSnapshot;
  /** `undefined` if the compiler finds no project at the path. */
  readonly project?: NativeProject;
}

/** Differences between versions of TypeScript 7. */
interface NativeDialect {
  /** The module specifiers of the package's API: the compiler and the syntax. */
  readonly modules: readonly string[];
  /** The method that opens projects. */
  readonly method: string;
  /** Opens the current project from disk; the previous one is closed. */
  open(api: NativeApi, path: string, before: OpenedProject | undefined): OpenedProject;
}

const DIALECT_7_0: NativeDialect = {
  modules: ['typescript/unstable/sync', 'typescript/unstable/ast'],
  method: 'updateSnapshot',
  open(api, path, before) {
    const compiler = api as Api70;
    const emptied = before && compiler.updateSnapshot({ fileChanges: { invalidateAll: true } });
    const snapshot = compiler.updateSnapshot({
      openProjects: [path],
      ...(before !== undefined && before.path !== path ? { closeProjects: [before.path] } : {}),
      // The list of files and the extended configurations are read again only if tsconfig.json has changed.
      fileChanges: { changed: [path] },
    });
    for (const stale of [before?.snapshot, emptied]) stale?.dispose();
    const project = snapshot.getProject(path);
    return {
      path,
      snapshot,
      project: project && opened(project, project.rootFiles, project.compilerOptions),
    };
  },
};

const DIALECT_7_1: NativeDialect = {
  modules: ['typescript/sync', 'typescript/ast'],
  method: 'createSnapshot',
  open(api, path, before) {
    // Updating the previous snapshot would keep old options of an extended tsconfig.json.
    const snapshot = (api as Api71).createSnapshot({
      openProjects: [path],
      fileNotifications: { invalidateAll: true },
    });
    before?.snapshot.dispose();
    const project = snapshot.getConfiguredProject(path);
    const { fileNames = [], options = {} } = project?.parsedCommandLine ?? {};
    return { path, snapshot, project: project && opened(project, fileNames, options) };
  },
};

/** By major and minor version. */
const NATIVE_DIALECTS: ReadonlyMap<string, NativeDialect> = new Map([
  ['7.0', DIALECT_7_0],
  ['7.1', DIALECT_7_1],
]);

type Asked = Pick<NativeProject, 'program' | 'checker'>;

function opened(
  { program, checker }: Asked,
  roots: readonly string[],
  options: ProjectOptions,
): NativeProject {
  return { program, checker, roots, options };
}

interface Api70 extends NativeApi {
  updateSnapshot(params: {
    readonly openProjects?: readonly string[];
    readonly closeProjects?: readonly string[];
    readonly fileChanges?: FileChanges;
  }): Snapshot70;
}

interface Snapshot70 extends NativeSnapshot {
  getProject(
    path: string,
  ):
    | (Asked & { readonly rootFiles: readonly string[]; readonly compilerOptions: ProjectOptions })
    | undefined;
}

interface Api71 extends NativeApi {
  createSnapshot(params: {
    readonly openProjects: readonly string[];
    readonly fileNotifications: FileChanges;
  }): Snapshot71;
}

interface Snapshot71 extends NativeSnapshot {
  getConfiguredProject(
    path: string,
  ): (Asked & { readonly parsedCommandLine: Pick<ClassicConfig, 'fileNames' | 'options'> }) | undefined;
}

type FileChanges = { readonly invalidateAll: true } | { readonly changed: readonly string[] };

interface NativeProgram {
  getSourceFileNames(): readonly string[];
  getSourceFile(path: string): SourceFile | undefined;
  getSyntacticDiagnostics(): readonly NativeDiagnostic[];
  getConfigFileParsingDiagnostics(): readonly NativeDiagnostic[];
}

/** A diagnostic of the compiler. */
interface NativeDiagnostic {
  readonly fileName?: string;
  readonly pos: number;
  readonly text: string;
}

/** A declaration that has not been read yet. */
interface NativeNodeHandle {
  readonly path: string;
  resolve(): SyntaxNode | undefined;
}

interface NativeSymbol extends SymbolHandle {
  readonly declarations: readonly NativeNodeHandle[];
}

interface NativeType extends CompilerType {
  readonly value?: string | number | boolean | bigint;
  getAliasSymbol(): SymbolHandle | undefined;
  getTypes(): readonly TypeHandle[] | undefined;
  getTarget(): CompilerType;
}

interface NativeChecker extends CommonChecker {
  getSymbolAtLocation(node: SyntaxNode): SymbolHandle | undefined;
  getSymbolAtLocation(nodes: readonly SyntaxNode[]): readonly (SymbolHandle | undefined)[];
  getTypeAtLocation(node: SyntaxNode): TypeHandle | undefined;
  getTypeAtLocation(nodes: readonly SyntaxNode[]): readonly (TypeHandle | undefined)[];
  getTypeFromTypeNode(node: SyntaxNode): TypeHandle | undefined;
  getTypeOfSymbol(symbol: SymbolHandle): TypeHandle | undefined;
  getTypeOfSymbol(symbols: readonly SymbolHandle[]): readonly (TypeHandle | undefined)[];
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: TypeHandle; readonly valueType: TypeHandle }[];
}

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
      const { options = {}, fileNames = [] } = config ?? {};
      program = api.createProgram({
        rootNames: fileNames,
        options,
        projectReferences: config?.projectReferences,
        // As in editors and TypeScript 7: referenced projects need not be built.
        host: { ...api.createCompilerHost(options), useSourceOfProjectReferenceRedirect: () => true },
        oldProgram: program,
      });
      complaints.push(...program.getSyntacticDiagnostics());
      const problems = complaints.map((item) => describeClassic(api, item));
      return classicView({ api, program, problems, path: project, roots: fileNames, options });
    },
    close: () => {
      program = undefined;
    },
  };
}

interface ClassicProject extends Pick<OpenedView, 'path' | 'roots' | 'options'> {
  readonly api: ClassicApi;
  readonly program: ClassicProgram;
  readonly problems: readonly string[];
}

function classicView({ api, program, problems, ...project }: ClassicProject): CompilerView {
  const checker = program.getTypeChecker();
  return viewOf({
    ...project,
    api,
    problems: () => problems,
    files: (isWanted) => program.getSourceFiles().filter(({ fileName }) => isWanted(fileName)),
    answers: answersOf(checker, api, {
      // Nothing to prepare: the checker runs in this process.
      prepare: () => {},
      withTypes: (symbols) => symbols,
      symbolAt: (node) => checker.getSymbolAtLocation(node),
      typeAt: (node) => checker.getTypeAtLocation(node),
      typeFromNode: (node) => checker.getTypeFromTypeNode(node),
      typeOfSymbol: (symbol) => checker.getTypeOfSymbol(symbol),
      declarations: (symbol) => (symbol as ClassicSymbol).declarations ?? [],
      declaringFiles: (symbol) =>
        ((symbol as ClassicSymbol).declarations ?? []).map((node) => fileOf(node).fileName),
      aliasOf: (type) => (type as ClassicType).aliasSymbol,
      constituents: (type) => (type as ClassicType).types ?? [],
      literalOf,
      targetOf: (type: ClassicType) => type.target ?? type,
      indexesOf: (type) =>
        checker.getIndexInfosOfType(type).map((info) => ({ key: info.keyType, value: info.type })),
    }),
  });
}

function literalOf(type: object): string | number | boolean | bigint | undefined {
  const { value, intrinsicName } = type as ClassicType;
  if (typeof value === 'object') return BigInt(`${value.negative ? '-' : ''}${value.base10Value}`);
  if (value !== undefined) return value;
  return intrinsicName === 'true' ? true : intrinsicName === 'false' ? false : undefined;
}

function describeClassic(api: ClassicApi, { messageText, file, start = 0 }: ClassicDiagnostic): string {
  const text = api.flattenDiagnosticMessageText(messageText, ' ');
  if (file === undefined) return text;
  return `${file.fileName}:${lineAt(file.text, start)}: ${text}`;
}

/** The used part of the classic compiler API (`typescript` 5.9 and 6.0), whose types TypeScript 7 does not have. */
export interface ClassicApi extends CompilerNumbers {
  readonly version: string;
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

interface ClassicType extends CompilerType {
  readonly aliasSymbol?: SymbolHandle;
  readonly types?: readonly TypeHandle[];
  readonly target?: ClassicType;
  readonly value?: string | number | { readonly negative: boolean; readonly base10Value: string };
  readonly intrinsicName?: string;
}

interface ClassicSymbol extends SymbolHandle {
  readonly declarations?: readonly SyntaxNode[];
}

interface ClassicChecker extends CommonChecker {
  getSymbolAtLocation(node: SyntaxNode): SymbolHandle | undefined;
  getTypeAtLocation(node: SyntaxNode): TypeHandle;
  getTypeFromTypeNode(node: SyntaxNode): TypeHandle;
  getTypeOfSymbol(symbol: SymbolHandle): TypeHandle;
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: TypeHandle; readonly type: TypeHandle }[];
}

/** A file of the project. */
export interface SourceText {
  /** Absolute, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly node: SyntaxNode;
  /** A declaration file: of a package, or of the language itself. */
  readonly isDeclaration: boolean;
}

/** A type; compare it by `id`, because a compiler may create a new object for each request. */
export interface TypeHandle {
  readonly id: number;
  readonly flags: number;
  readonly objectFlags?: number;
}

/** A symbol; the same symbol is always the same object. */
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

/** An element of a tuple type. */
interface TupleElement {
  readonly type: TypeHandle;
  readonly role: 'required' | 'optional' | 'rest' | 'variadic';
}

/** The numbers of named flags and kinds. They differ between compilers. */
type Numbers = Readonly<Record<string, number>>;

/** The numbers of a compiler's API. */
interface CompilerNumbers {
  readonly SyntaxKind: Numbers;
  readonly TypeFlags: Numbers;
  readonly ObjectFlags: Numbers;
  readonly SymbolFlags: Numbers;
  readonly ElementFlags: Numbers;
  readonly SignatureKind: { readonly Call: number };
}

/** Questions about one node, symbol, type or signature. */
interface Answers {
  /** Announces requests for types and names below a node, so that they can be sent together. */
  prepare(node: SyntaxNode): void;
  fileOf(node: SyntaxNode): SourceText;
  symbolAt(node: SyntaxNode): SymbolHandle | undefined;
  typeAt(node: SyntaxNode): TypeHandle;
  typeFromNode(node: SyntaxNode): TypeHandle;
  typeOfSymbol(symbol: SymbolHandle): TypeHandle;
  declaredType(symbol: SymbolHandle): TypeHandle;
  unalias(symbol: SymbolHandle): SymbolHandle;
  declarations(symbol: SymbolHandle): readonly SyntaxNode[];
  /** Absolute paths of the declarations' files; cheaper than the declarations themselves. */
  declaringFiles(symbol: SymbolHandle): readonly string[];
  exportsOf(symbol: SymbolHandle): readonly SymbolHandle[];

  symbolOf(type: TypeHandle): SymbolHandle | undefined;
  aliasOf(type: TypeHandle): SymbolHandle | undefined;
  /** The parts of a union or an intersection. */
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
  /** For people: it may differ between compilers and is never generated. */
  textOf(type: TypeHandle): string;
}

/** The used part of a type in both compilers. */
interface CompilerType extends TypeHandle {
  readonly texts?: readonly string[];
  readonly elementFlags?: readonly number[];
  /** The generic type, if there is one. */
  readonly target?: unknown;
  getSymbol(): SymbolHandle | undefined;
}

/** Requests that both compilers answer in the same way. */
interface CommonChecker {
  getDeclaredTypeOfSymbol(symbol: SymbolHandle): TypeHandle;
  getAliasedSymbol(symbol: SymbolHandle): SymbolHandle;
  getExportsOfModule(symbol: SymbolHandle): readonly SymbolHandle[];
  isArrayType(type: TypeHandle): boolean;
  isTupleType(type: TypeHandle): boolean;
  getTypeArguments(type: TypeHandle): readonly TypeHandle[];
  getPropertiesOfType(type: TypeHandle): readonly SymbolHandle[];
  getBaseTypes(type: TypeHandle): readonly TypeHandle[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly SignatureHandle[];
  getReturnTypeOfSignature(signature: SignatureHandle): TypeHandle | undefined;
  getAnyType(): TypeHandle;
  typeToString(type: TypeHandle): string;
}

/** The answers that differ between the compilers. */
interface OwnAnswers
  extends Pick<Answers, 'prepare' | 'symbolAt' | 'typeAt' | 'typeFromNode' | 'typeOfSymbol'>,
    Pick<
      Answers,
      'declarations' | 'declaringFiles' | 'aliasOf' | 'constituents' | 'literalOf' | 'indexesOf'
    > {
  /** Requests the types of the symbols, and returns the symbols. */
  withTypes(symbols: readonly SymbolHandle[]): readonly SymbolHandle[];
  /** The generic type of a type, or the type itself. */
  targetOf(type: TypeHandle): CompilerType;
}

function answersOf(
  checker: CommonChecker,
  { ObjectFlags, SymbolFlags, ElementFlags, SignatureKind }: CompilerNumbers,
  { withTypes, targetOf, ...own }: OwnAnswers,
): Answers {
  const isReference = (type: TypeHandle) => ((type.objectFlags ?? 0) & (ObjectFlags.Reference ?? 0)) !== 0;
  return {
    ...own,
    fileOf: (node) => sourceText(fileOf(node)),
    declaredType: (symbol) => checker.getDeclaredTypeOfSymbol(symbol),
    unalias: (symbol) =>
      symbol.flags & (SymbolFlags.Alias ?? 0) ? checker.getAliasedSymbol(symbol) : symbol,
    exportsOf: (symbol) => checker.getExportsOfModule(symbol),
    symbolOf: (type) => (type as CompilerType).getSymbol(),
    templateOf: (type) => ({ texts: (type as CompilerType).texts ?? [], types: own.constituents(type) }),
    isArray: (type) => isReference(type) && checker.isArrayType(type),
    isTuple: (type) => isReference(type) && checker.isTupleType(type),
    tupleElements(type) {
      const flags = targetOf(type).elementFlags ?? [];
      return checker
        .getTypeArguments(type)
        .map((element, index) => ({ type: element, role: tupleRole(flags[index] ?? 0, ElementFlags) }));
    },
    typeArguments: (type) =>
      (type as CompilerType).target === undefined ? [] : checker.getTypeArguments(type),
    propertiesOf: (type) => withTypes(checker.getPropertiesOfType(type)),
    baseTypes: (type) => checker.getBaseTypes(targetOf(type)),
    callSignatures: (type) => checker.getSignaturesOfType(type, SignatureKind.Call),
    parametersOf: (signature) =>
      withTypes((signature as { getParameters(): readonly SymbolHandle[] }).getParameters()),
    returnType: (signature) => checker.getReturnTypeOfSignature(signature) ?? checker.getAnyType(),
    textOf: (type) => checker.typeToString(type),
  };
}

/**
 * What the analysis needs from a compiler: the common part of the classic API (TypeScript 5.9, 6.0) and the API of
 * TypeScript 7. Flags and syntax kinds are looked up by name.
 */
export interface CompilerView extends Answers {
  readonly options: ProjectOptions;
  /** The folder of tsconfig.json, absolute, with `/`. */
  readonly folder: string;
  readonly syntaxKinds: Numbers;
  readonly typeFlags: Numbers;
  readonly objectFlags: Numbers;
  readonly symbolFlags: Numbers;
  /** The files of the project and of mapped libraries, by path; no declarations and no packages. */
  projectFiles(): readonly SourceText[];
  /** What the compiler could not read: a missing or broken tsconfig.json, syntax errors. */
  problems(): readonly string[];
}

/** Fields of a node that contain one node. `propertyName` is the original name of a renamed, destructured property. */
type NodeField =
  | 'parent'
  | 'name'
  | 'propertyName'
  | 'type'
  | 'typeName'
  | 'elementType'
  | 'operand'
  | 'initializer'
  | 'questionToken'
  | 'dotDotDotToken'
  | 'expression'
  | 'body'
  | 'moduleSpecifier';

/** Fields of a node that contain several. */
type NodeListField =
  | 'modifiers'
  | 'members'
  | 'parameters'
  | 'typeParameters'
  | 'types'
  | 'typeArguments'
  | 'arguments'
  | 'elements'
  | 'properties'
  | 'heritageClauses'
  | 'statements';

/** The used part of a syntax tree node. Both compilers have these fields; which of them are set depends on the kind. */
export interface SyntaxNode
  extends Readonly<Partial<Record<NodeField, SyntaxNode>>>,
    Readonly<Partial<Record<NodeListField, readonly SyntaxNode[]>>> {
  readonly kind: number;
  /** Includes the comments and spaces before it. */
  readonly pos: number;
  readonly text?: string;
  readonly operator?: number;
  /** `extends` or `implements`. */
  readonly token?: number;
  forEachChild<Result>(visit: (node: SyntaxNode) => Result | undefined): Result | undefined;
}

/** A source file, which is a node, too; the same in both compilers. */
interface SourceFile extends SyntaxNode {
  readonly fileName: string;
  readonly text: string;
  readonly isDeclarationFile: boolean;
}

/** Converts a file for the analysis. */
function sourceText(file: SourceFile): SourceText {
  return { path: file.fileName, text: file.text, node: file, isDeclaration: file.isDeclarationFile };
}

/** The number of the line of a position. */
export function lineAt(text: string, pos: number): number {
  return text.slice(0, pos).split('\n').length;
}

/** The file of a node. */
function fileOf(node: SyntaxNode): SourceFile {
  let current = node;
  while (current.parent !== undefined) current = current.parent;
  return current as SourceFile;
}

/** The compiler options that affect a generated file, in the form of a parsed tsconfig.json. */
export interface ProjectOptions {
  /** The same numbers in all versions: 1 is CommonJS, 5 to 99 ES modules, 100 to 199 Node's, 200 Preserve. */
  readonly module?: number;
  /** 3 and 99 are Node's, 100 is that of bundlers. */
  readonly moduleResolution?: number;
  readonly allowImportingTsExtensions?: boolean;
  readonly rewriteRelativeImportExtensions?: boolean;
  readonly experimentalDecorators?: boolean;
  readonly emitDecoratorMetadata?: boolean;
  readonly noEmit?: boolean;
  readonly emitDeclarationOnly?: boolean;
  readonly paths?: Readonly<Record<string, readonly string[]>>;
  /** Absolute: the base of `paths` without a `baseUrl`. */
  readonly pathsBasePath?: string;
  /** Absolute; TypeScript 7 has none. */
  readonly baseUrl?: string;
}

/** The TypeScript compiler of a project; it caches data between two openings of the same project. */
export interface Compiler {
  readonly version: string;
  /** Reads the current project from disk; the previous view becomes invalid. */
  open(project: string): CompilerView;
  close(): void;
}

/**
 * Folders of libraries whose sources `paths` in tsconfig.json refers to. Mappings of every name, and the framework
 * itself, do not count.
 */
export function mappedFolders({ paths = {}, baseUrl, pathsBasePath }: ProjectOptions): readonly string[] {
  const base = baseUrl ?? pathsBasePath ?? '/';
  const folders = Object.entries(paths)
    .filter(([name]) => name !== '*' && !/^toolwright(\/|$)/.test(name))
    .flatMap(([, targets]) => targets.map((target) => folderOf(posix.resolve(base, target))));
  return [...new Set(folders)];
}

/** `libs/shop/src/*`, `libs/shop/src/index.ts` and `libs/shop/src` are all in `libs/shop/src`. */
function folderOf(target: string): string {
  const [before = target, after] = target.split('*');
  if (after !== undefined) return before.endsWith('/') ? before.slice(0, -1) : posix.dirname(before);
  const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? target : posix.dirname(target);
}

/** A project as a compiler has opened it. */
interface OpenedView {
  readonly api: CompilerNumbers;
  /** tsconfig.json, absolute, with `/`. */
  readonly path: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  readonly options: ProjectOptions;
  readonly answers: Answers;
  problems(): readonly string[];
  files(isWanted: (path: string) => boolean): readonly SourceFile[];
}

/** A view with a cache, because every request to TypeScript 7 is a message to another process. */
function viewOf({ api, path, roots, options, answers, problems, files }: OpenedView): CompilerView {
  const folder = posix.dirname(path);
  const folders = [folder, ...mappedFolders(options)];
  // Other packages of a workspace generate for their own sources.
  const isOwnSource = (file: string): boolean => {
    if (/\.d\.[cm]?ts$/.test(file) || file.includes('/node_modules/')) return false;
    return roots.includes(file) || folders.some((own) => file.startsWith(`${own}/`));
  };
  let sources: readonly SourceText[] | undefined;
  const readSources = () =>
    files(isOwnSource)
      .map(sourceText)
      .sort((one, other) => (one.path < other.path ? -1 : 1));
  const remembered = Object.entries(answers).map(([name, ask]) => [name, remember(ask as Question)]);
  return {
    options,
    folder,
    syntaxKinds: api.SyntaxKind,
    typeFlags: api.TypeFlags,
    objectFlags: api.ObjectFlags,
    symbolFlags: api.SymbolFlags,
    problems,
    projectFiles: () => (sources ??= readSources()),
    ...(Object.fromEntries(remembered) as Answers),
  };
}

type Question = (about: object) => unknown;

function remember(ask: Question): Question {
  const answers = new WeakMap<object, { readonly answer: unknown }>();
  return (about) => {
    const known = answers.get(about);
    if (known !== undefined) return known.answer;
    const answer = ask(about);
    answers.set(about, { answer });
    return answer;
  };
}

/** The role of a tuple element, from the compiler's flags. */
function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
