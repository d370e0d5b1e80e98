import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { type LLMProvider, type Message, type ToolSchema } from '../../core/contract/llm-provider.js';
import { causesOf, errorMessage } from '../../core/kernel/error-message.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import {
  ANY_VALUE,
  BOOLEAN,
  FILLED_TEXT,
  LIST,
  type OptionTable,
  objectOf,
  optionFaults,
  optionTable,
  RECORD,
  type RulesOf,
  required,
} from '../../core/kernel/options.js';
import { type Completion, type CompletionBlock, complete } from '../../run/loop/complete.js';
import { historyFaults } from '../../run/loop/given-history.js';
import { createChecker } from '../../tools/checking/checker.js';
import { readArguments } from '../../tools/checking/read-arguments.js';
import {
  alignedRows,
  type Command,
  type CommandEnvironment,
  FLAG,
  parseLine,
  STRING,
  UserFault,
} from './command.js';
import { type ModuleSettings, requiredRegistry, settingsOfModule, withModule } from './open-module.js';

/** An expected call; only the named arguments are compared, with a value or a matcher. */
interface ExpectedCall {
  readonly tool: string;
  readonly arguments?: JsonObject;
}

/** Messages, and exactly the calls that the model should make, in any order. */
interface EvalCase {
  readonly id: string;
  readonly messages: readonly Message[];
  readonly calls: readonly ExpectedCall[];
}

/** A line of a file with cases. */
interface WrittenCase {
  readonly id?: string;
  readonly prompt?: string;
  readonly messages?: readonly Message[];
  readonly expect: WrittenExpectation;
}

interface WrittenExpectation extends Partial<ExpectedCall> {
  readonly tools?: readonly (string | ExpectedCall)[];
  readonly noTool?: boolean;
}

const CALL = { tool: FILLED_TEXT, arguments: RECORD };
const CASE = optionTable<WrittenCase>(
  'a case',
  {
    id: FILLED_TEXT,
    prompt: FILLED_TEXT,
    messages: LIST,
    expect: required(
      objectOf<WrittenExpectation>(
        { ...CALL, tools: LIST, noTool: BOOLEAN },
        { fix: '{ tool: "…", arguments: { … } }', meant: { args: 'arguments', name: 'tool' } },
      ),
    ),
  },
  { input: 'prompt', question: 'prompt', expected: 'expect' },
);
const EXPECTED_CALL = optionTable<ExpectedCall>('an expected call', {
  tool: required(FILLED_TEXT),
  arguments: RECORD,
});

/**
 * Reads the cases of a file, one JSON line each; they may expect the tools with these names.
 *
 * @throws UserFault with the line of the first mistake.
 */
function readCases(file: string, folder: string, names: readonly string[]): readonly EvalCase[] {
  const path = resolve(folder, file);
  if (!existsSync(path)) throw new UserFault(`there is no file ${file}`, 1);
  const cases = new Map<string, EvalCase>();
  for (const [index, text] of readFileSync(path, 'utf8').split('\n').entries()) {
    if (text.trim() === '') continue;
    try {
      const written = parsedJson(text);
      if (!isRecord(written)) throw new UserFault('a case must be a JSON object on one line');
      checkFields(written, CASE);
      const { id: named, prompt, messages: given, expect } = written as unknown as WrittenCase;
      if ((prompt === undefined) === (given === undefined))
        throw new UserFault('a case needs either a prompt or messages, not both');
      const messages = given ?? [{ role: 'user' as const, content: prompt ?? '' }];
      const [wrong] = historyFaults(messages, 'refuse');
      if (wrong !== undefined) throw new UserFault(wrong.problem);
      const calls = callsOf(expect, names);
      // Without an id: the last question, with a number if another case has the same.
      const asked = messages.findLast(({ role }) => role === 'user')?.content;
      const question = typeof asked === 'string' ? asked : JSON.stringify(asked ?? 'case');
      let id = named ?? question;
      for (let number = 2; named === undefined && cases.has(id); number++) id = `${question} (${number})`;
      if (cases.has(id)) throw new UserFault(`another case has the id '${id}'`);
      cases.set(id, { id, messages, calls });
    } catch (error) {
      if (!(error instanceof UserFault)) throw error;
      throw new UserFault(`${file}:${index + 1}: ${error.message}`, 1);
    }
  }
  if (cases.size === 0) throw new UserFault(`${file} has no cases`, 1);
  return [...cases.values()];
}

