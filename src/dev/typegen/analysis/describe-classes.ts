import type { CompilerView, SymbolHandle, SyntaxNode } from '../compiler/compiler-view.js';
import { type CodeReference, definedParts } from '../types/type-walk.js';
import { listDataProperties } from '../types/write-type.js';
import { type ClassDraft, lineOf, type ProjectScan } from './class-draft.js';
import {
  allDecorators,
  ancestorsOf,
  classReference,
  classSymbol,
  constructorOf,
  describeMethod,
  knownDecorators,
  openWalk,
  reportWalk,
} from './describe-method.js';

/** The whole content of the generated file: toolsets, and the DTO classes and services that they refer to. */
export function describeClasses(scan: ProjectScan): readonly ClassDraft[] {
  reportGenericToolsets(scan);
  const toolsets = findToolsets(scan.view).flatMap((node) => describeToolset(node, scan) ?? []);
  const data: Described[] = [];
  // A DTO class may add further ones.
  for (const [node, symbol] of scan.dataClasses) data.push(describeData(node, symbol, scan));
  const known = new Set([...toolsets, ...data].map(({ node }) => node));
  const services = describeServices(
    toolsets.flatMap(({ services }) => services),
    known,
    scan,
  );
  return [...toolsets, ...data, ...services].map(({ draft }) => draft);
}

/** The type parameters of generic classes with `@Toolset` are unknown. */
function reportGenericToolsets({ view, faults }: ProjectScan): void {
  for (const node of view.projectFiles().flatMap((file) => classesIn(file.node, view))) {
    if ((node.typeParameters ?? []).length === 0 || isAbstract(node, view)) continue;
    if (!knownDecorators(node, view).some(({ role }) => role === 'toolset')) continue;
    const name = node.name?.text ?? 'default';
    faults.push({
      ...lineOf(node, view),
      where: name,
      problem: 'is a generic toolset, and nothing says what its type parameters are',
      fix: `abstract class ${name}<…> without @Toolset, and @Toolset() class … extends ${name}<Order>`,
    });
  }
}

interface Described {
  readonly node: SyntaxNode;
  readonly draft: ClassDraft;
}

function describeToolset(
  node: SyntaxNode,
  scan: ProjectScan,
): (Described & { readonly services: readonly SyntaxNode[] }) | undefined {
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
  const tools = toolMethods(node, scan).map((method) =>
    describeMethod({ ...method, owner, isInherited: method.node.parent !== node }, scan),
  );
  const { dependencies, classes } = describeConstructor(node, scan);
  return {
    node,
    services: classes,
    draft: { reference, tools, definitions: new Map(), ...(dependencies.length > 0 ? { dependencies } : {}) },
  };
}

/** The tool methods of a class and its base classes; the last declaration of a name counts. */
function toolMethods(
  node: SyntaxNode,
  { view }: ProjectScan,
): readonly { readonly node: SyntaxNode; readonly name: string }[] {
  const methods = new Map<string, SyntaxNode>();
  for (const member of ancestorsOf(node, view).flatMap((item) => item.members ?? [])) {
    const name = member.name?.text;
    const isNamed =
      member.name?.kind === view.syntaxKinds.Identifier ||
      member.name?.kind === view.syntaxKinds.StringLiteral;
    const isStatic = (member.modifiers ?? []).some(({ kind }) => kind === view.syntaxKinds.StaticKeyword);
    if (member.kind !== view.syntaxKinds.MethodDeclaration || name === undefined || !isNamed || isStatic)
      continue;
    if (knownDecorators(member, view).some(({ role }) => role === 'tool' || role === 'served'))
      methods.set(name, member);
  }
  return [...methods].map(([name, method]) => ({ name, node: method }));
}

function describeData(node: SyntaxNode, symbol: SymbolHandle, scan: ProjectScan): Described {
  const { view } = scan;
  const reference = classReference(node, view);
  if (reference === undefined) throw new TypeError(`${symbol.name} was referred to and is not exported`);
  const walk = openWalk(scan, 'in');
  const properties = listDataProperties(view.declaredType(symbol), walk);
  const fix =
    'a type that JSON has, @Param({ schema: … }) on the property, or @Exclude() if it is not an argument';
  reportWalk(walk, scan, { node, where: symbol.name, fix });
  return { node, draft: { reference, properties, definitions: walk.definitions } };
}

