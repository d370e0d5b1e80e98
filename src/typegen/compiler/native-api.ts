import type {
  CommonChecker,
  ProjectOptions,
  SourceFile,
  SymbolHandle,
  SyntaxNode,
  TypeHandle,
} from './compiler-view.js';

/** The part of TypeScript 7's API that is used. */
export interface NativeModule {
  readonly API: new (options: { readonly cwd: string }) => NativeApi;
  readonly TypeFlags: Readonly<Record<string, number>>;
  readonly ObjectFlags: Readonly<Record<string, number>>;
  readonly SymbolFlags: Readonly<Record<string, number>>;
  readonly ElementFlags: Readonly<Record<string, number>>;
  readonly SignatureKind: { readonly Call: number };
}

/** The syntax half of the same API. */
export interface NativeSyntax {
  readonly SyntaxKind: Readonly<Record<string, number>>;
}

/** A running compiler, of which each version is asked in its own way. */
export interface NativeApi {
  close(): void;
}

/** The state of the projects at one time. */
interface NativeSnapshot {
  dispose(): void;
}

/** A project, once it is open. */
export interface NativeProject {
  readonly program: NativeProgram;
  readonly checker: NativeChecker;
  readonly roots: readonly string[];
  readonly options: ProjectOptions;
}

/** What is open: at most one project at a time. */
export interface OpenedProject {
  readonly path: string;
  readonly snapshot: NativeSnapshot;
  /** Nothing where the compiler finds none at the path. */
  readonly project?: NativeProject;
}

/** What differs between the versions of TypeScript 7. */
export interface NativeDialect {
  /** The names under which the package offers its API. */
  readonly api: string;
  readonly syntax: string;
  /** Whether the API has what is used here: that of a nightly build may be an earlier one. */
  understands(module: Partial<NativeModule>): boolean;
  /** Opens a project as it is on disk now; what was open before is given up. */
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
      // Which files it has, and what it extends, is looked up again only where the project itself has changed.
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
    // A snapshot that was updated from the one before would have the options that the project extended then.
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
export const NATIVE_DIALECTS: ReadonlyMap<string, NativeDialect> = new Map([
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

/** The files of a project. */
interface NativeProgram {
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
interface NativeNodeHandle {
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
export interface NativeChecker extends CommonChecker<NativeType, NativeSymbol> {
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
