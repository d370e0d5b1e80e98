import { posix } from 'node:path';
import {
  type CheckerPart,
  type Compiler,
  type CompilerView,
  fileOf,
  isOwnSource,
  mappedFolders,
  type Numbers,
  type ProjectRoots,
  rememberAnswers,
  type SourceFile,
  type SourceText,
  type SyntaxNode,
  sourceText,
  type TypeHandle,
  tupleRole,
} from './compiler-view.js';
import type {
  NativeApi,
  NativeChecker,
  NativeDiagnostic,
  NativeDialect,
  NativeModule,
  NativeProject,
  NativeSignature,
  NativeSymbol,
  NativeSyntax,
  NativeType,
  OpenedProject,
} from './native-api.js';

/** What the native compiler is made of: two modules of one package, and how this version is asked. */
export interface NativeParts {
  readonly version: string;
  readonly dialect: NativeDialect;
  readonly module: NativeModule;
  readonly syntax: NativeSyntax;
}

/** The compiler of TypeScript 7, which runs as a process of its own and answers over a pipe. */
export function nativeCompiler(parts: NativeParts): Compiler {
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
      return rememberAnswers(viewOf(parts, project, { project: path, roots: project.roots, mapped }));
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
  // Handles carry paths in the form in which files are compared: in small letters where case does not count.
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
  // A broken tsconfig.json is no file of the program.
  if (file === undefined) return `${fileName}: ${text}`;
  return `${fileName}:${file.text.slice(0, pos).split('\n').length}: ${text}`;
}

/** The questions that are asked most, and what makes fewer messages of them. */
interface BatchedQuestions
  extends Pick<CompilerView, 'prepare' | 'symbolAt' | 'typeAt' | 'typeFromNode' | 'typeOfSymbol'> {
  /** The same symbols; their types have been asked for. */
  withTypes(symbols: readonly NativeSymbol[]): readonly NativeSymbol[];
}

/** Each question to TypeScript 7 is a message to another process, so that many are asked together. */
function batchedQuestions(checker: NativeChecker, kinds: Numbers): BatchedQuestions {
  const types = new WeakMap<object, NativeType | undefined>();
  const symbols = new WeakMap<object, NativeSymbol | undefined>();
  // A node without a type is one that cannot have any: the classic API says `any` there.
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

/** The nodes below another about which the analyser will ask. */
interface AskedNodes {
  /** Parameters and written types: what type is it? */
  readonly typed: readonly SyntaxNode[];
  /** Names of types and of decorators: what do they name? */
  readonly named: readonly SyntaxNode[];
}

/** Collects them without going into bodies: of a method only its head is of interest. */
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

/** `@Tool(…)` and `@toolwright.Tool(…)` are asked about by their last name. */
function calledName({ expression }: SyntaxNode, kinds: Numbers): readonly SyntaxNode[] {
  const callee = expression?.kind === kinds.CallExpression ? expression?.expression : expression;
  const name = callee?.kind === kinds.PropertyAccessExpression ? callee?.name : callee;
  return name === undefined ? [] : [name];
}
