import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DescribedParameter, DescribedTool } from '../../../core/contract/declaration.js';
import { type DocComment, docKeywords, VALUE_TAGS } from '../comments/doc-comment.js';
import {
  type CompilerView,
  type SignatureHandle,
  type SymbolHandle,
  type SyntaxNode,
  type TypeHandle,
} from '../compiler/load-compiler.js';
import { GENERATED_MARK } from '../printing/print-file.js';
import { commentOf, describeSchema, settleSchema } from '../types/finish-schema.js';
import { literalDefault } from '../types/literal-schema.js';
import {
  admitsUndefined,
  type ClassReference,
  CodeReference,
  type Decoration,
  definedParts,
  fault,
  hasFlag,
  hasModifier,
  isClassSymbol,
  type TypePlace,
  type TypeProblem,
  type TypeWalk,
  type WrittenSchema,
} from '../types/type-walk.js';
import { dataProperties, isStandardSymbol, writeDecorated, writeSchema } from '../types/write-type.js';
import { type ClassDraft, type Finding, lineOf, type ProjectScan } from './class-draft.js';

/** The whole content of the generated file: toolsets, and the DTO classes and services that they refer to. */
export function describeClasses(scan: ProjectScan): readonly ClassDraft[] {
  const toolsets = findToolsets(scan);
  const drafts = toolsets.flatMap((node) => describeToolset(node, scan) ?? []);
  // A DTO class may add further ones, and so may a service.
  for (const [node, symbol] of scan.dataClasses) drafts.push(describeData(node, symbol, scan));
  const described = new Set([...toolsets, ...scan.dataClasses.keys()]);
  for (const node of scan.services) if (!described.has(node)) drafts.push(...describeService(node, scan));
  return drafts;
}

function describeToolset(node: SyntaxNode, scan: ProjectScan): ClassDraft | undefined {
  const { view } = scan;
  const reference = classReference(node, view);
  const symbol = classSymbol(node, view);
  const name = node.name?.text ?? 'default';
  if (reference === undefined || symbol === undefined) {
    scan.warnings.push({
      ...lineOf(node, view),
      where: name,
      problem: 'is not exported, so that nothing can be generated for it',
      fix: `export class ${name}, at the top of its file`,
    });
    return undefined;
  }
  const owner = { name, type: view.declaredType(symbol) };
  const tools = Array.from(toolMethods(node, scan), ([key, method]) => {
    const found = { node: method, name: key, owner, isInherited: method.parent !== node };
    return [key, describeMethod(found, scan)] as const;
  });
  const dependencies = dependenciesOf(node, scan);
  return {
    reference,
    ...(dependencies.length > 0 ? { dependencies } : {}),
    tools: Object.fromEntries(tools),
  };
}

/** The tool methods of a class and its base classes; the last declaration of a name counts. */
function toolMethods(node: SyntaxNode, { view }: ProjectScan): ReadonlyMap<string, SyntaxNode> {
  const methods = new Map<string, SyntaxNode>();
  const { Identifier, StringLiteral, MethodDeclaration } = view.syntaxKinds;
  for (const member of membersOf(node, view)) {
    const { kind, text = '' } = member.name ?? {};
    const isNamed = kind === Identifier || kind === StringLiteral;
    if (member.kind !== MethodDeclaration || !isNamed || hasModifier(member, view, 'StaticKeyword')) continue;
    if (isToolMethod(member, view)) methods.set(text, member);
  }
  return methods;
}

function describeData(node: SyntaxNode, symbol: SymbolHandle, scan: ProjectScan): ClassDraft {
  const { view } = scan;
  const reference = classReference(node, view);
  if (reference === undefined) throw new TypeError(`${symbol.name} was referred to and is not exported`);
  const walk = openWalk(scan, 'in');
  const properties = dataProperties(view.declaredType(symbol), walk);
  const fix =
    'a type that JSON has, @Param({ schema: … }) on the property, or @Exclude() if it is not an argument';
  reportWalk(walk, scan, { node, where: symbol.name, fix });
  const name = reference.origin.localName ?? reference.name;
  return { reference, name, properties, ...definitionsOf(walk) };
}

/** A service needs a description only if classes are injected into it. */
function describeService(node: SyntaxNode, scan: ProjectScan): readonly ClassDraft[] {
  const reference = classReference(node, scan.view);
  const dependencies = dependenciesOf(node, scan);
  if (reference === undefined || dependencies.every((item) => item === undefined)) return [];
  return [{ reference, dependencies }];
}

/**
 * The classes of a constructor's parameters, so that they can be injected without emitted metadata. Parameters that are
 * not classes (interfaces, tokens) need `@inject`.
 */
