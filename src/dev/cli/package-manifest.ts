import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * A file of its own: Jest turns what a global setup loads into CommonJS where a project transforms this package, and
 * nothing with `import.meta` survives that.
 */

/** What is read of the package.json of this package. */
interface PackageManifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** The package.json of this package. */
export function packageManifest(): PackageManifest {
  return JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as PackageManifest;
}

/** A file of this package. The build moves this module, so that the folder with the package.json is looked for upwards. */
export function packageFile(path: string): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return join(folder, path);
}
