import { posix } from 'node:path';
import { isThere } from './repository.js';
import { packageSources, type SourceFile } from './source-tree.js';
import { isNode, literalText, type SyntaxNode, walk } from './syntax.js';

/** One name that a file takes from another one; `*` where it takes the whole module. */
export interface ImportedName {
  readonly from: SourceFile;
  /** Path of the file that exports it. */
  readonly target: string;
  readonly name: string;
}

/** One name that a file of the package exports. */
export interface ExportOf {
  readonly path: string;
  readonly name: string;
}

/** Every name that files of the package take from each other. */
export function importedNames(): ImportedName[] {
  return packageSources().flatMap(namesTakenBy);
}

/** The exports of all files of the package except entry points, whose exports are for users. */
export function exportedNames(): ExportOf[] {
  return packageSources()
    .filter(({ path }) => !isEntryPoint(path))
    .flatMap(({ path, exports }) => exports.names.map(({ name }) => ({ path, name })));
}

/** Whether a file is an entry of the package, for users or for the command line. */
function isEntryPoint(path: string): boolean {
  return path.endsWith('/index.ts') || path === 'src/dev/cli/main.ts';
}

/** The names that a file takes from others of the package. */
export function namesTakenBy(from: SourceFile): ImportedName[] {
  const { body } = from.syntax;
  // Only calls and types stand deeper than the statements, and few files have such imports.
  const isDeep = /\b(import|require)\(/.test(from.text);
  const nodes = isDeep ? Array.from(walk(body), ({ node }) => node) : body;
  return nodes.flatMap((node) => {
    const specifier = specifierOf(node);
    if (specifier === undefined || !specifier.startsWith('.')) return [];
    const target = targetOf(from.path, specifier);
    return takenNames(node).map((name) => ({ from, target, name }));
  });
}

function specifierOf(node: SyntaxNode): string | undefined {
  if (node.type === 'ImportDeclaration' || node.type === 'ExportNamedDeclaration')
    return literalText(node.source);
  if (node.type === 'TsImportType') return literalText(node.argument);
  if (node.type !== 'CallExpression') return undefined;
  const [first] = node.arguments as readonly { readonly expression?: unknown }[];
  const isModule = isNode(first?.expression) && first.expression.type === 'StringLiteral';
  return isModule ? literalText(first.expression) : undefined;
}

function takenNames({ type, specifiers }: SyntaxNode): string[] {
  if (!Array.isArray(specifiers) || !/^(Import|ExportNamed)Declaration$/.test(type)) return ['*'];
  return (specifiers as SyntaxNode[]).map((specifier) => {
    if (specifier.type === 'ImportSpecifier')
      return literalText(specifier.imported) ?? literalText(specifier.local) ?? '*';
    return specifier.type === 'ExportSpecifier' ? (literalText(specifier.orig) ?? '*') : '*';
  });
}

function targetOf(path: string, specifier: string): string {
  const target = posix.normalize(posix.join(posix.dirname(path), specifier));
  const source = target.replace(/\.(c?)js$/, '.$1ts');
  return isThere(source) ? source : target;
}
