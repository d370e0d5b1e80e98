import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and what is missing above it. Node's own `recursive` never returns where the file system
 * answers ENOENT although the parent exists, as `/proc` does.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another assistant may have made it in between.
    if (!existsSync(path)) throw error;
  }
}
