import type { CallRecord, CallScope, HookNote, UpdateListener } from '../../core/contract/call.js';
import { type Message, type ToolSchema, USAGE_PARTS, type Usage } from '../../core/contract/llm-provider.js';
import type { ResultStore } from '../../core/contract/result-store.js';
import type { RunState, RunStore } from '../../core/contract/run-state.js';
import type { RunTrace } from '../../core/contract/telemetry.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import type { CallWatcher, Invoker, OnceValue, OnUnknown } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { hasUsageParts, type ModelQuestion, type Reply } from './ask-model.js';
import type { EventSink, LoopEvent, LoopStatus, ToolLoopResult } from './events.js';
import type { FinalAnswer } from './final-answer.js';
import type { FoldedRun } from './fold-run.js';
import type { GivenHistory } from './given-history.js';
import type { LoopGuard, RetryBudget } from './guard.js';
import type { CallEnding, CallingMessage, ParsedCall, SentMessages } from './messages.js';
import type { OfferedTools } from './offered-tools.js';
import type { ProviderTarget, ToolLoopConfig } from './options.js';
import type { RunBudget } from './run-budget.js';

/** Writes the entries of a run to a store while it goes on. A promise here resolves once they are committed, or the run is lost. */
export interface Checkpointer {
  /** Values of `context.once` are saved at once. */
  readonly savesOnce: boolean;
  /** The run begins or goes on. Rejects if it cannot be saved. */
  begin(run: LoopRun): Promise<void>;
  /** A message was taken, and is the last of the history; its calls at these indices begin. */
  open(run: LoopRun, message: CallingMessage, begins: ReadonlySet<number>): Promise<void>;
  start(call: ParsedCall): Promise<void>;
  save(call: ParsedCall, outcome: CallEnding): Promise<void>;
  /** A value of `context.once`; rejects if the run is lost. */
  saveOnce(call: ParsedCall, done: OnceValue): Promise<void>;
  /** The run has ended or is suspended; gives the result, with the error of the store if there was one. */
  end(run: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult>;
}

/** Where a run takes place, and who watches it. */
export interface RunDeps {
  readonly scope: CallScope;
  readonly sink?: EventSink;
  readonly checkpointer?: Checkpointer | undefined;
  /** What becomes of calls that had begun when their process died. */
  readonly onUnknown?: OnUnknown;
  /** Id of the conversation whose turn a new run is. */
  readonly turnOf?: string;
  /** Aborted when this process may not go on with a stored run: the run is left for other processes. */
  readonly left?: AbortSignal;
  /** Aborted when this process does not need the results of started jobs any more. */
  readonly followUntil?: AbortSignal;
  /** The run whose state contains that of an agent: large results of the agent are stored as its own. */
  readonly resultsOf?: string;
  /** Where the run is saved when it is suspended; default: the config's store. */
  readonly saveTo?: Pick<RunStore, 'save'> | undefined;
  /** Whether anybody reads the text while it is written, asked before each request; default: if there is a sink. */
  readonly hasReader?: () => boolean;
  /** Called whenever every call of the history has its answer; `end` if the run ends there. */
  readonly onStep?: (run: LoopRun, end: LoopEnd | undefined) => void;
}

/** How far a run has come at a moment when every call of its history has its answer; plain JSON. */
export type RunProgress = Pick<
  RunState,
  | 'owner'
  | 'turnOf'
  | 'tools'
  | 'model'
  | 'messages'
  | 'toolCalls'
  | 'iterations'
  | 'usage'
  | 'spent'
  | 'granted'
  | 'retries'
  | 'guard'
  | 'trace'
>;

/**
 * A run is new, with a history, or continued from its record: a suspended state with the answers in its calls, the
 * folded entries of a run whose process died, or the progress of a turn in this process.
 */
export type RunStart = GivenHistory | { readonly record: RunRecord };

/** What a continued run starts from. A suspended run has `pending`; one whose process died has `steps`. */
export type RunRecord = RunProgress &
  Partial<Pick<RunState, 'runId' | 'revision' | 'pending'>> &
  Partial<Pick<FoldedRun, 'open' | 'steps' | 'uncounted'>>;

/** The hooks that see the requests of a run. */
interface RunHooks {
  ask(run: LoopRun, question: ModelQuestion): Promise<Reply>;
  /** What was done about requests since the last call. */
  takeNotes(): readonly HookNote[];
}

/** A run: what its steps need, and how far it has come. */
export interface LoopRun extends Pick<RunDeps, 'scope' | 'sink' | 'hasReader' | 'onStep' | 'checkpointer'> {
  readonly config: ToolLoopConfig;
  /** The same through its suspensions. */
  readonly runId: string;
  readonly owner: unknown;
  readonly turnOf: string | undefined;
  readonly tools: ToolRegistry;
  /** Names of the tools that it was offered before it was suspended. */
  readonly offered: readonly string[];
  /** The definitions that its requests carry. */
  offer: OfferedTools | undefined;
  /** All that its requests carried until something changed. */
  sentFirst: readonly ToolSchema[] | undefined;
  /** Where results are stored that are too large for the model, and from which length on. */
  readonly results?: ResultStore | undefined;
  readonly maxResultChars?: number | undefined;
  /** The run as whose they are stored: of an agent, the outermost one around it. */
  readonly resultsOf: string;
  readonly signal: AbortSignal | undefined;
  readonly retries: RetryBudget;
  readonly guard: LoopGuard | undefined;
  /** The last number that was given to a call without an id. */
  lastNumber: number | undefined;
  readonly maxIterations: number;
  /** Asked one after the other when the provider before has failed; `failedOver` of them have been turned to. */
  readonly fallback: readonly ProviderTarget[];
  failedOver: number;
  /** Requests that were made again, or of another provider. */
  providerRetries: number;
  readonly trace: RunTrace | undefined;
  readonly hooks: RunHooks | undefined;
  /** Absent if nothing limits what the run may spend. */
  readonly budget: RunBudget | undefined;
  readonly invoke: Invoker;
  /** Names of tools whose last call was synchronous. */
  readonly synchronous: Set<string>;
  /** What the run was continued from. */
  readonly record: RunRecord | undefined;
  /** Only ever appended to. */
  readonly messages: Message[];
  readonly sent: SentMessages;
  readonly toolCalls: CallRecord[];
  iterations: number;
  usage: Usage;
  /** If the run is to end with data. */
  readonly output: FinalAnswer | undefined;
  /** The model has answered in another way, and was asked for the data. */
  isAnswerAsked: boolean;
  /** The last reply was empty, and the model is asked once more. */
  isAskedAgain: boolean;
}

/** Sees the runs over a registry, too. */
export interface RunWatcher extends CallWatcher {
  /** A run begins or goes on. The listener is called at once with each event, and changes nothing of the run. */
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

/** What was used between two counts. */
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

export interface LoopEnd {
  readonly status: LoopStatus;
  readonly content?: string;
  /** The final answer as data. */
  readonly output?: unknown;
  /** Of a suspended run. */
  readonly state?: RunState;
  readonly error?: Error;
}

type Counted = Pick<ToolLoopResult, 'messages' | 'toolCalls' | 'iterations' | 'usage' | 'providerRetries'> &
  Partial<Pick<LoopRun, 'runId' | 'checkpointer' | 'budget'>>;

/** The outcome of a run that ends now. */
export function endRun(
  run: Counted,
  { status, content = '', output, state, error }: LoopEnd,
): ToolLoopResult {
  const { messages, toolCalls, iterations, usage } = run;
  const result: Writable<ToolLoopResult> = { content, iterations, status, messages, toolCalls, usage };
  if (run.budget !== undefined) result.spent = run.budget.spending;
  if (run.providerRetries) result.providerRetries = run.providerRetries;
  if (run.checkpointer !== undefined || state !== undefined) result.runId = run.runId;
  if (output !== undefined) result.output = output;
  if (state !== undefined) {
    result.pending = state.pending;
    result.state = state;
  }
  if (error !== undefined) result.error = error;
  return result;
}

export type Writable<Data> = { -readonly [Key in keyof Data]: Data[Key] };

/** The outcome of a run that was aborted before it began. */
export function abortedBefore(messages: readonly Message[], signal: AbortSignal | undefined): ToolLoopResult {
  const nothing = { messages: [...messages], toolCalls: [], iterations: 0, usage: NO_USAGE };
  return endRun(nothing, abortedRun(signal));
}

/** A run that its signal ended; `content` is what was streamed of the reply that this cut off. */
export function abortedRun(signal: AbortSignal | undefined, content = ''): LoopEnd {
  const error = new ToolwrightError('RunAborted', 'The run was aborted.', { cause: signal?.reason });
  return { status: 'aborted', content, error };
}

/** A run's scope with the history up to now, which is copied only when a tool asks for it. */
export class HistoryScope {
  readonly channel: CallScope['channel'];
  readonly chatId: CallScope['chatId'];
  readonly conversationId: CallScope['conversationId'];
  readonly owner: CallScope['owner'];
  readonly scopes: CallScope['scopes'];
  readonly signal: CallScope['signal'];
  readonly data: CallScope['data'];
  readonly container: CallScope['container'];
  readonly onUpdate: CallScope['onUpdate'];
  readonly onLog: CallScope['onLog'];
  readonly #history: readonly Message[];
  readonly #length: number;
  #messages: readonly Message[] | undefined;

  /** `history` only grows, so that its length identifies the part that there is now. */
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
