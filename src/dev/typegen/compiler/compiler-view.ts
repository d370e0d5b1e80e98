import { statSync } from 'node:fs';
import { posix } from 'node:path';

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
interface TupleElement {
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

/** What the checkers of both compilers are asked in the same way. */
export interface CommonChecker<Type extends TypeHandle, Named extends SymbolHandle> {
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

/**
 * A node of the compiler's syntax tree, as far as the analyser reads it. Both compilers' trees have these
 * fields; which of them a node has depends on its kind.
 */
export interface SyntaxNode {
  readonly kind: number;
  /** With the comments and spaces before it. */
  readonly pos: number;
  readonly parent?: SyntaxNode;
  readonly name?: SyntaxNode;
  /** Of a destructured property that has another name within the method. */
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

/** A source file, which is a node too; the same of both compilers. */
export interface SourceFile extends SyntaxNode {
  readonly fileName: string;
  readonly text: string;
  readonly isDeclarationFile: boolean;
}

/** The file as the analyser reads it. */
export function sourceText(file: SourceFile): SourceText {
  return { path: file.fileName, text: file.text, node: file, isDeclaration: file.isDeclarationFile };
}

/** The file that a node stands in. */
export function fileOf(node: SyntaxNode): SourceFile {
  let current = node;
  while (current.parent !== undefined) current = current.parent;
  return current as SourceFile;
}

/** The compiler options that a generated file depends on, as every compiler has them once tsconfig.json is read. */
export interface ProjectOptions {
  /** The numbers are the same in all versions: 1 is CommonJS, 5 to 99 ES modules, 100 to 199 Node’s, 200 Preserve. */
  readonly module?: number;
  /** 3 and 99 are Node’s, 100 is a bundler’s. */
  readonly moduleResolution?: number;
  readonly allowImportingTsExtensions?: boolean;
  readonly rewriteRelativeImportExtensions?: boolean;
  readonly experimentalDecorators?: boolean;
  readonly emitDecoratorMetadata?: boolean;
  readonly noEmit?: boolean;
  readonly emitDeclarationOnly?: boolean;
  readonly paths?: Readonly<Record<string, readonly string[]>>;
  /** Absolute: what `paths` are relative to where there is no `baseUrl`. */
  readonly pathsBasePath?: string;
  /** Absolute; TypeScript 7 has none. */
  readonly baseUrl?: string;
}

/** A compiler of the user's project; it keeps what it knows between two looks at the same project. */
export interface Compiler {
  readonly version: string;
  /** Reads the project as it is on disk now; the view before it is no longer valid. */
  open(project: string): CompilerView;
  close(): void;
}

/**
 * The folders of the libraries that `paths` of tsconfig.json maps to their sources. What maps every name is no
 * library, and the framework is none of the project's.
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

/** What is asked about one node, symbol, type or signature; the answer never changes while the view is open. */
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

/** The same view, which asks nothing twice: every question to TypeScript 7 is a message to another process. */
export function cachedView(view: CompilerView): CompilerView {
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

/** A project as its tsconfig.json describes it. */
export interface ProjectRoots {
  /** tsconfig.json, absolute, with `/`. */
  readonly project: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  /** Folders of libraries that it maps to their sources. */
  readonly mapped: readonly string[];
}

/**
 * Whether a source is the project's own: listed by tsconfig.json, or imported from somewhere in its folder or in
 * that of a mapped library. Sources of other packages of a workspace are theirs to generate for.
 */
export function isOwnSource(path: string, { project, roots, mapped }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  if (roots.includes(path)) return true;
  return [posix.dirname(project), ...mapped].some((folder) => path.startsWith(`${folder}/`));
}

/** What an element of a tuple is, from the compiler's flags. */
export function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
