import { posix } from 'node:path';

/** A project as its tsconfig.json describes it. */
export interface ProjectRoots {
  /** tsconfig.json, absolute, with `/`. */
  readonly project: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  /** Folders of libraries that it maps to their sources. */
  readonly mapped: readonly string[];
}

/**
 * Whether a source is the project's own: listed by tsconfig.json, or imported from somewhere in its folder or in
 * that of a mapped library. Sources of other packages of a workspace are theirs to generate for.
 */
export function isOwnSource(path: string, { project, roots, mapped }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  if (roots.includes(path)) return true;
  return [posix.dirname(project), ...mapped].some((folder) => path.startsWith(`${folder}/`));
}
