import { BUDGET, type Budget } from '../../core/contract/budget.js';
import { type CallScope, SCOPE, SCOPE_OPTION, type ToolPolicy } from '../../core/contract/call.js';
import { HOOKS, type Hooks } from '../../core/contract/hooks.js';
import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import type { SchemaSource } from '../../core/contract/json-schema.js';
import {
  type LLMProvider,
  type Message,
  MODEL,
  PROVIDER,
  type ToolChoice,
} from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { RUN_STORE, type RunStore, STORED_ID } from '../../core/contract/run-state.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import type { AsyncCallback } from '../../core/contract/tool.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { isPlainObject, isRecord, plainJson } from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import {
  areRight,
  BOOLEAN,
  either,
  exactly,
  FILLED_TEXT,
  FUNCTION,
  instanceOf,
  JSON_VALUE,
  LIMIT,
  LIST,
  LOGGER,
  listOf,
  MILLISECONDS,
  type OptionRule,
  objectOf,
  oneOf,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  required,
  SIGNAL,
  secret,
  withMethods,
} from '../../core/kernel/options.js';
import type { ToolEmbedder } from '../../tools/search/embedded-tools.js';
import type { RegisteredTool } from '../call/registration.js';
import { TaskQueue } from '../call/task-queue.js';
import { ToolRegistry } from '../call/tool-registry.js';
import type { Detector } from './ask-model.js';
import { LEASE } from './claimed-run.js';
import { type HistoryCare, historyFaults } from './given-history.js';
import { LOOP_GUARD, type LoopGuardOptions } from './guard.js';
import { ownerFaults } from './run-owner.js';
import { type CompactHistory, type PrepareStep, TOOL_CHOICE } from './step-settings.js';

/** Who is asked; without a model, for the run's. */
export interface ProviderTarget {
  readonly provider: LLMProvider;
  readonly model?: string;
}

/** When a run is kept in its store. */
export type Checkpoint = 'suspend' | 'step' | 'call';

/** What a run needs. */
export interface ToolLoopConfig {
  /** Sends the requests to a model, such as `new OpenAIProvider()`. */
  readonly provider: LLMProvider;
  /** The name of the model, as the provider knows it. */
  readonly model: string;
  /** A registry, or tools to put into one; none: the model is offered no tools. */
  readonly tools?: ToolRegistry | readonly RegisteredTool[];
  /** Where calls are looked for beside the reply's own; default `native`: nowhere. */
  readonly detector?: Detector;
  /** Requests to the model at most; default 20, under `withTextTools` 5. `0` makes none. */
  readonly maxIterations?: number;
  /** Passed to the provider as they are: `max_tokens`, `temperature`, … */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** Which tools the model may or must call; one that forces a call does so until there was one. */
  readonly toolChoice?: ToolChoice;
  /** Whether a reply may have several calls; default: the provider's, mostly `true`. */
  readonly parallelToolCalls?: boolean;
  /**
   * How often a request is made again that failed for a reason that may pass (`ProviderError.retryable`), after the
   * pause that the server asked for, or growing ones; default 2. Tries that the provider made itself count.
   */
  readonly providerRetries?: number;
  /** Tokens of definitions above which all tools are found by a search that do not say `defer: false`; default: none. */
  readonly deferAbove?: number;
  /** Finds deferred tools by what they mean, too. */
  readonly toolEmbedder?: ToolEmbedder;
  /** Who is asked from then on where the provider still fails; with a model of its own, or the run's. */
  readonly fallback?: readonly (LLMProvider | ProviderTarget)[];
  /** An invalid history that the run is given is repaired, with a note in the log (default), or refused. */
  readonly history?: HistoryCare;
  /** Of an object: the run ends with such data, in `output` of its result; the model is asked for it twice at most. */
  readonly output?: SchemaSource;
  /** Decides before each request what of the history it carries, for example `keepRecent({ turns: 10 })`. */
  readonly compactHistory?: CompactHistory;
  /** Decides before each request what it is made with. */
  readonly prepareStep?: PrepareStep;
  /** How often the model may correct itself in a row, per tool; ten times as often in all; default 2. */
  readonly maxRetries?: number;
  /** Calls of one message that run at the same time; default: all. */
  readonly maxConcurrency?: number;
  /** Milliseconds for tools that set no `timeoutMs`; default: the registry's, otherwise 120,000. */
  readonly toolTimeoutMs?: number;
  /** At the limit: end with status `limit`, throw, or ask once more with tools switched off. */
  readonly onLimit?: 'return' | 'throw' | 'answer';
  /** Finds a model that goes in circles; on by default, `false` switches it off. */
  readonly loopGuard?: LoopGuardOptions | false;
  /** Decides about every call of this run, beside the registry's policy: both must allow it. */
  readonly policy?: ToolPolicy;
  /** Surround every call and every request of this run, behind those of the registry. */
  readonly hooks?: readonly Hooks[];
  /** What the run, its conversation and whoever it is for may spend: reserved before each request and each call. */
  readonly budget?: Budget;
  /** Characters of a result that the model sees at most; default: the registry's. */
  readonly maxResultChars?: number;
  /** Keeps the run where it is suspended, for `resumeStoredRun`. */
  readonly store?: RunStore;
  /**
   * When the run is kept in its store: where it is suspended (default), at every step, or also with each value of
   * `context.once` (`call`). What is kept at every step survives its process: `recoverRuns` goes on with it.
   */
  readonly checkpoint?: Checkpoint;
  /**
   * Milliseconds until a run whose process has died can be recovered, with a `checkpoint` that keeps its steps; default
   * 30,000. Renewed while it goes on.
   */
  readonly leaseMs?: number;
  /** Id of the run; default: a UUID. A run whose steps are kept does not begin where its store has one of this id. */
  readonly runId?: string;
  /** Milliseconds for answers, where neither tool nor question sets them (`expiresInMs`); default: no limit. */
  readonly answerWithinMs?: number;
  /** If a call was not answered in time, the model is informed (default), or the run ends (`AnswerExpired`). */
  readonly onExpiry?: 'refuse' | 'end';
  /** Signs the states of suspended runs, and refuses states without that signature: 32 random bytes as text. */
  readonly stateSecret?: string;
  /** Where the work of background tools goes, in place of this process; needs a `store` that keeps jobs. */
  readonly engine?: JobEngine;
  readonly signal?: AbortSignal;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Records the run, its requests and its calls: `openTelemetry()`; default: the registry's. */
  readonly telemetry?: Telemetry;
  /** What the agent is called in traces and metrics: `invoke_agent billing`. */
  readonly agentName?: string;
  /** Hears of completions of work that tools started; with it, such tools answer at once. */
  readonly onAsyncResult?: AsyncCallback;
  /** What the work that tools start goes through; default: the registry's. */
  readonly tasks?: TaskQueue;
}

