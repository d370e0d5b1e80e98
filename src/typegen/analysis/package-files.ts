import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const names = new Map<string, string | undefined>();

/** Whether a file belongs to this package: installed, linked, or the repository itself. */
export function isOwnFile(path: string): boolean {
  return nearestPackage(dirname(path)) === 'toolwright';
}

function nearestPackage(folder: string): string | undefined {
  if (names.has(folder)) return names.get(folder);
  const manifest = join(folder, 'package.json');
  const parent = dirname(folder);
  const name = existsSync(manifest) ? nameIn(manifest) : undefined;
  const found = name ?? (parent === folder ? undefined : nearestPackage(parent));
  names.set(folder, found);
  return found;
}

function nameIn(manifest: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly name?: string }).name;
  } catch {
    return undefined;
  }
}
