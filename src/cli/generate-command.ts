import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Compiler } from '../typegen/compiler/compiler.js';
import type { CompilerView } from '../typegen/compiler/compiler-view.js';
import { loadCompiler } from '../typegen/compiler/load-compiler.js';
import { mappedFolders } from '../typegen/compiler/mapped-folders.js';
import { type Generated, generate } from '../typegen/generate.js';
import type { ImportEnding } from '../typegen/printing/import-ending.js';
import type { Command, CommandSurroundings } from './command.js';
import { describeFindings } from './describe-findings.js';
import { checkGeneratedFile, shownPath, writeGeneratedFile } from './generated-file.js';
import { UserFault } from './user-fault.js';
import { type Watched, watchProject } from './watch-project.js';

/** What the command line of `generate` says. */
interface GenerateOptions {
  /** tsconfig.json, absolute. */
  readonly project: string;
  readonly outFile?: string;
  readonly ending?: ImportEnding;
  readonly check: boolean;
  readonly watch: boolean;
  /** Warnings keep the file from being written, too. */
  readonly strict: boolean;
}

/** `toolwright generate`: reads the project's types and writes, or checks, the generated file. */
export const generateCommand: Command = {
  async run(args, surroundings) {
    const options = readOptions(args, surroundings);
    const loaded = await loadCompiler(dirname(options.project));
    if (!loaded.ok) throw new UserFault(loaded.problem, 1);
    const { compiler } = loaded;
    try {
      if (!options.watch) return generateOnce(compiler, options, surroundings).exitCode;
      await watchProject(dirname(options.project), {
        signal: surroundings.signal,
        onChange: () => generateAgain(compiler, options, surroundings),
      });
      return 0;
    } finally {
      compiler.close();
    }
  },
};

/** While the project is worked on, it may be in any state, and the next change may mend it. */
function generateAgain(
  compiler: Compiler,
  options: GenerateOptions,
  surroundings: CommandSurroundings,
): Watched {
  try {
    return generateOnce(compiler, options, surroundings);
  } catch (error) {
    surroundings.error(`toolwright: ${error instanceof Error ? error.message : String(error)}\n`);
    return { libraries: [] };
  }
}

function readOptions(args: readonly string[], { folder }: CommandSurroundings): GenerateOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      project: { type: 'string', short: 'p', default: 'tsconfig.json' },
      out: { type: 'string', short: 'o' },
      'import-ending': { type: 'string' },
      check: { type: 'boolean', default: false },
      watch: { type: 'boolean', short: 'w', default: false },
      strict: { type: 'boolean', default: false },
    },
  });
  const { out, check, watch, strict, 'import-ending': named } = values;
  if (check && watch) throw new UserFault('--check looks once and --watch for ever: one of them');
  if (out !== undefined && !/(?<!\.d)\.[cm]?ts$/.test(out))
    throw new UserFault(`--out ${out} is no TypeScript file`);
  const ending = named === undefined ? undefined : readEnding(named);
  const outFile = out === undefined ? undefined : slashed(resolve(folder, out));
  return { project: findProject(resolve(folder, values.project)), outFile, ending, check, watch, strict };
}

const ENDINGS: Readonly<Record<string, ImportEnding>> = { js: '.js', ts: '.ts', none: '' };

function readEnding(name: string): ImportEnding {
  const ending = Object.hasOwn(ENDINGS, name) ? ENDINGS[name] : undefined;
  if (ending === undefined) throw new UserFault(`--import-ending is js, ts or none, not '${name}'`);
  return ending;
}

/** tsconfig.json, or the folder that it is in. */
function findProject(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return findProject(join(path, 'tsconfig.json'));
  if (stats === undefined) throw new UserFault(`there is no ${path}; --project names the tsconfig.json`);
  return slashed(path);
}

/** What one look at the project led to. */
interface Outcome extends Watched {
  readonly exitCode: 0 | 1;
}

function generateOnce(
  compiler: Compiler,
  options: GenerateOptions,
  surroundings: CommandSurroundings,
): Outcome {
  const { project, outFile, ending, check, strict } = options;
  const { folder, error, isTerminal } = surroundings;
  if (isTerminal) error('reading the types …\r');
  const view = compiler.open(project);
  if (isTerminal) error('\u001b[2K');
  const libraries = outerLibraries(view);
  const problems = view.problems();
  if (problems.length > 0) {
    error(`${problems.map((problem) => `toolwright: ${problem}`).join('\n')}\n`);
    return { exitCode: 1, libraries };
  }
  if (view.projectFiles().length === 0) {
    error(
      `toolwright: ${shownPath(project, folder)} has no source files of its own; --project names the one that has\n`,
    );
    return { exitCode: 1, libraries };
  }
  const generated = generate({ view, folder: posixFolder(project), outFile, ending });
  const { faults, warnings } = generated;
  if (faults.length > 0 || (strict && warnings.length > 0)) {
    error(describeFindings(strict ? [...faults, ...warnings] : faults, folder));
    return { exitCode: 1, libraries, outFile: generated.outFile };
  }
  for (const warning of warnings) error(`warning: ${describeFindings([warning], folder)}`);
  if (generated.tools === 0) {
    error(`toolwright: ${shownPath(project, folder)} has no exported class with a @Tool method\n`);
    return { exitCode: 1, libraries };
  }
  return {
    exitCode: check ? checkGeneratedFile(generated, surroundings) : write(generated, surroundings),
    outFile: generated.outFile,
    libraries,
  };
}

/** Libraries in the project’s own folder are watched with it. */
function outerLibraries({ folder, options }: CompilerView): readonly string[] {
  return mappedFolders(options).filter((one) => !`${one}/`.startsWith(`${folder}/`) && existsSync(one));
}

function write(generated: Generated, { folder, out }: CommandSurroundings): 0 {
  const isChanged = writeGeneratedFile(generated, folder);
  const path = shownPath(generated.outFile, folder);
  const count = `${counted(generated.toolsets, 'toolset')}, ${counted(generated.tools, 'tool')}`;
  out(`${path} ${isChanged ? 'written' : 'is up to date'}: ${count}\n`);
  return 0;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function posixFolder(project: string): string {
  return slashed(dirname(project));
}

/** The compilers write paths with slashes on every system. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}
