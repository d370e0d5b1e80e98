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
  type ResponseFormat,
  type ToolChoice,
  type Usage,
} from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { RUN_STORE, type RunStore, STORED_ID } from '../../core/contract/run-state.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import type { AsyncCallback } from '../../core/contract/tool.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { isRecord, plainJson } from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import {
  areRight,
  BOOLEAN,
  COUNT_LIMIT,
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
  optionFaults,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  required,
  SECRET_KEY,
  SIGNAL,
  withMethods,
} from '../../core/kernel/options.js';
import type { ToolEmbedder } from '../../tools/search/embedded-tools.js';
import { TaskQueue } from '../call/task-queue.js';
import { type RegisteredTool, ToolRegistry } from '../call/tool-registry.js';
import type { Detector } from './ask-model.js';
import { LEASE } from './claimed-run.js';
import { type HistoryCare, historyFaults, type RepairedHistory, repairHistory } from './given-history.js';
import { LOOP_GUARD, type LoopGuardOptions } from './guard.js';

/** The facts before a request is made. */
export interface StepContext {
  /** Number of the request in its run, from 1. */
  readonly step: number;
  /** The history so far. */
  readonly messages: readonly Message[];
  /** The usage of the requests so far. */
  readonly usage: Usage;
  /** The model of the run. */
  readonly model: string;
  readonly signal?: AbortSignal;
}

/** The settings of one request; absent settings are the run's. */
export interface StepSettings {
  readonly model?: string;
  /** Names of the offered tools, out of the run's. */
  readonly tools?: readonly string[];
  readonly toolChoice?: ToolChoice;
  readonly responseFormat?: ResponseFormat;
  /** Replaces the history for this request only; calls without answers and answers without calls are repaired. */
  readonly messages?: readonly Message[];
  readonly llmOptions?: Readonly<Record<string, unknown>>;
}

/** Returns the settings of the next request; `undefined` changes nothing. */
export type PrepareStep = (
  context: StepContext,
) => StepSettings | undefined | Promise<StepSettings | undefined>;

const TOOL = "'find_orders'";
const TOOL_CHOICE_FORM = objectOf<{ tool: string; tools: readonly string[]; mode: string }>(
  { tool: FILLED_TEXT, tools: listOf(FILLED_TEXT, `[${TOOL}]`), mode: oneOf('auto', 'required') },
  { fix: `'required', { tool: ${TOOL} }` },
);

const TOOL_CHOICE: OptionRule = either(oneOf('auto', 'none', 'required'), {
  ...TOOL_CHOICE_FORM,
  accepts: (value) =>
    TOOL_CHOICE_FORM.accepts(value) && isRecord(value) && 'tool' in value !== 'tools' in value,
  schema: { ...TOOL_CHOICE_FORM.schema, oneOf: [{ required: ['tool'] }, { required: ['tools'] }] },
});

const RESPONSE_FORMAT = objectOf<{ type: string; schema: unknown; name: string }>(
  { type: required(oneOf('text', 'json')), schema: RECORD, name: FILLED_TEXT },
  { fix: "{ type: 'json', schema: { … } }" },
);

const STEP_SETTINGS = optionTable<StepSettings>('what prepareStep returns', {
  model: FILLED_TEXT,
  tools: listOf(FILLED_TEXT, `[${TOOL}]`),
  toolChoice: TOOL_CHOICE,
  responseFormat: RESPONSE_FORMAT,
  messages: LIST,
  llmOptions: RECORD,
});

/**
 * The settings of the run's `prepareStep` for its next request.
 *
 * @throws InvalidOptionsError (521) for invalid settings.
 */
export async function settingsOf(
  prepareStep: PrepareStep,
  context: StepContext,
): Promise<StepSettings | undefined> {
  const settings = await prepareStep(context);
  if (settings === undefined || settings === null) return undefined;
  const { messages } = settings;
  refuseOptions([
    ...optionFaults(settings, STEP_SETTINGS).map((fault) => ({ where: STEP_SETTINGS.of, ...fault })),
    ...(Array.isArray(messages) ? historyFaults(messages, 'repair') : []),
  ]);
  return messages === undefined ? settings : { ...settings, messages: repairHistory(messages).messages };
}

/**
 * Selects the part of the history for the next request of a run. It receives the whole history each time; the history
 * itself does not change.
 */
export type CompactHistory = (
  messages: readonly Message[],
  context: Omit<StepContext, 'messages'>,
) => readonly Message[] | Promise<readonly Message[]>;

/**
 * Repairs a compacted history for a request: a call that lost its answer gets it again, and a call that never had an
 * answer is removed, as are answers without calls.
 *
 * @throws InvalidOptionsError (521) for a value that is not a history.
 */
