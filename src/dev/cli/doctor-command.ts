import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import type { StoredJob } from '../../core/contract/job-store.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withinLimits } from '../../core/kernel/async.js';
import { counted } from '../../core/kernel/counted.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import { registryOf, type ToolRegistry } from '../../run/call/tool-registry.js';
import type { ToolLoopConfig } from '../../run/loop/options.js';
import { generate } from '../typegen/generate.js';
import { loadCompiler } from '../typegen/load-compiler.js';
import {
  type Command,
  type CommandEnvironment,
  type Diagnosis,
  type LineValues,
  ok,
  parseOptions,
  printFindings,
  problem,
  STRING,
  UserFault,
} from './command.js';
import { readIfThere, readTarget, shownPath, TARGET_OPTIONS } from './generate-command.js';
import { NO_TOOLS, openModule, registryOfModule } from './open-module.js';
import { openStore } from './open-store.js';
import { packageFile } from './package-file.js';

const OPTIONS = { ...TARGET_OPTIONS, store: STRING, module: STRING };

/** `toolwright doctor`: checks the requirements of the package, and prints a line for each check. */
export const command: Command = async (args, environment) => {
  const values = parseOptions(args, OPTIONS);
  const { folder } = environment;
  const examine = async function* (): AsyncGenerator<Diagnosis> {
    // An older one is refused before any command is loaded.
    yield ok(`Node ${process.versions.node}`);
    yield* examineProject(values, folder);
    yield* examinePeers(folder);
    const tools = yield* examineModule(values.module, folder);
    if (values.store !== undefined) yield* examineStore(values.store, tools, environment);
  };
  let exitCode = 0;
  for await (const finding of examine()) exitCode = printFindings([finding], environment) || exitCode;
  return exitCode;
};

/** Checks the compiler, the decorator settings and the generated file; one of the last two is enough. */
async function* examineProject(
  values: LineValues<typeof OPTIONS>,
  folder: string,
): AsyncGenerator<Diagnosis> {
  if (values.project === undefined && !existsSync(join(folder, 'tsconfig.json')))
    return yield ok(`no tsconfig.json in ${folder}: TypeScript was not checked`);
  const target = readTarget(values, folder);
  const loaded = await loadCompiler(dirname(target.project));
  if (!loaded.ok) return yield problem(loaded.problem);
  const { compiler } = loaded;
  yield ok(`TypeScript ${compiler.version}`);
  try {
    const view = compiler.open(target.project);
    const [broken] = view.problems();
    if (broken !== undefined) return yield problem(broken);
    const config = shownPath(target.project, folder);
    const generated = generate({ ...target, view, folder: dirname(target.project) });
    const { outFile, text, tools, faults, missingImport } = generated;
    if (tools === 0 && faults.length === 0)
      return yield ok(
        `${config} has no class with a @Tool method (set --project to check another tsconfig.json)`,
      );
    const { experimentalDecorators, emitDecoratorMetadata } = view.options;
    yield experimentalDecorators
      ? ok(`${config}: experimentalDecorators is on`)
      : problem(
          `${config}: experimentalDecorators is off, but @Tool needs it: npx toolwright init turns it on`,
        );
    const file = shownPath(outFile, folder);
    const before = readIfThere(outFile);
    if (before === undefined)
      yield emitDecoratorMetadata
        ? ok(`${config}: emitDecoratorMetadata is on; there is no ${file}`)
        : problem(
            `${config}: emitDecoratorMetadata is off and there is no ${file}, so the types of parameters are unknown: run npx toolwright generate and import the file, or turn emitDecoratorMetadata on`,
          );
    else if (faults.length > 0)
      yield problem(`${file} cannot be updated: npx toolwright generate reports the reason`);
    else if (before === text) yield ok(`${file} is up to date`);
    else yield problem(`${file} is out of date: npx toolwright generate`);
    if (before !== undefined && missingImport !== undefined)
      yield problem(
        `no file imports ${file}, so its schemas are not used: add ${missingImport} to the file that starts the application`,
      );
  } finally {
    compiler.close();
  }
}

/** Checks installed peers; all peers are optional. */
function* examinePeers(folder: string): Generator<Diagnosis> {
  const { peerDependencies } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const fitting: string[] = [];
  const { resolve } = createRequire(join(folder, 'package.json'));
  for (const [name, range] of Object.entries(peerDependencies)) {
    // Without `resolve(name)`, because not every package exports its package.json.
    const folders = resolve.paths(name) ?? [];
    const manifest = folders.map((path) => join(path, name, 'package.json')).find(existsSync);
    if (manifest === undefined) continue;
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version?: string };
    if (version === undefined) continue;
    if (isInRange(version, range)) fitting.push(`${name} ${version}`);
    else
      yield problem(
        `${name} ${version} is installed, but ${range} is required: npm install '${name}@${range}'`,
      );
  }
  if (fitting.length > 0) yield ok(`peers: ${fitting.join(', ')}`);
}

