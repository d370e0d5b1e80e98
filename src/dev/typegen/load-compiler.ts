import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A compiler, or the reason why it is missing, as a sentence for the user. */
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
      problem: `TypeScript is not installed in ${folder}: npm install --save-dev typescript`,
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
  const working = [...CLASSIC_VERSIONS, ...NATIVE_DIALECTS.keys()].join(', ').replace(/, (?=[^,]+$)/, ' or ');
  return {
    ok: false,
    problem: `TypeScript ${version} in ${folder} is not supported; install ${working}`,
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
  return dialect.method in Object(api.API?.prototype) ? nativeCompiler(version, dialect, api) : undefined;
}

/** A compiler for TypeScript 7, which runs in a separate process and answers over a pipe. */
function nativeCompiler(version: string, dialect: NativeDialect, api: NativeModule): Compiler {
  let running: NativeApi | undefined;
  let opened: OpenedProject | undefined;
  return {
    version,
    open(path) {
      running ??= new api.API({ cwd: posix.dirname(path) });
      opened = dialect.open(running, path, opened);
      const { project } = opened;
      if (project === undefined) throw new Error(`TypeScript ${version} did not open the project ${path}`);
      const { program, ...parts } = project;
      const names = program.getSourceFileNames();
      // Handles contain normalized paths: in lower case if the file system ignores case.
      const nameOf = new Map(
        names.flatMap((name) => [[name.toLowerCase(), name] as const, [name, name] as const]),
      );
      return viewOf({
        ...parts,
        api,
        path,
        problems: () =>
          [...program.getConfigFileParsingDiagnostics(), ...program.getSyntacticDiagnostics()].map(
            ({ fileName, pos, text }) => {
              if (fileName === undefined) return text;
              // A broken tsconfig.json is not a file of the program.
              const file = program.getSourceFile(fileName);
              return `${fileName}:${file === undefined ? '' : `${lineAt(file.text, pos)}:`} ${text}`;
            },
          ),
        files: (isWanted) => names.filter(isWanted).flatMap((name) => program.getSourceFile(name) ?? []),
        spelt: (file) => nameOf.get(file) ?? nameOf.get(file.toLowerCase()) ?? file,
        together: batchedAnswers(parts.checker, api.SyntaxKind),
      });
    },
    close() {
      running?.close();
      running = undefined;
      opened = undefined;
    },
  };
}

/** Combines frequent requests, because each request to TypeScript 7 is a message to another process. */
function batchedAnswers(checker: NativeChecker, kinds: Numbers) {
  const siblings = new WeakMap<SymbolHandle, readonly SymbolHandle[]>();
  const typeOfNode = together(
    (nodes: readonly SyntaxNode[]) => checker.getTypeAtLocation(nodes),
    beside(kinds, (node) => (TYPED.some((kind) => kinds[kind] === node.kind) ? node : undefined)),
  );
  const typeOfSymbol = together(
    (symbols: readonly SymbolHandle[]) => checker.getTypeOfSymbol(symbols),
    (symbol) => siblings.get(symbol) ?? [],
  );
  // A node that cannot have a type: the classic API returns `any` for it.
  const typeAt = (node: SyntaxNode) => typeOfNode(node) ?? checker.getAnyType();
  return {
    symbolAt: together(
      (nodes: readonly SyntaxNode[]) => checker.getSymbolAtLocation(nodes),
      beside(kinds, (node) => {
        if (node.kind === kinds.TypeReference) return node.typeName;
        if (node.kind !== kinds.Decorator) return undefined;
        const { expression } = node;
        const callee = expression?.kind === kinds.CallExpression ? expression?.expression : expression;
        return callee?.name ?? callee;
      }),
    ),
    typeAt,
    typeFromNode: typeAt,
    typeOfSymbol: (symbol: SymbolHandle) => typeOfSymbol(symbol) ?? checker.getAnyType(),
    propertiesOf(type: TypeHandle) {
      const properties = checker.getPropertiesOfType(type);
      for (const property of properties) siblings.set(property, properties);
      return properties;
    },
  };
}

