import { AsyncLocalStorage } from 'node:async_hooks';
import { RunIds } from '../call/effect-key.js';
import { failedResult, storedResult } from '../call/result-text.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { CallRecord, CallScope, Wait } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import type { RunState, StoredInnerRun, StoredRunResult } from '../contract/run-state.js';
import { ToolResult } from '../contract/tool-result.js';
import { plainJson } from '../kernel/json.js';
import type { ToolLoopResult } from './events.js';
import type { LoopRun } from './loop-run.js';
import { keyOfCall, type ParsedCall } from './messages.js';

/** The inner runs of the call that runs here. */
export const innerRuns = new AsyncLocalStorage<InnerRuns>();

/** The tools of the agents that tools are made of (`agentAsTool`), where need be by the arguments of the call. */
export const toolsOfAgents = new WeakMap<object, (args: JsonObject) => ToolRegistry | undefined>();

/** One run that the tool of a call began. */
interface InnerRun {
  /** Where it was suspended, with the answers that it has since. */
  state?: RunState | undefined;
  /** What came of it; what is known from before a suspension is not done again. */
  result?: StoredRunResult | undefined;
}

/**
 * The runs that the tool of one call begins inside it (a sub-agent). Where one is left suspended, the call waits for
 * what that run waits for; made again, its tool begins the same runs in the same order, and they go on where they were.
 */
export class InnerRuns {
  readonly run: LoopRun;
  readonly scope: CallScope;
  readonly call: ParsedCall;
  /** How many calls with runs are around the runs of this one, itself included. */
  readonly depth: number;
  /** A field, so that calls without runs pay for nothing else. */
  hasRuns = false;
  #runs: InnerRun[] | undefined;
  #begun = 0;
  #ids: RunIds | undefined;
  /** Suspended runs that nobody can go on with from here, because the tool holds them in another way. */
  #others: Map<string, RunState> | undefined;
  #isClosed = false;

  constructor(run: LoopRun, scope: CallScope, call: ParsedCall) {
    this.run = run;
    this.scope = scope;
    this.call = call;
    this.depth = (innerRuns.getStore()?.depth ?? 0) + 1;
    if (call.inner === undefined) return;
    this.#runs = [];
    for (const { run: number, ...known } of call.inner) this.#runs[number] = { ...known };
  }

  /** The call was answered, or waits. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The next run of the tool; `undefined` once the call has ended. */
  begin(): InnerRun | undefined {
    if (this.#isClosed) return undefined;
    this.hasRuns = true;
    this.#runs ??= [];
    const run = this.#runs[this.#begun] ?? {};
    this.#runs[this.#begun] = run;
    this.#begun += 1;
    return run;
  }

  /** The id of a run that the tool itself begins. */
  idOf(messages: readonly Message[]): string {
    this.#ids ??= new RunIds(keyOfCall(this.call));
    return this.#ids.nextOf(messages);
  }

  /** What came of a run that had ended when its call was made before. */
  endOf({ result }: InnerRun): ToolLoopResult | undefined {
    return result && restoredRun(result);
  }

  /** What came of a run, for now. */
  end(run: InnerRun, result: ToolLoopResult): void {
    run.state = result.state && unsigned(result.state);
    run.result = result.state === undefined ? storedRun(result) : undefined;
    if (result.state !== undefined) this.#others?.delete(result.state.runId);
  }

  /** The same of a run that the tool may have gone on with itself. */
  note(result: ToolLoopResult, runId: string | undefined): void {
    const { state } = result;
    const id = state?.runId ?? runId;
    const known = this.#runs?.find((run) => run.state !== undefined && run.state.runId === id);
    if (known !== undefined) this.end(known, result);
    else if (state !== undefined) this.#others = new Map([...(this.#others ?? []), [state.runId, state]]);
    else if (id !== undefined) this.#others?.delete(id);
  }

  /** What the runs wait for; nothing where one of them cannot be answered from here. */
  get waits(): readonly Wait[] {
    return this.#others?.size || this.#runs === undefined ? NO_WAITS : waitsOf(this.#stored());
  }

  /** The call waits: its runs as they are kept, those that had not ended left out. */
  close(): readonly StoredInnerRun[] | undefined {
    this.#isClosed = true;
    return this.#runs && this.#stored();
  }

  #stored(): readonly StoredInnerRun[] {
    const runs = this.#runs ?? [];
    return runs.flatMap(({ state, result }, run): StoredInnerRun[] => {
      if (state !== undefined) return [{ run, state }];
      return result === undefined ? [] : [{ run, result }];
    });
  }

  /** What came of the call; an error where it left a run suspended that nobody can answer from here. */
  judge(record: CallRecord): CallRecord {
    this.#isClosed = true;
    if (this.#runs === undefined && this.#others === undefined) return record;
    const { left } = this;
    if (left === undefined || record.status === 'started') return record;
    return { ...record, status: 'error', result: leftSuspended(record.name, left) };
  }

  /** The first of the runs that are suspended. */
  get left(): RunState | undefined {
    const [other] = this.#others?.values() ?? [];
    return other ?? this.#runs?.find((run) => run?.state !== undefined)?.state;
  }
}

const NO_WAITS: readonly Wait[] = [];

/** What kept runs wait for, as waits of the call that they are in. */
export function waitsOf(runs: readonly StoredInnerRun[]): readonly Wait[] {
  return runs.flatMap(({ run, state }) =>
    (state?.pending ?? []).map(({ id, callId, tool, arguments: args, path, ...wait }, index) => ({
      ...wait,
      index,
      inner: { run, id, callId, tool, arguments: args, ...(path === undefined ? {} : { path }) },
    })),
  );
}

/** The state around it is signed. */
function unsigned({ signature: _, ...state }: RunState): RunState {
  return state;
}

function storedRun(result: ToolLoopResult): StoredRunResult {
  const { status, content, output, iterations, usage, messages, toolCalls, error } = result;
  const records = toolCalls.map((record) => ({ ...record, result: storedResult(record.result) }));
  return plainJson({
    status,
    content,
    output,
    iterations,
    usage,
    messages,
    toolCalls: records,
    ...(error === undefined ? {} : { error: { name: error.name, message: error.message } }),
  }) as StoredRunResult;
}

/** A run that has ended, as its tool gets it when it is made again. */
function restoredRun({ error, toolCalls, ...result }: StoredRunResult): ToolLoopResult {
  const records = toolCalls.map((record) => ({ ...record, result: new ToolResult(record.result) }));
  const told = error && Object.assign(new Error(error.message), { name: error.name });
  return { ...result, toolCalls: records, ...(told ? { error: told } : {}) } as ToolLoopResult;
}

/** What the runs of the call that runs here wait for. */
export function innerWaits(): readonly Wait[] {
  const inner = innerRuns.getStore();
  return inner?.hasRuns ? inner.waits : NO_WAITS;
}

/** The same for work that outlives its call: what it completes with. */
export function judgeCompletion(tool: string, result: ToolResult): ToolResult {
  const left = innerRuns.getStore()?.left;
  return left === undefined ? result : leftSuspended(tool, left);
}

/** The error of a tool whose run waits for what nobody can answer. */
export function leftSuspended(tool: string, { pending }: Pick<RunState, 'pending'>): ToolResult {
  const tools = [...new Set(pending.map((call) => `'${call.tool}'`))].join(', ');
  const message = `The tool '${tool}' ran a model of its own, and that run waits for an answer about ${tools}. Nobody can give it from here; it was not done.`;
  return failedResult('NotExecutableHere', message);
}
