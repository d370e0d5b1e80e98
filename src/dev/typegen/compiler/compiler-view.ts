import { statSync } from 'node:fs';
import { posix } from 'node:path';

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
export type Numbers = Readonly<Record<string, number>>;

/** Requests to the type checker. */
export interface CheckerPart {
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
export interface SourceFile extends SyntaxNode {
  readonly fileName: string;
  readonly text: string;
  readonly isDeclarationFile: boolean;
}

/** Converts a file for the analysis. */
export function sourceText(file: SourceFile): SourceText {
  return { path: file.fileName, text: file.text, node: file, isDeclaration: file.isDeclarationFile };
}

/** The file of a node. */
export function fileOf(node: SyntaxNode): SourceFile {
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

/** A project as described by its tsconfig.json. */
export interface ProjectRoots {
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
export function isOwnSource(path: string, { project, roots, mapped }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  if (roots.includes(path)) return true;
  return [posix.dirname(project), ...mapped].some((folder) => path.startsWith(`${folder}/`));
}

/** The role of a tuple element, from the compiler's flags. */
export function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
