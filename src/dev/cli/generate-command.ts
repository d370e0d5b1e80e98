import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { structuredPatch } from 'diff';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { type Finding, GENERATED_MARK } from '../typegen/describe-classes.js';
import { type Generated, generate, type ImportEnding } from '../typegen/generate.js';
import { type Compiler, loadCompiler, mappedFolders } from '../typegen/load-compiler.js';
import {
  type Command,
  type CommandEnvironment,
  FLAG,
  type LineValues,
  parseOptions,
  STRING,
  UserFault,
} from './command.js';
import { type Watched, watchProject } from './watch-project.js';

/** The project, and the file to generate. */
interface GenerateTarget {
  /** tsconfig.json, absolute. */
  readonly project: string;
  readonly outFile?: string;
  readonly ending?: ImportEnding;
}

/** Options of `generate` on the command line. */
interface GenerateOptions extends GenerateTarget {
  readonly check: boolean;
  /** Warnings prevent writing, too. */
  readonly strict: boolean;
}

/** `toolwright generate`: reads the project's types and writes, or checks, the generated file. */
export const command: Command = async (args, environment) => {
  const values = parseOptions(args, {
    ...TARGET_OPTIONS,
    check: { ...FLAG, default: false },
    watch: { ...FLAG, short: 'w', default: false },
    strict: { ...FLAG, default: false },
  });
  const { check, watch, strict } = values;
  if (check && watch) throw new UserFault('use --check or --watch, not both');
  const options = { ...readTarget(values, environment.folder), check, strict };
  const loaded = await loadCompiler(dirname(options.project));
  if (!loaded.ok) throw new UserFault(loaded.problem, 1);
  const { compiler } = loaded;
  try {
    if (!watch) return generateOnce(compiler, options, environment).exitCode;
    await watchProject([dirname(options.project)], {
      signal: environment.signal,
      isSource: (path) => /(\.[cm]?tsx?|tsconfig[^/\\]*\.json)$/.test(path),
      isIgnored: (path) => /^(node_modules|\.git)$/.test(basename(path)),
      onChange: () => generateAgain(compiler, options, environment),
    });
    return 0;
  } finally {
    compiler.close();
  }
};

/** Generates, and prints errors: the next change may fix them. */
export function generateAgain(
  compiler: Compiler,
  options: GenerateOptions,
  environment: CommandEnvironment,
): Watched {
  try {
    return generateOnce(compiler, options, environment);
  } catch (error) {
    environment.error(`toolwright: ${errorMessage(error)}\n`);
    return { libraries: [] };
  }
}

/** Options that identify the file. */
export const TARGET_OPTIONS = {
  project: { ...STRING, short: 'p' },
  out: { ...STRING, short: 'o' },
  'import-ending': STRING,
};

/** @throws UserFault for an invalid project or file. */
export function readTarget(
  { project = 'tsconfig.json', out, 'import-ending': named }: LineValues<typeof TARGET_OPTIONS>,
  folder: string,
): GenerateTarget {
  if (out !== undefined && !/(?<!\.d)\.[cm]?ts$/.test(out))
    throw new UserFault(`--out ${out} is not a TypeScript file`);
  const ending = named === undefined ? undefined : ENDINGS.get(named);
  if (named !== undefined && ending === undefined)
    throw new UserFault(`--import-ending must be js, ts or none, not '${named}'`);
  const outFile = out === undefined ? undefined : slashed(resolve(folder, out));
  return { project: findProject(resolve(folder, project)), outFile, ending };
}

const ENDINGS = new Map<string, ImportEnding>([
  ['js', '.js'],
  ['ts', '.ts'],
  ['none', ''],
]);

/** Finds tsconfig.json at a path or in a folder. */
function findProject(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return findProject(join(path, 'tsconfig.json'));
  if (stats === undefined) throw new UserFault(`${path} does not exist; set --project to the tsconfig.json`);
  return slashed(path);
}

/** The result of one generation. */
interface Outcome extends Watched {
  readonly exitCode: 0 | 1;
}

