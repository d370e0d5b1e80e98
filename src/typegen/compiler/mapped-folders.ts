import { statSync } from 'node:fs';
import { posix } from 'node:path';
import type { ProjectOptions } from './project-options.js';

/**
 * The folders of the libraries that `paths` of tsconfig.json maps to their sources. What maps every name is no
 * library, and the framework is none of the project's.
 */
export function mappedFolders({ paths = {}, baseUrl, pathsBasePath }: ProjectOptions): readonly string[] {
  const base = baseUrl ?? pathsBasePath ?? '/';
  const folders = Object.entries(paths)
    .filter(([name]) => name !== '*' && !/^toolwright(\/|$)/.test(name))
    .flatMap(([, targets]) => targets.map((target) => folderOf(posix.resolve(base, target))));
  return [...new Set(folders)];
}

/** `libs/shop/src/*`, `libs/shop/src/index.ts` and `libs/shop/src` are all in `libs/shop/src`. */
function folderOf(target: string): string {
  const [before = target, after] = target.split('*');
  if (after !== undefined) return before.endsWith('/') ? before.slice(0, -1) : posix.dirname(before);
  const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory();
  return isFolder ? target : posix.dirname(target);
}
