import { type LLMProvider, MODEL, PROVIDER } from '../contract/llm-provider.js';
import type { Logger } from '../contract/logger.js';
import { RUN_STORE, type RunStore } from '../contract/run-store.js';
import type { AsyncCallback } from '../contract/tool.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import { TaskQueue } from '../invocation/task-queue.js';
import {
  COUNT_LIMIT,
  either,
  exactly,
  FILLED_TEXT,
  FUNCTION,
  instanceOf,
  LIMIT,
  LIST,
  LOGGER,
  MILLISECONDS,
  type OptionRule,
  oneOf,
  protecting,
  RECORD,
  required,
  SIGNAL,
  secret,
} from '../kernel/option-rules.js';
import { objectOf, type RulesOf } from '../kernel/options.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import type { RegisteredTool } from '../registry/tool-table.js';
import type { Detector } from './detect-calls.js';
import type { LoopGuardOptions } from './loop-guard.js';

/** What a run needs. */
export interface ToolLoopConfig {
  readonly provider: LLMProvider;
  readonly model: string;
  /** A registry, or tools to put into one; none: the model is offered no tools. */
  readonly tools?: ToolRegistry | readonly RegisteredTool[];
  /** Where calls are looked for beside the reply's own; default `native`: nowhere. */
  readonly detector?: Detector;
  /** Requests to the model at most; default 20, under `withTextTools` 5. `0` makes none. */
  readonly maxIterations?: number;
  /** Passed to the provider as they are: `max_tokens`, `temperature`, … */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
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
  /** Characters of a result that the model sees at most; default: the registry's. */
  readonly maxResultChars?: number;
  /** Keeps the run where it is suspended, for `resumeStoredRun`. */
  readonly store?: RunStore;
  /** Signs the states of suspended runs, and refuses states without that signature: 32 random bytes as text. */
  readonly stateSecret?: string;
  readonly signal?: AbortSignal;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Hears of completions of work that tools started; with it, such tools answer at once. */
  readonly onAsyncResult?: AsyncCallback;
  /** What the work that tools start goes through; default: the registry's. */
  readonly tasks?: TaskQueue;
}

const GUARD_NUMBERS = objectOf<LoopGuardOptions>(
  { tellAt: COUNT_LIMIT, endAt: COUNT_LIMIT },
  { fix: '{ tellAt: 3, endAt: 6 }' },
);

/** The model is told before the run ends; `Infinity` tells it never. */
const LOOP_GUARD: OptionRule = {
  ...GUARD_NUMBERS,
  accepts: (value) => GUARD_NUMBERS.accepts(value) && tellsInTime(value as LoopGuardOptions),
  explain: (value, option) => {
    if (!GUARD_NUMBERS.accepts(value)) return GUARD_NUMBERS.explain?.(value, option) ?? [];
    const { tellAt, endAt } = value as LoopGuardOptions;
    const problem = `${option}.tellAt is ${tellAt}, but the run ends at ${endAt} repeats`;
    return [{ option: `${option}.tellAt`, problem, fix: `${option}: { tellAt: 3, endAt: 6 }` }];
  },
};

function tellsInTime({ tellAt = 0, endAt = tellAt }: LoopGuardOptions): boolean {
  return tellAt <= endAt || tellAt === Number.POSITIVE_INFINITY;
}

/** What each option of the loop may be. */
export const LOOP_RULES: RulesOf<ToolLoopConfig> = {
  provider: required(PROVIDER),
  model: required(MODEL),
  tools: { ...either(instanceOf(ToolRegistry, 'a ToolRegistry'), LIST), fix: 'a ToolRegistry, or [tool, …]' },
  detector: either(oneOf('native', 'tool_request', 'scan'), FUNCTION),
  maxIterations: LIMIT,
  llmOptions: { ...RECORD, fix: '{ temperature: 0, … }' },
  maxRetries: LIMIT,
  maxConcurrency: LIMIT,
  toolTimeoutMs: MILLISECONDS,
  onLimit: oneOf('return', 'throw', 'answer'),
  loopGuard: either(LOOP_GUARD, exactly(false)),
  policy: protecting(FUNCTION),
  maxResultChars: LIMIT,
  store: RUN_STORE,
  stateSecret: protecting(secret(FILLED_TEXT)),
  signal: SIGNAL,
  logger: LOGGER,
  onAsyncResult: FUNCTION,
  tasks: instanceOf(TaskQueue, 'new TaskQueue({ maxRunning: 4 })'),
};

/** Names that other frameworks use, and what is meant here. */
export const LOOP_ALIASES = {
  messages: 'the second argument of the function',
  systemPrompt: "a first message { role: 'system', content: '…' }",
  maxSteps: 'maxIterations: …',
  timeoutMs: 'toolTimeoutMs: …',
  abortSignal: 'signal: …',
  temperature: 'llmOptions: { temperature: … }',
  maxTokens: 'llmOptions: { max_tokens: … }',
  max_tokens: 'llmOptions: { max_tokens: … }',
};
