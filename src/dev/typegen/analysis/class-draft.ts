import { type CompilerView, lineAt, type SymbolHandle, type SyntaxNode } from '../compiler/load-compiler.js';
import type { CodeReference, WrittenSchema } from '../types/type-walk.js';

/** The content of the generated file for a class. */
export interface ClassDraft {
  readonly reference: CodeReference;
  /** Classes of constructor parameters; `undefined` for a parameter that is not a class. */
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

/** A parameter of a tool method. */
export interface ParameterDraft {
  /** Absent if it is destructured. */
  readonly name?: string;
  readonly inject?: 'context' | 'signal';
  readonly optional: boolean;
  readonly rest: boolean;
  readonly schema?: WrittenSchema;
}

/** A message for the author, with its place. */
export interface Finding {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  /** `OrderTools.findOrders, parameter page`. */
  readonly where: string;
  /** Path within the type: `page.filters[]`. */
  readonly path?: string;
  readonly problem: string;
  readonly fix: string;
}

/** Shared by all parts of one run over a project. */
export interface ProjectScan {
  readonly view: CompilerView;
  readonly faults: Finding[];
  readonly warnings: Finding[];
  /** DTO classes that types refer to and that get descriptions of their own, in order of appearance. */
  readonly dataClasses: Map<SyntaxNode, SymbolHandle>;
}

/** The place of a node, for people. */
export function lineOf(node: SyntaxNode, view: CompilerView): Pick<Finding, 'file' | 'line'> {
  const { path, text } = view.fileOf(node);
  return { file: path, line: lineAt(text, startOf(node, text)) };
}

/** Where a node starts in its file, after comments and spaces. */
export function startOf({ pos }: SyntaxNode, text: string): number {
  return pos + (/^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/.exec(text.slice(pos))?.[0].length ?? 0);
}