function generateOnce(
  compiler: Compiler,
  options: GenerateOptions,
  environment: CommandEnvironment,
): Outcome {
  const { project, outFile, ending, check, strict } = options;
  const { folder, error, isTerminal } = environment;
  if (isTerminal) error('reading the types …\r');
  const view = compiler.open(project);
  if (isTerminal) error('\u001b[2K');
  // Those in the project's folder are watched anyway.
  const libraries = mappedFolders(view.options).filter(
    (path) => !`${path}/`.startsWith(`${view.folder}/`) && existsSync(path),
  );
  const failed = (text: string, generated?: Generated): Outcome => {
    error(text);
    return { exitCode: 1, libraries, outFile: generated?.outFile };
  };
  const problems = view.problems();
  if (problems.length > 0) return failed(problems.map((problem) => `toolwright: ${problem}\n`).join(''));
  const config = shownPath(project, folder);
  if (view.projectFiles().length === 0)
    return failed(
      `toolwright: ${config} has no source files of its own; set --project to the tsconfig.json that has them\n`,
    );
  const generated = generate({ view, folder: dirname(project), outFile, ending });
  const { faults, warnings } = generated;
  if (faults.length > 0 || (strict && warnings.length > 0))
    return failed(describeFindings(strict ? [...faults, ...warnings] : faults, folder), generated);
  for (const warning of warnings) error(`warning: ${describeFindings([warning], folder)}`);
  if (generated.tools === 0) {
    error(`toolwright: nothing was generated, because ${config} has no exported class with a @Tool method\n`);
    // A project whose first tool is not written yet must build; an old file would describe classes that are gone.
    return { exitCode: existsSync(generated.outFile) ? 1 : 0, libraries };
  }
  return {
    exitCode: check ? checkGeneratedFile(generated, environment) : write(generated, environment),
    outFile: generated.outFile,
    libraries,
  };
}

/** Compilers use `/` in paths on every system. */
function slashed(path: string): string {
  return path.replaceAll('\\', '/');
}

/** All findings as one block; numbered if there are several. */
function describeFindings(findings: readonly Finding[], folder: string): string {
  const [only, second] = findings;
  if (only !== undefined && second === undefined) return `${describeOne(only, folder)}\n`;
  const numbered = findings.map((finding, index) => `${index + 1}. ${describeOne(finding, folder)}\n`);
  return [`${findings.length} problems prevent the generation:\n`, ...numbered].join('\n');
}

function describeOne({ file, line, where, path, problem, fix }: Finding, folder: string): string {
  const place = `${shownPath(file, folder)}:${line}`;
  const subject = path ? `${path} ${problem}` : problem;
  return `${place} ${where}: ${subject}.\n   Write instead: ${fix}`;
}

/** Writes the file; an unchanged file keeps its modification time, so that watchers do not react. */
function write(generated: Generated, { folder, out }: CommandEnvironment): 0 {
  const { outFile, text, toolsets, tools, missingImport } = generated;
  const path = shownPath(outFile, folder);
  const before = readIfThere(outFile);
  if (before !== text) {
    if (before?.trim() && !before.includes(GENERATED_MARK))
      throw new UserFault(
        `${path} is not a generated file and was not overwritten: set --out to another file`,
      );
    if (before === undefined && isLink(outFile))
      throw new UserFault(`${path} is a broken link and was not written: remove it`);
    try {
      mkdirSync(dirname(outFile), { recursive: true });
      replaceFile(before === undefined ? outFile : realpathSync(outFile), text);
    } catch (error) {
      throw new UserFault(`${path} cannot be written: ${errorMessage(error)}`, 1);
    }
  }
  const count = `${counted(toolsets, 'toolset')}, ${counted(tools, 'tool')}`;
  out(`${path} ${before === text ? 'is up to date' : 'written'}: ${count}\n`);
  if (missingImport !== undefined)
    out(`No file imports it. Add to the file that starts the application: ${missingImport}\n`);
  return 0;
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** Replaces a file atomically, so that readers never see a part of it. */
function replaceFile(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** For CI: returns 1 and prints a diff if the file is outdated. */
function checkGeneratedFile({ outFile, text }: Generated, { folder, out, error }: CommandEnvironment): 0 | 1 {
  const path = shownPath(outFile, folder);
  const before = readIfThere(outFile);
  if (before === text) return 0;
  if (before !== undefined) out(unifiedDiff({ path, before, after: text }));
  error(
    `toolwright: ${path} ${before === undefined ? 'does not exist' : 'is out of date'}: npx toolwright generate\n`,
  );
  return 1;
}

/** A path as the user would write it. */
export function shownPath(file: string, folder: string): string {
  return relative(folder, file).replaceAll('\\', '/');
}

/** Reads a file, with its line endings as generated: Git may have changed them. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return undefined;
  }
}

/** A file, before and after a change. */
export interface FileEdit {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** A diff with more edits takes too long to compute: it shows that all lines were replaced. */
const MOST_EDITS = 2_000;

/** A diff of two texts in the format of `diff -u`. */
export function unifiedDiff({ path, before, after }: FileEdit): string {
  const [old = '', now = ''] = [before, after].map((text) =>
    text === '' || text.endsWith('\n') ? text : `${text}\n`,
  );
  const patch = structuredPatch(path, path, old, now, undefined, undefined, {
    context: 3,
    maxEditLength: MOST_EDITS,
  });
  const removed = old.split('\n').slice(0, -1);
  const added = now.split('\n').slice(0, -1);
  const replaced = { oldStart: 1, oldLines: removed.length, newStart: 1, newLines: added.length };
  const lines = [...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)];
  const hunks = (patch?.hunks ?? [{ ...replaced, lines }]).flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines,
  ]);
  return [`--- ${path}`, `+++ ${path} (generated now)`, ...hunks, ''].join('\n');
}