/** @throws UserFault with the first mistake. */
function callsOf(expect: WrittenExpectation, names: readonly string[]): readonly ExpectedCall[] {
  const { tool, tools = [], noTool, arguments: args } = expect;
  if ([tool, expect.tools, noTool].filter((one) => one !== undefined).length !== 1 || noTool === false)
    throw new UserFault('expect needs exactly one of tool, tools and noTool: true');
  if (tool === undefined && args !== undefined)
    throw new UserFault('expect has arguments but no tool; write the arguments into each entry of tools');
  if (expect.tools?.length === 0) throw new UserFault('expect.tools is empty; write noTool: true');
  const calls = tools.map((call) => (typeof call === 'string' ? { tool: call } : call));
  for (const call of calls) checkFields(call, EXPECTED_CALL);
  if (tool !== undefined) calls.push(args === undefined ? { tool } : { tool, arguments: args });
  for (const call of calls) {
    if (!names.includes(call.tool)) {
      const near = misspeltName(call.tool, names);
      const meant = near === undefined ? '' : ` (did you mean '${near}'?)`;
      throw new UserFault(`there is no tool '${call.tool}'${meant}`);
    }
    checkMatchers(call.arguments, 'arguments');
  }
  return calls;
}

const ONLY_TRUE = { accepts: (value: unknown) => value === true, fix: 'true' };
const PATTERN = {
  accepts(value: unknown) {
    try {
      return typeof value === 'string' && new RegExp(value) instanceof RegExp;
    } catch {
      return false;
    }
  },
  fix: '"^cus_", a regular expression',
};
const FLAGS = {
  accepts: (value: unknown) => typeof value === 'string' && /^[imsu]*$/.test(value),
  fix: '"i"; the flags are i, m, s and u',
};

/** Matchers for expected values: any value, a text pattern, alternatives, absence. */
const MATCHERS: Readonly<Record<string, RulesOf<JsonObject>>> = {
  $any: { $any: required(ONLY_TRUE) },
  $absent: { $absent: required(ONLY_TRUE) },
  $regex: { $regex: required(PATTERN), $flags: FLAGS },
  $oneOf: { $oneOf: required(LIST) },
};
const ANY_MATCHER = Object.fromEntries(Object.keys(MATCHERS).map((name) => [name, ANY_VALUE]));

/** Whether an expected value is a matcher. */
function isMatcher(value: unknown): value is JsonObject {
  return isRecord(value) && Object.keys(value).some((key) => key.startsWith('$'));
}

function checkFields(given: unknown, table: OptionTable, path = ''): void {
  const [fault] = optionFaults(given, table);
  if (fault !== undefined) throw new UserFault(`${path}${fault.problem}; write ${fault.fix}`);
}

/** Checks the matchers within an expected value. */
function checkMatchers(value: unknown, path: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (isMatcher(value)) {
    const name = Object.keys(MATCHERS).find((known) => known in value) ?? '';
    checkFields(value, optionTable<JsonObject>('a matcher', MATCHERS[name] ?? ANY_MATCHER), `${path}: `);
    checkMatchers(value.$oneOf, path);
  } else for (const [key, part] of Object.entries(value)) checkMatchers(part, `${path}.${key}`);
}