export function compactedHistory(returned: readonly Message[], history: readonly Message[]): RepairedHistory {
  const where = 'what compactHistory returns';
  refuseOptions(historyFaults(returned, 'repair').map((fault) => ({ ...fault, where })));
  return repairHistory(returned, ({ id }, message) => {
    // Ids may occur several times in a history: a message that was not copied has the answers that follow it.
    const own = history.indexOf(message);
    const calls = (other: Message) =>
      other.role === 'assistant' && other.tool_calls?.some((call) => call.id === id);
    const from = own >= 0 ? own : history.findLastIndex(calls);
    if (from < 0) return undefined;
    for (const other of history.slice(from + 1)) {
      if (other.role !== 'tool') return undefined;
      if (other.tool_call_id === id) return other;
    }
    return undefined;
  });
}

/** A provider and its model; without a model, for the run's. */
export interface ProviderTarget {
  readonly provider: LLMProvider;
  readonly model?: string;
}

/** When a run is stored. */
export type Checkpoint = 'suspend' | 'step' | 'call';

/** The options of a run. */
export interface ToolLoopConfig {
  /** Sends the requests to a model, such as `new OpenAIProvider()`. */
  readonly provider: LLMProvider;
  /** The name of the model at the provider. */
  readonly model: string;
  /** A registry, or tools from which to create one. */
  readonly tools?: ToolRegistry | readonly RegisteredTool[];
  /** Where calls are searched in addition to the reply's own; default: `native`, which means nowhere. */
  readonly detector?: Detector;
  /** The most requests to the model; default: 20, with `withTextTools` 5. `0`: no requests. */
  readonly maxIterations?: number;
  /** Passed to the provider unchanged: `max_tokens`, `temperature`, … */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** Which tools the model may or must call. A choice that forces a call applies until the first call. */
  readonly toolChoice?: ToolChoice;
  /** Whether a reply may have several calls; default: the provider's, usually `true`. */
  readonly parallelToolCalls?: boolean;
  /**
   * How often a request is retried after a temporary failure (`ProviderError.retryable`); default: 2. Retries by the
   * provider itself count.
   */
  readonly providerRetries?: number;
  /** Tokens of definitions above which all tools without `defer: false` are found by a search; default: none. */
  readonly deferAbove?: number;
  /** Also finds deferred tools by meaning. */
  readonly toolEmbedder?: ToolEmbedder;
  /**
   * The providers to use if the provider still fails. Each is used for the rest of the run, with its own model or the
   * run's.
   */
  readonly fallback?: readonly (LLMProvider | ProviderTarget)[];
  /** Whether an invalid history is repaired or refused; default: `repair`. */
  readonly history?: HistoryCare;
  /**
   * The schema of the data with which the run ends, in `output` of its result. The model is asked for it twice at
   * most.
   */
  readonly output?: SchemaSource;
  /** Selects the part of the history to send, for example `keepRecent({ turns: 10 })`. */
  readonly compactHistory?: CompactHistory;
  /** Returns the settings of each request. */
  readonly prepareStep?: PrepareStep;
  /** How often the model may correct itself in a row, per tool; default: 2. */
  readonly maxRetries?: number;
  /** The most calls of one message that run at the same time; default: all. */
  readonly maxConcurrency?: number;
  /** Milliseconds for tools without a `timeoutMs`; default: the registry's, otherwise 120,000. */
  readonly toolTimeoutMs?: number;
  /** At the limit: end, throw, or send a last request without tools. */
  readonly onLimit?: 'return' | 'throw' | 'answer';
  /** Detects a model that repeats itself. `false` switches it off. */
  readonly loopGuard?: LoopGuardOptions | false;
  /** Decides about every call of this run. If the registry has another policy, both must allow the call. */
  readonly policy?: ToolPolicy;
  /** Hooks around every call and every request of this run. They run after those of the registry. */
  readonly hooks?: readonly Hooks[];
  /** Limits of the run, its conversation and its owner. Amounts are reserved before each request and each call. */
  readonly budget?: Budget;
  /** The most characters of a result that the model receives; default: the registry's. */
  readonly maxResultChars?: number;
  /** Stores the run when it is suspended, for `resumeStoredRun`. */
  readonly store?: RunStore;
  /**
   * When the run is stored: suspended, at every step, or also at each value of `context.once`. Default: `suspend`.
   * With stored steps, the run survives a crash of its process: `recoverRuns` continues it.
   */
  readonly checkpoint?: Checkpoint;
  /**
   * Milliseconds until a run whose process crashed can be recovered; default: 30,000. Renewed while the run
   * continues.
   */
  readonly leaseMs?: number;
  /**
   * Id of the run; default: a UUID. A run cannot start if its store already has a run with this id.
   */
  readonly runId?: string;
  /** Milliseconds for answers, if neither tool nor question sets them; default: no limit. */
  readonly answerWithinMs?: number;
  /**
   * What happens if a call is not answered in time. `refuse`: the model is informed. `end`: the run ends
   * (`AnswerExpired`). Default: `refuse`.
   */
  readonly onExpiry?: 'refuse' | 'end';
  /** Signs the states of suspended runs: 32 random bytes as text. States without that signature are refused. */
  readonly stateSecret?: string;
  /** Runs the work of background tools outside this process. Requires a `store` that stores jobs. */
  readonly engine?: JobEngine;
  readonly signal?: AbortSignal;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Records the run, its requests and its calls: `openTelemetry()`; default: the registry's. */
  readonly telemetry?: Telemetry;
  /** The agent's name in traces and metrics: `invoke_agent billing`. */
  readonly agentName?: string;
  /** Receives completions of started work while this process lives. If set, such tools answer immediately. */
  readonly onAsyncResult?: AsyncCallback;
  /** The queue of work that tools start; default: the registry's. */
  readonly tasks?: TaskQueue;
}

