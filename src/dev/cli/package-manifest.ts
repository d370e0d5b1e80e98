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

/** The build moves this file, so that the package.json is looked for upwards. */
export function packageManifest(folder: string = import.meta.dirname): PackageManifest {
  const manifest = join(folder, 'package.json');
  if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, 'utf8')) as PackageManifest;
  return packageManifest(dirname(folder));
}
