import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallRecord, CallScope, Wait } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { AssistantMessage, Message } from '../../core/contract/llm-provider.js';
import type { RunState, StoredInnerRun, StoredRunResult } from '../../core/contract/run-state.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { plainJson } from '../../core/kernel/json.js';
import { RunIds } from '../call/effect-key.js';
import { failedResult, storedResult } from '../call/result-text.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { ToolLoopResult } from './events.js';
import type { GivenHistory } from './given-history.js';
import type { LoopRun } from './loop-run.js';
import { keyOfCall, type ParsedCall } from './messages.js';
import { type HookedRun, type Reveal, revealing } from './run-masks.js';

/**
 * The child runs of the current call.
 *
 * @internal Its type needs those of Node.
 */
export const childRuns = new AsyncLocalStorage<ChildRuns>();

/** The tools of the agents behind tools (`agentAsTool`), which may depend on the arguments of the call. */
export const toolsOfAgents = new WeakMap<object, (args: JsonObject) => ToolRegistry | undefined>();

interface ChildRun {
  /** The state in which it was suspended, with later answers. */
  state?: RunState | undefined;
  /** Its outcome; an outcome from before a suspension is not computed again. */
  result?: StoredRunResult | undefined;
}

/**
 * The runs that the tool of one call starts (a sub-agent). If one of them is suspended, the call waits for its
 * answers. If the call is executed again, its tool starts the same runs in the same order, and they continue.
 */
export class ChildRuns {
  readonly run: LoopRun;
  readonly scope: CallScope;
  readonly call: ParsedCall;
  /** How many calls with runs enclose the runs of this one, including itself. */
  readonly depth: number;
  /** A field, so that calls without runs have no further cost. */
  hasRuns = false;
  #runs: ChildRun[] | undefined;
  #begun = 0;
  #ids: RunIds | undefined;
  /** Suspended runs that cannot be continued from here, because the tool stores them in another way. */
  #others: Map<string, RunState> | undefined;
  #isClosed = false;

  constructor(run: LoopRun, scope: CallScope, call: ParsedCall) {
    this.run = run;
    this.scope = scope;
    this.call = call;
    this.depth = (childRuns.getStore()?.depth ?? 0) + 1;
    if (call.inner === undefined) return;
    this.#runs = [];
    for (const { run: number, ...known } of call.inner) this.#runs[number] = { ...known };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The next run of the tool; `undefined` once the call has ended. */
  begin(): ChildRun | undefined {
    if (this.#isClosed) return undefined;
    this.hasRuns = true;
    this.#runs ??= [];
    const run = this.#runs[this.#begun] ?? {};
    this.#runs[this.#begun] = run;
    this.#begun += 1;
    return run;
  }

  /** The id of a run that the tool itself starts. */
  idOf(messages: readonly Message[]): string {
    this.#ids ??= new RunIds(keyOfCall(this.call));
    return this.#ids.nextOf(messages);
  }

  /** Records the current outcome of a run. */
  end(run: ChildRun, result: ToolLoopResult): void {
    const { state } = result;
    if (state !== undefined) {
      // The enclosing state is signed.
      const { signature: _, ...unsigned } = state;
      run.state = unsigned;
      run.result = undefined;
      this.#others?.delete(state.runId);
      return;
    }
    const { status, content, iterations, usage, messages, error } = result;
    // It may have values that JSON cannot represent.
    const output = plainJson(result.output);
    const toolCalls = result.toolCalls.map((record) => ({ ...record, result: storedResult(record.result) }));
    const failed = error && { name: error.name, message: error.message };
    const plain = { status, content, output, iterations, usage, messages, toolCalls, error: failed };
    run.state = undefined;
    run.result = plainJson(plain) as StoredRunResult;
  }

  /** Records the outcome of a run that the tool may have continued itself. */
  note(result: ToolLoopResult, runId: string | undefined): void {
    const { state } = result;
    const id = state?.runId ?? runId;
    const known = this.#runs?.find((run) => run.state !== undefined && run.state.runId === id);
    if (known !== undefined) this.end(known, result);
    else if (state !== undefined) {
      this.#others ??= new Map();
      this.#others.set(state.runId, state);
    } else if (id !== undefined) this.#others?.delete(id);
  }

  /** The waits of the runs; empty if one of them cannot be answered from here. */
  get waits(): readonly Wait[] {
    return this.#others?.size || this.#runs === undefined ? NO_WAITS : waitsOf(this.#stored());
  }

  /** Ends a waiting call: returns its runs in stored form, without those that had not ended. */
  close(): readonly StoredInnerRun[] | undefined {
    this.#isClosed = true;
    return this.#runs && this.#stored();
  }

  #stored(): readonly StoredInnerRun[] {
    return (this.#runs ?? []).flatMap(({ state, result }, run): StoredInnerRun[] => {
      if (state !== undefined) return [{ run, state }];
      return result === undefined ? [] : [{ run, result }];
    });
  }

