import type { Invoker, OnceValue, OnUnknown } from '../call/invocation.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { CallWatcher } from '../call/watch-calls.js';
import type { CallRecord, CallScope, HookNote, UpdateListener } from '../contract/call.js';
import {
  type LLMProvider,
  type LLMRequest,
  type Message,
  type ToolSchema,
  USAGE_PARTS,
  type Usage,
} from '../contract/llm-provider.js';
import type { ResultStore } from '../contract/result-store.js';
import type { RunCheckpoint } from '../contract/run-checkpoint.js';
import type { RunState, RunStore, StoredCallRecord } from '../contract/run-state.js';
import type { RequestTrace, RunTrace } from '../contract/telemetry.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { type AskListeners, hasUsageParts, type Reply } from './ask-model.js';
import type { EventSink, LoopEvent, LoopStatus, ToolLoopResult } from './events.js';
import type { FinalAnswer } from './final-answer.js';
import type { LoopGuard, RetryBudget } from './guard.js';
import type { CallingMessage, CallOutcome, ParsedCall, SentMessages } from './messages.js';
import type { OfferedTools } from './offered-tools.js';
import type { ProviderTarget, ToolLoopConfig } from './options.js';
import type { RunBudget } from './run-budget.js';

/** Keeps what a run does while it does it. What a promise here has told is committed, or the run is aborted. */
export interface RunKeeper {
  /** Values of `context.once` are kept at once. */
  readonly keepsOnce: boolean;
  /** The run is there; nothing has been asked. Rejects where it cannot be kept. */
  begin(run: LoopRun): Promise<void>;
  /** A message was taken, and is the last of the history; its calls at these indices begin. */
  open(run: LoopRun, message: CallingMessage, begins: ReadonlySet<number>): Promise<void>;
  /** A call begins that was held. */
  start(call: ParsedCall): Promise<void>;
  /** What came of a call. */
  keep(call: ParsedCall, outcome: CallOutcome): Promise<void>;
  /** A value of `context.once`; rejects where the run is lost. */
  keepOnce(call: ParsedCall, done: OnceValue): Promise<void>;
  /** The run has ended or is suspended; gives the result with the fault of the store, if there was one. */
  end(run: LoopRun, result: ToolLoopResult): Promise<ToolLoopResult>;
}