function dependenciesOf(node: SyntaxNode, scan: ProjectScan): readonly (CodeReference | undefined)[] {
  const { parameters = [] } = constructorOf(node, scan.view) ?? {};
  return parameters.map((parameter) => dependencyOf(parameter, scan));
}

function dependencyOf(parameter: SyntaxNode, { view, services }: ProjectScan): CodeReference | undefined {
  // Decorators such as `@inject` define the injected value themselves.
  if (allDecorators(parameter, view).length > 0) return undefined;
  const [type, second] = definedParts({ view }, view.typeAt(parameter));
  const symbol = type && second === undefined ? view.symbolOf(type) : undefined;
  const node = isClassSymbol(symbol, view) ? classDeclaration(symbol, view) : undefined;
  const reference = node && classReference(node, view);
  // Declarations of a package lack `@inject`, so its classes' own dependencies are unknown.
  if (node && reference && !view.fileOf(node).isDeclaration) services.add(node);
  return reference;
}

/**
 * Classes with own or inherited tools, sorted by file and line. Tools of abstract and generic classes belong to the
 * classes that extend them.
 */
function findToolsets({ view, faults }: ProjectScan): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (const node of view.projectFiles().flatMap((file) => classesIn(file.node, view))) {
    if (hasModifier(node, view, 'AbstractKeyword')) continue;
    const isGeneric = (node.typeParameters ?? []).length > 0;
    if (!isGeneric && isToolset(node, view)) found.push(node);
    if (!isGeneric || !hasRole(node, view, 'toolset')) continue;
    const name = node.name?.text ?? 'default';
    faults.push({
      ...lineOf(node, view),
      where: name,
      problem: 'is a generic toolset, and nothing says what its type parameters are',
      fix: `abstract class ${name}<…> without @Toolset, and @Toolset() class … extends ${name}<Order>`,
    });
  }
  return found;
}

/** Classes at the top level of a file or namespace; classes within functions are ignored. */
function classesIn(root: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  root.forEachChild((node) => {
    const { ClassDeclaration, ModuleDeclaration, ModuleBlock } = view.syntaxKinds;
    if (node.kind === ModuleDeclaration || node.kind === ModuleBlock) found.push(...classesIn(node, view));
    if (node.kind !== ClassDeclaration) return undefined;
    found.push(node);
    return undefined;
  });
  return found;
}

function isToolset(node: SyntaxNode, view: CompilerView): boolean {
  return hasRole(node, view, 'toolset') || membersOf(node, view).some((member) => isToolMethod(member, view));
}

function isToolMethod(member: SyntaxNode, view: CompilerView): boolean {
  return hasRole(member, view, 'tool') || hasRole(member, view, 'served');
}

const AS_DATA =
  'an interface of its data, @Param({ schema: … }), or a DTO class with decorators on its properties';

/**
 * How a class in arguments is described. Instances are created of DTO classes: classes with decorated properties, or
 * with data only. A class with methods and without decorated properties cannot be created from data.
 */
function referToClass(symbol: SymbolHandle, scan: ProjectScan): ClassReference {
  const { view } = scan;
  const { name } = symbol;
  const node = classDeclaration(symbol, view);
  if (node === undefined) return { kind: 'structural' };
  const members = membersOf(node, view);
  const { PropertyDeclaration, MethodDeclaration } = view.syntaxKinds;
  const isDto = members.some(
    (member) => member.kind === PropertyDeclaration && allDecorators(member, view).length > 0,
  );
  const method = members.find(
    (member) => member.kind === MethodDeclaration && !hasModifier(member, view, 'StaticKeyword'),
  );
  const refused = (problem: string, fix = AS_DATA): ClassReference => ({
    kind: 'fault',
    problem: `is the class ${name}, ${problem}`,
    fix,
  });
  if (!isDto && method !== undefined)
    return refused(`which has methods (${method.name?.text ?? '[…]'}) and so is more than data`);
  if ((node.typeParameters ?? []).length > 0) return { kind: 'structural' };
  if (hasModifier(node, view, 'AbstractKeyword'))
    return refused('whose constructor cannot be called, because it is abstract');
  if (needsArguments(node, view)) return refused('whose constructor works with arguments');
  const reference = classReference(node, view);
  if (reference === undefined && view.fileOf(node).isDeclaration) return { kind: 'structural' };
  if (reference === undefined) return refused('which is not exported', `export class ${name}`);
  scan.dataClasses.set(node, symbol);
  return { kind: 'reference', reference };
}

