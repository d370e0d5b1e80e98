import type { CallRecord, CallScope, HookNote, UpdateListener } from '../../core/contract/call.js';
import { type Message, type ToolSchema, USAGE_PARTS, type Usage } from '../../core/contract/llm-provider.js';
import { RESULTS_OF_TURNS, type ResultStore } from '../../core/contract/result-store.js';
import type { RunState, RunStore } from '../../core/contract/run-state.js';
import type { RunTrace, TracedRun } from '../../core/contract/telemetry.js';
import type { CallWatcher, Invoker, OnceValue, OnUnknown } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { hasUsageParts, type ModelQuestion, type Reply } from './ask-model.js';
import type { EventSink, LoopEnd, LoopEvent, ToolLoopResult } from './events.js';
import type { FinalAnswer } from './final-answer.js';
import type { FoldedRun } from './fold-run.js';
import type { GivenHistory } from './given-history.js';
import type { LoopGuard, RetryBudget } from './guard.js';
import type { CallingMessage, ParsedCall, SentMessages } from './messages.js';
import type { ProviderTarget, StepSettings, ToolLoopConfig } from './options.js';
import type { RunBudget } from './run-budget.js';
import type { Reveal } from './run-masks.js';

/**
 * Writes the entries of a running run to a store. Its promises resolve once the entries are committed, or the run is
 * lost.
 */