/** Describes services, including the services that are injected into them. */
function describeServices(
  starts: readonly SyntaxNode[],
  known: Set<SyntaxNode>,
  scan: ProjectScan,
): readonly Described[] {
  const open = [...starts];
  const described: Described[] = [];
  for (let node = open.shift(); node !== undefined; node = open.shift()) {
    if (known.has(node)) continue;
    known.add(node);
    const reference = classReference(node, scan.view);
    const { dependencies, classes } = describeConstructor(node, scan);
    open.push(...classes);
    if (reference === undefined || dependencies.every((item) => item === undefined)) continue;
    described.push({ node, draft: { reference, dependencies, definitions: new Map() } });
  }
  return described;
}

/** The parameters of a constructor, and which of them are classes of the project. */
interface ConstructorDraft {
  readonly dependencies: readonly (CodeReference | undefined)[];
  readonly classes: readonly SyntaxNode[];
}

/**
 * The classes of a constructor's parameters, so that they can be injected without emitted metadata. Parameters that are
 * not classes (interfaces, tokens) need `@inject`.
 */
function describeConstructor(node: SyntaxNode, scan: ProjectScan): ConstructorDraft {
  const creation = constructorOf(ancestorsOf(node, scan.view), scan.view);
  const found = (creation?.parameters ?? []).map((parameter) => dependencyOf(parameter, scan));
  return {
    dependencies: found.map((item) => item?.reference),
    classes: found.flatMap((item) => item?.node ?? []),
  };
}

interface Dependency {
  readonly reference: CodeReference;
  readonly node?: SyntaxNode;
}

function dependencyOf(parameter: SyntaxNode, { view }: ProjectScan): Dependency | undefined {
  // Decorators such as `@inject` define the injected value themselves.
  if (allDecorators(parameter, view).length > 0) return undefined;
  const [type, second] = definedParts({ view }, view.typeAt(parameter));
  const symbol = type && second === undefined ? view.symbolOf(type) : undefined;
  if (symbol === undefined || !(symbol.flags & (view.symbolFlags.Class ?? 0))) return undefined;
  const node = view.declarations(symbol).find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
  if (node === undefined) return undefined;
  const reference = classReference(node, view);
  if (reference === undefined) return undefined;
  // Declarations of a package lack `@inject`, so its classes' own dependencies are unknown.
  return view.fileOf(node).isDeclaration ? { reference } : { reference, node };
}

/**
 * Classes with own or inherited tools, sorted by file and line. Tools of abstract and generic classes belong to the
 * classes that extend them.
 */
function findToolsets(view: CompilerView): readonly SyntaxNode[] {
  return view
    .projectFiles()
    .flatMap((file) => classesIn(file.node, view))
    .filter(
      (node) => isToolset(node, view) && !isAbstract(node, view) && (node.typeParameters ?? []).length === 0,
    );
}

/** Classes at the top level of a file or namespace; classes within functions are ignored. */
function classesIn(root: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  root.forEachChild((node) => {
    const { ClassDeclaration, ModuleDeclaration, ModuleBlock } = view.syntaxKinds;
    if (node.kind === ModuleDeclaration || node.kind === ModuleBlock) found.push(...classesIn(node, view));
    if (node.kind !== ClassDeclaration) return undefined;
    view.prepare(node);
    found.push(node);
    return undefined;
  });
  return found;
}

function isToolset(node: SyntaxNode, view: CompilerView): boolean {
  if (knownDecorators(node, view).some(({ role }) => role === 'toolset')) return true;
  return ancestorsOf(node, view).some((item) =>
    (item.members ?? []).some(
      (member) =>
        allDecorators(member, view).length > 0 &&
        knownDecorators(member, view).some(({ role }) => role === 'tool' || role === 'served'),
    ),
  );
}

function isAbstract(node: SyntaxNode, view: CompilerView): boolean {
  return (node.modifiers ?? []).some(({ kind }) => kind === view.syntaxKinds.AbstractKeyword);
}
