import type { CompilerView, SymbolHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import { GENERATED_MARK } from '../generated-mark.js';
import { CodeReference } from '../types/described-schema.js';

/** A class that a package exports, by the first import of the project's own files that leads to it. */
export function packageExport(node: SyntaxNode, view: CompilerView): CodeReference | undefined {
  for (const { specifier, module } of importedPackages(view)) {
    const exported = view
      .exportsOf(module)
      .find((one) => mayBe(one, node) && view.declarations(view.unalias(one)).includes(node));
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