export interface Checkpointer {
  /** Values of `context.once` are saved immediately. */
  readonly savesOnce: boolean;
  /** The run starts or continues. Rejects if it cannot be saved. */
  begin(run: LoopRun): Promise<void>;
  /** A message was accepted, and is the last of the history; some of its calls begin. */
  open(run: LoopRun, message: CallingMessage, begins: readonly ParsedCall[]): Promise<void>;
  start(call: ParsedCall): Promise<void> | undefined;
  /** The call has its record, or its waits. */
  save(call: ParsedCall): Promise<void> | undefined;
  /** Saves a value of `context.once`; rejects if the run is lost. */
  saveOnce(call: ParsedCall, done: OnceValue): Promise<void>;
  /** The run has ended or is suspended; returns the result, with the error of the store if there was one. */
  end(run: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult>;
}

/** Where the large results of a run are stored. */
interface ResultsOwner {
  /** Of the run itself, of the turns of a conversation, or, for an agent, of the outermost enclosing run. */
  readonly runId: string;
  /** All runs that store results there may read them; an agent reads only its own. */
  readonly isShared: boolean;
}

/** The same for the turns of a conversation. */
export function resultsOfConversation(conversationId: string): ResultsOwner {
  return { runId: conversationId + RESULTS_OF_TURNS, isShared: true };
}

/** The environment of a run, and its observers. */
export interface RunDeps {
  readonly scope: CallScope;
  readonly sink?: EventSink;
  readonly checkpointer?: Checkpointer | undefined;
  /** How calls that were interrupted by a crash are handled. */
  readonly onUnknown?: OnUnknown;
  /** Id of the conversation if a new run is a turn. */
  readonly turnOf?: string;
  readonly inPrompt?: TracedRun['inPrompt'];
  /** Aborted when this process may not continue a stored run: the run is left for other processes. */
  readonly left?: AbortSignal;
  /** Aborted when this process no longer needs the results of started jobs. */
  readonly followUntil?: AbortSignal;
  /** Default: the run itself. */
  readonly resultsOf?: ResultsOwner;
  /** Where the run is saved when it is suspended; default: the config's store. */
  readonly save?: RunStore['save'];
  /** Whether streamed text has a reader, called before each request; default: if there is a sink. */
  readonly hasReader?: () => boolean;
  /** Called whenever every call of the history has its answer; `end` if the run ends there. */
  readonly onStep?: (run: LoopRun, end: LoopEnd | undefined) => void;
}

/** The progress of a run when every call of its history has its answer; plain JSON. */
export type RunProgress = Omit<RunState, 'version' | 'runId' | 'revision' | 'open' | 'pending' | 'signature'>;

/**
 * A run is new, with a history, or continued from its record: a suspended state with the answers in its calls, the
 * folded entries of a run whose process crashed, or the progress of a turn in this process.
 */
export type RunStart = GivenHistory | { readonly record: RunRecord };

/** The start of a continued run. A suspended run has `pending`; a run whose process crashed has `steps`. */
type RunRecord = RunProgress &
  Partial<Pick<RunState, 'runId' | 'revision' | 'pending'>> &
  Partial<Pick<FoldedRun, 'open' | 'steps' | 'uncounted'>>;

/** The definitions in the requests of a run. */
interface OfferedDefinitions {
  /** The last request offered one of the loop's own tools. */
  readonly hasOurs: boolean;
  /** Names in the order in which their definitions were sent. */
  readonly order: readonly string[];
  definitions(tools: ToolRegistry, target: ProviderTarget): readonly ToolSchema[];
  checkNames(where: string, settings: Pick<StepSettings, 'tools' | 'toolChoice'>): void;
}

/** The hooks of the run's requests. */
interface RunHooks {
  ask(run: LoopRun, question: ModelQuestion): Promise<Reply>;
  /** The notes about requests since the last call. */
  takeNotes(): readonly HookNote[];
}

/** Node's `AsyncResource`: the types of the package must not need those of Node. */
export interface AsyncContext {
  runInAsyncScope<Value>(work: () => Value): Value;
}

/** A run: the dependencies of its steps, and its progress. */
export interface LoopRun extends Pick<RunDeps, 'scope' | 'sink' | 'hasReader' | 'onStep' | 'checkpointer'> {
  readonly config: ToolLoopConfig;
  /** It does not change when the run is suspended and resumed. */
  readonly runId: string;
  readonly owner: unknown;
  readonly turnOf: string | undefined;
  readonly tools: ToolRegistry;
  /** The definitions in its requests. */
  readonly offer: OfferedDefinitions;
  /** The store of results that are too large for the model, and the size limit. */
  readonly results?: ResultStore | undefined;
  readonly maxResultChars?: number | undefined;
  readonly resultsOf: ResultsOwner;
  readonly signal: AbortSignal | undefined;
  readonly retries: RetryBudget;
  readonly guard: LoopGuard | undefined;
  /** The last number that a call without an id received. */
  lastNumber: number | undefined;
  readonly maxIterations: number;
  /** The providers to use after failures, in order; `failedOver` counts those in use. */
  readonly fallback: readonly ProviderTarget[];
  failedOver: number;
  /** Requests that were retried, or sent to another provider. */
  providerRetries: number;
  readonly trace: RunTrace | undefined;
  readonly hooks: RunHooks | undefined;
  /** Absent if the run has no limits. */
  readonly budget: RunBudget | undefined;
  readonly invoke: Invoker;
  /** The async context outside its calls, set at the first of them: within its trace. */
  context?: AsyncContext;
  /** The record from which the run was continued. */
  readonly record: RunRecord | undefined;
  /** Append-only. */
  readonly messages: Message[];
  readonly sent: SentMessages;
  readonly toolCalls: CallRecord[];
  iterations: number;
  usage: Usage;
  /** Set if the run must end with data. */
  readonly output: FinalAnswer | undefined;
  /** Set if its answer has masks, and is read outside of it. */
  readonly reveal: Reveal | undefined;
  /** The model has answered in another form, and was asked for the data. */
  isAnswerAsked: boolean;
  /** The last reply was empty, and the model is asked again once. */
  isAskedAgain: boolean;
}

/** Also observes the runs with a registry. */
export interface RunWatcher extends CallWatcher {
  /** A run starts or continues. The listener is called with each event and cannot change the run. */
  aroundRun(run: LoopRun): (event: LoopEvent) => void;
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** Adds the tokens of one reply, if it reported them. */
export function addUsage(run: LoopRun, usage: Usage | undefined): void {
  if (usage === undefined) return;
  const before = run.usage;
  const summed: Writable<Usage> = {
    inputTokens: sum(before.inputTokens, usage.inputTokens),
    outputTokens: sum(before.outputTokens, usage.outputTokens),
    totalTokens: sum(before.totalTokens, usage.totalTokens),
  };
  if (hasUsageParts(usage) || hasUsageParts(before))
    for (const part of USAGE_PARTS)
      if ((usage[part] ?? before[part]) !== undefined)
        summed[part] = sum(before[part] ?? 0, usage[part] ?? 0);
  run.usage = summed;
}

function sum(count: number, added: number): number {
  return Math.min(count + added, Number.MAX_SAFE_INTEGER);
}

/** The usage between two counts. */
export function usageSince(before: Usage, after: Usage): Usage {
  const since: Writable<Usage> = {
    inputTokens: after.inputTokens - before.inputTokens,
    outputTokens: after.outputTokens - before.outputTokens,
    totalTokens: after.totalTokens - before.totalTokens,
  };
  for (const part of USAGE_PARTS) {
    const now = after[part];
    if (now !== undefined) since[part] = now - (before[part] ?? 0);
  }
  return since;
}

export type Writable<Data> = { -readonly [Key in keyof Data]: Data[Key] };

/** A run's scope with the history so far, which is copied only when a tool reads it. */
export class HistoryScope {
  readonly channel: CallScope['channel'];
  readonly chatId: CallScope['chatId'];
  readonly conversationId: CallScope['conversationId'];
  readonly owner: CallScope['owner'];
  readonly scopes: CallScope['scopes'];
  readonly signal: CallScope['signal'];
  readonly data: CallScope['data'];
  readonly container: CallScope['container'];
  readonly onUpdate;
  readonly onLog: CallScope['onLog'];
  readonly #history: readonly Message[];
  readonly #length: number;
  #messages: readonly Message[] | undefined;

  /** `history` is append-only, so that its length identifies the current part. */
  constructor(
    scope: CallScope,
    history: readonly Message[],
    onUpdate: UpdateListener | undefined = scope.onUpdate,
  ) {
    this.channel = scope.channel;
    this.chatId = scope.chatId;
    this.conversationId = scope.conversationId;
    this.owner = scope.owner;
    this.scopes = scope.scopes;
    this.signal = scope.signal;
    this.data = scope.data;
    this.container = scope.container;
    this.onUpdate = onUpdate;
    this.onLog = scope.onLog;
    this.#history = history;
    this.#length = history.length;
  }

  get messages(): readonly Message[] {
    this.#messages ??= Object.freeze(this.#history.slice(0, this.#length));
    return this.#messages;
  }
}
