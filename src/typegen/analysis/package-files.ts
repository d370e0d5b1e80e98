import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const names = new Map<string, string | undefined>();

/** Whether a file belongs to this package: installed, linked, or the repository itself. */
export function isOwnFile(path: string): boolean {
  return nearestPackage(dirname(path)) === 'toolwright';
}

/** Whether Node takes a TypeScript file for an ES module, once it is compiled. */
export function isModuleFile(path: string): boolean {
  const [, kind = ''] = /\.([cm]?)ts$/.exec(path) ?? [];
  return kind === '' ? nearestManifest(dirname(path)).type === 'module' : kind === 'm';
}

function nearestManifest(folder: string): Manifest {
  const found = manifestIn(folder);
  const parent = dirname(folder);
  return found ?? (parent === folder ? {} : nearestManifest(parent));
}

function nearestPackage(folder: string): string | undefined {
  if (names.has(folder)) return names.get(folder);
  const parent = dirname(folder);
  const name = manifestIn(folder)?.name;
  const found = name ?? (parent === folder ? undefined : nearestPackage(parent));
  names.set(folder, found);
  return found;
}

interface Manifest {
  readonly name?: string;
  readonly type?: string;
}

function manifestIn(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch {
    return undefined;
  }
}