/** Where a run takes place, and who watches it. */
export interface RunSurroundings {
  readonly scope: CallScope;
  /** The run itself, where it has begun to be recorded. */
  readonly run?: LoopRun;
  readonly sink?: EventSink;
  /** Keeps all that the run does. */
  readonly keeper?: RunKeeper;
  /** What becomes of calls that had begun when their process died. */
  readonly onUnknown?: OnUnknown;
  /** Id of the conversation whose turn a run that begins is. */
  readonly turnOf?: string;
  /** Aborted where a kept run is no longer this process's to go on with: it is left as it stands, for others. */
  readonly left?: AbortSignal;
  /** Aborted where nobody here hears any more what becomes of the jobs that its calls have started. */
  readonly followUntil?: AbortSignal;
  /** The run whose state has that of an agent: large results of the agent are kept as its own. */
  readonly resultsOf?: string;
  /** Keeps the run where it is suspended; default: the config's store. */
  readonly keep?: Pick<RunStore, 'save'>;
  /** Whether anybody reads the text while it is written, asked before each request; default: where there is a sink. */
  readonly hasReader?: () => boolean;
  /** Hears, at once, of every moment at which each call of the history has its answer; `end` where that is all. */
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

/** A run that was under way when its process died, and how far it had come. */
export interface LostRun extends Omit<RunCheckpoint, 'status' | 'version' | 'open'> {
  readonly open?: RunState['open'] | undefined;
  /** What came of the calls of each message since its checkpoint. */
  readonly steps: readonly (readonly StoredCallRecord[])[];
  /** By the places of their calls, those since its last count of what it spent. */
  readonly uncounted: ReadonlyMap<number, StoredCallRecord>;
}

/**
 * What a run begins with: a history, how far it had come, where it was suspended, with the answers in its calls, or
 * where it was lost.
 */
export type RunStart =
  | { readonly messages: readonly Message[] }
  | { readonly progress: RunProgress }
  | { readonly suspended: RunState }
  | { readonly lost: LostRun };

/** Who is asked what, and who hears of the reply. */
export interface Question extends AskListeners {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  /** Records it, and hears of what goes out. */
  readonly trace?: RequestTrace;
}

/** What surrounds the requests of a run. */
export interface RunHooks {
  /** Asks the provider once. */
  ask(run: LoopRun, question: Question): Promise<Reply>;
  /** What was done about requests since this was asked last. */
  takeNotes(): readonly HookNote[];
}

/** A run: what its steps need, and how far it has come. */
export interface LoopRun extends Pick<RunSurroundings, 'scope' | 'sink' | 'hasReader' | 'onStep' | 'keeper'> {
  readonly config: ToolLoopConfig;
  /** The same through its suspensions. */
  readonly runId: string;
  /** On whose behalf it takes place. */
  readonly owner: unknown;
  /** Id of the conversation whose turn it is, where that is one of several processes. */
  readonly turnOf: string | undefined;
  readonly tools: ToolRegistry;
  /** Names of the tools that it was offered before it was suspended. */
  readonly offered: readonly string[];
  /** The definitions that its requests carry. */
  offer: OfferedTools | undefined;
  /** All that its requests carried until something changed. */
  sentFirst: readonly ToolSchema[] | undefined;
  /** Where it keeps what is too large for the model, and from which length on. */
  readonly results?: ResultStore | undefined;
  readonly maxResultChars?: number | undefined;
  /** The run as whose they are kept: of an agent, the outermost one around it. */
  readonly resultsOf: string;
  readonly signal: AbortSignal | undefined;
  readonly retries: RetryBudget;
  readonly guard: LoopGuard | undefined;
  /** The last that was given to a call without an id. */
  lastNumber: number | undefined;
  readonly maxIterations: number;
  /** Asked one after the other where the provider before has failed; so many of them have been turned to. */
  readonly fallback: readonly ProviderTarget[];
  failedOver: number;
  /** Requests that were made again, or of another provider. */
  providerRetries: number;
  /** Where it is recorded. */
  readonly trace: RunTrace | undefined;
  /** What surrounds its requests; absent where nothing does. */
  readonly hooks: RunHooks | undefined;
  /** What it may spend; absent where that is not limited. */
  readonly budget: RunBudget | undefined;
  /** Makes the calls of the run. */
  readonly invoke: Invoker;
  /** Names of tools whose last call was synchronous. */
  readonly synchronous: Set<string>;
  /** Where the run was suspended or lost before. */
  readonly resumed:
    | (Pick<RunState, 'runId' | 'revision'> & Partial<Pick<LostRun & RunState, 'open' | 'pending'>>)
    | undefined;
  /** Only ever appended to. */
  readonly messages: Message[];
  /** The messages as requests carry them. */
  readonly sent: SentMessages;
  readonly toolCalls: CallRecord[];
  iterations: number;
  usage: Usage;
  /** Where the run is to end with data. */
  readonly output: FinalAnswer | undefined;
  /** The model has answered in another way, and was asked for the data. */
  isAnswerAsked: boolean;
  /** The last reply said nothing, and the model is asked once more. */
  isAskedAgain: boolean;
}

/** Sees the runs over a registry, too. */
export interface RunWatcher extends CallWatcher {
  /** A run begins or goes on; what hears of its events, at once, and changes nothing of it. */
  aroundRun(run: LoopRun): (event: LoopEvent) => void;
}

/** The run with its watcher's ear beside its own sink. Nobody streams from the model for a watcher alone. */
export function watchedRun(run: LoopRun, watcher: CallWatcher): LoopRun {
  if (!('aroundRun' in watcher)) return run;
  const { sink, hasReader } = run;
  const hear = (watcher as RunWatcher).aroundRun(run);
  if (sink === undefined) return { ...run, sink: hear, hasReader: hasReader ?? (() => false) };
  const both: EventSink = (event) => {
    hear(event);
    return sink(event);
  };
  return { ...run, sink: both };
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** Adds the tokens of one reply, where it told them. */
export function addUsage(run: LoopRun, usage: Usage | undefined): void {
  if (usage === undefined) return;
  const { inputTokens, outputTokens, totalTokens } = run.usage;
  const counts: Usage = {
    inputTokens: sum(inputTokens, usage.inputTokens),
    outputTokens: sum(outputTokens, usage.outputTokens),
    totalTokens: sum(totalTokens, usage.totalTokens),
  };
  run.usage = hasUsageParts(usage) || hasUsageParts(run.usage) ? withParts(counts, run.usage, usage) : counts;
}

function withParts(counts: Usage, before: Usage, usage: Usage): Usage {
  const summed: Record<string, unknown> = { ...counts };
  for (const part of USAGE_PARTS) {
    const told = usage[part] ?? before[part];
    if (told !== undefined) summed[part] = sum(before[part] ?? 0, usage[part] ?? 0);
  }
  return summed as unknown as Usage;
}

function sum(count: number, added: number): number {
  return Math.min(count + added, Number.MAX_SAFE_INTEGER);
}

/** How a run ends. */
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
  Partial<Pick<LoopRun, 'runId' | 'keeper' | 'budget'>>;

/** The outcome of a run that ends now. */
export function endRun(
  { messages, toolCalls, iterations, usage, providerRetries, keeper, runId, budget }: Counted,
  { status, content = '', output, state, error }: LoopEnd,
): ToolLoopResult {
  const result: Writable<ToolLoopResult> = { content, iterations, status, messages, toolCalls, usage };
  if (budget !== undefined) result.spent = budget.spending;
  if (providerRetries) result.providerRetries = providerRetries;
  if (keeper !== undefined) result.runId = runId;
  if (output !== undefined) result.output = output;
  if (state !== undefined) {
    result.pending = state.pending;
    result.state = state;
  }
  if (error !== undefined) result.error = error;
  return result;
}

type Writable<Data> = { -readonly [Key in keyof Data]: Data[Key] };

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
  readonly signal: CallScope['signal'];
  readonly data: CallScope['data'];
  readonly container: CallScope['container'];
  readonly onUpdate: CallScope['onUpdate'];
  readonly onLog: CallScope['onLog'];
  readonly #history: readonly Message[];
  readonly #length: number;
  #messages: readonly Message[] | undefined;

  /** `history` only grows, so that its length says what it was. */
  constructor(
    scope: CallScope,
    history: readonly Message[],
    onUpdate: UpdateListener | undefined = scope.onUpdate,
  ) {
    this.channel = scope.channel;
    this.chatId = scope.chatId;
    this.conversationId = scope.conversationId;
    this.owner = scope.owner;
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
