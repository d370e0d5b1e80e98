import { posix } from 'node:path';
import { batchedQuestions } from './batched-questions.js';
import type { Compiler } from './compiler.js';
import type { CheckerPart, CompilerView, SourceText, TypeHandle } from './compiler-view.js';
import { isOwnSource, type ProjectRoots } from './is-own-source.js';
import { mappedFolders } from './mapped-folders.js';
import type {
  NativeApi,
  NativeDiagnostic,
  NativeModule,
  NativeProject,
  NativeSignature,
  NativeSnapshot,
  NativeSymbol,
  NativeSyntax,
  NativeType,
} from './native-api.js';
import { rememberAnswers } from './remember-answers.js';
import { fileOf, type SourceFile, sourceText } from './source-file.js';
import { tupleRole } from './tuple-role.js';

/** What the native compiler is made of: two modules of one package. */
export interface NativeParts {
  readonly version: string;
  readonly module: NativeModule;
  readonly syntax: NativeSyntax;
}

/** The compiler of TypeScript 7, which runs as a process of its own and answers over a pipe. */
export function nativeCompiler(parts: NativeParts): Compiler {
  let api: NativeApi | undefined;
  let snapshot: NativeSnapshot | undefined;
  let current: string | undefined;
  return {
    version: parts.version,
    open(project) {
      const before = [snapshot, api?.updateSnapshot({ fileChanges: { invalidateAll: true } })];
      api ??= new parts.module.API({ cwd: posix.dirname(project) });
      snapshot = api.updateSnapshot({
        openProjects: [project],
        ...(current !== undefined && current !== project ? { closeProjects: [current] } : {}),
        // Which files it has, and what it extends, is looked up again only where the project itself has changed.
        fileChanges: { changed: [project] },
      });
      for (const one of before) one?.dispose();
      current = project;
      const opened = snapshot.getProject(project);
      if (opened === undefined)
        throw new Error(`TypeScript ${parts.version} opened no project at ${project}`);
      return rememberAnswers(
        viewOf(parts, opened, {
          project,
          roots: opened.rootFiles,
          mapped: mappedFolders(opened.compilerOptions),
        }),
      );
    },
    close() {
      api?.close();
      api = undefined;
      snapshot = undefined;
      current = undefined;
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
    options: project.compilerOptions,
    folder: posix.dirname(roots.project),
    syntaxKinds: syntax.SyntaxKind,
    typeFlags: module.TypeFlags,
    objectFlags: module.ObjectFlags,
    symbolFlags: module.SymbolFlags,
    problems: () =>
      [...program.getConfigFileParsingDiagnostics(), ...program.getSyntacticDiagnostics()].map((one) =>
        describe(one, program.getSourceFile(one.fileName ?? '')),
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
    declarations: (symbol) => (symbol as NativeSymbol).declarations.flatMap((one) => one.resolve() ?? []),
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
