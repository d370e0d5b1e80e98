import type { ToolRegistry } from '../call/tool-registry.js';
import { type Checker, createChecker } from '../checking/checker.js';
import { readArguments } from '../checking/read-arguments.js';
import { type LLMProvider, PROVIDER, type ToolSchema } from '../contract/llm-provider.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
import { type Completion, type CompletionBlock, complete } from '../loop/complete.js';
import { type CommandSurroundings, UserFault } from './command.js';
import { type EvalCase, type ExpectedCall, valueDifference } from './eval-cases.js';
import type { OpenModule } from './open-module.js';

/** Who is asked, and how. */
export interface AskOptions {
  readonly url: string | undefined;
  readonly model: string | undefined;
  readonly runs: number;
  readonly concurrency: number;
}

type Exports = OpenModule['exports'];

/** How a case went. */
export interface CaseResult extends CaseCount {
  /** What it expects: the names of the tools. */
  readonly tool: string;
  /** Runs that the provider failed. */
  readonly unanswered: number;
  /** The first thing that was not as expected. */
  readonly difference?: string | undefined;
}

/** How often a case was asked and how often it passed. */
export interface CaseCount {
  readonly id: string;
  readonly passed: number;
  readonly runs: number;
}

/** The model that is asked. */
export function modelOf({ model }: Pick<AskOptions, 'model'>, exports: Exports): string {
  const found = model ?? exports.model ?? process.env.OPENAI_MODEL;
  if (typeof found === 'string' && found !== '') return found;
  throw new UserFault('eval needs a model: --model gpt-5, an export `model`, or OPENAI_MODEL');
}

/** One reply of the model to a case, judged: what differs, if anything does. */
type Ask = (asked: EvalCase) => Promise<string | undefined>;

interface AskSource {
  readonly exports: Exports;
  readonly registry: ToolRegistry;
  readonly model: string;
  readonly signal: AbortSignal | undefined;
}

export async function createAsk(options: AskOptions, source: AskSource): Promise<Ask> {
  const { exports, registry, model, signal } = source;
  const provider = await providerOf(options, exports);
  const { systemPrompt, llmOptions } = exports;
  const definitions = registry.toProviderDefs();
  const judge: Judge = createJudge(definitions);
  const tools = definitions.map((definition) => definition.function);
  return async ({ messages, calls }) => {
    const reply = await complete(
      { provider, model, ...(isRecord(llmOptions) ? { llmOptions } : {}), ...(signal ? { signal } : {}) },
      { messages, tools, ...(typeof systemPrompt === 'string' ? { systemPrompt } : {}) },
    );
    return judge(reply, calls);
  };
}

/** The module's own; with `--url`, or where it has none, a server that speaks Chat Completions. */
async function providerOf({ url }: AskOptions, { provider }: Exports): Promise<LLMProvider> {
  if (url === undefined && PROVIDER.accepts(provider)) return provider as LLMProvider;
  const { OPENAI_API_KEY, OPENAI_BASE_URL } = process.env;
  if (url === undefined && !OPENAI_API_KEY && !OPENAI_BASE_URL)
    throw new UserFault('eval needs a provider: an export `provider`, --url, or OPENAI_API_KEY');
  const { OpenAIProvider } = await loadOpenAI();
  return new OpenAIProvider(url === undefined ? {} : { baseURL: url });
}

async function loadOpenAI() {
  try {
    return await import('../providers/openai/index.js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UserFault('eval needs the package openai for --url: npm install openai', 1);
  }
}

interface Running extends Pick<AskOptions, 'runs' | 'concurrency'> {
  readonly ask: Ask;
  readonly surroundings: CommandSurroundings;
}

/** All runs of all cases, so many at a time. */
export async function runCases(
  cases: readonly EvalCase[],
  { runs, concurrency, ask, surroundings }: Running,
): Promise<readonly CaseResult[]> {
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
      const { difference, isUnanswered } = await outcomeOf(ask, tally.asked);
      if (difference === undefined) tally.passed++;
      if (isUnanswered) tally.unanswered++;
      tally.difference ??= difference;
      done++;
      if (surroundings.isTerminal) surroundings.error(`\r${done} of ${cases.length * runs}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (surroundings.isTerminal) surroundings.error('\n');
  return tallies.map(({ asked, ...tally }) => {
    const tool = asked.calls.map((call) => call.tool).join(' + ') || '(no tool)';
    return { id: asked.id, tool, runs, ...tally };
  });
}

interface Outcome {
  readonly difference?: string | undefined;
  readonly isUnanswered?: boolean;
}

async function outcomeOf(ask: Ask, asked: EvalCase): Promise<Outcome> {
  try {
    return { difference: await ask(asked) };
  } catch (error) {
    const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
    return { difference: `no reply: ${errorMessage(cause).split('\n', 1)}`, isUnanswered: true };
  }
}

type MadeCall = Extract<CompletionBlock, { readonly type: 'toolCall' }>;

/** Says what of a reply is not as it is expected to be, in a line; nothing where all of it is. */
type Judge = (reply: Completion, expected: readonly ExpectedCall[]) => string | undefined;

/** Arguments are judged as the tool would be given them: read, mended where nothing is in doubt, and checked. */
function createJudge(definitions: readonly ToolSchema[]): Judge {
  const schemas = new Map(definitions.map(({ function: offered }) => [offered.name, offered.parameters]));
  const checkers = new Map<string, Checker>();
  const checkerOf = (name: string): Checker | undefined => {
    const schema = schemas.get(name);
    if (schema === undefined) return undefined;
    const checker = checkers.get(name) ?? createChecker(schema, { fillDefaults: false });
    checkers.set(name, checker);
    return checker;
  };
  const read = (call: MadeCall): ReadCall => {
    const { name } = call;
    const check = checkerOf(name);
    if (check === undefined) return { name, problem: `${name} is no tool` };
    const args = readArguments(call.arguments);
    if (!args.ok) return { name, problem: `${name}: ${args.message}` };
    const checked = check(args.value);
    if (checked.ok) return { name, args: checked.value };
    const [{ path, message } = { path: '', message: 'refused' }] = checked.faults;
    return { name, problem: `${path === '' ? name : `${name}.${path}`}: ${message}` };
  };
  return (reply, expected) => {
    const calls = reply.content.filter((block) => block.type === 'toolCall').map(read);
    // The loop runs no call of such a reply: what it says may be half of it.
    if (calls.length > 0 && (reply.finishReason === 'length' || reply.finishReason === 'content_filter'))
      return `the reply was cut (${reply.finishReason})`;
    return differenceOf(calls, expected);
  };
}

/** A call with the arguments that its tool would be given, or why it would be given none. */
interface ReadCall {
  readonly name: string;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly problem?: string;
}

function differenceOf(calls: readonly ReadCall[], expected: readonly ExpectedCall[]): string | undefined {
  const taken = assign(calls, expected);
  const left = calls.filter((_, index) => !taken.includes(index));
  const missing = expected.find((_, index) => taken[index] === undefined);
  if (missing === undefined) {
    if (left.length === 0) return undefined;
    const others = left.map(({ name }) => name).join(', ');
    return expected.length === 0
      ? `expected no call, got ${others}`
      : `expected no other call, got ${others}`;
  }
  const twin = left.find(({ name }) => name === missing.tool);
  if (twin !== undefined) return callDifference(twin, missing);
  const got = left.map(({ name, problem }) => (problem?.endsWith('is no tool') ? problem : name));
  return `expected ${missing.tool}, got ${got.join(', ') || 'no call of it'}`;
}

/** The call for each expected one: as many as there can be, whichever of them could answer to several. */
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
