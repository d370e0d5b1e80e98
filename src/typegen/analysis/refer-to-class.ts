import type { CompilerView, SymbolHandle, SyntaxNode } from '../compiler/compiler-view.js';
import { GENERATED_MARK } from '../printing/print-file.js';
import { type ClassReference, CodeReference, type TypeProblem, type TypeWalk } from '../types/type-walk.js';
import { writeType } from '../types/write-type.js';
import { type Finding, lineOf, type ProjectScan } from './class-draft.js';
import { allDecorators, decorationOf, lineage } from './describe-method.js';

const AS_DATA =
  'an interface of its data, @Param({ schema: … }), or a DTO class with decorators on its properties';

/**
 * How a class among the arguments is referred to. Instances are made of DTO classes: classes whose
 * properties have decorators, and classes that are nothing but data. A class with methods and without
 * decorated properties is no data: what would make it whole is not known.
 */
function referToClass(symbol: SymbolHandle, scan: ProjectScan): ClassReference {
  const { view } = scan;
  const node = view.declarations(symbol).find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
  if (node === undefined) return { kind: 'structural' };
  const classes = lineage(node, view);
  const isDto = classes.some((item) =>
    (item.members ?? []).some((member) => isDecoratedProperty(member, scan)),
  );
  const methods = classes.flatMap((item) => methodNames(item, { view }));
  const name = symbol.name;
  if (!isDto && methods.length > 0) {
    return {
      kind: 'fault',
      problem: `is the class ${name}, which has methods (${methods[0]}) and so is more than data`,
      fix: AS_DATA,
    };
  }
  if ((node.typeParameters ?? []).length > 0) return { kind: 'structural' };
  const needed = needsArguments(classes, scan);
  if (needed)
    return { kind: 'fault', problem: `is the class ${name}, whose constructor ${needed}`, fix: AS_DATA };
  const reference = classReference(node, view);
  if (reference === undefined && view.fileOf(node).isDeclaration) return { kind: 'structural' };
  if (reference === undefined) {
    return {
      kind: 'fault',
      problem: `is the class ${name}, which is not exported`,
      fix: `export class ${name}`,
    };
  }
  scan.dataClasses.set(node, symbol);
  return { kind: 'reference', reference };
}

function isDecoratedProperty(member: SyntaxNode, { view }: ProjectScan): boolean {
  return member.kind === view.syntaxKinds.PropertyDeclaration && allDecorators(member, view).length > 0;
}

/** A new instance is made without arguments; a body that would work with them would fail or go wrong. */
function needsArguments(classes: readonly SyntaxNode[], { view }: ProjectScan): string | undefined {
  const abstract = classes.at(-1)?.modifiers?.some(({ kind }) => kind === view.syntaxKinds.AbstractKeyword);
  if (abstract) return 'cannot be called, because it is abstract';
  const creation = constructorOf(classes, view);
  const wants = (creation?.parameters ?? []).some(
    ({ questionToken, initializer, dotDotDotToken }) => !questionToken && !initializer && !dotDotDotToken,
  );
  return wants && (creation?.body?.statements ?? []).length > 0 ? 'works with arguments' : undefined;
}

/** The constructor that runs: the class's own, or the nearest of its bases. */
export function constructorOf(
  classes: readonly SyntaxNode[],
  view: ProjectScan['view'],
): SyntaxNode | undefined {
  return classes
    .flatMap((item) => item.members ?? [])
    .findLast(({ kind, body }) => kind === view.syntaxKinds.Constructor && body !== undefined);
}

/** The symbol of a class declaration; that of `export default class` has no name to ask for. */
export function classSymbol(node: SyntaxNode, view: CompilerView): SymbolHandle | undefined {
  if (node.name !== undefined) return view.symbolAt(node.name);
  const module = view.symbolAt(view.fileOf(node).node);
  return module && view.exportsOf(module).find((item) => view.declarations(item).includes(node));
}

/**
 * The reference to a class by which another file can import it; nothing where it is not exported. A class of
 * another package or library is imported as the project does it, and not from its source: it would be there
 * twice. Only what a library does not show has to be.
 */