/** Nodes that the analysis asks about in most declarations. */
const TYPED = [
  ...['Parameter', 'TypeReference', 'UnionType', 'LiteralType', 'ArrayType', 'TupleType'],
  ...['TypeOperator', 'ParenthesizedType'],
];

/** Answers a question; the first time, also prefetches the answers to likely further questions. */
function together<Key extends object, Answer>(
  ask: (keys: readonly Key[]) => readonly Answer[],
  next: (key: Key) => readonly Key[],
): (key: Key) => Answer | undefined {
  const answers = new Map<Key, Answer | undefined>();
  return (key) => {
    if (!answers.has(key)) {
      const keys = [...new Set([key, ...next(key)])].filter((item) => !answers.has(item));
      const found = ask(keys);
      for (const [index, item] of keys.entries()) answers.set(item, found[index]);
    }
    return answers.get(key);
  };
}

/** Finds the nodes to ask about in the declaration around a node, once per declaration, without function bodies. */
function beside(kinds: Numbers, pick: (node: SyntaxNode) => SyntaxNode | undefined) {
  const { ClassDeclaration, InterfaceDeclaration, TypeAliasDeclaration, Block } = kinds;
  const known = new Set<SyntaxNode>();
  return (node: SyntaxNode): readonly SyntaxNode[] => {
    let around: SyntaxNode | undefined = node;
    while (around && ![ClassDeclaration, InterfaceDeclaration, TypeAliasDeclaration].includes(around.kind))
      around = around.parent;
    if (around === undefined || known.has(around)) return [];
    known.add(around);
    const found: SyntaxNode[] = [];
    const visit = (part: SyntaxNode): undefined => {
      if (part.kind === Block) return;
      const picked = pick(part);
      if (picked !== undefined) found.push(picked);
      part.forEachChild(visit);
    };
    visit(around);
    return found;
  };
}

/** Requests that TypeScript 7 also takes in lists. */
interface NativeChecker extends Checker {
  getSymbolAtLocation(node: SyntaxNode): SymbolHandle | undefined;
  getSymbolAtLocation(nodes: readonly SyntaxNode[]): readonly (SymbolHandle | undefined)[];
  getTypeAtLocation(node: SyntaxNode): TypeHandle | undefined;
  getTypeAtLocation(nodes: readonly SyntaxNode[]): readonly (TypeHandle | undefined)[];
  getTypeOfSymbol(symbol: SymbolHandle): TypeHandle | undefined;
  getTypeOfSymbol(symbols: readonly SymbolHandle[]): readonly (TypeHandle | undefined)[];
}

/** The used part of TypeScript 7's API. */
interface NativeModule extends CompilerNumbers {
  readonly API: new (options: { readonly cwd: string }) => NativeApi;
}

/** A running compiler: 7.0 updates snapshots, 7.1 creates them. */
interface NativeApi {
  close(): void;
  updateSnapshot(changes: object): NativeSnapshot;
  createSnapshot(content: object): NativeSnapshot;
}

/** The state of the projects at one time, with the methods of 7.0 and 7.1 that return one of them. */
interface NativeSnapshot {
  dispose(): void;
  getProject(path: string): Project70 | undefined;
  getConfiguredProject(path: string): Project71 | undefined;
}

interface Project70 extends Pick<NativeProject, 'program' | 'checker'> {
  readonly rootFiles: readonly string[];
  readonly compilerOptions: ProjectOptions;
}

interface Project71 extends Pick<NativeProject, 'program' | 'checker'> {
  readonly parsedCommandLine: Pick<ClassicConfig, 'fileNames' | 'options'>;
}

/** An open project. */
interface NativeProject extends Pick<ProjectParts, 'roots' | 'options'> {
  readonly program: NativeProgram;
  readonly checker: NativeChecker;
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
  readonly method: keyof NativeApi;
  /** Opens the current project from disk; the previous one is closed. */
  open(api: NativeApi, path: string, before: OpenedProject | undefined): OpenedProject;
}

/** By major and minor version. */
const NATIVE_DIALECTS: ReadonlyMap<string, NativeDialect> = new Map([
  [
    '7.0',
    {
      modules: ['typescript/unstable/sync', 'typescript/unstable/ast'],
      method: 'updateSnapshot',
      open: open70,
    },
  ],
  ['7.1', { modules: ['typescript/sync', 'typescript/ast'], method: 'createSnapshot', open: open71 }],
]);

