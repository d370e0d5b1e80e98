import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * A separate file, because Jest may transform what a global setup loads to CommonJS, where `import.meta` does not work.
 */

/** The used fields of this package's package.json. */
interface PackageManifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** This package's package.json. */
export function packageManifest(): PackageManifest {
  return JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as PackageManifest;
}

/** A file of this package. Searches upwards for package.json, because the build moves this module. */
export function packageFile(path: string): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return join(folder, path);
}