/** Instances are created without arguments, so a constructor that uses arguments would fail. */
function needsArguments(node: SyntaxNode, view: CompilerView): boolean {
  const { parameters = [], body } = constructorOf(node, view) ?? {};
  const isNeeded = ({ questionToken, initializer, dotDotDotToken }: SyntaxNode) =>
    !questionToken && !initializer && !dotDotDotToken;
  return parameters.some(isNeeded) && (body?.statements ?? []).length > 0;
}

/** The constructor that runs: the class's own, or that of the nearest base class. */
function constructorOf(node: SyntaxNode, view: CompilerView): SyntaxNode | undefined {
  return membersOf(node, view).findLast(
    ({ kind, body }) => kind === view.syntaxKinds.Constructor && body !== undefined,
  );
}

/** The symbol of a class declaration; `export default class` may have no name to look up. */
function classSymbol(node: SyntaxNode, view: CompilerView): SymbolHandle | undefined {
  if (node.name !== undefined) return view.symbolAt(node.name);
  const module = view.symbolAt(view.fileOf(node).node);
  const exported = module && exportOf(view.exportsOf(module), node, view);
  return exported && view.unalias(exported);
}

/**
 * An importable reference to a class; `undefined` if it is not exported. A class of another package or library is
 * imported as the project imports it: importing its source would load it twice. The source is used only as a last
 * resort.
 */
function classReference(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  const file = view.fileOf(node);
  const isForeign = file.isDeclaration || !file.path.startsWith(`${view.folder}/`);
  const imported = isForeign ? packageExport(node, view) : undefined;
  if (imported !== undefined || file.isDeclaration) return imported;
  return exportedClass(node, view);
}

function exportedClass(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  const file = view.fileOf(node);
  const module = view.symbolAt(file.node);
  const exported = module && exportOf(view.exportsOf(module), node, view);
  return exported && new CodeReference(exported.name, { file: file.path, localName: node.name?.text });
}

/** The export that is a class. */
function exportOf(
  exports: readonly SymbolHandle[],
  node: SyntaxNode,
  view: CompilerView,
): SymbolHandle | undefined {
  return exports.find((item) => view.declarations(view.unalias(item)).includes(node));
}

/** A class that a package exports, from the first import in the project that leads to it. */
function packageExport(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  const localName = node.name?.text;
  const seen = new Set<string>();
  for (const file of view.projectFiles()) {
    // Earlier generated files must not influence the result.
    if (file.text.startsWith(GENERATED_MARK)) continue;
    for (const { moduleSpecifier } of file.node.statements ?? []) {
      const specifier = moduleSpecifier?.text ?? '';
      if (moduleSpecifier === undefined || specifier.startsWith('.') || seen.has(specifier)) continue;
      seen.add(specifier);
      const module = view.symbolAt(moduleSpecifier);
      // Avoids resolving most aliases, because each is a request to the compiler.
      const isCandidate = ({ name }: SymbolHandle) => name === localName || name === 'default';
      const exported = module && exportOf(view.exportsOf(module).filter(isCandidate), node, view);
      if (exported !== undefined) return new CodeReference(exported.name, { package: specifier, localName });
    }
  }
  return undefined;
}

function definitionsOf({ definitions }: TypeWalk) {
  return definitions.size === 0 ? {} : { $defs: Object.fromEntries(definitions) };
}

/** Starts a walk over the types of a method or class. */
function openWalk(scan: ProjectScan, direction: TypeWalk['direction']): TypeWalk {
  const walk: TypeWalk = {
    view: scan.view,
    direction,
    open: [],
    names: new Map(),
    definitions: new Map(),
    faults: [],
    warnings: [],
    properties: 0,
    decoration: (declaration) => decorationOf(declaration, scan.view, direction),
    classReference: (symbol) => referToClass(symbol, scan),
  };
  return walk;
}

/** The place of a walk's types. */
interface WalkPlace extends Pick<Finding, 'where' | 'fix'> {
  readonly node: SyntaxNode;
}

/** Enough to see that a type is not data. */
const MOST_FINDINGS = 10;

/** Moves the findings of a walk to the scan, with their place. */
function reportWalk(walk: TypeWalk, { view, faults, warnings }: ProjectScan, place: WalkPlace): void {
  const { node, where } = place;
  const found = (items: TypeProblem[]) =>
    items
      .splice(0)
      .slice(0, MOST_FINDINGS)
      .map(({ path, problem, fix = place.fix }) => ({ ...lineOf(node, view), where, path, problem, fix }));
  faults.push(...found(walk.faults));
  warnings.push(...found(walk.warnings));
}

/** A decorator of this package, under whatever name it is used. */
interface KnownDecorator {
  readonly role: DecoratorRole;
  /** The argument of the decorator call. */
  readonly argument?: SyntaxNode;
}

