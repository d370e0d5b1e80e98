import type { CompilerView } from './compiler-view.js';

/** A compiler of the user's project; it keeps what it knows between two looks at the same project. */
export interface Compiler {
  readonly version: string;
  /** Reads the project as it is on disk now; the view before it is no longer valid. */
  open(project: string): CompilerView;
  close(): void;
}
