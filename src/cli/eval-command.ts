import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { InvalidOptionsError, ToolDeclarationError } from '../errors/author-fault.js';
import { isRecord, parsedJson } from '../kernel/json.js';
import { type Command, type CommandSurroundings, UserFault } from './command.js';
import {
  type AskOptions,
  type CaseCount,
  type CaseResult,
  createAsk,
  modelOf,
  runCases,
} from './eval-ask.js';
import { readCases } from './eval-cases.js';
import { NO_TOOLS, type OpenModule, openModule, registryOfModule } from './open-module.js';

/** `toolwright eval <module> <cases>`: whether a model chooses the right tools with the right arguments. */
export const evalCommand: Command = {
  async run(args, surroundings) {
    const options = readOptions(args);
    try {
      const module = await openModule(options.module, surroundings.folder);
      try {
        return await evaluate(options, module.exports, surroundings);
      } finally {
        await module.close();
      }
    } catch (fault) {
      if (!(fault instanceof ToolDeclarationError || fault instanceof InvalidOptionsError)) throw fault;
      surroundings.error(`${fault.message}\n`);
      return 1;
    }
  },
};

interface EvalOptions extends AskOptions {
  readonly module: string;
  readonly cases: string;
  readonly min: number;
  readonly out: string;
  /** Named by the user: it has to be there. */
  readonly baseline: string | undefined;
  readonly accept: boolean;
}

function readOptions(args: readonly string[]): EvalOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      model: { type: 'string' },
      runs: { type: 'string' },
      concurrency: { type: 'string' },
      min: { type: 'string' },
      out: { type: 'string' },
      baseline: { type: 'string' },
      accept: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const [module, cases, third] = positionals;
  if (module === undefined || cases === undefined || third !== undefined)
    throw new UserFault('eval takes a module and a file of cases: toolwright eval dist/tools.js cases.jsonl');
  const { url, model, runs, concurrency, min = '0', baseline, accept = false } = values;
  if (!(Number(min) >= 0 && Number(min) <= 1))
    throw new UserFault(`--min is a share from 0 to 1, not '${min}'`);
  return {
    ...{ module, cases, url, model, baseline, accept, min: Number(min) },
    runs: count('--runs', runs ?? '1'),
    concurrency: count('--concurrency', concurrency ?? '4'),
    out: values.out ?? beside(cases, 'result'),
  };
}

function count(option: string, text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new UserFault(`${option} is a whole number, 1 or more, not '${text}'`);
}

function beside(cases: string, what: string): string {
  return `${cases.replace(/\.jsonl?$/, '')}.${what}.json`;
}

async function evaluate(
  options: EvalOptions,
  exports: OpenModule['exports'],
  surroundings: CommandSurroundings,
): Promise<number> {
  const { folder } = surroundings;
  const registry = registryOfModule(exports);
  if (registry === undefined) throw new UserFault(`${options.module} exports ${NO_TOOLS}`, 1);
  const cases = readCases({ file: options.cases, folder, names: registry.list() });
  const baselineName = options.baseline ?? beside(options.cases, 'baseline');
  const isNeeded = options.baseline !== undefined && !options.accept;
  const baseline = readBaseline(baselineName, { folder, isNeeded });
  const model = modelOf(options, exports);
  const ask = await createAsk(options, { exports, registry, model, signal: surroundings.signal });
  const run = { model, cases: await runCases(cases, { ...options, ask, surroundings }) };

  const comparison = compareRuns(baseline, run);
  printRun(run, comparison, surroundings);
  writeJson(resolve(folder, options.out), { ...run, share: shareOf(run) });
  const isUnanswered = run.cases.some(({ unanswered }) => unanswered > 0);
  const isWorse = comparison.worse.length > 0 && !options.accept;
  if (!isWorse && !isUnanswered) writeJson(resolve(folder, baselineName), baselineOf(run));
  const isBelow = shareOf(run) < options.min;
  if (isBelow)
    surroundings.error(`toolwright: ${percent(shareOf(run))} passed, less than --min ${options.min}\n`);
  return isWorse || isUnanswered || isBelow ? 1 : 0;
}

/** Nothing that differs from run to run: it may be committed. */
function baselineOf({ model, cases }: EvalRun) {
  return { model, cases: cases.map(({ id, passed, runs }) => ({ id, passed, runs })) };
}

/** All cases, asked of a model. */
interface EvalRun {
  readonly model: string;
  readonly cases: readonly CaseResult[];
}

/** An earlier run. */
interface Baseline {
  readonly model: string;
  readonly cases: readonly CaseCount[];
}