/** The decorators that declare something about a tool. */
type DecoratorRole = 'tool' | 'served' | 'toolset' | 'param' | 'args' | 'context';

/** Methods that are described like tools, except for their results. */
const SERVED: ReadonlySet<string> = new Set(['prompt', 'resource', 'completion']);

/** The file of the package that declares each decorator. */
const DECLARING_FILE =
  /\/decorators\/(tool|prompt|resource|completion|toolset|param|args|context)(?:\.d)?\.ts$/;

/**
 * The decorators of this package on a class, method, parameter or property. They are recognized by their declaration,
 * not by name: they may be aliased, re-exported, or be in a namespace or a constant.
 */
function knownDecorators(node: SyntaxNode, view: CompilerView): readonly KnownDecorator[] {
  return allDecorators(node, view).flatMap((decorator) => {
    const callee = calleeOf(decorator, view);
    const role = callee && roleOf(callee, view);
    return role === undefined ? [] : [{ role, argument: decorator.expression?.arguments?.[0] }];
  });
}

/** What a decorator calls, or is. */
function calleeOf({ expression }: SyntaxNode, view: CompilerView): SyntaxNode | undefined {
  return expression?.kind === view.syntaxKinds.CallExpression ? expression?.expression : expression;
}

function hasRole(node: SyntaxNode, view: CompilerView, role: DecoratorRole): boolean {
  return knownDecorators(node, view).some((decorator) => decorator.role === role);
}

/** All decorators, including those of other packages. */
function allDecorators(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  return (node.modifiers ?? []).filter(({ kind }) => kind === view.syntaxKinds.Decorator);
}

function roleOf(callee: SyntaxNode, view: CompilerView): DecoratorRole | undefined {
  // `Tool` in `toolwright.Tool`.
  const isMember = callee.kind === view.syntaxKinds.PropertyAccessExpression;
  const symbol = view.symbolAt((isMember && callee.name) || callee);
  if (symbol === undefined) return undefined;
  const named = roleByFiles(view.declaringFiles(view.unalias(symbol)));
  if (named !== undefined) return named;
  // `const Action = Tool`: its type is still the decorator's.
  const type = view.symbolOf(view.typeAt(callee));
  return type && roleByFiles(view.declaringFiles(type));
}

function roleByFiles(files: readonly string[]): DecoratorRole | undefined {
  for (const file of files) {
    const name = DECLARING_FILE.exec(file)?.[1];
    if (name === undefined || !isOwnFile(file)) continue;
    return SERVED.has(name) ? 'served' : (name as DecoratorRole);
  }
  return undefined;
}

/** The value of an option in a decorator's object argument; `undefined` if it is not a literal there. */
function optionOf(
  argument: SyntaxNode | undefined,
  name: string,
  view: CompilerView,
): SyntaxNode | undefined {
  if (argument?.kind !== view.syntaxKinds.ObjectLiteralExpression) return undefined;
  const property = argument?.properties?.find((item) => item.name?.text === name);
  return property && (property.initializer ?? property.name);
}

/** Options of `@Param` that define the type, so that the TypeScript type is not needed. */
const TYPE_OPTIONS = ['schema', 'type', 'items', 'enum', 'additionalProperties'];

/** What the decorators of a parameter or property define about its type, for input or output. */
function decorationOf(
  node: SyntaxNode,
  view: CompilerView,
  direction: TypeWalk['direction'],
): Decoration | undefined {
  if (direction === 'out') return isWithheld(node, view) ? 'excluded' : undefined;
  const isTyped = knownDecorators(node, view).some(
    ({ role, argument }) =>
      role === 'param' && TYPE_OPTIONS.some((option) => optionOf(argument, option, view) !== undefined),
  );
  if (isTyped) return 'typed';
  return isExcluded(node, view, 'toClassOnly') ? 'excluded' : undefined;
}

/**
 * Whether a serializer (NestJS's `ClassSerializerInterceptor`) leaves a property out. It is then missing in the schema,
 * which still allows it if there is no serializer.
 */
function isWithheld(node: SyntaxNode, view: CompilerView): boolean {
  if (isExcluded(node, view, 'toPlainOnly')) return true;
  const isExposed = transforming(node, view, 'Expose').length > 0;
  return !isExposed && node.parent !== undefined && isExcluded(node.parent, view, 'toPlainOnly');
}

/** Whether class-transformer's `@Exclude()` applies in this direction. */
function isExcluded(node: SyntaxNode, view: CompilerView, way: 'toClassOnly' | 'toPlainOnly'): boolean {
  const other = way === 'toClassOnly' ? 'toPlainOnly' : 'toClassOnly';
  return transforming(node, view, 'Exclude').some(({ expression }) => {
    const [options] = expression?.arguments ?? [];
    return optionOf(options, other, view) === undefined || optionOf(options, way, view) !== undefined;
  });
}

