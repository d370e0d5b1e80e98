import { isNode, literalText, type SyntaxNode, walk } from './syntax.js';

/** A reference from a file to another module. */
export interface ImportEdge {
  /** As written; `undefined` if it is computed at run time. */
  readonly specifier: string | undefined;
  readonly kind: 'import' | 'export from' | 'import()' | 'require' | 'type import' | 'load';
}

/** Functions of this package that load a module by its name. */
const OWN_LOADERS = new Set(['loadedCopies']);

/**
 * All imports of a file: `import`, `export … from`, `import()`, `require` (or the result of `createRequire`, under any
 * name), `import('x').T` in types, `import x = require()`, and the package's own loaders.
 */
export function importsOf(body: readonly SyntaxNode[]): ImportEdge[] {
  const loaders = new Set(['require', ...OWN_LOADERS]);
  const nodes = Array.from(walk(body), ({ node }) => node);
  for (const node of nodes) if (declaresLoader(node)) loaders.add(literalText(node.id) ?? '');
  return nodes.flatMap((node) => edgesOf(node, loaders));
}

function edgesOf(node: SyntaxNode, loaders: ReadonlySet<string>): ImportEdge[] {
  switch (node.type) {
    case 'ImportDeclaration':
      return [{ specifier: literalText(node.source), kind: 'import' }];
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return isNode(node.source) ? [{ specifier: literalText(node.source), kind: 'export from' }] : [];
    case 'TsImportType':
      return [{ specifier: literalText(node.argument), kind: 'type import' }];
    case 'TsExternalModuleReference':
      return [{ specifier: literalText(node.expression), kind: 'require' }];
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
  if (node.callee.type === 'Import') return [{ specifier: named, kind: 'import()' }];
  const loader = literalText(node.callee) ?? literalText(node.callee.object) ?? '';
  const loads = node.callee.type === 'Identifier' || literalText(node.callee.property) === 'resolve';
  if (isCreateRequire(node.callee)) return [{ specifier: named, kind: 'require' }];
  if (!loads || !loaders.has(loader)) return [];
  return [{ specifier: named, kind: OWN_LOADERS.has(loader) ? 'load' : 'require' }];
}

function firstArgument(node: SyntaxNode): SyntaxNode | undefined {
  const [first] = Array.isArray(node.arguments) ? (node.arguments as { expression?: unknown }[]) : [];
  return isNode(first?.expression) ? first.expression : undefined;
}

function isCreateRequire(node: unknown): boolean {
  return isNode(node) && node.type === 'CallExpression' && literalText(node.callee) === 'createRequire';
}

function declaresLoader(node: SyntaxNode): boolean {
  return node.type === 'VariableDeclarator' && isCreateRequire(node.init);
}
