import { isNode, literalText, type SyntaxNode, walk } from './syntax.js';

/** What one file asks for: another module, by any of the ways there are. */
export interface ImportEdge {
  /** As it is written; `undefined` where it is computed at run time. */
  readonly specifier: string | undefined;
  readonly way: 'import' | 'export from' | 'import()' | 'require' | 'type import' | 'load';
}

/** Functions of this package that take a module's name as `require` does. */
const OWN_LOADERS = new Set(['loadedCopies']);

/**
 * Every way in which a file can name another module: `import`, `export … from`, `import()`, `require`
 * (also one made by `createRequire`, under whatever name), `import('x').T` in types, `import x = require()`,
 * and the package's own loaders.
 */
export function importsOf(body: readonly SyntaxNode[]): ImportEdge[] {
  const loaders = new Set(['require', ...OWN_LOADERS]);
  const nodes = Array.from(walk(body), ({ node }) => node);
  for (const node of nodes) if (isMadeLoader(node)) loaders.add(literalText(node.id) ?? '');
  return nodes.flatMap((node) => edgesOf(node, loaders));
}

function edgesOf(node: SyntaxNode, loaders: ReadonlySet<string>): ImportEdge[] {
  switch (node.type) {
    case 'ImportDeclaration':
      return [{ specifier: literalText(node.source), way: 'import' }];
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return isNode(node.source) ? [{ specifier: literalText(node.source), way: 'export from' }] : [];
    case 'TsImportType':
      return [{ specifier: literalText(node.argument), way: 'type import' }];
    case 'TsExternalModuleReference':
      return [{ specifier: literalText(node.expression), way: 'require' }];
    case 'CallExpression':
      return callEdges(node, loaders);
    default:
      return [];
  }
}

function callEdges(node: SyntaxNode, loaders: ReadonlySet<string>): ImportEdge[] {
  const specifier = literalText(firstArgument(node));
  const literal = isNode(firstArgument(node)) && firstArgument(node)?.type === 'StringLiteral';
  const named = literal ? specifier : undefined;
  if (!isNode(node.callee)) return [];
  if (node.callee.type === 'Import') return [{ specifier: named, way: 'import()' }];
  const loader = literalText(node.callee) ?? literalText(node.callee.object) ?? '';
  const loads = node.callee.type === 'Identifier' || literalText(node.callee.property) === 'resolve';
  if (isCreateRequire(node.callee)) return [{ specifier: named, way: 'require' }];
  if (!loads || !loaders.has(loader)) return [];
  return [{ specifier: named, way: OWN_LOADERS.has(loader) ? 'load' : 'require' }];
}

function firstArgument(node: SyntaxNode): SyntaxNode | undefined {
  const [first] = Array.isArray(node.arguments) ? (node.arguments as { expression?: unknown }[]) : [];
  return isNode(first?.expression) ? first.expression : undefined;
}

/** `createRequire(import.meta.url)`. */
function isCreateRequire(node: unknown): boolean {
  return isNode(node) && node.type === 'CallExpression' && literalText(node.callee) === 'createRequire';
}

function isMadeLoader(node: SyntaxNode): boolean {
  return node.type === 'VariableDeclarator' && isCreateRequire(node.init);
}