/** Decorators of class-transformer with a given name. */
function transforming(
  node: SyntaxNode,
  view: CompilerView,
  name: 'Exclude' | 'Expose',
): readonly SyntaxNode[] {
  return allDecorators(node, view).filter(({ expression }) => {
    const callee = expression?.expression;
    const symbol = callee && view.symbolAt(callee);
    return symbol !== undefined && view.unalias(symbol).name === name;
  });
}

/** The names of the packages of folders. */
const names = new Map<string, string | undefined>();

/** Whether a file belongs to this package: installed, linked, or in the repository itself. */
function isOwnFile(path: string): boolean {
  const folder = dirname(path);
  if (!names.has(folder)) names.set(folder, nearestManifest(folder, ({ name }) => name !== undefined)?.name);
  return names.get(folder) === 'toolwright';
}

interface Manifest {
  readonly name?: string;
  readonly type?: string;
}

/** The package.json of a folder or the nearest folder around it that has one as wanted. */
function nearestManifest(folder: string, isWanted: (manifest: Manifest) => boolean): Manifest | undefined {
  const parent = dirname(folder);
  try {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    if (isWanted(manifest)) return manifest;
  } catch {
    // The folder has no package.json, or the file is not JSON.
  }
  return parent === folder ? undefined : nearestManifest(parent, isWanted);
}

function classDeclaration(symbol: SymbolHandle, view: CompilerView): SyntaxNode | undefined {
  return view.declarations(symbol).find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
}

/** The members of a class, after those of its base classes. */
function membersOf(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  return ancestorsOf(node, view).flatMap(({ members = [] }) => members);
}

/** A class declaration and those of its base classes, the base first. */
function ancestorsOf(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  const chain: SyntaxNode[] = [];
  let current: SyntaxNode | undefined = node;
  while (current !== undefined && !chain.includes(current)) {
    chain.unshift(current);
    current = baseOf(current, view);
  }
  return chain;
}

function baseOf(node: SyntaxNode, view: CompilerView): SyntaxNode | undefined {
  const clause = (node.heritageClauses ?? []).find(({ token }) => token === view.syntaxKinds.ExtendsKeyword);
  const expression = clause?.types?.[0]?.expression;
  const symbol = expression && view.symbolAt(expression);
  return symbol && classDeclaration(view.unalias(symbol), view);
}

/** Whether Node loads the compiled form of a TypeScript file as an ES module. */
export function isModuleFile(path: string): boolean {
  const [, kind = ''] = /\.([cm]?)ts$/.exec(path) ?? [];
  return kind === '' ? nearestManifest(dirname(path), () => true)?.type === 'module' : kind === 'm';
}

/** A tool method of a class or of one of its base classes. */
interface FoundMethod {
  readonly node: SyntaxNode;
  readonly name: string;
  /** The class that has the tool; a subclass may define the type parameters of the base. */
  readonly owner: { readonly name: string; readonly type: TypeHandle };
  /** Declared in a base class, whose type parameters may be other types here. */
  readonly isInherited: boolean;
}

const FIX = 'a type that JSON has, or @Param({ schema: … })';

/** Describes a tool method: its texts, parameters and result. */
function describeMethod(found: FoundMethod, scan: ProjectScan): DescribedTool {
  const { node, name, owner } = found;
  const { view } = scan;
  const where = `${owner.name}.${name}`;
  const decorators = knownDecorators(node, view);
  const decorator = decorators.find(({ role }) => role === 'tool');
  const comment = commentOf(view, node);
  const walk = openWalk(scan, 'in');
  const isExplicit = optionOf(decorator?.argument, 'parameters', view) !== undefined;
  const described = typedParameters(found, view).map(({ node, type }, index) => {
    const named = node.name?.text ?? '';
    const texts = { comment: comment?.params.get(named), parts: partComments(named, comment) };
    const draft = describeParameter({ node, type, isExplicit, ...texts }, walk);
    const label = draft.name ?? `#${index}`;
    reportWalk(walk, scan, { node, where: `${where}, parameter ${label}`, fix: FIX });
    return { node, draft };
  });
  if (!isExplicit) reportNameless(where, described, scan);
  const names = new Set(described.map((parameter) => parameter.node.name?.text));
  for (const finding of comment ? commentFindings(comment, names) : [])
    scan.warnings.push({ ...lineOf(node, view), where, ...finding });
  const isServed = decorators.some(({ role }) => role === 'served');
  const hasOutput = isServed || optionOf(decorator?.argument, 'output', view) !== undefined;
  return {
    description: descriptionOf(comment),
    parameters: described.map(({ draft }) => draft),
    output: hasOutput ? undefined : outputOf(found, comment, scan),
    ...definitionsOf(walk),
  };
}

