import { isNode, literalText, type Syntax, type SyntaxNode, walk } from './syntax.js';

/** The size of a function. */
export interface FunctionShape {
  /** Its name or the name that it is assigned to; otherwise `(anonymous)`. */
  readonly name: string;
  readonly line: number;
  readonly lines: number;
  /** The number of positional parameters without `this`. */
  readonly parameters: number;
  /** Whether it is a method with `@Tool`, whose arguments are passed by name. */
  readonly isTool: boolean;
}

const FUNCTIONS = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ClassMethod',
  'PrivateMethod',
  'Constructor',
  'MethodProperty',
  'TsMethodSignature',
  'TsFunctionType',
  'TsCallSignatureDeclaration',
]);

/** Every function, method and function type of a file. */
export function functionsOf(syntax: Syntax): FunctionShape[] {
  return [...walk(syntax.body)]
    .filter(({ node }) => FUNCTIONS.has(node.type))
    .map(({ node, parent }) => {
      const [first, last] = syntax.linesOf(node);
      return {
        name: nameOf(node) ?? nameOf(parent) ?? '(anonymous)',
        line: first,
        lines: last - first + 1,
        parameters: parametersOf(node).filter((parameter) => !isThis(parameter)).length,
        isTool: isTool(node),
      };
    });
}

function nameOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type === 'Constructor') return 'constructor';
  return literalText(node?.identifier) ?? literalText(node?.key) ?? literalText(node?.id);
}

function parametersOf(node: SyntaxNode): readonly SyntaxNode[] {
  const owner = node.function && typeof node.function === 'object' ? node.function : node;
  return 'params' in owner && Array.isArray(owner.params) ? owner.params.filter(isNode) : [];
}

function isTool(node: SyntaxNode): boolean {
  const owner = node.function as { readonly decorators?: readonly SyntaxNode[] } | undefined;
  return [...walk(owner?.decorators)].some(({ node: part }) => literalText(part.callee) === 'Tool');
}

function isThis(parameter: SyntaxNode): boolean {
  return (literalText(parameter) ?? literalText(parameter.pat)) === 'this';
}
