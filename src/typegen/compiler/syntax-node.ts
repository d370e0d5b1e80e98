/**
 * A node of the compiler's syntax tree, as far as the analyser reads it. Both compilers' trees have these
 * fields; which of them a node has depends on its kind.
 */
export interface SyntaxNode {
  readonly kind: number;
  /** With the comments and spaces before it. */
  readonly pos: number;
  readonly parent?: SyntaxNode;
  readonly name?: SyntaxNode;
  readonly text?: string;
  readonly modifiers?: readonly SyntaxNode[];
  readonly members?: readonly SyntaxNode[];
  readonly parameters?: readonly SyntaxNode[];
  readonly typeParameters?: readonly SyntaxNode[];
  readonly type?: SyntaxNode;
  readonly types?: readonly SyntaxNode[];
  readonly typeName?: SyntaxNode;
  readonly typeArguments?: readonly SyntaxNode[];
  readonly elementType?: SyntaxNode;
  readonly operator?: number;
  readonly operand?: SyntaxNode;
  readonly initializer?: SyntaxNode;
  readonly questionToken?: SyntaxNode;
  readonly dotDotDotToken?: SyntaxNode;
  readonly expression?: SyntaxNode;
  readonly arguments?: readonly SyntaxNode[];
  readonly elements?: readonly SyntaxNode[];
  readonly properties?: readonly SyntaxNode[];
  readonly body?: SyntaxNode;
  readonly heritageClauses?: readonly SyntaxNode[];
  /** `extends` or `implements`. */
  readonly token?: number;
  readonly statements?: readonly SyntaxNode[];
  readonly moduleSpecifier?: SyntaxNode;
  forEachChild<Result>(visit: (node: SyntaxNode) => Result | undefined): Result | undefined;
}