export function classReference(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  const file = view.fileOf(node);
  const isForeign = file.isDeclaration || !file.path.startsWith(`${view.folder}/`);
  const imported = isForeign ? packageExport(node, view) : undefined;
  if (imported !== undefined || file.isDeclaration) return imported;
  return exportedClass(node, view);
}

function exportedClass(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  const file = view.fileOf(node);
  const module = view.symbolAt(file.node);
  const symbol = classSymbol(node, view);
  if (module === undefined) return undefined;
  const exported = view.exportsOf(module).find((item) => {
    const target = view.unalias(item);
    return target === symbol || view.declarations(target).includes(node);
  });
  if (exported === undefined) return undefined;
  return new CodeReference(exported.name, { file: file.path, localName: node.name?.text });
}

/** A class that a package exports, by the first import of the project's own files that leads to it. */
function packageExport(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  for (const { specifier, module } of importedPackages(view)) {
    const exported = view
      .exportsOf(module)
      .find((item) => mayBe(item, node) && view.declarations(view.unalias(item)).includes(node));
    if (exported === undefined) continue;
    return new CodeReference(exported.name, { package: specifier, localName: node.name?.text });
  }
  return undefined;
}

/** Each look behind an alias is a question to the compiler; most names can be told apart without it. */
function mayBe({ name }: SymbolHandle, node: SyntaxNode): boolean {
  return name === node.name?.text || name === 'default';
}

interface ImportedPackage {
  readonly specifier: string;
  readonly module: SymbolHandle;
}

const known = new WeakMap<CompilerView, readonly ImportedPackage[]>();

function importedPackages(view: CompilerView): readonly ImportedPackage[] {
  const found = known.get(view) ?? findPackages(view);
  known.set(view, found);
  return found;
}

function findPackages(view: CompilerView): readonly ImportedPackage[] {
  const specifiers = new Map<string, SyntaxNode>();
  for (const { node, text } of view.projectFiles()) {
    // What was generated before must not decide what is generated now.
    if (text.startsWith(GENERATED_MARK)) continue;
    for (const { moduleSpecifier } of node.statements ?? []) {
      const name = moduleSpecifier?.text;
      if (moduleSpecifier === undefined || name === undefined || name.startsWith('.')) continue;
      if (!specifiers.has(name)) specifiers.set(name, moduleSpecifier);
    }
  }
  return [...specifiers].flatMap(([specifier, node]) => {
    const module = view.symbolAt(node);
    return module === undefined ? [] : [{ specifier, module }];
  });
}

/** A new walk over the types of one method or class. */
export function openWalk(scan: ProjectScan, direction: TypeWalk['direction']): TypeWalk {
  const walk: TypeWalk = {
    view: scan.view,
    direction,
    open: [],
    names: new Map(),
    definitions: new Map(),
    faults: [],
    warnings: [],
    write: (place) => writeType(place, walk),
    decoration: (declaration) => decorationOf(declaration, scan.view, direction),
    classReference: (symbol) => referToClass(symbol, scan),
  };
  return walk;
}

/** Where the types of a walk are written. */
interface WalkPlace {
  readonly node: SyntaxNode;
  readonly where: string;
  readonly fix: string;
}

/** Hands what a walk has found so far to the scan, with its place, and empties it. */
export function reportWalk(walk: TypeWalk, scan: ProjectScan, place: WalkPlace): void {
  scan.faults.push(...walk.faults.splice(0).map((item) => findingOf(item, scan, place)));
  scan.warnings.push(...walk.warnings.splice(0).map((item) => findingOf(item, scan, place)));
}

function findingOf({ path, problem, fix }: TypeProblem, scan: ProjectScan, place: WalkPlace): Finding {
  return { ...lineOf(place.node, scan.view), where: place.where, path, problem, fix: fix ?? place.fix };
}

/** Whether a class has methods: then it is more than data. */
function methodNames(declaration: SyntaxNode, { view }: Pick<TypeWalk, 'view'>): readonly string[] {
  const { MethodDeclaration, StaticKeyword } = view.syntaxKinds;
  return (declaration.members ?? [])
    .filter((member) => member.kind === MethodDeclaration)
    .filter(({ modifiers = [] }) => !modifiers.some(({ kind }) => kind === StaticKeyword))
    .map(({ name }) => name?.text ?? 'a method');
}
