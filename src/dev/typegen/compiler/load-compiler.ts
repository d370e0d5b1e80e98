import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ClassicApi, classicCompiler } from './classic-compiler.js';
import {
  type CheckerPart,
  type CommonChecker,
  type Compiler,
  type CompilerView,
  cachedView,
  fileOf,
  isOwnSource,
  mappedFolders,
  type Numbers,
  type ProjectOptions,
  type ProjectRoots,
  type SourceFile,
  type SourceText,
  type SymbolHandle,
  type SyntaxNode,
  sourceText,
  type TypeHandle,
  tupleRole,
} from './compiler-view.js';

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
