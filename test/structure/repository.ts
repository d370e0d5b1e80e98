import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The absolute path of the repository. */
export const ROOT = join(import.meta.dirname, '..', '..');

const IGNORED = new Set(['node_modules', 'dist', 'coverage', '.git', '.assistant']);

/** The properties of `package.json` that the tests use. */
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

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export function pathExists(path: string): boolean {
  return existsSync(join(ROOT, path));
}

export function readManifest(): PackageManifest {
  return JSON.parse(readText('package.json')) as PackageManifest;
}

/** All files below a folder (`''` is the repository), as sorted paths relative to the repository. */
export function listFiles(folder: string): string[] {
  if (!pathExists(folder || '.')) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !IGNORED.has(name))
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return listFiles(path);
      return entry.isFile() ? [path] : [];
    })
    .sort();
}

export function listFolders(folder: string): string[] {
  if (!pathExists(folder)) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !IGNORED.has(entry.name))
    .map(({ name }) => name)
    .sort();
}
