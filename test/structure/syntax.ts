import { createRequire } from 'node:module';

/** A node of the parser's tree; only `type` is sure. */
export interface SyntaxNode {
  readonly type: string;
  readonly span?: { readonly start: number; readonly end: number };
  readonly [part: string]: unknown;
}

/** A file's tree, with the way from a node back to the text. */
export interface Syntax {
  readonly body: readonly SyntaxNode[];
  /** The text before a node, from the beginning of the file. */
  textBefore(node: SyntaxNode): string;
  textOf(node: SyntaxNode): string;
  /** First and last line of a node, counted from 1. */
  linesOf(node: SyntaxNode): readonly [first: number, last: number];
}

// The parser's own types want its option objects spelled out in full; only this call is needed.
const { parseSync } = createRequire(import.meta.url)('@swc/core') as {
  parseSync(text: string, options: object): { readonly body: readonly SyntaxNode[] };
};

/**
 * Parses TypeScript with decorators.
 *
 * @throws Error when the text is not a TypeScript.
 */
export function parseTypeScript(text: string): Syntax {
  const bytes = Buffer.from(text);
  const { body } = parseSync(text, { syntax: 'typescript', decorators: true, target: 'es2022' });
  // The parser counts bytes of UTF-8, and the first of them as 1.
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
  if (node.span === undefined) throw new Error(`A ${node.type} has no place in the text.`);
  return node.span;
}

/** Whether something is a node. */
export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** A node with the node above it. */
export interface PlacedNode {
  readonly node: SyntaxNode;
  readonly parent: SyntaxNode | undefined;
}

/** Every node of a tree, from the top. */
export function* walk(tree: unknown): Generator<PlacedNode> {
  if (typeof tree !== 'object' || tree === null) return;
  // A generator for each level, or an object for each value, would take most of the time that the rules take.
  const values: object[] = [tree];
  const parents: (SyntaxNode | undefined)[] = [undefined];
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    const parent = parents.pop();
    const node = isNode(value) ? value : undefined;
    if (node !== undefined) yield { node, parent };
    // Call arguments are wrapped in objects without a type of their own.
    for (const name of Object.keys(value).reverse()) {
      const part = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof part !== 'object' || part === null || name === 'span') continue;
      values.push(part);
      parents.push(node ?? parent);
    }
  }
}

/** The text of a literal or a name; `undefined` for anything else. */
export function literalText(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  const named = ['StringLiteral', 'Identifier', 'PrivateName'].includes(value.type);
  return named && typeof value.value === 'string' ? value.value : undefined;
}
