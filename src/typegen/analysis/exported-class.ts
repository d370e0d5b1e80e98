import type { CompilerView, SymbolHandle } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import { CodeReference } from '../types/described-schema.js';
import { packageExport } from './package-export.js';

/** The symbol of a class declaration; that of `export default class` has no name to ask for. */
export function classSymbol(node: SyntaxNode, view: CompilerView): SymbolHandle | undefined {
  if (node.name !== undefined) return view.symbolAt(node.name);
  const module = view.symbolAt(view.fileOf(node).node);
  return module && view.exportsOf(module).find((one) => view.declarations(one).includes(node));
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
  const exported = view.exportsOf(module).find((one) => {
    const target = view.unalias(one);
    return target === symbol || view.declarations(target).includes(node);
  });
  if (exported === undefined) return undefined;
  return new CodeReference(exported.name, { file: file.path, localName: node.name?.text });
}
