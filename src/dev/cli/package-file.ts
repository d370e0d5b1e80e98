import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * A separate file, because Jest may transform what a global setup loads to CommonJS, where `import.meta` does not work.
 */

/** A file of this package. Searches upwards for package.json, because the build moves this module. */
export function packageFile(path: string): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return join(folder, path);
}
