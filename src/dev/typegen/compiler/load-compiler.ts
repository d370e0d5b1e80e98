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
  const parts = dialect && (await loadParts(require, dialect));
  if (parts !== undefined) return { ok: true, compiler: nativeCompiler({ version, ...parts }) };
  const working = [...CLASSIC_VERSIONS, ...NATIVE_DIALECTS.keys()]
    .join(', ')
    .replace(/, (?=[^,]+$)/, ' and ');
  return {
    ok: false,
    problem: `TypeScript ${version} in ${folder} is not supported: ${working} work`,
  };
}

/** `undefined` if the package's API differs from that of its version. */
async function loadParts(
  require: NodeJS.Require,
  dialect: NativeDialect,
): Promise<Omit<NativeParts, 'version'> | undefined> {
  let paths: readonly string[];
  try {
    paths = [dialect.api, dialect.syntax].map((name) => require.resolve(name));
  } catch {
    return undefined;
  }
  const [module, syntax] = (await Promise.all(paths.map((path) => import(pathToFileURL(path).href)))) as [
    NativeModule,
    NativeSyntax,
  ];
  return dialect.understands(module) ? { dialect, module, syntax } : undefined;
}

/** The parts of the native compiler: two modules of a package, and the dialect of its version. */
interface NativeParts {
  readonly version: string;
  readonly dialect: NativeDialect;
  readonly module: NativeModule;
  readonly syntax: NativeSyntax;
}

/** A compiler for TypeScript 7, which runs in a separate process and answers over a pipe. */
function nativeCompiler(parts: NativeParts): Compiler {
  const { version, dialect, module } = parts;
  let api: NativeApi | undefined;
  let opened: OpenedProject | undefined;
  return {
    version,
    open(path) {
      api ??= new module.API({ cwd: posix.dirname(path) });
      opened = dialect.open(api, path, opened);
      const { project } = opened;
      if (project === undefined) throw new Error(`TypeScript ${version} opened no project at ${path}`);
      const mapped = mappedFolders(project.options);
      return cachedView(viewOf(parts, project, { project: path, roots: project.roots, mapped }));
    },
    close() {
      api?.close();
      api = undefined;
      opened = undefined;
    },
  };
}

function viewOf(parts: NativeParts, project: NativeProject, roots: ProjectRoots): CompilerView {
  const { module, syntax, version } = parts;
  const { program } = project;
  const names = program.getSourceFileNames();
  // Handles contain normalized paths: in lower case if the file system ignores case.
  const nameOf = new Map(
    names.flatMap((name) => [[name.toLowerCase(), name] as const, [name, name] as const]),
  );
  const spelt = (path: string) => nameOf.get(path) ?? nameOf.get(path.toLowerCase()) ?? path;
  const read = (name: string): SourceText[] => {
    const file = program.getSourceFile(name);
    return file === undefined ? [] : [sourceText(file)];
  };
  return {
    version,
    options: project.options,
    folder: posix.dirname(roots.project),
    syntaxKinds: syntax.SyntaxKind,
    typeFlags: module.TypeFlags,
    objectFlags: module.ObjectFlags,
    symbolFlags: module.SymbolFlags,
    problems: () =>
      [...program.getConfigFileParsingDiagnostics(), ...program.getSyntacticDiagnostics()].map((problem) =>
        describe(problem, program.getSourceFile(problem.fileName ?? '')),
      ),
    projectFiles: () =>
      names
        .filter((name) => isOwnSource(name, roots))
        .flatMap(read)
        .sort((one, other) => (one.path < other.path ? -1 : 1)),
    fileOf: (node) => sourceText(fileOf(node)),
    ...checkerPart(parts, project, spelt),
  };
}