/** How a run differs from an earlier one, each case in a line. */
interface RunComparison {
  readonly baseline: Baseline | undefined;
  /** Cases that passed and pass no longer. */
  readonly worse: readonly string[];
  readonly better: readonly string[];
  readonly added: number;
  readonly gone: number;
}

/** More than half of its runs: chance may give a run to a case either way. */
function hasPassed({ passed, runs }: CaseCount): boolean {
  return passed * 2 > runs;
}

/** The share of the cases that passed. */
function shareOf({ cases }: EvalRun): number {
  return cases.filter(hasPassed).length / cases.length;
}

function percent(share: number): string {
  return `${Math.floor(share * 1000) / 10} %`;
}

interface BaselinePlace {
  readonly folder: string;
  /** The user named it: it has to be there. */
  readonly isNeeded: boolean;
}

/** The run that others are compared with. */
function readBaseline(name: string, { folder, isNeeded }: BaselinePlace): Baseline | undefined {
  const file = resolve(folder, name);
  if (!existsSync(file)) {
    if (isNeeded) throw new UserFault(`there is no baseline ${name}; --accept makes it`, 1);
    return undefined;
  }
  const read = parsedJson(readFileSync(file, 'utf8'));
  if (!isRecord(read) || !Array.isArray(read.cases) || !read.cases.every(isCount))
    throw new UserFault(`${name} is no baseline of toolwright eval`, 1);
  return { model: String(read.model), cases: read.cases };
}

function isCount(value: unknown): value is CaseCount {
  if (!isRecord(value)) return false;
  return typeof value.id === 'string' && Number.isInteger(value.passed) && Number.isInteger(value.runs);
}

function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** What became better and worse, case by case. */
function compareRuns(baseline: Baseline | undefined, run: EvalRun): RunComparison {
  const before = new Map(baseline?.cases.map((one) => [one.id, one]));
  const changed = run.cases.flatMap((now) => {
    const old = before.get(now.id);
    if (old === undefined || hasPassed(old) === hasPassed(now)) return [];
    return [{ isBetter: hasPassed(now), line: `${shortened(now.id)} (${ratio(old)}, now ${ratio(now)})` }];
  });
  const now = new Set(run.cases.map(({ id }) => id));
  return {
    baseline,
    worse: changed.filter(({ isBetter }) => !isBetter).map(({ line }) => line),
    better: changed.filter(({ isBetter }) => isBetter).map(({ line }) => line),
    added: run.cases.filter(({ id }) => !before.has(id)).length,
    gone: [...before.keys()].filter((id) => !now.has(id)).length,
  };
}

const MOST_SHOWN = 60;

function shortened(id: string): string {
  const line = id.replace(/\s+/g, ' ');
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)}…` : line;
}

function ratio({ passed, runs }: CaseCount): string {
  return `${passed}/${runs}`;
}

/** A table of the tools, what differed in each case that failed, and how that differs from the baseline. */
function printRun(run: EvalRun, comparison: RunComparison, { out }: CommandSurroundings): void {
  const byTool = Map.groupBy(run.cases, ({ tool }) => tool);
  const row = (name: string, cases: readonly CaseResult[]): readonly string[] => {
    const passed = cases.filter(hasPassed).length;
    return [name, String(passed), String(cases.length - passed)];
  };
  const rows = [...byTool].map(([tool, cases]) => row(tool, cases));
  const foot = row(`${run.cases.length} in all`, run.cases);
  for (const line of aligned([['expected', 'passed', 'failed'], ...rows, foot])) out(`${line}\n`);
  const imperfect = run.cases.filter(({ passed, runs }) => passed < runs);
  if (imperfect.length > 0) out('\n');
  for (const one of imperfect)
    out(`${hasPassed(one) ? 'flaky' : 'FAILED'} ${ratio(one)} ${shortened(one.id)}\n    ${one.difference}\n`);
  for (const line of comparisonLines(run, comparison)) out(`${line}\n`);
}

function comparisonLines(run: EvalRun, { baseline, ...changes }: RunComparison): readonly string[] {
  if (baseline === undefined) return ['', 'No baseline yet: this run is it.'];
  const other = baseline.model === run.model ? '' : ` (of ${baseline.model})`;
  const { worse, better, added, gone } = changes;
  const counts = `${worse.length} worse, ${better.length} better, ${added} new, ${gone} gone`;
  return [
    '',
    `Since the baseline${other}: ${counts}`,
    ...worse.map((line) => `  worse: ${line}`),
    ...better.map((line) => `  better: ${line}`),
  ];
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
}