function open70(api: NativeApi, path: string, before: OpenedProject | undefined): OpenedProject {
  const emptied = before && api.updateSnapshot({ fileChanges: { invalidateAll: true } });
  const snapshot = api.updateSnapshot({
    openProjects: [path],
    ...(before !== undefined && before.path !== path ? { closeProjects: [before.path] } : {}),
    // The list of files and the extended configurations are read again only if tsconfig.json has changed.
    fileChanges: { changed: [path] },
  });
  for (const stale of [before?.snapshot, emptied]) stale?.dispose();
  const found = snapshot.getProject(path);
  if (found === undefined) return { path, snapshot };
  const { program, checker, rootFiles: roots, compilerOptions: options } = found;
  return { path, snapshot, project: { program, checker, roots, options } };
}

function open71(api: NativeApi, path: string, before: OpenedProject | undefined): OpenedProject {
  // Updating the previous snapshot would keep old options of an extended tsconfig.json.
  const snapshot = api.createSnapshot({
    openProjects: [path],
    fileNotifications: { invalidateAll: true },
  });
  before?.snapshot.dispose();
  const found = snapshot.getConfiguredProject(path);
  if (found === undefined) return { path, snapshot };
  const { program, checker, parsedCommandLine } = found;
  const { fileNames: roots, options } = parsedCommandLine;
  return { path, snapshot, project: { program, checker, roots, options } };
}

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
      const problems = complaints.map(({ messageText, file, start = 0 }) => {
        const text = api.flattenDiagnosticMessageText(messageText, ' ');
        return file === undefined ? text : `${file.fileName}:${lineAt(file.text, start)}: ${text}`;
      });
      const files = program.getSourceFiles();
      return viewOf({
        api,
        checker: program.getTypeChecker(),
        path: project,
        roots: fileNames,
        options,
        problems: () => problems,
        files: (isWanted) => files.filter(({ fileName }) => isWanted(fileName)),
        spelt: (path) => path,
      });
    },
    close: () => {
      program = undefined;
    },
  };
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
  getTypeChecker(): Checker;
  getSyntacticDiagnostics(): readonly ClassicDiagnostic[];
}

/** A file of the project. */
interface SourceText {
  /** Absolute, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly node: SyntaxNode;
  /** A declaration file: of a package, or of the language itself. */
  readonly isDeclaration: boolean;
}

/**
 * A type; compare it by `id`, because a compiler may create a new object for each request. Fields of the classic API
 * that lead to other types and symbols are methods in TypeScript 7.
 */
export interface TypeHandle {
  readonly id: number;
  readonly flags: number;
  readonly objectFlags?: number;
  readonly texts?: readonly string[];
  readonly elementFlags?: readonly number[];
  readonly value?: LiteralValue | { readonly negative: boolean; readonly base10Value: string };
  readonly intrinsicName?: string;
  readonly aliasSymbol?: SymbolHandle;
  readonly types?: readonly TypeHandle[];
  /** The generic type, if there is one. */
  readonly target?: TypeHandle;
  getSymbol(): SymbolHandle | undefined;
  getAliasSymbol?(): SymbolHandle | undefined;
  getTypes?(): readonly TypeHandle[] | undefined;
  getTarget?(): TypeHandle;
}

type LiteralValue = string | number | boolean | bigint;

/** A symbol; the same symbol is always the same object. */
export interface SymbolHandle {
  readonly name: string;
  readonly flags: number;
  readonly declarations?: readonly (SyntaxNode | NodeHandle)[];
}

/** A declaration that TypeScript 7 has not sent yet. */
interface NodeHandle {
  readonly path: string;
  resolve(): SyntaxNode | undefined;
}

/** A call or construct signature. */
interface SignatureHandle {
  getParameters(): readonly SymbolHandle[];
}

