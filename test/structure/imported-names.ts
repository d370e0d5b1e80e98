import { posix } from 'node:path';
import { pathExists } from './repository.js';
import { packageSources, type SourceFile } from './source-files.js';
import { isNode, literalText, type SyntaxNode, walk } from './syntax.js';

/** A name that a file imports from another file; `*` for the whole module. */
export interface ImportedName {
  readonly from: SourceFile;
  /** The path of the file that exports it. */
  readonly target: string;
  readonly name: string;
}

/** A name that a file of the package exports. */
export interface ExportOf {
  readonly path: string;
  readonly name: string;
}

/** All names that files of the package import from each other. */
export function importedNames(): ImportedName[] {
  return packageSources().flatMap(namesImportedBy);
}

/** The exports of all files of the package except entry points, whose exports are for users. */
export function exportedNames(): ExportOf[] {
  return packageSources()
    .filter(({ path }) => !isEntryPoint(path))
    .flatMap(({ path, exports }) => exports.names.map(({ name }) => ({ path, name })));
}

function isEntryPoint(path: string): boolean {
  return path.endsWith('/index.ts') || path === 'src/dev/cli/main.ts';
}

/** The names that a file imports from other files of the package. */
export function namesImportedBy(from: SourceFile): ImportedName[] {
  const { body } = from.syntax;
  // Few files have imports in expressions or types; the others need no walk through the whole tree.
  const isDeep = /\b(import|require)\(/.test(from.text);
  const nodes = isDeep ? Array.from(walk(body), ({ node }) => node) : body;
  return nodes.flatMap((node) => {
    const specifier = specifierOf(node);
    if (specifier === undefined || !specifier.startsWith('.')) return [];
    const target = targetOf(from.path, specifier);
    return namesIn(node).map((name) => ({ from, target, name }));
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

function namesIn({ type, specifiers }: SyntaxNode): string[] {
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
  return pathExists(source) ? source : target;
}
