import type { CompilerView, SourceText, SyntaxNode } from '../compiler/compiler-view.js';
import { allDecorators, knownDecorators } from './decorator-roles.js';

/** A class whose tools are to be described. */
export interface FoundToolset {
  readonly file: SourceText;
  readonly node: SyntaxNode;
}

/**
 * The classes that have tools, their own or inherited ones, in the order of files and lines. Abstract and
 * generic classes have tools only through the classes that extend them.
 */
export function findToolsets(view: CompilerView): readonly FoundToolset[] {
  return view.projectFiles().flatMap((file) =>
    classesIn(file.node, view)
      .filter((node) => isToolset(node, view) && !isOpen(node, view))
      .map((node) => ({ file, node })),
  );
}

/** Generic classes that say of themselves that they are toolsets: nothing says what their type parameters are. */
export function genericToolsets(view: CompilerView): readonly SyntaxNode[] {
  return view
    .projectFiles()
    .flatMap((file) =>
      classesIn(file.node, view).filter(
        (node) =>
          (node.typeParameters ?? []).length > 0 &&
          !isAbstract(node, view) &&
          knownDecorators(node, view).some(({ role }) => role === 'toolset'),
      ),
    );
}

/** Every class declared at the top of a file or in a namespace; nobody expects those within functions. */
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
  return lineage(node, view).some((item) =>
    (item.members ?? []).some(
      (member) =>
        allDecorators(member, view).length > 0 &&
        knownDecorators(member, view).some(({ role }) => role === 'tool'),
    ),
  );
}

function isOpen(node: SyntaxNode, view: CompilerView): boolean {
  return isAbstract(node, view) || (node.typeParameters ?? []).length > 0;
}

function isAbstract(node: SyntaxNode, view: CompilerView): boolean {
  return (node.modifiers ?? []).some(({ kind }) => kind === view.syntaxKinds.AbstractKeyword);
}

/** A class declaration and those of its bases, the base-most first. */
export function lineage(node: SyntaxNode, view: CompilerView): readonly SyntaxNode[] {
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
  const declarations = symbol ? view.declarations(view.unalias(symbol)) : [];
  return declarations.find(({ kind }) => kind === view.syntaxKinds.ClassDeclaration);
}
