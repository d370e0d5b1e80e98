import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the repository, absolute. */
export const ROOT = join(import.meta.dirname, '..', '..');

const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git', '.assistant']);

/** The part of `package.json` that the rules read. */
export interface PackageManifest {
  readonly exports: Readonly<Record<string, string>>;
  readonly typesVersions: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly files: readonly string[];
  readonly sideEffects: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Text of a file of the repository. */
export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Whether the repository has a file or folder of that path. */
export function isThere(path: string): boolean {
  return existsSync(join(ROOT, path));
}

/** `package.json`, read anew. */
export function readManifest(): PackageManifest {
  return JSON.parse(readText('package.json')) as PackageManifest;
}

/** All files below a folder (`''`: the repository), relative to the repository, with `/`, sorted. */
export function listFiles(folder: string): string[] {
  if (!isThere(folder || '.')) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !NOT_OURS.has(name))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return listFiles(path);
      return entry.isFile() ? [path] : [];
    })
    .sort();
}

/** Names of the folders directly in a folder. */
export function listFolders(folder: string): string[] {
  if (!isThere(folder)) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NOT_OURS.has(entry.name))
    .map(({ name }) => name)
    .sort();
}
