import type { CompilerView, SymbolHandle, SyntaxNode } from '../compiler/compiler-view.js';
import type { CodeReference, WrittenSchema } from '../types/type-walk.js';

/** What the generated file says of one class. */
export interface ClassDraft {
  readonly reference: CodeReference;
  /** Classes that the constructor asks for; nothing at the place of what is no class. */
  readonly dependencies?: readonly (CodeReference | undefined)[];
  readonly tools?: readonly MethodDraft[];
  readonly properties?: readonly PropertyDraft[];
  readonly definitions: ReadonlyMap<string, WrittenSchema>;
}

/** A property of a DTO class. */
interface PropertyDraft {
  readonly name: string;
  readonly schema: WrittenSchema;
  readonly optional: boolean;
}

/** A tool method. */
export interface MethodDraft {
  readonly name: string;
  readonly description?: string;
  readonly parameters: readonly ParameterDraft[];
  readonly output?: WrittenSchema;
  readonly definitions: ReadonlyMap<string, WrittenSchema>;
}

/** One parameter of a tool method. */
export interface ParameterDraft {
  /** Nothing where it is destructured. */
  readonly name?: string;
  readonly inject?: 'context' | 'signal';
  readonly optional: boolean;
  readonly rest: boolean;
  readonly schema?: WrittenSchema;
}

/** Something to tell the author, and where. */
export interface Finding {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  /** `OrderTools.findOrders, parameter page`. */
  readonly where: string;
  /** Within the type: `page.filters[]`. */
  readonly path?: string;
  readonly problem: string;
  readonly fix: string;
}

/** What all parts of one run over a project share. */
export interface ProjectScan {
  readonly view: CompilerView;
  readonly faults: Finding[];
  readonly warnings: Finding[];
  /** DTO classes that a type led to and that are described on their own, in the order of appearance. */
  readonly dataClasses: Map<SyntaxNode, SymbolHandle>;
}

/** Where a node stands, for people. */
export function lineOf(node: SyntaxNode, view: CompilerView): Pick<Finding, 'file' | 'line'> {
  const { path, text } = view.fileOf(node);
  return { file: path, line: text.slice(0, startOf(node, text)).split('\n').length };
}

/** Where a node begins in its file, behind the comments and spaces before it. */
export function startOf({ pos }: SyntaxNode, text: string): number {
  return pos + (/^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text.slice(pos))?.[0].length ?? 0);
}