  /** Ends a call: returns its record, or an error if it left a run suspended that cannot be answered from here. */
  finish(record: CallRecord): CallRecord {
    this.#isClosed = true;
    if (this.#runs === undefined && this.#others === undefined) return record;
    const { left } = this;
    if (left === undefined || record.status === 'started') return record;
    return { ...record, status: 'error', result: leftSuspended(record.name, left) };
  }

  get left(): RunState | undefined {
    const [other] = this.#others?.values() ?? [];
    return other ?? this.#runs?.find((run) => run?.state !== undefined)?.state;
  }
}

const NO_WAITS: readonly Wait[] = [];

/** The waits of stored runs, as waits of the call that contains them. */
export function waitsOf(runs: readonly StoredInnerRun[]): readonly Wait[] {
  return runs.flatMap(({ run, state }) =>
    (state?.pending ?? []).map(({ id, callId, tool, arguments: args, path, ...wait }, index) => ({
      ...wait,
      index,
      inner: { run, id, callId, tool, arguments: args, path },
    })),
  );
}

/** The waits of the current call's runs. */
export function childWaits(): readonly Wait[] {
  const runs = childRuns.getStore();
  return runs?.hasRuns ? runs.waits : NO_WAITS;
}

/** The completion of work that outlives its call; an error if that left a run suspended. */
export function finalizeCompletion(tool: string, result: ToolResult): ToolResult {
  const left = childRuns.getStore()?.left;
  return left === undefined ? result : leftSuspended(tool, left);
}

/** The error of a tool whose run waits for an answer that cannot be given. */
export function leftSuspended(tool: string, { pending }: Pick<RunState, 'pending'>): ToolResult {
  const tools = [...new Set(pending.map((call) => `'${call.tool}'`))].join(', ');
  const message = `The tool '${tool}' ran a model of its own, and that run is waiting for an answer about ${tools || 'its calls'}, which cannot be given here. It was not done.`;
  return failedResult('NotExecutableHere', message);
}

/** For the answer of a run in a call or a job. The run that receives the completion of a job is not known here. */
export function revealingAnswer(run: HookedRun, history: readonly Message[]): Reveal | undefined {
  const calling = childRuns.getStore()?.run;
  if (calling === undefined && RunIds.ofJob.getStore()?.isOver !== false) return undefined;
  return revealing(run, history, calling);
}

/** The history of a new run in a call: messages of the calling run's model have the masks of the calling run. */
export function historyInCall(given: GivenHistory, run: HookedRun): GivenHistory {
  const calling = childRuns.getStore()?.run;
  if (calling === undefined || given.isShared) return given;
  const reveal = revealing(calling, calling.messages, run);
  if (reveal === undefined) return given;
  const known = new Set<Message>(calling.messages);
  const messages = given.messages.map((message) =>
    known.has(message) && message.role === 'assistant' ? revealedMessage(message, reveal) : message,
  );
  return { messages };
}

/** A changed message loses the provider's items, which contain the masks. */
function revealedMessage(message: AssistantMessage, reveal: Reveal): AssistantMessage {
  const revealed = reveal(message);
  if (revealed === message) return message;
  const { providerItems: _, tool_calls: calls, ...others } = revealed;
  return calls === undefined
    ? others
    : { ...others, tool_calls: calls.map(({ providerItems: __, ...call }) => call) };
}