/** The first difference from the expected value; fields of objects that are not expected are ignored. */
function valueDifference(expected: unknown, given: unknown, path: string): string | undefined {
  if (isMatcher(expected)) {
    const { $any, $absent, $regex, $flags = '', $oneOf } = expected;
    const isMet =
      ($any === true && given !== undefined) ||
      ($absent === true && given === undefined) ||
      (typeof $regex === 'string' &&
        typeof given === 'string' &&
        new RegExp($regex, String($flags)).test(given)) ||
      (Array.isArray($oneOf) && $oneOf.some((one) => valueDifference(one, given, path) === undefined));
    return isMet ? undefined : mismatch(expected, given, path);
  }
  if (typeof expected !== 'object' || expected === null)
    return expected === given ? undefined : mismatch(expected, given, path);
  const isList = Array.isArray(expected);
  if (isList !== Array.isArray(given) || typeof given !== 'object' || given === null)
    return mismatch(expected, given, path);
  if (isList && Array.isArray(given) && expected.length !== given.length)
    return `${path}: expected ${expected.length} items, got ${given.length}`;
  for (const [key, part] of Object.entries(expected)) {
    const field = Object.hasOwn(given, key) ? (given as JsonObject)[key] : undefined;
    const difference = valueDifference(part, field, isList ? `${path}[${key}]` : `${path}.${key}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function mismatch(expected: unknown, given: unknown, path: string): string {
  const [wanted, got] = [expected, given].map((value) => cut(JSON.stringify(value) ?? 'nothing', 80));
  return `${path}: expected ${wanted}, got ${got}`;
}

/** `toolwright eval <module> <cases>`: checks whether a model chooses the right tools with the right arguments. */
export const command: Command = async (args, environment) => {
  const options = readOptions(args);
  const { folder } = environment;
  return withModule(options.module, environment, async (module) => {
    const registry = requiredRegistry(options.module, module);
    const settings = settingsOfModule(module);
    const cases = readCases(options.cases, folder, registry.list());
    const baseline = readBaseline(options, folder);
    const model = options.model ?? settings.model ?? process.env.OPENAI_MODEL;
    if (model === undefined || model === '')
      throw new UserFault('eval needs a model: --model gpt-5, an export `model`, or OPENAI_MODEL');
    const provider = await providerOf(options, settings);
    const { systemPrompt, llmOptions } = settings;
    const definitions = registry.toProviderDefs();
    const tools = definitions.map((definition) => definition.function);
    const check = createReplyCheck(definitions);
    const request = { provider, model, llmOptions, signal: environment.signal };
    const ask: Ask = async ({ messages, calls }) =>
      check(await complete(request, { messages, tools, systemPrompt }), calls);
    const run = { model, cases: await runCases(cases, { ...options, ask, environment }) };

    const comparison = compareRuns(baseline, run);
    printRun(run, comparison, environment);
    const share = run.cases.filter(hasPassed).length / run.cases.length;
    writeJson(resolve(folder, options.out), { ...run, share });
    const isUnanswered = run.cases.some(({ unanswered }) => unanswered > 0);
    const isWorse = comparison.worse.length > 0 && !options.accept;
    if (!isWorse && !isUnanswered) {
      // Nothing that changes from run to run, so that the file can be committed.
      const counts = run.cases.map(({ id, passed, runs }) => ({ id, passed, runs }));
      const file = resolve(folder, options.baseline ?? beside(options.cases, 'baseline'));
      writeJson(file, { model, cases: counts });
    }
    const isBelow = share < options.min;
    if (isBelow) {
      const percent = Math.floor(share * 1000) / 10;
      environment.error(`toolwright: ${percent} % passed, less than --min ${options.min}\n`);
    }
    return isWorse || isUnanswered || isBelow ? 1 : 0;
  });
};

type EvalOptions = ReturnType<typeof readOptions>;

function readOptions(args: readonly string[]) {
  const { values, positionals } = parseLine(args, {
    url: STRING,
    model: STRING,
    runs: STRING,
    concurrency: STRING,
    min: STRING,
    out: STRING,
    baseline: STRING,
    accept: FLAG,
  });
  const [module, cases, third] = positionals;
  if (module === undefined || cases === undefined || third !== undefined)
    throw new UserFault('eval takes a module and a file of cases: toolwright eval dist/tools.js cases.jsonl');
  const { runs = '1', concurrency = '4', min = '0', accept = false, out = beside(cases, 'result') } = values;
  if (!(Number(min) >= 0 && Number(min) <= 1))
    throw new UserFault(`--min must be a number from 0 to 1, not '${min}'`);
  return {
    ...{ ...values, module, cases, accept, out, min: Number(min) },
    runs: count('--runs', runs),
    concurrency: count('--concurrency', concurrency),
  };
}

function count(option: string, text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new UserFault(`${option} must be a whole number of 1 or more, not '${text}'`);
}

function beside(cases: string, what: string): string {
  return `${cases.replace(/\.jsonl?$/, '')}.${what}.json`;
}

/** The results of all cases with one model. */
interface EvalRun {
  readonly model: string;
  readonly cases: readonly CaseResult[];
}

/** An earlier run. */
interface Baseline {
  readonly model: string;
  readonly cases: readonly CaseCount[];
}

type RunComparison = ReturnType<typeof compareRuns>;

/** More than half of its runs passed: a single run may differ by chance. */
function hasPassed({ passed, runs }: CaseCount): boolean {
  return passed * 2 > runs;
}

/** Reads the run to compare with; a file that the user has named must exist. */
function readBaseline({ cases, baseline, accept }: EvalOptions, folder: string): Baseline | undefined {
  const name = baseline ?? beside(cases, 'baseline');
  const file = resolve(folder, name);
  if (!existsSync(file)) {
    if (baseline === undefined || accept) return undefined;
    throw new UserFault(`there is no baseline ${name}; --accept creates it`, 1);
  }
  const read = parsedJson(readFileSync(file, 'utf8'));
  const isCount = (value: unknown) =>
    isRecord(value) &&
    typeof value.id === 'string' &&
    Number.isInteger(value.passed) &&
    Number.isInteger(value.runs);
  if (!isRecord(read) || !Array.isArray(read.cases) || !read.cases.every(isCount))
    throw new UserFault(`${name} is not a baseline of toolwright eval`, 1);
  return { model: String(read.model), cases: read.cases };
}

function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** The differences from an earlier run: cases that became worse or better, one line each. */
function compareRuns(baseline: Baseline | undefined, run: EvalRun) {
  const before = new Map(baseline?.cases.map((one) => [one.id, one]));
  const changed = (isBetter: boolean) =>
    run.cases.flatMap((now) => {
      const old = before.get(now.id);
      if (old === undefined || hasPassed(old) === isBetter || hasPassed(now) !== isBetter) return [];
      return [`${shownId(now)} (${ratio(old)}, now ${ratio(now)})`];
    });
  const now = new Set(run.cases.map(({ id }) => id));
  return {
    baseline,
    worse: changed(false),
    better: changed(true),
    added: run.cases.filter(({ id }) => !before.has(id)).length,
    gone: [...before.keys()].filter((id) => !now.has(id)).length,
  };
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function shownId({ id }: CaseCount): string {
  return cut(id.replace(/\s+/g, ' '), 60);
}

function ratio({ passed, runs }: CaseCount): string {
  return `${passed}/${runs}`;
}

/** Prints a table of the tools, the differences of failed cases, and the comparison with the baseline. */
function printRun(run: EvalRun, comparison: RunComparison, { out }: CommandEnvironment): void {
  const byTool = Map.groupBy(run.cases, ({ tool }) => tool);
  const row = (name: string, cases: readonly CaseResult[]): readonly string[] => {
    const passed = cases.filter(hasPassed).length;
    return [name, String(passed), String(cases.length - passed)];
  };
  const rows = [...byTool].map(([tool, cases]) => row(tool, cases));
  const foot = row(`${run.cases.length} in all`, run.cases);
  for (const line of alignedRows([['expected', 'passed', 'failed'], ...rows, foot], { texts: 1 }))
    out(`${line}\n`);
  const imperfect = run.cases.filter(({ passed, runs }) => passed < runs);
  if (imperfect.length > 0) out('\n');
  for (const one of imperfect)
    out(`${hasPassed(one) ? 'flaky' : 'FAILED'} ${ratio(one)} ${shownId(one)}\n    ${one.difference}\n`);
  const { baseline, worse, better, added, gone } = comparison;
  if (baseline === undefined) {
    out('\nNo baseline yet: this run becomes the baseline if the model answered every case.\n');
    return;
  }
  const other = baseline.model === run.model ? '' : ` (of ${baseline.model})`;
  const counts = `${worse.length} worse, ${better.length} better, ${added} new, ${gone} gone`;
  out(`\nSince the baseline${other}: ${counts}\n`);
  for (const line of worse) out(`  worse: ${line}\n`);
  for (const line of better) out(`  better: ${line}\n`);
}

/** The result of a case. */
interface CaseResult extends CaseCount {
  /** The expected tools. */
  readonly tool: string;
  /** Runs in which the provider failed. */
  readonly unanswered: number;
  /** The first difference from the expectation. */
  readonly difference?: string | undefined;
}

/** Number of runs of a case, and of those that passed. */
interface CaseCount {
  readonly id: string;
  readonly passed: number;
  readonly runs: number;
}

/** Asks a case once; resolves with the difference, if there is any. */
type Ask = (asked: EvalCase) => Promise<string | undefined>;

/** The module's own provider; with `--url`, or if it has none, a Chat Completions server. */
async function providerOf({ url }: EvalOptions, { provider }: ModuleSettings): Promise<LLMProvider> {
  if (url === undefined && provider !== undefined) return provider;
  const { OPENAI_API_KEY, OPENAI_BASE_URL } = process.env;
  if (url === undefined && !OPENAI_API_KEY && !OPENAI_BASE_URL)
    throw new UserFault(
      'eval needs a provider: an export `config` with a provider, --url, or OPENAI_API_KEY',
    );
  const { OpenAIProvider } = await import('../../models/openai/index.js');
  return new OpenAIProvider(url === undefined ? {} : { baseURL: url });
}

/** Runs all cases, several at a time. */
async function runCases(
  cases: readonly EvalCase[],
  options: Pick<EvalOptions, 'runs' | 'concurrency'> & {
    readonly ask: Ask;
    readonly environment: CommandEnvironment;
  },
): Promise<readonly CaseResult[]> {
  const { runs, concurrency, ask, environment } = options;
  const tallies = cases.map((asked) => ({
    asked,
    passed: 0,
    unanswered: 0,
    difference: undefined as string | undefined,
  }));
  const jobs = tallies.flatMap((tally) => Array.from({ length: runs }, () => tally)).values();
  let done = 0;
  const work = async (): Promise<void> => {
    for (const tally of jobs) {
      try {
        const difference = await ask(tally.asked);
        if (difference === undefined) tally.passed++;
        tally.difference ??= difference;
      } catch (error) {
        tally.unanswered++;
        tally.difference ??= `no reply: ${errorMessage(causesOf(error)[1] ?? error).split('\n', 1)}`;
      }
      done++;
      if (environment.isTerminal) environment.error(`\r${done} of ${cases.length * runs}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (environment.isTerminal) environment.error('\n');
  return tallies.map(({ asked, ...tally }) => {
    const tool = asked.calls.map((call) => call.tool).join(' + ') || '(no tool)';
    return { id: asked.id, tool, runs, ...tally };
  });
}

/** Compares arguments as the tool would receive them: parsed, repaired if that is unambiguous, and validated. */
function createReplyCheck(definitions: readonly ToolSchema[]) {
  const checkers = new Map(
    definitions.map(({ function: { name, parameters } }) => [
      name,
      createChecker(parameters, { fillDefaults: false }),
    ]),
  );
  const read = (call: Extract<CompletionBlock, { readonly type: 'toolCall' }>): ReadCall => {
    const { name } = call;
    const check = checkers.get(name);
    if (check === undefined) return { name, problem: `${name} is not a tool` };
    const args = readArguments(call.arguments);
    if (!args.ok) return { name, problem: `${name}: ${args.message}` };
    const checked = check(args.value);
    if (checked.ok) return { name, args: checked.value };
    const [{ path, message } = { path: '', message: 'refused' }] = checked.faults;
    return { name, problem: `${path === '' ? name : `${name}.${path}`}: ${message}` };
  };
  /** Describes the first difference of a reply from the expectation in one line; `undefined` if there is none. */
  return (reply: Completion, expected: readonly ExpectedCall[]): string | undefined => {
    const calls = reply.content.filter((block) => block.type === 'toolCall').map(read);
    // The loop does not run the calls of a truncated reply, because they may be incomplete.
    if (calls.length > 0 && (reply.finishReason === 'length' || reply.finishReason === 'content_filter'))
      return `the reply was cut off (${reply.finishReason})`;
    const taken = assign(calls, expected);
    const left = calls.filter((_, index) => !taken.includes(index));
    const missing = expected.find((_, index) => taken[index] === undefined);
    if (missing === undefined) {
      if (left.length === 0) return undefined;
      const others = left.map(({ name }) => name).join(', ');
      return `expected no ${expected.length === 0 ? '' : 'other '}call, got ${others}`;
    }
    const twin = left.find(({ name }) => name === missing.tool);
    if (twin !== undefined) return callDifference(twin, missing);
    const got = left.map(({ name, problem }) => (problem?.endsWith('is not a tool') ? problem : name));
    return `expected ${missing.tool}, got ${got.join(', ') || 'no such call'}`;
  };
}

/** A call with the arguments for its tool, or why it would get none. */
interface ReadCall {
  readonly name: string;
  readonly args?: JsonObject;
  readonly problem?: string;
}

/** Assigns a call to each expected call, as many as possible, even if calls match several. */
function assign(
  calls: readonly ReadCall[],
  expected: readonly ExpectedCall[],
): readonly (number | undefined)[] {
  const owners: (number | undefined)[] = calls.map(() => undefined);
  const find = (index: number, tried: Set<number>): boolean => {
    const wanted = expected[index];
    return calls.some((call, at) => {
      if (wanted === undefined || tried.has(at) || callDifference(call, wanted) !== undefined) return false;
      tried.add(at);
      const owner = owners[at];
      if (owner !== undefined && !find(owner, tried)) return false;
      owners[at] = index;
      return true;
    });
  };
  for (const index of expected.keys()) find(index, new Set());
  return expected.map((_, index) => {
    const at = owners.indexOf(index);
    return at < 0 ? undefined : at;
  });
}

function callDifference(
  call: ReadCall,
  { tool, arguments: expected = {} }: ExpectedCall,
): string | undefined {
  if (call.name !== tool) return `expected ${tool}, got ${call.name}`;
  if (call.problem !== undefined) return call.problem;
  return valueDifference(expected, call.args, tool);
}