function checkerPart(
  { module, syntax }: NativeParts,
  { checker }: NativeProject,
  spelt: (path: string) => string,
): CheckerPart {
  const { withTypes, ...questions } = batchedQuestions(checker, syntax.SyntaxKind);
  const isReference = (type: TypeHandle) =>
    ((type.objectFlags ?? 0) & (module.ObjectFlags.Reference ?? 0)) !== 0;
  return {
    ...questions,
    declaredType: (symbol) => checker.getDeclaredTypeOfSymbol(symbol),
    unalias: (symbol) =>
      symbol.flags & (module.SymbolFlags.Alias ?? 0) ? checker.getAliasedSymbol(symbol) : symbol,
    declarations: (symbol) => (symbol as NativeSymbol).declarations.flatMap((node) => node.resolve() ?? []),
    declaringFiles: (symbol) => (symbol as NativeSymbol).declarations.map(({ path }) => spelt(path)),
    exportsOf: (symbol) => checker.getExportsOfModule(symbol),
    symbolOf: (type) => (type as NativeType).getSymbol(),
    aliasOf: (type) => (type as NativeType).getAliasSymbol(),
    constituents: (type) => (type as NativeType).getTypes() ?? [],
    literalOf: (type) => (type as NativeType).value,
    templateOf: (type) => {
      const template = type as NativeType;
      return { texts: template.texts ?? [], types: template.getTypes() ?? [] };
    },
    isArray: (type) => isReference(type) && checker.isArrayType(type),
    isTuple: (type) => isReference(type) && checker.isTupleType(type),
    tupleElements(type) {
      const flags = targetOf(type as NativeType).elementFlags ?? [];
      return checker.getTypeArguments(type).map((element, index) => ({
        type: element,
        role: tupleRole(flags[index] ?? 0, module.ElementFlags),
      }));
    },
    typeArguments: (type) =>
      (type as NativeType).target === undefined ? [] : checker.getTypeArguments(type),
    propertiesOf: (type) => withTypes(checker.getPropertiesOfType(type)),
    baseTypes: (type) => checker.getBaseTypes(targetOf(type as NativeType)),
    indexesOf: (type) =>
      checker.getIndexInfosOfType(type).map((info) => ({ key: info.keyType, value: info.valueType })),
    callSignatures: (type) => checker.getSignaturesOfType(type, module.SignatureKind.Call),
    parametersOf: (signature) => withTypes((signature as NativeSignature).getParameters()),
    returnType: (signature) => checker.getReturnTypeOfSignature(signature) ?? checker.getAnyType(),
    textOf: (type) => checker.typeToString(type),
  };
}

function targetOf(type: NativeType): NativeType {
  return type.target === undefined ? type : type.getTarget();
}

function describe({ fileName, pos, text }: NativeDiagnostic, file: SourceFile | undefined): string {
  if (fileName === undefined) return text;
  // A broken tsconfig.json is not a file of the program.
  if (file === undefined) return `${fileName}: ${text}`;
  return `${fileName}:${file.text.slice(0, pos).split('\n').length}: ${text}`;
}

/** Frequent requests, with variants that need fewer messages. */
interface BatchedQuestions
  extends Pick<CompilerView, 'prepare' | 'symbolAt' | 'typeAt' | 'typeFromNode' | 'typeOfSymbol'> {
  /** Requests the types of the symbols, and returns the symbols. */
  withTypes(symbols: readonly NativeSymbol[]): readonly NativeSymbol[];
}

/** Combines requests, because each request to TypeScript 7 is a message to another process. */
function batchedQuestions(checker: NativeChecker, kinds: Numbers): BatchedQuestions {
  const types = new WeakMap<object, NativeType | undefined>();
  const symbols = new WeakMap<object, NativeSymbol | undefined>();
  // A node that cannot have a type: the classic API returns `any` for it.
  const orAny = (type: NativeType | undefined) => type ?? checker.getAnyType();
  return {
    prepare(node) {
      const { typed, named } = askedNodes(node, kinds);
      const typesFound = typed.length > 0 ? checker.getTypeAtLocation(typed) : [];
      const symbolsFound = named.length > 0 ? checker.getSymbolAtLocation(named) : [];
      for (const [index, node] of typed.entries()) types.set(node, typesFound[index]);
      for (const [index, node] of named.entries()) symbols.set(node, symbolsFound[index]);
    },
    withTypes(of) {
      const found = of.length > 0 ? checker.getTypeOfSymbol(of) : [];
      for (const [index, symbol] of of.entries()) types.set(symbol, found[index]);
      return of;
    },
    symbolAt: (node) => symbols.get(node) ?? checker.getSymbolAtLocation(node),
    typeAt: (node) => orAny(types.get(node) ?? checker.getTypeAtLocation(node)),
    typeFromNode: (node) => orAny(types.get(node) ?? checker.getTypeFromTypeNode(node)),
    typeOfSymbol: (symbol) => orAny(types.get(symbol) ?? checker.getTypeOfSymbol(symbol)),
  };
}

/** The nodes below a node that the analysis will ask about. */
interface AskedNodes {
  /** Parameters and written types, for their types. */
  readonly typed: readonly SyntaxNode[];
  /** Names of types and decorators, for their symbols. */
  readonly named: readonly SyntaxNode[];
}

/** Collects the nodes, without function bodies. */
function askedNodes(root: SyntaxNode, kinds: Numbers): AskedNodes {
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
  const typed: SyntaxNode[] = [];
  const named: SyntaxNode[] = [];
  const visit = (node: SyntaxNode): undefined => {
    if (node.kind === kinds.Block) return;
    if (typeKinds.has(node.kind)) typed.push(node);
    if (node.typeName !== undefined && node.kind === kinds.TypeReference) named.push(node.typeName);
    if (node.kind === kinds.Decorator) named.push(...calledName(node, kinds));
    node.forEachChild(visit);
  };
  visit(root);
  return { typed, named };
}

