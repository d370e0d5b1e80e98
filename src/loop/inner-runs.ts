import { AsyncLocalStorage } from 'node:async_hooks';
import type { CallRecord } from '../contract/call-record.js';
import type { RunState } from '../contract/run-state.js';
import { failedResult } from '../invocation/failed-result.js';
import type { CallOutcome } from './call-outcome.js';
import { isUnanswered } from './call-outcome.js';

/** Runs that a tool began and that are suspended, by id. A later issue may surface their `pending` from here. */
type InnerRuns = Map<string, RunState>;

const calls = new AsyncLocalStorage<InnerRuns>();

/**
 * Makes a call and finds out whether a run that its tool began inside it (a sub-agent) is left suspended.
 * Nobody would hear of that run's pending calls, so the call is an error that names the inner tool.
 */
export function watchInnerRuns(
  make: () => CallOutcome | Promise<CallOutcome>,
): CallOutcome | Promise<CallOutcome> {
  const inner: InnerRuns = new Map();
  const made = calls.run(inner, make);
  return made instanceof Promise ? made.then((outcome) => judge(outcome, inner)) : made;
}

/** Notes where a run that began inside a tool of another run stands. */
export function noteInnerRun(state: RunState | undefined, runId: string | undefined): void {
  const inner = calls.getStore();
  if (inner === undefined) return;
  if (state !== undefined) inner.set(state.runId, state);
  else if (runId !== undefined) inner.delete(runId);
}

function judge(outcome: CallOutcome, inner: InnerRuns): CallOutcome {
  const [suspended] = inner.values();
  if (suspended === undefined || isUnanswered(outcome) || outcome.status === 'started') return outcome;
  return leftSuspended(outcome, suspended);
}

function leftSuspended(record: CallRecord, { pending }: RunState): CallRecord {
  const tools = [...new Set(pending.map(({ tool }) => `'${tool}'`))].join(', ');
  const message = `The tool '${record.name}' ran a model of its own, and that run waits for an answer about ${tools}. Nobody can give it from here; it was not done.`;
  return { ...record, status: 'error', result: failedResult('NotExecutableHere', message) };
}
