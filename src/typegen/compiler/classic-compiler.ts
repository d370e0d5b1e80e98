import { posix } from 'node:path';
import type {
  ClassicApi,
  ClassicDiagnostic,
  ClassicProgram,
  ClassicSignature,
  ClassicSymbol,
  ClassicType,
} from './classic-api.js';
import type { Compiler } from './compiler.js';
import type { CheckerPart, CompilerView } from './compiler-view.js';
import { isOwnSource, type ProjectRoots } from './is-own-source.js';
import { mappedFolders } from './mapped-folders.js';
import type { ProjectOptions } from './project-options.js';
import { rememberAnswers } from './remember-answers.js';
import { fileOf, sourceText } from './source-file.js';
import { tupleRole } from './tuple-role.js';

/** The compiler behind the classic API: TypeScript 5.9 and 6.0. */
export function classicCompiler(api: ClassicApi): Compiler {
  let program: ClassicProgram | undefined;
  return {
    version: api.version,
    open(project) {
      const complaints: ClassicDiagnostic[] = [];
      const host = {
        ...api.sys,
        onUnRecoverableConfigFileDiagnostic: (one: ClassicDiagnostic) => complaints.push(one),
      };
      const config = api.getParsedCommandLineOfConfigFile(project, {}, host);
      complaints.push(...(config?.errors ?? []));
      const compilerOptions = config?.options ?? {};
      program = api.createProgram({
        rootNames: config?.fileNames ?? [],
        options: compilerOptions,
        projectReferences: config?.projectReferences,
        // As editors and TypeScript 7 do it: referred projects need not be built.
        host: { ...api.createCompilerHost(compilerOptions), useSourceOfProjectReferenceRedirect: () => true },
        oldProgram: program,
      });
      complaints.push(...program.getSyntacticDiagnostics());
      const problems = complaints.map((one) => describe(api, one));
      const roots = { project, roots: config?.fileNames ?? [], mapped: mappedFolders(compilerOptions) };
      return rememberAnswers(viewOf({ api, program, problems, roots, options: compilerOptions }));
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
        .sort((one, other) => (one.path < other.path ? -1 : 1)),
    fileOf: (node) => sourceText(fileOf(node)),
    ...checkerPart(api, checker),
  };
}

function checkerPart(api: ClassicApi, checker: ReturnType<ClassicProgram['getTypeChecker']>): CheckerPart {
  return {
    // It answers in this process: there is nothing to save.
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
