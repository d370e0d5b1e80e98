import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { UserFault } from './user-fault.js';

/** Loads a module as the user names it: a file below the folder, or a package that the folder has. */
export async function loadModule(name: string, folder: string): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(folder, name);
  const path = existsSync(file) ? file : resolvePackage(name, folder);
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    throw new UserFault(`${name} cannot be loaded: ${reasonOf(error)}${adviceFor(path)}`, 1);
  }
}

/** Of Node's own errors the first line says it; the framework's name every mistake in a line of its own. */
function reasonOf(error: unknown): string {
  if (ToolwrightError.is(error)) return error.message;
  return (error instanceof Error ? error.message : String(error)).split('\n', 1).join();
}

/** Node strips types; decorators, enums and parameter properties it cannot run. */
function adviceFor(path: string): string {
  if (!/\.[cm]?tsx?$/.test(path)) return '';
  return ' (TypeScript has to be built first: name the JavaScript file that the compiler writes)';
}

function resolvePackage(name: string, folder: string): string {
  try {
    return createRequire(pathToFileURL(join(folder, 'package.json'))).resolve(name);
  } catch {
    throw new UserFault(`there is no module ${name}`, 1);
  }
}
