import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and its missing parents. Node's own `recursive` never returns if the file system answers ENOENT
 * although the parent exists, as `/proc` does.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another assistant may have created it in the meantime.
    if (!existsSync(path)) throw error;
  }
}
