import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * A file of its own: Jest turns what a global setup loads into CommonJS where a project transforms this package, and
 * nothing with `import.meta` survives that.
 */

/** The version of this package; the build moves this file, so that its package.json is looked for upwards. */
export function packageVersion(folder: string = import.meta.dirname): string {
  const manifest = join(folder, 'package.json');
  if (existsSync(manifest))
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
  return packageVersion(dirname(folder));
}
