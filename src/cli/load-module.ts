import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UserFault } from './user-fault.js';

/** Loads a module as the user names it: a file below the folder, or a package that the folder has. */
export async function loadModule(name: string, folder: string): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(folder, name);
  const path = existsSync(file) ? file : resolvePackage(name, folder);
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new UserFault(`${name} cannot be loaded: ${reason}`, 1);
  }
}

function resolvePackage(name: string, folder: string): string {
  try {
    return createRequire(pathToFileURL(join(folder, 'package.json'))).resolve(name);
  } catch {
    throw new UserFault(`there is no module ${name}`, 1);
  }
}