/** The last name of `@Tool(…)` and `@toolwright.Tool(…)`. */
function calledName({ expression }: SyntaxNode, kinds: Numbers): readonly SyntaxNode[] {
  const callee = expression?.kind === kinds.CallExpression ? expression?.expression : expression;
  const name = callee?.kind === kinds.PropertyAccessExpression ? callee?.name : callee;
  return name === undefined ? [] : [name];
}

/** The used part of TypeScript 7's API. */
interface NativeModule {
  readonly API: new (options: { readonly cwd: string }) => NativeApi;
  readonly TypeFlags: Readonly<Record<string, number>>;
  readonly ObjectFlags: Readonly<Record<string, number>>;
  readonly SymbolFlags: Readonly<Record<string, number>>;
  readonly ElementFlags: Readonly<Record<string, number>>;
  readonly SignatureKind: { readonly Call: number };
}

/** The syntax part of the same API. */
interface NativeSyntax {
  readonly SyntaxKind: Readonly<Record<string, number>>;
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
  /** The module specifiers of the package's API. */
  readonly api: string;
  readonly syntax: string;
  /** Whether the API has what is used here; a nightly build may have an older API. */
  understands(module: Partial<NativeModule>): boolean;
  /** Opens the current project from disk; the previous one is closed. */
  open(api: NativeApi, path: string, before: OpenedProject | undefined): OpenedProject;
}

const DIALECT_7_0: NativeDialect = {
  api: 'typescript/unstable/sync',
  syntax: 'typescript/unstable/ast',
  understands: ({ API }) => 'updateSnapshot' in Object(API?.prototype),
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
  api: 'typescript/sync',
  syntax: 'typescript/ast',
  understands: ({ API }) => 'createSnapshot' in Object(API?.prototype),
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
  getProject(path: string): (Asked & Project70) | undefined;
}

interface Project70 {
  readonly rootFiles: readonly string[];
  readonly compilerOptions: ProjectOptions;
}

interface Api71 extends NativeApi {
  createSnapshot(params: {
    readonly openProjects: readonly string[];
    readonly fileNotifications: FileChanges;
  }): Snapshot71;
}

interface Snapshot71 extends NativeSnapshot {
  getConfiguredProject(path: string): (Asked & Project71) | undefined;
}

