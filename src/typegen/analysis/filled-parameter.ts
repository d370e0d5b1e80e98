import type { CompilerView } from '../compiler/compiler-view.js';
import type { SyntaxNode } from '../compiler/syntax-node.js';
import { allDecorators } from './decorator-roles.js';

/** Whether a decorator that NestJS's `createParamDecorator` made fills a parameter: then it is no argument. */
export function isFilledParameter(node: SyntaxNode, view: CompilerView): boolean {
  return allDecorators(node, view).some(({ expression }) => {
    const callee = expression?.kind === view.syntaxKinds.CallExpression ? expression?.expression : undefined;
    const symbol = callee && view.symbolAt(callee);
    const [declaration] = symbol ? view.declarations(view.unalias(symbol)) : [];
    return declaration?.initializer?.expression?.text === 'createParamDecorator';
  });
}
