import { posix } from 'node:path';

/** A project as its tsconfig.json describes it. */
export interface ProjectRoots {
  /** tsconfig.json, absolute, with `/`. */
  readonly project: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
}

/**
 * Whether a source is the project's own: listed by tsconfig.json, or imported from somewhere in its folder.
 * Sources of other packages of a workspace are theirs to generate for.
 */
export function isOwnSource(path: string, { project, roots }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  return roots.includes(path) || path.startsWith(`${posix.dirname(project)}/`);
}
