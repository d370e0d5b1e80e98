import { isNode, literalText, type SyntaxNode } from './syntax.js';

export type ExportKind = 'class' | 'function' | 'const' | 'interface' | 'type' | 'enum' | 'namespace';

export interface ExportedName {
  readonly name: string;
  /** Set if this file declares it. Names exported from another file have a `source` instead. */
  readonly declared?: { readonly kind: ExportKind; readonly node: SyntaxNode };
  readonly source?: { readonly specifier: string; readonly name: string };
}

export interface ModuleExports {
  readonly names: readonly ExportedName[];
  readonly hasDefault: boolean;
  readonly hasStar: boolean;
}

const KINDS: Readonly<Record<string, ExportKind>> = {
  ClassDeclaration: 'class',
  FunctionDeclaration: 'function',
  VariableDeclaration: 'const',
  TsInterfaceDeclaration: 'interface',
  TsTypeAliasDeclaration: 'type',
  TsEnumDeclaration: 'enum',
  TsModuleDeclaration: 'namespace',
};

export function exportsOf(body: readonly SyntaxNode[]): ModuleExports {
  const names = body.flatMap(namesOf);
  return {
    names,
    hasDefault:
      names.some(({ name }) => name === 'default') ||
      body.some(({ type }) => /^(ExportDefault|TsExportAssignment)/.test(type)),
    hasStar:
      body.some(({ type }) => type === 'ExportAllDeclaration') ||
      body.some((node) => specifiersOf(node).some(({ type }) => type === 'ExportNamespaceSpecifier')),
  };
}

function namesOf(node: SyntaxNode): ExportedName[] {
  if (node.type === 'ExportDeclaration' && isNode(node.declaration)) {
    const kind = KINDS[node.declaration.type];
    if (kind === undefined) throw new Error(`Unknown kind of export: ${node.declaration.type}`);
    return declaredNames(node.declaration).map((name) => ({ name, declared: { kind, node } }));
  }
  if (node.type !== 'ExportNamedDeclaration') return [];
  const specifier = literalText(node.source);
  return specifiersOf(node).map(({ orig, exported }) => {
    const original = literalText(orig) ?? '';
    const name = literalText(exported) ?? original;
    return specifier === undefined ? { name } : { name, source: { specifier, name: original } };
  });
}

function declaredNames(declaration: SyntaxNode): string[] {
  if (declaration.type !== 'VariableDeclaration') {
    return [literalText(declaration.identifier) ?? literalText(declaration.id) ?? '?'];
  }
  return (declaration.declarations as SyntaxNode[]).map(({ id }) => literalText(id) ?? '?');
}

function specifiersOf(node: SyntaxNode): SyntaxNode[] {
  return node.type === 'ExportNamedDeclaration' ? (node.specifiers as SyntaxNode[]) : [];
}
