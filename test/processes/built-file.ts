import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../structure/repository.js';

/** The absolute path of a build output. */
export function builtFile(path: `dist/${string}`): string {
  const file = join(ROOT, path);
  if (!existsSync(file)) throw new Error(`${path} is missing: run \`npm run build\` first`);
  return file;
}
