import { partKey } from '../call/effect-key.js';
import { cancelledResult, completeJob } from '../call/job-dispatch.js';
import type { RegisteredTool } from '../call/registration.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import { type CallRecord, type CallScope, SCOPE_OPTION } from '../contract/call.js';
import { keepsJobs, type StoredJob } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import { RUN_ID } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
import { ToolResult } from '../contract/tool-result.js';
import { toDefinition } from '../discovery/define-tool.js';
import { checkArguments, checkOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { LOGGER, optionTable, required } from '../kernel/options.js';
import { ClaimedRun, claimedByAnother, DEFAULT_LEASE_MS, LEASE, lookAgain } from './claimed-run.js';
import { type FoldedRun, foldRun } from './fold-run.js';
import { TOOLS } from './options.js';
import { checkOwner } from './run-owner.js';
import { endStoredRun } from './stored-run.js';
import { restoredRecord } from './suspend.js';

/** With what the effects of a run are undone. */
export interface CompensateOptions {
  /** The tools of the run. */
  readonly tools: ToolRegistry | readonly RegisteredTool[];
  /** The surroundings of the compensations; its owner is the one that the run was kept with. */
  readonly scope?: CallScope;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Milliseconds until somebody else may go on where this process dies; default 30,000. */
  readonly leaseMs?: number;
}

/** What became of one effect of a run. */
export interface Compensation {
  readonly callId: string;
  readonly tool: string;
  /** Of the effect; absent where the call is not settled. */
  readonly idempotencyKey?: string;
  /**
   * `compensated` now, or `before`; `failed`, and those that come earlier in the run were left; `none`: its tool has no
   * `compensate`; `cancelled`: a job that nobody had begun, and nobody begins any more; `unknown`: the call was cut off
   * or goes on, so that nobody knows whether there is an effect.
   */
  readonly status: 'compensated' | 'before' | 'failed' | 'none' | 'cancelled' | 'unknown';
  /** What the compensation gave, or why it failed. */
  readonly text?: string;
}

const COMPENSATE_OPTIONS = optionTable<CompensateOptions>('compensateRun', {
  tools: required(TOOLS),
  scope: SCOPE_OPTION,
  logger: LOGGER,
  leaseMs: LEASE,
});

const WHY = 'its effects are compensated';

/**
 * Undoes what a run has done: calls the `compensate` of every tool whose call succeeded, the last call first, and keeps
 * that it was done. It stops at one that fails; called again, it goes on there. A run that has not ended is ended by
 * this: nobody goes on with a run whose effects are undone. Jobs of the run that nobody has begun are cancelled first.
 *
 * A compensation is called at least once. Its `effect.idempotencyKey` names what is to be undone, and
 * `context.idempotencyKey` is its own.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517) where somebody is at the run, `RunNotAllowed` (523),
 *   `RunStoreFailed` (518).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * for (const { tool, status, text } of await compensateRun(store, 'order-7', { tools }))
 *   console.log(tool, status, text);
 * ```
 */
export async function compensateRun(
  store: CheckpointStore,
  runId: string,
  options: CompensateOptions,
): Promise<readonly Compensation[]> {
  const rules = { store: CHECKPOINT_STORE, runId: RUN_ID };
  checkArguments({ of: 'compensateRun', given: { store, runId }, rules });
  checkOptions(options, COMPENSATE_OPTIONS);
  const { leaseMs = DEFAULT_LEASE_MS } = options;
  const { run, claimed } = await claimEnded({ store, runId, leaseMs }, options.scope);
  try {
    return await compensateAll(run, claimed, { ...options, store });
  } finally {
    claimed.leave();
    await claimed.write({ write: (kept, claim) => kept.end(claim, []) }).catch(() => {});
    await lookAgain(store, run);
  }
}

interface ClaimedEnd {
  readonly run: FoldedRun;
  readonly claimed: ClaimedRun<CheckpointStore>;
}

/** Claims a run that has ended; one that has not is ended first, as by somebody who cancels it. */
async function claimEnded(
  request: ConstructorParameters<typeof ClaimedRun<CheckpointStore>>[0],
  scope: CallScope = {},
): Promise<ClaimedEnd> {
  const { store, runId, leaseMs } = request;
  const known = await store.read(runId);
  if (known === undefined) throw notFound(runId);
  const { owner } = known.state;
  checkOwner({ owner, isCertain: true }, { owner, ...scope });
  if (known.status !== 'ended') await endStoredRun({ store, runId, reason: WHY, from: 'nobody' });
  const claimed = new ClaimedRun(request);
  const since = performance.now();
  const taken = await store.seize({ ...claimed.claim, leaseMs, from: 'nobody' });
  if (taken.status === 'missing') throw notFound(runId);
  if (taken.status === 'taken') throw claimedByAnother(runId);
  claimed.hold(since);
  try {
    return { run: foldRun(taken.run), claimed };
  } catch (error) {
    await claimed.giveBack();
    throw error;
  }
}

function notFound(runId: string): ToolwrightError {
  return new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
}

async function compensateAll(
  run: FoldedRun,
  claimed: ClaimedRun<CheckpointStore>,
  { tools, scope, logger, store }: CompensateOptions & { readonly store: CheckpointStore },
): Promise<readonly Compensation[]> {
  const records = run.toolCalls.map(restoredRecord).reverse();
  const jobs = await jobsLeft(store, records);
  const registry = registryOf(tools);
  const { owner, turnOf: conversationId } = run;
  const surroundings = { ...(conversationId === undefined ? {} : { conversationId }), ...scope, owner };
  const done: Compensation[] = (run.open?.calls ?? []).flatMap((call) =>
    call.status === 'begun' ? [{ callId: call.id, tool: call.name, status: 'unknown' }] : [],
  );
  for (const called of records) {
    const { id: callId, name, idempotencyKey } = called;
    if (idempotencyKey === undefined || !MAY_BE_DONE.has(called.status)) continue;
    const tool = registry.get(name);
    const about = { callId, tool: name, idempotencyKey };
    const before = run.compensated.get(idempotencyKey);
    const job = jobs.get(idempotencyKey);
    const record = withJob(called, job);
    if (before?.isError === false) done.push({ ...about, status: 'before', text: before.text });
    else if (job?.attempt === 0) done.push({ ...about, status: 'cancelled' });
    else if (record.status !== 'success' && !tool?.annotations?.readOnly)
      done.push({ ...about, status: 'unknown' });
    else if (tool?.compensate === undefined) done.push({ ...about, status: 'none' });
    else {
      const result = await undo(tool, { ...record, idempotencyKey }, { run, scope: surroundings, logger });
      const entry = { type: 'compensated', idempotencyKey, ...result } as const;
      await claimed.write({ write: (store, claim) => store.append(claim, [entry]) });
      done.push({ ...about, status: result.isError ? 'failed' : 'compensated', text: result.text });
      if (result.isError) break;
    }
  }
  return done;
}

/** Of calls with a key, which those do not have that were aborted before they had begun. */
const MAY_BE_DONE: ReadonlySet<CallRecord['status']> = new Set([
  'success',
  'started',
  'aborted',
  'timed_out',
]);

/** The jobs of calls, by the keys of these; those that nobody has begun are cancelled. */
async function jobsLeft(
  store: CheckpointStore,
  records: readonly CallRecord[],
): Promise<ReadonlyMap<string, StoredJob>> {
  const found = new Map<string, StoredJob>();
  if (!keepsJobs(store)) return found;
  const { jobs } = store;
  for (const { name, status, idempotencyKey } of records) {
    if (idempotencyKey === undefined || status === 'success' || !MAY_BE_DONE.has(status)) continue;
    const id = `task_${idempotencyKey}`;
    const stored = await jobs.job(id);
    if (stored === undefined) continue;
    const isWaiting = stored.result === undefined && stored.attempt === 0;
    if (isWaiting) await completeJob(jobs, stored.job, cancelledResult(name, WHY));
    // Somebody may have begun it meanwhile; nobody begins a job that has its result.
    found.set(idempotencyKey, (isWaiting && (await jobs.job(id))) || stored);
  }
  return found;
}

/** A call whose job succeeded has done what the job did. Of another job nobody knows what it has done. */
function withJob(record: CallRecord, job: StoredJob | undefined): CallRecord {
  if (job?.result === undefined || job.result.isError) return record;
  return { ...record, status: 'success', result: new ToolResult(job.result) };
}

/** Where something is undone. */
interface UndoSurroundings {
  readonly run: Pick<FoldedRun, 'runId' | 'iterations'>;
  readonly scope: CallScope;
  readonly logger: Logger | undefined;
}

/** One compensation, with all that surrounds a call: its context, the limit of its time, the log. */
async function undo(
  { name, compensate, container, timeoutMs }: ToolDefinition,
  { id, idempotencyKey, arguments: args = {}, result }: CallRecord & { readonly idempotencyKey: string },
  { run, scope, logger }: UndoSurroundings,
): Promise<{ readonly isError: boolean; readonly text: string }> {
  const effect = { callId: id, idempotencyKey, arguments: args, result };
  const tool = toDefinition(
    {
      name,
      description: `Undoes a call of ${name}`,
      execute: (_args, context) => compensate?.(effect, context),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    { by: 'compensateRun', wrong: [] },
  );
  const registry = new ToolRegistry(logger ? { logger } : {}).register({
    ...tool,
    ...(container ? { container } : {}),
  });
  const place = { runId: run.runId, step: run.iterations, index: 0 };
  const request = { id, name, arguments: {}, place, idempotencyKey: partKey(idempotencyKey, 'compensate') };
  const { result: told } = await registry.invoke(request, scope);
  return { isError: told.isError, text: told.forLLM };
}