const FALLBACK = "{ provider, model: 'gpt-5' }";
const TARGET = objectOf<ProviderTarget>({ provider: required(PROVIDER), model: MODEL }, { fix: FALLBACK });

/** Tools, or a registry of them. */
export const TOOLS: OptionRule = {
  ...either(instanceOf(ToolRegistry, 'a ToolRegistry'), LIST),
  fix: 'a ToolRegistry, or [tool, …]',
};

/** What each option of the loop may be. */
export const LOOP_RULES: RulesOf<ToolLoopConfig> = {
  provider: required(PROVIDER),
  model: required(MODEL),
  tools: TOOLS,
  detector: either(oneOf('native', 'tool_request', 'scan'), FUNCTION),
  maxIterations: LIMIT,
  llmOptions: { ...RECORD, fix: '{ temperature: 0, … }' },
  toolChoice: TOOL_CHOICE,
  parallelToolCalls: BOOLEAN,
  providerRetries: LIMIT,
  deferAbove: LIMIT,
  toolEmbedder: withMethods(['embed'], '{ embed: async (texts) => vectors }'),
  fallback: listOf(either(PROVIDER, TARGET), `[${FALLBACK}]`),
  history: oneOf('repair', 'refuse'),
  output: {
    accepts: (value) => typeof value === 'function' || isRecord(value),
    schema: { type: 'object' },
    fix: 'z.object({ … }), or a JSON Schema',
  },
  compactHistory: FUNCTION,
  prepareStep: FUNCTION,
  maxRetries: LIMIT,
  maxConcurrency: LIMIT,
  toolTimeoutMs: MILLISECONDS,
  onLimit: oneOf('return', 'throw', 'answer'),
  loopGuard: either(LOOP_GUARD, exactly(false)),
  policy: protecting(FUNCTION),
  hooks: HOOKS,
  budget: BUDGET,
  maxResultChars: LIMIT,
  store: RUN_STORE,
  checkpoint: oneOf('suspend', 'step', 'call'),
  leaseMs: LEASE,
  runId: STORED_ID,
  answerWithinMs: MILLISECONDS,
  onExpiry: oneOf('refuse', 'end'),
  stateSecret: protecting(secret(FILLED_TEXT)),
  engine: JOB_ENGINE,
  signal: SIGNAL,
  logger: LOGGER,
  telemetry: TELEMETRY,
  agentName: FILLED_TEXT,
  onAsyncResult: FUNCTION,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
};

/** Names that other frameworks use, and what is meant here. */
export const LOOP_ALIASES = {
  messages: 'the second argument of the function',
  systemPrompt: "a first message { role: 'system', content: '…' }",
  timeoutMs: 'toolTimeoutMs: …',
  tool_choice: 'toolChoice: …',
  parallel_tool_calls: 'parallelToolCalls: …',
  temperature: 'llmOptions: { temperature: … }',
  maxTokens: 'llmOptions: { max_tokens: … }',
  max_tokens: 'llmOptions: { max_tokens: … }',
};