/** Reports destructured parameters, which have no name for the model; a parameter for all arguments needs no name. */
function reportNameless(
  where: string,
  described: readonly { readonly node: SyntaxNode; readonly draft: DescribedParameter }[],
  { view, faults }: ProjectScan,
): void {
  const isOnly = described.filter(({ draft }) => draft.inject === undefined).length === 1;
  for (const [index, { node, draft }] of described.entries()) {
    if (draft.name !== undefined || draft.inject !== undefined) continue;
    const instance = draft.schema?.instanceOf;
    const isProjectClass = instance instanceof CodeReference && Object.keys(instance.origin).length > 0;
    if ((isOnly && isProjectClass) || isNamedByDecorator(node, view)) continue;
    faults.push({
      ...lineOf(node, view),
      where: `${where}, parameter #${index}`,
      problem: 'is destructured, so that it has no name to offer',
      fix: '@Args() before it where it takes all arguments; otherwise a name, or @Param({ name })',
    });
  }
}

/** Also true if another package's decorator fills the parameter. */
function isNamedByDecorator(node: SyntaxNode, view: CompilerView): boolean {
  const known = knownDecorators(node, view);
  return (
    allDecorators(node, view).length > known.length ||
    known.some(({ role, argument }) => role === 'args' || optionOf(argument, 'name', view) !== undefined)
  );
}

