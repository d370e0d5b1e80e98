import { posix } from 'node:path';
import type { CompilerView, SourceText, SyntaxNode } from '../compiler/compiler-view.js';
import { type ClassDraft, lineOf, type ProjectScan, startOf } from './class-draft.js';

/**
 * The generated file imports the files of its classes. Where one of them imports it too, it may be the first to
 * run, and then there is no class yet that it could describe.
 */
export function reportCycles(drafts: readonly ClassDraft[], outFile: string, scan: ProjectScan): void {
  const names = new Map<string | undefined, string>();
  for (const { reference } of drafts)
    if (!names.has(reference.origin.file)) names.set(reference.origin.file, ownName(reference));
  for (const file of scan.view.projectFiles()) {
    const name = names.get(file.path);
    if (name !== undefined) reportImports({ file, name, outFile }, scan);
  }
}

function ownName({ name, origin }: ClassDraft['reference']): string {
  return origin.localName ?? name;
}

interface DescribedFile {
  readonly file: SourceText;
  /** Of its first class. */
  readonly name: string;
  readonly outFile: string;
}

function reportImports({ file, name, outFile }: DescribedFile, { view, faults }: ProjectScan): void {
  for (const node of loadedModules(file, view)) {
    const specifier = node.moduleSpecifier?.text ?? '';
    if (!leadsTo(outFile, { file, node, specifier }, view)) continue;
    faults.push({
      ...lineOf(node, view),
      where: name,
      problem: `stands in a file that imports the generated file ('${specifier}'), which imports ${name}: a cycle, in which a class may be used before it exists`,
      fix: `${name} in a file of its own, and the import of '${posix.basename(specifier)}' only where the tools are discovered`,
    });
  }
}

interface Loading {
  readonly file: SourceText;
  readonly node: SyntaxNode;
  readonly specifier: string;
}

/** The file need not be there yet; only the compiler knows where a mapped path leads, once it is. */
function leadsTo(outFile: string, { file, node, specifier }: Loading, view: CompilerView): boolean {
  const wanted = withoutEnding(outFile);
  if (/^\.\.?\//.test(specifier))
    return withoutEnding(posix.join(posix.dirname(file.path), specifier)) === wanted;
  if (node.moduleSpecifier === undefined) return false;
  if (posix.basename(withoutEnding(specifier)) !== posix.basename(wanted)) return false;
  const symbol = view.symbolAt(node.moduleSpecifier);
  return symbol !== undefined && view.declaringFiles(symbol).includes(outFile);
}

/** Statements that load another module; types alone load none. */
function loadedModules(file: SourceText, view: CompilerView): readonly SyntaxNode[] {
  const { ImportDeclaration, ExportDeclaration } = view.syntaxKinds;
  const found: SyntaxNode[] = [];
  file.node.forEachChild((node) => {
    const isLoading = node.kind === ImportDeclaration || node.kind === ExportDeclaration;
    if (isLoading && node.moduleSpecifier !== undefined && !isOfTypes(node, file)) found.push(node);
    return undefined;
  });
  return found;
}

/** Compilers say it in different ways, and the text in one. */
function isOfTypes(node: SyntaxNode, { text }: SourceText): boolean {
  return /^(?:import|export)\s+type\s*(?!from\s*['"])[\w$*{]/.test(text.slice(startOf(node, text)));
}

function withoutEnding(path: string): string {
  return path.replace(/\.[cm]?[jt]s$/, '');
}
