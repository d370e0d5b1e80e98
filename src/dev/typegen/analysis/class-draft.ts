import type { ClassDescription } from '../../../core/contract/declaration.js';
import { type CompilerView, lineAt, type SymbolHandle, type SyntaxNode } from '../compiler/load-compiler.js';
import type { CodeReference } from '../types/type-walk.js';

/** The content of the generated file for a class; references in it are {@link CodeReference}s. */
export interface ClassDraft extends ClassDescription {
  readonly reference: CodeReference;
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
  /** Classes that are injected into others, in order of appearance. */
  readonly services: Set<SyntaxNode>;
}

export function openScan(view: CompilerView): ProjectScan {
  return { view, faults: [], warnings: [], dataClasses: new Map(), services: new Set() };
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