/** A `@param` without a parameter of that name, usually after a renaming, and tags that belong to no parameter. */
function commentFindings(
  { params, tags }: DocComment,
  names: ReadonlySet<string | undefined>,
): readonly Pick<Finding, 'problem' | 'fix'>[] {
  // A destructured parameter may have any name in the comment.
  const unknown = names.has(undefined)
    ? []
    : [...params.keys()].filter((param) => !names.has(param.split(/[.[]/)[0]));
  return [
    ...unknown.map((param) => ({
      problem: `its comment describes a parameter ${param}, which it does not have`,
      fix: `@param with one of ${[...names].join(', ') || 'its parameters (there are none)'}`,
    })),
    ...tags
      .filter(({ name }) => VALUE_TAGS.has(name))
      .map(({ name }) => ({
        problem: `its comment has a @${name} that belongs to no parameter`,
        fix: `@${name} behind the words of a @param`,
      })),
  ];
}

function descriptionOf(comment: DocComment | undefined): string | undefined {
  const deprecated = comment?.tags.find(({ name }) => name === 'deprecated');
  const texts = [comment?.summary, deprecated && `Deprecated: ${deprecated.text}`];
  return texts.filter(Boolean).join('\n\n') || undefined;
}

/** The parameters, with their types in the class that owns the tool. */
function typedParameters(
  found: FoundMethod,
  view: CompilerView,
): readonly Pick<TypedParameter, 'node' | 'type'>[] {
  const nodes = (found.node.parameters ?? []).filter((item) => item.name?.text !== 'this');
  const signature = found.isInherited ? signatureOf(found, view) : undefined;
  const symbols = signature === undefined ? [] : view.parametersOf(signature);
  return nodes.map((node, index) => {
    const symbol = symbols[index];
    return { node, type: symbol === undefined ? view.typeAt(node) : view.typeOfSymbol(symbol) };
  });
}

/** The signature of a method, with the type arguments of the class that owns it; `undefined` if it is overloaded. */
function signatureOf({ node, name, owner }: FoundMethod, view: CompilerView): SignatureHandle | undefined {
  const member = view.propertiesOf(owner.type).find((item) => item.name === name);
  const isSame = member !== undefined && view.declarations(member).includes(node);
  const [signature, second] = isSame ? view.callSignatures(view.typeOfSymbol(member)) : [];
  return second === undefined ? signature : undefined;
}

function outputOf(
  found: FoundMethod,
  comment: DocComment | undefined,
  scan: ProjectScan,
): WrittenSchema | undefined {
  const type = resultType(found, scan.view);
  if (type === undefined) return undefined;
  const walk = openWalk(scan, 'out');
  const schema = describeResult({ type, node: found.node.type }, walk);
  // If the result's type cannot be described, the tool works without it.
  for (const item of walk.faults.splice(0)) walk.warnings.push(item);
  const hasFault = walk.warnings.length > 0;
  reportWalk(walk, scan, {
    node: found.node,
    where: `${found.owner.name}.${found.name}, its result`,
    fix: '@Tool({ output: false }), or a schema as `output`',
  });
  if (hasFault || schema === undefined) return undefined;
  const returns = comment?.tags.find((tag) => tag.name === 'returns' || tag.name === 'return');
  return { ...schema, ...(returns?.text ? { description: returns.text } : {}), ...definitionsOf(walk) };
}

/** The type of the annotation; for generic classes, that of the compiler. */
function resultType(found: FoundMethod, view: CompilerView): TypeHandle | undefined {
  const { node, isInherited } = found;
  if (!isInherited && node.type !== undefined) return view.typeFromNode(node.type);
  const signature = signatureOf(found, view);
  return signature && view.returnType(signature);
}

/**
 * The schema of a method's resolved or generated value. `undefined` if nothing is returned, the type is unknown, or the
 * value is a result for the model (`ToolResult`, content parts, an `Error`).
 */
function describeResult(declared: DeclaredType, walk: TypeWalk): WrittenSchema | undefined {
  const settled = settledType(declared, walk);
  if (settled === undefined || admitsUndefined(walk, settled.type)) return undefined;
  if (definedParts(walk, settled.type).some((part) => saysNothingOfOutput(part, walk))) return undefined;
  const schema = writeSchema({ ...settled, path: '' }, walk);
  return Object.keys(schema).length === 0 ? undefined : schema;
}

/** A type, with its annotation if there is one. */
type DeclaredType = Omit<TypePlace, 'path'>;

/** The index of the type argument that is the final value. */
const WRAPPERS: ReadonlyMap<string, number> = new Map([
  ['Promise', 0],
  ['PromiseLike', 0],
  ['AsyncGenerator', 1],
  ['Generator', 1],
  ['AsyncIterable', 1],
  ['AsyncIterableIterator', 1],
  ['AsyncIterator', 1],
]);

function settledType({ type, node }: DeclaredType, walk: TypeWalk): DeclaredType | undefined {
  const symbol = walk.view.symbolOf(type);
  const position = symbol && isStandardSymbol(symbol, walk) ? WRAPPERS.get(symbol.name) : undefined;
  if (position === undefined) return { type, node };
  const inner = walk.view.typeArguments(type)[position];
  return inner && settledType({ type: inner, node: node?.typeArguments?.[position] }, walk);
}

function saysNothingOfOutput(type: TypeHandle, walk: TypeWalk): boolean {
  const { view } = walk;
  if (hasFlag(walk, type, 'Any', 'Unknown', 'Never', 'Void')) return true;
  if (!hasFlag(walk, type, 'Object', 'Intersection')) return false;
  const symbol = view.symbolOf(type);
  if (symbol?.name === 'ToolResult' && view.declaringFiles(symbol).some(isOwnFile)) return true;
  const properties = view.propertiesOf(type);
  const content = properties.find(({ name }) => name === 'content');
  if (content !== undefined && view.isArray(view.typeOfSymbol(content))) return true;
  const names = new Set(properties.map(({ name }) => name));
  return names.has('stack') && names.has('message') && names.has('name');
}

/** A parameter with its type from the compiler. */
interface TypedParameter {
  readonly node: SyntaxNode;
  readonly type: TypeHandle;
  /** The text of `@param`. */
  readonly comment?: DocComment;
  /** The texts about its parts. */
  readonly parts: PartComments;
  /** `@Tool({ parameters })` defines the whole schema. */
  readonly isExplicit: boolean;
}

function describeParameter(parameter: TypedParameter, walk: TypeWalk): DescribedParameter {
  const { node, type } = parameter;
  const { view } = walk;
  const name = node.name?.kind === view.syntaxKinds.Identifier ? node.name?.text : undefined;
  const decorators = knownDecorators(node, view);
  const inject = injectionOf(type, decorators, view);
  const rest = node.dotDotDotToken !== undefined;
  if (inject !== undefined) return { name, inject, ...(rest ? { rest } : {}) };
  const fallback = node.initializer && literalDefault(node.initializer, view);
  const isOptional =
    node.questionToken !== undefined || node.initializer !== undefined || admitsUndefined(walk, type);
  const drafted = (optional: boolean) => ({ name, ...(rest ? { rest } : optional ? { optional } : {}) });
  if (parameter.isExplicit || isFilledParameter(node, view)) return drafted(isOptional);
  // A decorator of another package may fill the parameter, so its type is not checked.
  const isForeign = allDecorators(node, view).length > decorators.length;
  const decoration = isForeign ? 'typed' : decorationOf(node, view, 'in');
  const typed = writeDecorated({ type, node: node.type, path: name ?? '' }, walk, decoration);
  const written = withComments(typed, parameter, walk);
  let described = settleSchema(written);
  for (const [path, part] of parameter.parts) described = describePart(described, path.split('.'), part);
  const schema = destructured(described, node.name, view);
  const complete = fallback === undefined ? schema : { ...schema, default: fallback.value };
  return {
    ...drafted(isOptional || 'default' in complete),
    ...(Object.keys(complete).length === 0 && decoration === 'typed' ? {} : { schema: complete }),
  };
}

/** A comment before the parameter itself takes precedence over the method's `@param`. */
function withComments(
  written: WrittenSchema,
  { node, comment }: TypedParameter,
  walk: TypeWalk,
): WrittenSchema {
  const own = commentOf(walk.view, node);
  const path = node.name?.text ?? '';
  for (const problem of [...docKeywords(comment).problems, ...docKeywords(own).problems])
    fault(walk, path, { problem });
  return describeSchema(describeSchema(written, comment), own);
}

/** How a parameter is injected; such parameters are not part of the schema. */
function injectionOf(
  type: TypeHandle,
  decorators: readonly KnownDecorator[],
  view: CompilerView,
): DescribedParameter['inject'] {
  if (decorators.some(({ role }) => role === 'context')) return 'context';
  if (decorators.length > 0) return undefined;
  const [only, second] = definedParts({ view }, type);
  if (only === undefined || second !== undefined) return undefined;
  if (isContext(only, view)) return 'context';
  const symbol = view.symbolOf(only);
  return symbol?.name === 'AbortSignal' && isStandardSymbol(symbol, { view }) ? 'signal' : undefined;
}

function isContext(type: TypeHandle, view: CompilerView): boolean {
  const symbol = view.symbolOf(type);
  if (!isClassSymbol(symbol, view)) return false;
  if (symbol.name === 'ToolContext' && view.declaringFiles(symbol).some(isOwnFile)) return true;
  return view.baseTypes(type).some((base) => isContext(base, view));
}

/** Whether a decorator made with NestJS's `createParamDecorator` fills a parameter, which is then not an argument. */
function isFilledParameter(node: SyntaxNode, view: CompilerView): boolean {
  return allDecorators(node, view).some(({ expression }) => {
    const callee = expression?.kind === view.syntaxKinds.CallExpression ? expression?.expression : undefined;
    const symbol = callee && view.symbolAt(callee);
    const [declaration] = symbol ? view.declarations(view.unalias(symbol)) : [];
    return declaration?.initializer?.expression?.text === 'createParamDecorator';
  });
}

/** Texts of `@param page.size …`, by the path within the parameter: `size`. */
type PartComments = ReadonlyMap<string, DocComment>;

/** The comments about parts of a parameter. */
function partComments(name: string, comment: DocComment | undefined): PartComments {
  const parts = [...(comment?.params ?? [])].filter(([path]) => path.startsWith(`${name}.`));
  return new Map(parts.map(([path, said]) => [path.slice(name.length + 1), said]));
}

/** Adds a description to a property of the schema; an unknown path is ignored. */
function describePart(
  schema: WrittenSchema,
  [name = '', ...rest]: readonly string[],
  comment: DocComment,
): WrittenSchema {
  return withPart(schema, name, (part) => {
    const described = rest.length > 0 ? describePart(part, rest, comment) : describeSchema(part, comment);
    return { schema: described, optional: described.default !== undefined };
  });
}

/** Adds the defaults of a destructuring pattern to a parameter's schema: `{ limit = 10 }`. */
function destructured(
  schema: WrittenSchema,
  pattern: SyntaxNode | undefined,
  view: CompilerView,
): WrittenSchema {
  if (pattern?.kind !== view.syntaxKinds.ObjectBindingPattern) return schema;
  let described = schema;
  for (const { name, propertyName, initializer } of pattern?.elements ?? [])
    described = withPart(described, (propertyName ?? name)?.text ?? '', (part) => {
      const fallback = initializer && literalDefault(initializer, view);
      const inner = destructured(part, name, view);
      return {
        schema: fallback === undefined ? inner : { ...inner, default: fallback.value },
        optional: initializer !== undefined,
      };
    });
  return described;
}

interface DescribedPart {
  readonly schema: WrittenSchema;
  /** It may be omitted, whatever its type is. */
  readonly optional: boolean;
}

/** Describes one property of a schema; an unknown property is ignored. */
function withPart(
  schema: WrittenSchema,
  name: string,
  describe: (part: WrittenSchema) => DescribedPart,
): WrittenSchema {
  const { properties = {} } = schema;
  const part = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (part === undefined) return schema;
  const described = describe(part);
  const changed = { ...schema, properties: { ...properties, [name]: described.schema } };
  if (!described.optional || schema.required === undefined) return changed;
  return { ...changed, required: schema.required.filter((item) => item !== name) };
}