/** An index signature: `[key: string]: T`. */
interface IndexFacts {
  readonly key: TypeHandle;
  readonly value: TypeHandle;
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

/** The used requests. TypeScript 7 has no type for some nodes, for which the classic API returns `any`. */
interface Checker {
  getSymbolAtLocation(node: SyntaxNode): SymbolHandle | undefined;
  getTypeAtLocation(node: SyntaxNode): TypeHandle | undefined;
  getTypeFromTypeNode(node: SyntaxNode): TypeHandle | undefined;
  getTypeOfSymbol(symbol: SymbolHandle): TypeHandle | undefined;
  getDeclaredTypeOfSymbol(symbol: SymbolHandle): TypeHandle;
  getAliasedSymbol(symbol: SymbolHandle): SymbolHandle;
  getExportsOfModule(symbol: SymbolHandle): readonly SymbolHandle[];
  isArrayType(type: TypeHandle): boolean;
  isTupleType(type: TypeHandle): boolean;
  getTypeArguments(type: TypeHandle): readonly TypeHandle[];
  getPropertiesOfType(type: TypeHandle): readonly SymbolHandle[];
  getBaseTypes(type: TypeHandle): readonly TypeHandle[];
  getIndexInfosOfType(
    type: TypeHandle,
  ): readonly ({ readonly keyType: TypeHandle } & (
    | { readonly type: TypeHandle }
    | { readonly valueType: TypeHandle }
  ))[];
  getSignaturesOfType(type: TypeHandle, kind: number): readonly SignatureHandle[];
  getReturnTypeOfSignature(signature: SignatureHandle): TypeHandle | undefined;
  getAnyType(): TypeHandle;
  typeToString(type: TypeHandle): string;
}

/** Answers questions about one node, symbol, type or signature. */
function answersOf({ api, checker, spelt }: Pick<ProjectParts, 'api' | 'checker' | 'spelt'>) {
  const { ObjectFlags, SymbolFlags, ElementFlags, SignatureKind } = api;
  const orAny = (type: TypeHandle | undefined) => type ?? checker.getAnyType();
  const isReference = (type: TypeHandle) => ((type.objectFlags ?? 0) & (ObjectFlags.Reference ?? 0)) !== 0;
  const targetOf = (type: TypeHandle) =>
    type.target === undefined ? type : (type.getTarget?.() ?? type.target);
  /** The parts of a union or an intersection. */
  const constituents = (type: TypeHandle) => (type.getTypes ? type.getTypes() : type.types) ?? [];
  return {
    constituents,
    fileOf: (node: SyntaxNode) => sourceText(fileOf(node)),
    symbolAt: (node: SyntaxNode) => checker.getSymbolAtLocation(node),
    typeAt: (node: SyntaxNode) => orAny(checker.getTypeAtLocation(node)),
    typeFromNode: (node: SyntaxNode) => orAny(checker.getTypeFromTypeNode(node)),
    typeOfSymbol: (symbol: SymbolHandle) => orAny(checker.getTypeOfSymbol(symbol)),
    declaredType: (symbol: SymbolHandle) => checker.getDeclaredTypeOfSymbol(symbol),
    unalias: (symbol: SymbolHandle) =>
      symbol.flags & (SymbolFlags.Alias ?? 0) ? checker.getAliasedSymbol(symbol) : symbol,
    declarations: ({ declarations = [] }: SymbolHandle) =>
      declarations.flatMap((node) => ('resolve' in node ? (node.resolve() ?? []) : node)),
    /** Absolute paths of the declarations' files; cheaper than the declarations themselves. */
    declaringFiles: ({ declarations = [] }: SymbolHandle) =>
      declarations.map((node) => ('resolve' in node ? spelt(node.path) : fileOf(node).fileName)),
    exportsOf: (symbol: SymbolHandle) => checker.getExportsOfModule(symbol),
    symbolOf: (type: TypeHandle) => type.getSymbol(),
    aliasOf: (type: TypeHandle) => (type.getAliasSymbol ? type.getAliasSymbol() : type.aliasSymbol),
    literalOf,
    templateOf: (type: TypeHandle) => ({ texts: type.texts ?? [], types: constituents(type) }),
    isArray: (type: TypeHandle) => isReference(type) && checker.isArrayType(type),
    isTuple: (type: TypeHandle) => isReference(type) && checker.isTupleType(type),
    tupleElements(type: TypeHandle) {
      const flags = targetOf(type).elementFlags ?? [];
      return checker
        .getTypeArguments(type)
        .map((element, index) => ({ type: element, role: tupleRole(flags[index] ?? 0, ElementFlags) }));
    },
    typeArguments: (type: TypeHandle) => (type.target === undefined ? [] : checker.getTypeArguments(type)),
    propertiesOf: (type: TypeHandle) => checker.getPropertiesOfType(type),
    baseTypes: (type: TypeHandle) => checker.getBaseTypes(targetOf(type)),
    indexesOf: (type: TypeHandle): readonly IndexFacts[] =>
      checker
        .getIndexInfosOfType(type)
        .map((info) => ({ key: info.keyType, value: 'type' in info ? info.type : info.valueType })),
    callSignatures: (type: TypeHandle) => checker.getSignaturesOfType(type, SignatureKind.Call),
    parametersOf: (signature: SignatureHandle) => signature.getParameters(),
    returnType: (signature: SignatureHandle) => orAny(checker.getReturnTypeOfSignature(signature)),
    /** For people: it may differ between compilers and is never generated. */
    textOf: (type: TypeHandle) => checker.typeToString(type),
  };
}

function literalOf({ value, intrinsicName }: TypeHandle): LiteralValue | undefined {
  if (typeof value === 'object') return BigInt(`${value.negative ? '-' : ''}${value.base10Value}`);
  if (value !== undefined) return value;
  return intrinsicName === 'true' ? true : intrinsicName === 'false' ? false : undefined;
}

/**
 * What the analysis needs from a compiler: the common part of the classic API (TypeScript 5.9, 6.0) and the API of
 * TypeScript 7. Flags and syntax kinds are looked up by name.
 */
export type CompilerView = ReturnType<typeof viewOf>;

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
function lineAt(text: string, pos: number): number {
  return text.slice(0, pos).split('\n').length;
}

/** The file of a node. */
function fileOf(node: SyntaxNode): SourceFile {
  let current = node;
  while (current.parent !== undefined) current = current.parent;
  return current as SourceFile;
}

/** The compiler options that affect a generated file, in the form of a parsed tsconfig.json. */
interface ProjectOptions {
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
    .flatMap(([, targets]) =>
      targets.map((target) => {
        // `libs/shop/src/*`, `libs/shop/src/index.ts` and `libs/shop/src` are all in `libs/shop/src`.
        const path = posix.resolve(base, target);
        const [before = path, after] = path.split('*');
        if (after !== undefined) return before.endsWith('/') ? before.slice(0, -1) : posix.dirname(before);
        return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? path : posix.dirname(path);
      }),
    );
  return [...new Set(folders)];
}

/** A project as a compiler has opened it. */
interface ProjectParts {
  readonly api: CompilerNumbers;
  readonly checker: Checker;
  /** tsconfig.json, absolute, with `/`. */
  readonly path: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  readonly options: ProjectOptions;
  /** The problems of the compiler: a missing or broken tsconfig.json, syntax errors. */
  problems(): readonly string[];
  files(isWanted: (path: string) => boolean): readonly SourceFile[];
  /** The path of a file as the project spells it. */
  spelt(path: string): string;
  /** Answers that are requested together. */
  readonly together?: ReturnType<typeof batchedAnswers>;
}

/** A view with a cache, because every request to TypeScript 7 is a message to another process. */
function viewOf(parts: ProjectParts) {
  const { api, path, roots, options, problems, files } = parts;
  const folder = posix.dirname(path);
  const folders = [folder, ...mappedFolders(options)];
  // Other packages of a workspace generate for their own sources.
  const isOwnSource = (file: string): boolean => {
    if (/\.d\.[cm]?ts$/.test(file) || file.includes('/node_modules/')) return false;
    return roots.includes(file) || folders.some((own) => file.startsWith(`${own}/`));
  };
  let sources: readonly SourceText[] | undefined;
  const asked = { ...answersOf(parts), ...parts.together };
  const remembered = Object.entries(asked).map(([name, ask]) => {
    const answers = new WeakMap<object, { readonly answer: unknown }>();
    return [
      name,
      (about: object) => {
        const known = answers.get(about) ?? { answer: (ask as (about: object) => unknown)(about) };
        answers.set(about, known);
        return known.answer;
      },
    ];
  });
  const answers = Object.fromEntries(remembered) as typeof asked;
  return {
    options,
    /** The folder of tsconfig.json, absolute, with `/`. */
    folder,
    syntaxKinds: api.SyntaxKind,
    symbolFlags: api.SymbolFlags,
    problems,
    /** The files of the project and of mapped libraries, by path; no declarations and no packages. */
    projectFiles: () =>
      (sources ??= files(isOwnSource)
        .map(sourceText)
        .sort((one, other) => (one.path < other.path ? -1 : 1))),
    ...answers,
    ...testsOf(api, answers),
  };
}

/** Questions about a known type, symbol or node. */
function testsOf(api: CompilerNumbers, answers: ReturnType<typeof answersOf>) {
  const { SyntaxKind, SymbolFlags, TypeFlags, ObjectFlags } = api;
  const hasFlag = (type: TypeHandle, ...names: readonly string[]) =>
    names.some((name) => (type.flags & (TypeFlags[name] ?? 0)) !== 0);
  /** Whether a type has alternatives that its author wrote. */
  const isUnion = (type: TypeHandle) => hasFlag(type, 'Union') && !hasFlag(type, 'Boolean');
  const partsOf = (type: TypeHandle) => (isUnion(type) ? answers.constituents(type) : [type]);
  const isUndefined = (type: TypeHandle) => hasFlag(type, 'Undefined', 'Void');
  return {
    /** Whether a type has one of the named flags. */
    hasFlag,
    hasObjectFlag: ({ objectFlags = 0 }: TypeHandle, ...names: readonly string[]) =>
      names.some((name) => (objectFlags & (ObjectFlags[name] ?? 0)) !== 0),
    /** Whether a node has one of the named modifiers. */
    hasModifier: ({ modifiers = [] }: SyntaxNode, ...names: readonly string[]) =>
      modifiers.some(({ kind }) => names.some((name) => kind === SyntaxKind[name])),
    isUnion,
    /** The types of a union, or the type itself; without `undefined`, which JSON lacks. */
    definedParts: (type: TypeHandle): readonly TypeHandle[] =>
      partsOf(type).filter((part) => !isUndefined(part)),
    /** Whether a type includes `undefined`. */
    admitsUndefined: (type: TypeHandle) => partsOf(type).some(isUndefined),
    isClass: (symbol: SymbolHandle | undefined): symbol is SymbolHandle =>
      symbol !== undefined && (symbol.flags & (SymbolFlags.Class ?? 0)) !== 0,
    /** The first declaration of a type. */
    declarationOf(type: TypeHandle): SyntaxNode | undefined {
      const symbol = answers.symbolOf(type);
      return symbol && answers.declarations(symbol)[0];
    },
    /** Whether a symbol belongs to the language or Node, not to a type of the same name in the project. */
    isStandard(symbol: SymbolHandle): boolean {
      const files = answers.declaringFiles(symbol);
      return files.length > 0 && files.every((file) => STANDARD_FILE.test(file));
    },
    /** The file of a node, and the line where it starts, after comments and spaces. */
    lineOf(node: SyntaxNode): { readonly file: string; readonly line: number } {
      const { path, text } = answers.fileOf(node);
      return { file: path, line: lineAt(text, startOf(node, text)) };
    },
  };
}

const STANDARD_FILE = /(^|\/)lib\.[\w.]+\.d\.ts$|\/node_modules\/(@types\/node|undici-types|buffer)\//;

/** Where a node starts in its file, after comments and spaces. */
export function startOf({ pos }: SyntaxNode, text: string): number {
  return pos + (/^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text.slice(pos))?.[0].length ?? 0);
}

/** The role of a tuple element, from the compiler's flags. */
function tupleRole(flags: number, names: Numbers): 'required' | 'optional' | 'rest' | 'variadic' {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