interface Project71 {
  readonly parsedCommandLine: { readonly fileNames: readonly string[]; readonly options: ProjectOptions };
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

interface NativeType extends TypeHandle {
  readonly value?: string | number | boolean | bigint;
  readonly texts?: readonly string[];
  readonly elementFlags?: readonly number[];
  /** The handle of the generic type, if there is one. */
  readonly target?: number;
  getSymbol(): NativeSymbol | undefined;
  getAliasSymbol(): NativeSymbol | undefined;
  getTypes(): readonly NativeType[] | undefined;
  getTarget(): NativeType;
}

interface NativeSignature {
  getParameters(): readonly NativeSymbol[];
}

interface NativeChecker extends CommonChecker<NativeType, NativeSymbol> {
  getSymbolAtLocation(node: SyntaxNode): NativeSymbol | undefined;
  getSymbolAtLocation(nodes: readonly SyntaxNode[]): readonly (NativeSymbol | undefined)[];
  getTypeAtLocation(node: SyntaxNode): NativeType | undefined;
  getTypeAtLocation(nodes: readonly SyntaxNode[]): readonly (NativeType | undefined)[];
  getTypeFromTypeNode(node: SyntaxNode): NativeType | undefined;
  getTypeOfSymbol(symbol: SymbolHandle): NativeType | undefined;
  getTypeOfSymbol(symbols: readonly SymbolHandle[]): readonly (NativeType | undefined)[];
  getAnyType(): NativeType;
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly { readonly keyType: NativeType; readonly valueType: NativeType }[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly NativeSignature[];
  getReturnTypeOfSignature(signature: object): NativeType | undefined;
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
      const problems = complaints.map((item) => describeClassic(api, item));
      const roots = { project, roots: config?.fileNames ?? [], mapped: mappedFolders(compilerOptions) };
      return cachedView(classicView({ api, program, problems, roots, options: compilerOptions }));
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

function classicView({ api, program, problems, roots, options }: Opened): CompilerView {
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
    ...classicCheckerPart(api, checker),
  };
}

function classicCheckerPart(
  api: ClassicApi,
  checker: ReturnType<ClassicProgram['getTypeChecker']>,
): CheckerPart {
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

function describeClassic(api: ClassicApi, { messageText, file, start = 0 }: ClassicDiagnostic): string {
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

/** Requests to the type checker. */
interface CheckerPart {
  /** Announces requests for types and names below a node, so that they can be sent together. */
  prepare(node: SyntaxNode): void;
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

/** Requests that both compilers answer in the same way. */
interface CommonChecker<Type extends TypeHandle, Named extends SymbolHandle> {
  getDeclaredTypeOfSymbol(symbol: SymbolHandle): Type;
  getAliasedSymbol(symbol: SymbolHandle): Named;
  getExportsOfModule(symbol: SymbolHandle): readonly Named[];
  isArrayType(type: TypeHandle): boolean;
  isTupleType(type: TypeHandle): boolean;
  getTypeArguments(type: TypeHandle): readonly Type[];
  getPropertiesOfType(type: TypeHandle): readonly Named[];
  getBaseTypes(type: TypeHandle): readonly Type[];
  typeToString(type: TypeHandle): string;
}

/**
 * What the analysis needs from a compiler: the common part of the classic API (TypeScript 5.9, 6.0) and the API of
 * TypeScript 7. Flags and syntax kinds are looked up by name.
 */
export interface CompilerView extends CheckerPart {
  readonly version: string;
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
  fileOf(node: SyntaxNode): SourceText;
}

/** The used part of a syntax tree node. Both compilers have these fields; which of them are set depends on the kind. */
export interface SyntaxNode {
  readonly kind: number;
  /** Includes the comments and spaces before it. */
  readonly pos: number;
  readonly parent?: SyntaxNode;
  readonly name?: SyntaxNode;
  /** For a destructured property with another name within the method. */
  readonly propertyName?: SyntaxNode;
  readonly text?: string;
  readonly modifiers?: readonly SyntaxNode[];
  readonly members?: readonly SyntaxNode[];
  readonly parameters?: readonly SyntaxNode[];
  readonly typeParameters?: readonly SyntaxNode[];
  readonly type?: SyntaxNode;
  readonly types?: readonly SyntaxNode[];
  readonly typeName?: SyntaxNode;
  readonly typeArguments?: readonly SyntaxNode[];
  readonly elementType?: SyntaxNode;
  readonly operator?: number;
  readonly operand?: SyntaxNode;
  readonly initializer?: SyntaxNode;
  readonly questionToken?: SyntaxNode;
  readonly dotDotDotToken?: SyntaxNode;
  readonly expression?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
  readonly elements?: readonly SyntaxNode[];
  readonly properties?: readonly SyntaxNode[];
  readonly body?: SyntaxNode;
  readonly heritageClauses?: readonly SyntaxNode[];
  /** `extends` or `implements`. */
  readonly token?: number;
  readonly statements?: readonly SyntaxNode[];
  readonly moduleSpecifier?: SyntaxNode;
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

/** Requests about one node, symbol, type or signature; their answers never change while the view is open. */
const QUESTIONS = [
  'fileOf',
  'symbolAt',
  'typeAt',
  'typeFromNode',
  'typeOfSymbol',
  'declaredType',
  'unalias',
  'declarations',
  'declaringFiles',
  'exportsOf',
  'symbolOf',
  'aliasOf',
  'constituents',
  'templateOf',
  'isArray',
  'isTuple',
  'tupleElements',
  'typeArguments',
  'propertiesOf',
  'baseTypes',
  'indexesOf',
  'callSignatures',
  'parametersOf',
  'returnType',
] as const satisfies readonly (keyof CompilerView)[];

/** A view with a cache, because every request to TypeScript 7 is a message to another process. */
function cachedView(view: CompilerView): CompilerView {
  const remembered = QUESTIONS.map((name) => [name, remember(view[name] as Question)] as const);
  let files: ReturnType<CompilerView['projectFiles']> | undefined;
  const projectFiles = () => (files ??= view.projectFiles());
  return { ...view, ...Object.fromEntries(remembered), projectFiles };
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

/** A project as described by its tsconfig.json. */
interface ProjectRoots {
  /** tsconfig.json, absolute, with `/`. */
  readonly project: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  /** Folders of libraries that it maps to their sources. */
  readonly mapped: readonly string[];
}

/**
 * Whether a source belongs to the project: listed by tsconfig.json, or imported from its folder or that of a mapped
 * library. Other packages of a workspace generate for their own sources.
 */
function isOwnSource(path: string, { project, roots, mapped }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  if (roots.includes(path)) return true;
  return [posix.dirname(project), ...mapped].some((folder) => path.startsWith(`${folder}/`));
}

/** The role of a tuple element, from the compiler's flags. */
function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
