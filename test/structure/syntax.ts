import { createRequire } from 'node:module';

/** A node of the syntax tree; only `type` always exists. */
export interface SyntaxNode {
  readonly type: string;
  readonly span?: { readonly start: number; readonly end: number };
  readonly [part: string]: unknown;
}

/** The syntax tree of a file, with functions that return the text of a node. */
export interface Syntax {
  readonly body: readonly SyntaxNode[];
  /** The text before a node, from the beginning of the file. */
  textBefore(node: SyntaxNode): string;
  textOf(node: SyntaxNode): string;
  /** First and last line of a node, counted from 1. */
  linesOf(node: SyntaxNode): readonly [first: number, last: number];
}

// The types of the parser require all options; only this signature is needed.
const { parseSync } = createRequire(import.meta.url)('@swc/core') as {
  parseSync(text: string, options: object): { readonly body: readonly SyntaxNode[] };
};

/**
 * Parses TypeScript with decorators.
 *
 * @throws Error if the text is not TypeScript.
 */
export function parseTypeScript(text: string): Syntax {
  const bytes = Buffer.from(text);
  const { body } = parseSync(text, { syntax: 'typescript', decorators: true, target: 'es2022' });
  // Positions of the parser are offsets in UTF-8 bytes that start with 1.
  const cut = (from: number, to: number) => bytes.subarray(from - 1, to - 1).toString();
  const lineAt = (position: number) => cut(1, position).split('\n').length;
  return {
    body,
    textBefore: (node) => cut(1, spanOf(node).start),
    textOf: (node) => cut(spanOf(node).start, spanOf(node).end),
    linesOf: (node) => [lineAt(spanOf(node).start), lineAt(spanOf(node).end)],
  };
}

function spanOf(node: SyntaxNode): { readonly start: number; readonly end: number } {
  if (node.span === undefined) throw new Error(`A ${node.type} has no position.`);
  return node.span;
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** A node and its parent. */
export interface PlacedNode {
  readonly node: SyntaxNode;
  readonly parent: SyntaxNode | undefined;
}

/** All nodes of a tree, parents first. */
export function* walk(tree: unknown): Generator<PlacedNode> {
  if (typeof tree !== 'object' || tree === null) return;
  // Recursive generators, or an object for each value, would take most of the time of the rules.
  const values: object[] = [tree];
  const parents: (SyntaxNode | undefined)[] = [undefined];
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    const parent = parents.pop();
    const node = isNode(value) ? value : undefined;
    if (node !== undefined) yield { node, parent };
    // Arguments of calls are wrapped in objects without a type.
    for (const name of Object.keys(value).reverse()) {
      const part = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof part !== 'object' || part === null || name === 'span') continue;
      values.push(part);
      parents.push(node ?? parent);
    }
  }
}

/** The text of a string literal or a name. */
export function literalText(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  const named = ['StringLiteral', 'Identifier', 'PrivateName'].includes(value.type);
  return named && typeof value.value === 'string' ? value.value : undefined;
}