/** Supports the ranges that the package uses: `^`, `>=`, `<` and `||`. */
function isInRange(version: string, range: string): boolean {
  const installed = numbersOf(version);
  const isWithin = (bound: string) => {
    const limit = numbersOf(bound);
    const first = limit.findIndex((number, index) => number !== installed[index]);
    const isLess = first >= 0 && (installed[first] ?? 0) < (limit[first] ?? 0);
    if (bound.startsWith('<')) return isLess;
    // In `^`, the first number that is not 0 must be equal.
    const breaking = limit.findIndex((number) => number > 0);
    return !isLess && (bound.startsWith('>=') || first < 0 || first > breaking);
  };
  return range.split('||').some((part) => part.trim().split(' ').every(isWithin));
}

function numbersOf(version: string): readonly number[] {
  const [, major = 0, minor = 0, patch = 0] = /(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(version) ?? [];
  return [major, minor, patch].map(Number);
}

/** Longer than a refused connection takes. */
const ENGINE_WITHIN_MS = 5_000;

/** Opens the module whose tools are compared with the jobs that wait for them. */
async function* examineModule(
  name: string | undefined,
  folder: string,
): AsyncGenerator<Diagnosis, NamedTools | undefined> {
  if (name === undefined) return undefined;
  try {
    await using module = await openModule(name, folder, 'operator');
    const { exports } = module;
    const config = isRecord(exports.config) ? (exports.config as Partial<ToolLoopConfig>) : {};
    const registry = registryOf(config.tools ?? registryOfModule(exports) ?? []);
    if (registry.count() === 0) throw new UserFault(`${name} exports ${NO_TOOLS}`, 1);
    yield ok(`${name}: ${counted(registry.count(), 'tool')}`);
    // The driver or the broker of an engine may be missing.
    const engine = exports.engine ?? config.engine;
    const { name: engineName = 'the engine', check } = Object(engine) as Partial<JobEngine>;
    if (JOB_ENGINE.accepts(engine) && check !== undefined)
      try {
        await withinLimits(check.call(engine), { signal: undefined, timeoutMs: ENGINE_WITHIN_MS });
        yield ok(`${engineName} answers`);
      } catch (error) {
        yield problem(
          `${engineName} does not answer: ${errorMessage(error)}: start it, correct its connection, or install the missing driver`,
        );
      } finally {
        await (engine as JobEngine).close({ timeoutMs: ENGINE_WITHIN_MS });
      }
    return { name, registry };
  } catch (error) {
    if (!(error instanceof UserFault || ToolwrightError.is(error))) throw error;
    yield problem(error.message);
    return undefined;
  }
}

interface NamedTools {
  readonly name: string;
  readonly registry: ToolRegistry;
}

async function* examineStore(
  name: string,
  tools: NamedTools | undefined,
  environment: CommandEnvironment,
): AsyncGenerator<Diagnosis> {
  try {
    await using store = await openStore(name, environment);
    yield ok('--store can be reached, and its tables are up to date');
    const { jobs } = store;
    const unfinished = await jobs.unsentJobs({ olderThanMs: 0, silentForMs: 0, limit: MOST_JOBS });
    if (unfinished.length === 0) return yield ok('no unfinished jobs');
    yield ok(`unfinished: ${jobsText(unfinished)}`);
    const { jobs: completed } = await jobs.listJobs({ status: 'completed', limit: MOST_JOBS });
    const begun = unfinished.filter(({ status }) => status === 'running');
    const active = new Set([...begun, ...completed].filter((job) => !isQuiet(job)).map(queueOf));
    for (const [queue, all] of Map.groupBy(unfinished, queueOf)) {
      const quiet = all.filter(isQuiet);
      if (quiet.length > 0 && !active.has(queue))
        yield problem(
          `no worker takes jobs of ${queue}: ${jobsText(quiet)}: start toolwright worker with a module that has these tools`,
        );
    }
    if (tools === undefined) return;
    const missing = unfinished.filter(({ job }) => tools.registry.get(job.tool) === undefined);
    if (missing.length > 0)
      yield problem(
        `${tools.name} does not have the tools of ${jobsText(missing)}: add them, or start a worker with a module that has them`,
      );
  } catch (error) {
    if (!(error instanceof UserFault)) throw error;
    yield problem(error.message);
  }
}

/** The most jobs to check: those without a change for the longest time. */
const MOST_JOBS = 1000;

/** Workers check all unfinished jobs about once a minute. */
const QUIET_MS = 150_000;

/** Whether a worker should have processed the job by now; the delay of a job is taken into account. */
function isQuiet({ status, addedAt, changedAt, options: { delay = 0 } }: StoredJob): boolean {
  return Date.now() - (status === 'waiting' ? addedAt + delay : changedAt) >= QUIET_MS;
}

function queueOf({ options }: StoredJob): string {
  return 'queue' in options ? `the queue '${options.queue}'` : 'the queue of the engine';
}

/** `3 jobs (mail, report), the oldest added 2 hours ago`. */
function jobsText(jobs: readonly StoredJob[]): string {
  const tools = [...new Set(jobs.map(({ job }) => job.tool))].sort();
  const oldest = Math.min(...jobs.map(({ addedAt }) => addedAt));
  const count = jobs.length < MOST_JOBS ? counted(jobs.length, 'job') : `${MOST_JOBS} jobs or more`;
  const ms = Date.now() - oldest;
  const [unit, length] = UNITS.find(([, one]) => ms >= one) ?? ['second', 1000];
  const time = counted(Math.max(0, Math.floor(ms / length)), unit);
  return `${count} (${tools.join(', ')}), the oldest added ${time} ago`;
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;
