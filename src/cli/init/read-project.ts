import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { loadCompiler } from '../../typegen/compiler/load-compiler.js';
import { UserFault } from '../user-fault.js';
import { readJson, valueAt } from './value-at.js';

/** A project, as far as it has to be known to set it up. */
export interface FoundProject {
  /** The tsconfig.json that has the sources, relative. */
  readonly tsconfig: string;
  readonly experimentalDecorators: boolean;
  /** Texts of the files that say how it is built and tested, by relative path. */
  readonly files: ReadonlyMap<string, string>;
}

const CONFIGURATION =
  /^(package\.json|nest-cli\.json|jest\.config\.(json|[cm]?[jt]s)|(vite|vitest|webpack|rspack|rollup|rolldown|tsdown)\.config\.[cm]?[jt]s)$/;

/**
 * Reads the project of a folder.
 *
 * @throws UserFault where there is no package.json, no tsconfig.json or no compiler.
 */
export async function readProject(folder: string): Promise<FoundProject> {
  if (!existsSync(join(folder, 'package.json')))
    throw new UserFault(`there is no package.json in ${folder}`, 1);
  const tsconfig = sourceConfig(folder);
  const names = [
    tsconfig,
    ...readdirSync(folder)
      .filter((name) => CONFIGURATION.test(name))
      .sort(),
  ];
  const texts = names.map((name) => [name, read(join(folder, name))] as const);
  return {
    tsconfig,
    experimentalDecorators: await hasDecorators(join(folder, tsconfig)),
    files: new Map(texts),
  };
}

/** Of a solution that only refers to others, the first that has sources. */
function sourceConfig(folder: string): string {
  if (!existsSync(join(folder, 'tsconfig.json')))
    throw new UserFault(`there is no tsconfig.json in ${folder}`, 1);
  const config = readJson(read(join(folder, 'tsconfig.json')));
  const references = valueAt(config, ['references']);
  const files = valueAt(config, ['files']);
  if (!Array.isArray(references) || !Array.isArray(files) || files.length > 0) return 'tsconfig.json';
  const paths = references.flatMap((one: unknown) => {
    const path = valueAt(one, ['path']);
    return typeof path === 'string' ? configAt(resolve(folder, path)) : [];
  });
  const [first] = paths.filter((path) => existsSync(path));
  return first === undefined ? 'tsconfig.json' : relative(folder, first).replaceAll('\\', '/');
}

function configAt(path: string): string {
  return path.endsWith('.json') ? path : join(path, 'tsconfig.json');
}

/** By the compiler itself: the option may be inherited. */
async function hasDecorators(tsconfig: string): Promise<boolean> {
  const loaded = await loadCompiler(dirname(tsconfig));
  if (!loaded.ok) throw new UserFault(loaded.problem, 1);
  try {
    return loaded.compiler.open(tsconfig.replaceAll('\\', '/')).options.experimentalDecorators === true;
  } finally {
    loaded.compiler.close();
  }
}

function read(path: string): string {
  return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
}
