import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallRecord, CallScope, Wait } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { RunState, StoredInnerRun, StoredRunResult } from '../../core/contract/run-state.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { plainJson } from '../../core/kernel/json.js';
import { RunIds } from '../call/effect-key.js';
import { failedResult, storedResult } from '../call/result-text.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { ToolLoopResult } from './events.js';
import type { LoopRun } from './loop-run.js';
import { keyOfCall, type ParsedCall } from './messages.js';

/** The child runs of the call that runs here. */
export const childRuns = new AsyncLocalStorage<ChildRuns>();

/** The tools of the agents that tools are made of (`agentAsTool`), by the arguments of the call if need be. */
export const toolsOfAgents = new WeakMap<object, (args: JsonObject) => ToolRegistry | undefined>();

interface ChildRun {
  /** Where it was suspended, with the answers that it has since. */
  state?: RunState | undefined;
  /** Its outcome; one from before a suspension is not computed again. */
  result?: StoredRunResult | undefined;
}

/**
 * The runs that the tool of one call begins inside it (a sub-agent). If one stays suspended, the call waits for
 * what that run waits for; made again, its tool begins the same runs in the same order, and they go on where they were.
 */
export class ChildRuns {
  readonly run: LoopRun;
  readonly scope: CallScope;
  readonly call: ParsedCall;
  /** How many calls with runs are around the runs of this one, itself included. */
  readonly depth: number;
  /** A field, so that calls without runs cost nothing else. */
  hasRuns = false;
  #runs: ChildRun[] | undefined;
  #begun = 0;
  #ids: RunIds | undefined;
  /** Suspended runs that cannot be continued from here, because the tool holds them in another way. */
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

  /** The id of a run that the tool itself begins. */
  idOf(messages: readonly Message[]): string {
    this.#ids ??= new RunIds(keyOfCall(this.call));
    return this.#ids.nextOf(messages);
  }

  /** The outcome of a run, for now. */
  end(run: ChildRun, result: ToolLoopResult): void {
    const { state } = result;
    if (state === undefined) run.state = undefined;
    else {
      // The state around it is signed.
      const { signature: _, ...unsigned } = state;
      run.state = unsigned;
      this.#others?.delete(state.runId);
    }
    run.result = state === undefined ? storedRun(result) : undefined;
  }

  /** The outcome of a run that the tool may have continued itself. */
  note(result: ToolLoopResult, runId: string | undefined): void {
    const { state } = result;
    const id = state?.runId ?? runId;
    const known = this.#runs?.find((run) => run.state !== undefined && run.state.runId === id);
    if (known !== undefined) this.end(known, result);
    else if (state !== undefined) this.#others = new Map([...(this.#others ?? []), [state.runId, state]]);
    else if (id !== undefined) this.#others?.delete(id);
  }

  /** What the runs wait for; nothing if one of them cannot be answered from here. */
  get waits(): readonly Wait[] {
    return this.#others?.size || this.#runs === undefined ? NO_WAITS : waitsOf(this.#stored());
  }

  /** The call waits: its runs as they are stored, without those that had not ended. */
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

  /** The record of the ended call; an error if it left a run suspended that cannot be answered from here. */
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

/** What stored runs wait for, as waits of the call that they are in. */
export function waitsOf(runs: readonly StoredInnerRun[]): readonly Wait[] {
  return runs.flatMap(({ run, state }) =>
    (state?.pending ?? []).map(({ id, callId, tool, arguments: args, path, ...wait }, index) => ({
      ...wait,
      index,
      inner: { run, id, callId, tool, arguments: args, ...(path === undefined ? {} : { path }) },
    })),
  );
}

function storedRun(result: ToolLoopResult): StoredRunResult {
  const { status, content, output, iterations, usage, messages, error } = result;
  const toolCalls = result.toolCalls.map((record) => ({ ...record, result: storedResult(record.result) }));
  const told = error === undefined ? {} : { error: { name: error.name, message: error.message } };
  const plain = { status, content, output, iterations, usage, messages, toolCalls, ...told };
  return plainJson(plain) as StoredRunResult;
}

/** A run that had ended when its call was made before, as its tool gets it when it is made again. */
export function restoredRun({ error, toolCalls, ...result }: StoredRunResult): ToolLoopResult {
  const records = toolCalls.map((record) => ({ ...record, result: new ToolResult(record.result) }));
  const told = error && Object.assign(new Error(error.message), { name: error.name });
  return { ...result, toolCalls: records, ...(told ? { error: told } : {}) } as ToolLoopResult;
}

/** What the runs of the call that runs here wait for. */
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
  const message = `The tool '${tool}' ran a model of its own, and that run waits for an answer about ${tools}. Nobody can give it from here; it was not done.`;
  return failedResult('NotExecutableHere', message);
}