const FALLBACK = "{ provider, model: 'gpt-5' }";
const TARGET = objectOf<ProviderTarget>({ provider: required(PROVIDER), model: MODEL }, { fix: FALLBACK });

/** Tools, or a registry of tools. */
const TOOLS: OptionRule = {
  ...either(instanceOf(ToolRegistry, 'a ToolRegistry'), LIST),
  fix: 'a ToolRegistry, or [tool, …]',
};

/** The rules for the options of the loop. */
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
  maxConcurrency: COUNT_LIMIT,
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
  stateSecret: protecting(SECRET_KEY),
  engine: JOB_ENGINE,
  signal: SIGNAL,
  logger: LOGGER,
  telemetry: TELEMETRY,
  agentName: FILLED_TEXT,
  onAsyncResult: FUNCTION,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
};

/** Names in other frameworks, and their equivalents. */
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

/** The config of a resume: the model is stored with the run. */
export interface ResumeConfig extends Omit<ToolLoopConfig, 'model'> {
  /** Used only if the state is of a version without a model. */
  readonly model?: string;
}

/** The owner of a continued run, and who answered. */
export interface ResumeOptions {
  /** The scope of the run's owner, never that of a user who answered for them. */
  readonly scope?: CallScope;
  /** Who answered: any JSON. It is recorded with the calls, and grants no rights. */
  readonly answeredBy?: unknown;
  /** Another model for the rest of the run; default: the model so far. */
  readonly model?: string;
}

const OWNERS_SCOPE = 'scope: { owner, data, … }, which is the scope of the run’s owner';
const RESUME_OPTIONS = optionTable<ResumeOptions>(
  'a resume',
  { scope: SCOPE_OPTION, answeredBy: JSON_VALUE, model: MODEL },
  { owner: OWNERS_SCOPE, data: OWNERS_SCOPE },
);

/** The model is stored with the run. */
const RESUME_CONFIG = optionTable<ResumeConfig>(
  'the loop’s config',
  { ...LOOP_RULES, model: MODEL },
  LOOP_ALIASES,
);

/** Options with a misspelled name are not read as a scope. */
function isOfResume(name: string): boolean {
  const names = RESUME_OPTIONS.rules;
  return names.has(name) || (!SCOPE.rules.has(name) && misspeltName(name, [...names.keys()]) !== undefined);
}

/** The arguments of a resume, other than the run and its answers. */
interface GivenResume {
  readonly config: ResumeConfig;
  readonly options: ResumeOptions | CallScope;
  /** Other faults that were already found. */
  readonly others?: readonly InvalidOption[];
}

/**
 * Reads the fourth argument of a resume; a plain scope is the owner's.
 *
 * @throws InvalidOptionsError (521) for invalid options, for options inside a scope, and for an invalid config.
 */
export function readResume({ config, options, others = [] }: GivenResume): ResumeOptions {
  const isScope = !(isRecord(options) && Object.keys(options).some(isOfResume));
  const read = (isScope ? { scope: options } : options) as ResumeOptions;
  refuseOptions([
    ...invalidOptions(config, RESUME_CONFIG),
    ...invalidOptions(options, isScope ? SCOPE : RESUME_OPTIONS),
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

/**
 * Checks the arguments of a run before any request.
 *
 * @throws InvalidOptionsError (521): a run cannot start with a mistake of its author.
 */
export function checkRun({ config, scope, messages }: GivenRun): void {
  const history = historyFaults(messages, config?.history === 'refuse' ? 'refuse' : 'repair');
  const { checkpoint = 'suspend', leaseMs } = config ?? {};
  const lease: InvalidOption[] = [];
  // Without saved steps, no process can continue a run whose lease has expired.
  if (leaseMs !== undefined && checkpoint === 'suspend') {
    const problem = 'leaseMs is for runs whose steps are saved';
    const fix = "checkpoint: 'step'; or no leaseMs";
    lease.push({ where: RUN_CONFIG.of, option: 'leaseMs', problem, fix });
  }
  const isRight = areRight(config, RUN_CONFIG) && areRight(scope, SCOPE);
  if (isRight && lease.length + history.length === 0) return;
  refuseOptions([
    ...invalidOptions(config, RUN_CONFIG),
    ...lease,
    ...invalidOptions(scope, SCOPE),
    ...history,
  ]);
}