/** The config of a resume: the run brings its model along. */
export interface ResumeConfig extends Omit<ToolLoopConfig, 'model'> {
  /** Asked only where the state is of a version that kept no model. */
  readonly model?: string;
}

/** On whose behalf a run goes on, and who answered. */
export interface ResumeOptions {
  /** The scope of the run's owner: never that of whoever answered for them. */
  readonly scope?: CallScope;
  /** Who answered: any JSON. It is recorded with the calls, and grants no rights. */
  readonly answeredBy?: unknown;
  /** Another model for the rest of the run; default: the one that it has asked so far. */
  readonly model?: string;
}

const OWNERS_SCOPE = 'scope: { owner, data, … }, which is the scope of the run’s owner';
const RESUME_OPTIONS = optionTable<ResumeOptions>(
  'a resume',
  { scope: SCOPE_OPTION, answeredBy: JSON_VALUE, model: MODEL },
  { owner: OWNERS_SCOPE, data: OWNERS_SCOPE },
);

/** The run brings its model along. */
const RESUME_CONFIG = optionTable<ResumeConfig>(
  'the loop’s config',
  { ...LOOP_RULES, model: MODEL },
  LOOP_ALIASES,
);

/** A slip in the name of an option does not make a scope of the options. */
function isOfResume(name: string): boolean {
  return (
    RESUME_OPTIONS.rules.has(name) ||
    (!SCOPE.rules.has(name) && misspeltName(name, RESUME_NAMES) !== undefined)
  );
}

const RESUME_NAMES = Array.from(RESUME_OPTIONS.rules.keys());

/** What a resume is given beside the run and its answers. */
interface GivenResume {
  readonly config: ResumeConfig;
  readonly options: ResumeOptions | CallScope;
  /** What else has been found wrong. */
  readonly others?: readonly InvalidOption[];
}

/**
 * What the fourth argument of a resume says; a plain scope is the owner's.
 *
 * @throws InvalidOptionsError (521) for options that are wrong, or that stand in a scope, and for a wrong config.
 */
export function readResume({ config, options, others = [] }: GivenResume): ResumeOptions {
  const isScope = !(isRecord(options) && Object.keys(options).some(isOfResume));
  const read = (isScope ? { scope: options } : options) as ResumeOptions;
  const table = isScope ? SCOPE : RESUME_OPTIONS;
  const isRight = areRight(config, RESUME_CONFIG) && areRight(options, table) && others.length === 0;
  if (!isRight || read.scope?.owner !== undefined)
    refuseOptions([
      ...invalidOptions(config, RESUME_CONFIG),
      ...invalidOptions(options, table),
      ...ownerFaults(read.scope),
      ...others,
    ]);
  return read.answeredBy === undefined ? read : { ...read, answeredBy: plainJson(read.answeredBy) };
}

const RUN_CONFIG = optionTable<ToolLoopConfig>('the loop’s config', LOOP_RULES, LOOP_ALIASES);

interface GivenRun {
  readonly config: ToolLoopConfig;
  readonly scope: CallScope;
  readonly messages: readonly Message[];
}

/** What configs were when they were right: an application has few, and begins many runs with each. */
const checkedConfigs = new WeakMap<object, Readonly<Record<string, unknown>>>();

function isUnchanged(config: ToolLoopConfig): boolean {
  const checked = checkedConfigs.get(config);
  if (checked === undefined) return false;
  for (const name in config)
    if (!Object.hasOwn(checked, name) || checked[name] !== config[name as keyof ToolLoopConfig]) return false;
  return true;
}

/**
 * Checks what a run is given before anything is asked.
 *
 * @throws InvalidOptionsError (521): a run cannot begin with a mistake of its author.
 */
export function checkRun({ config, scope, messages }: GivenRun): void {
  const history = historyFaults(messages, config?.history === 'refuse' ? 'refuse' : 'repair');
  const isKnown = isUnchanged(config);
  const lease = isKnown ? [] : leaseFaults(config);
  const isRight = isKnown || (areRight(config, RUN_CONFIG) && lease.length === 0);
  // Getters of a class may give other values each time.
  if (isRight && !isKnown && isPlainObject(config)) checkedConfigs.set(config, { ...config });
  if (isRight && areRight(scope, SCOPE) && scope?.owner === undefined && history.length === 0) return;
  refuseOptions([
    ...invalidOptions(config, RUN_CONFIG),
    ...lease,
    ...invalidOptions(scope, SCOPE),
    ...ownerFaults(scope),
    ...history,
  ]);
}

/** Without saved steps no process can go on with a run whose lease has ended. */
function leaseFaults(config: ToolLoopConfig | undefined): readonly InvalidOption[] {
  const { checkpoint = 'suspend', leaseMs } = config ?? {};
  if (leaseMs === undefined || checkpoint !== 'suspend') return [];
  const problem = 'leaseMs is of a run that others go on with, and no step of this one is kept';
  return [{ where: RUN_CONFIG.of, option: 'leaseMs', problem, fix: "checkpoint: 'step'; or no leaseMs" }];
}
