import { AsyncLocalStorage } from 'node:async_hooks';
import { failedResult } from '../call/result-text.js';
import type { CallRecord } from '../contract/call.js';
import type { RunState } from '../contract/run-state.js';
import type { ToolResult } from '../contract/tool-result.js';

/** The inner runs of the call that runs here. */
export const innerRuns = new AsyncLocalStorage<InnerRuns>();

/**
 * The runs that the tool of one call began inside it (a sub-agent) and that are suspended. Nobody would hear of
 * their pending calls, so the call is an error that names the inner tool. A later issue may surface their
 * `pending` from here.
 */
export class InnerRuns {
  #suspended: Map<string, RunState> | undefined;

  /** What came of the call; an error where it left a run suspended. */
  judge(record: CallRecord): CallRecord {
    const { left } = this;
    if (left === undefined || record.status === 'started') return record;
    return { ...record, status: 'error', result: leftSuspended(record.name, left) };
  }

  /** The first of the runs that are suspended. */
  get left(): RunState | undefined {
    const [left] = this.#suspended?.values() ?? [];
    return left;
  }

  note(state: RunState | undefined, runId: string | undefined): void {
    this.#suspended ??= new Map();
    if (state !== undefined) this.#suspended.set(state.runId, state);
    else if (runId !== undefined) this.#suspended.delete(runId);
  }
}

/** Notes where a run stands, in case it began inside a tool of another one. */
export function noteInnerRun(state: RunState | undefined, runId: string | undefined): void {
  if (state !== undefined || runId !== undefined) innerRuns.getStore()?.note(state, runId);
}

/** The same for work that outlives its call: what it completes with. */
export function judgeCompletion(tool: string, result: ToolResult): ToolResult {
  const left = innerRuns.getStore()?.left;
  return left === undefined ? result : leftSuspended(tool, left);
}

function leftSuspended(tool: string, { pending }: RunState): ToolResult {
  const tools = [...new Set(pending.map((call) => `'${call.tool}'`))].join(', ');
  const message = `The tool '${tool}' ran a model of its own, and that run waits for an answer about ${tools}. Nobody can give it from here; it was not done.`;
  return failedResult('NotExecutableHere', message);
}
