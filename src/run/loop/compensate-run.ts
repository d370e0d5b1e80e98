import { type CallRecord, type CallScope, SCOPE_OPTION, scopeFields } from '../../core/contract/call.js';
import { keepsJobs, type StoredJob } from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore, type RunEntry } from '../../core/contract/run-checkpoint.js';
import { RUN_ID } from '../../core/contract/run-state.js';
import type { Effect, Reconcile, Reconciliation, ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { LOGGER, oneOf, optionTable, required } from '../../core/kernel/options.js';
import { toDefinition } from '../../tools/discovery/define-tool.js';
import { partKey } from '../call/effect-key.js';
import { cancelledResult, completeJob } from '../call/job-dispatch.js';
import { type RegisteredTool, registryOf, ToolRegistry } from '../call/tool-registry.js';
import {
  type ClaimedRun,
  type ClaimRequest,
  DEFAULT_LEASE_MS,
  LEASE,
  lookAgain,
  seizeRun,
} from './claimed-run.js';
import { type FoldedRun, foldRun } from './fold-run.js';
import { keyOfCall } from './messages.js';
import { LOOP_RULES } from './options.js';
import { mayHaveRun } from './run-budget.js';
import { noSuchRun } from './run-errors.js';
import { checkOwner } from './run-owner.js';
import { endStoredRun } from './stored-run.js';
import { restoredCall, restoredRecord } from './suspend.js';

/** Options for undoing the effects of a run. */
export interface CompensateOptions {
  /** The tools of the run. */
  readonly tools: ToolRegistry | readonly RegisteredTool[];
  /** The scope of the compensations, with the stored owner of the run. */
  readonly scope?: CallScope;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Milliseconds until another process may continue; default: 30,000. */
  readonly leaseMs?: number;
}

/** The outcome for one effect of a run. A call that a hook answered before its tool ran has none. */
export interface Compensation {
  readonly callId: string;
  readonly tool: string;
  /** The key of the effect. */
  readonly idempotencyKey: string;
  /**
   * `compensated`: undone now; `before`: undone earlier; `failed`: the compensation failed, and effects of earlier
   * calls were left; `none`: the tool has no `compensate`, or reports (`reconcile`) that the call was not executed;
   * `cancelled`: a job that had not started was cancelled; `unknown`: the call was cut off, failed or continues, or
   * `tools` does not have its tool, so that it is unknown whether there is an effect to undo. A call that was cut off
   * and then refused, or whose error a hook replaced, counts as cut off or failed.
   */
  readonly status: 'compensated' | 'before' | 'failed' | 'none' | 'cancelled' | 'unknown';
  /** The result of the compensation, or why it failed; for other calls, the known facts. */
  readonly text?: string;
}

const COMPENSATE_OPTIONS = optionTable<CompensateOptions>('compensateRun', {
  tools: required(LOOP_RULES.tools),
  scope: SCOPE_OPTION,
  logger: LOGGER,
  leaseMs: LEASE,
});

const WHY = 'its effects are being undone';

/**
 * Undoes the effects of a run. It calls the `compensate` of every tool whose call succeeded, last call first, and
 * records each. For a call that was cut off or failed, it does so if `reconcile` of its tool reports that the call
 * was executed. It stops at the first failure; called again, it continues there. A run that has not ended is ended
 * first, so that it cannot continue after its effects are undone. Jobs of the run that have not started are cancelled
 * first.
 *
 * A compensation is called at least once. Its `effect.idempotencyKey` identifies the effect to undo, and
 * `context.idempotencyKey` is its own key.
 *
 * @throws ToolwrightError `RunNotFound` (516), `RunClaimed` (517) if another process holds it, `RunNotAllowed` (523),
 * `RunStoreFailed` (518).
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
    await claimed.write((claim) => store.end(claim, [])).catch(() => {});
    await lookAgain(store, run);
  }
}

/** Claims a run that has ended; otherwise ends it first, like a cancelled run. */
async function claimEnded(
  request: ClaimRequest<CheckpointStore>,
  scope: CallScope = {},
): Promise<{ readonly run: FoldedRun; readonly claimed: ClaimedRun }> {
  const { store, runId } = request;
  const known = await store.read(runId);
  if (known === undefined) throw noSuchRun(runId);
  const { owner } = known.state;
  checkOwner({ owner, isCertain: true }, { owner, ...scopeFields(scope) });
  if (known.status !== 'ended') await endStoredRun({ store, runId, reason: WHY, from: 'nobody' });
  const { claimed, run } = await seizeRun({ ...request, from: 'nobody' });
  try {
    return { run: foldRun(run), claimed };
  } catch (error) {
    await claimed.giveBack();
    throw error;
  }
}

async function compensateAll(
  run: FoldedRun,
  claimed: ClaimedRun,
  { tools, scope, logger, store }: CompensateOptions & { readonly store: CheckpointStore },
): Promise<readonly Compensation[]> {
  const calls = callsToUndo(run);
  const jobs = await jobsLeft(store, calls);
  const { owner, turnOf: conversationId } = run;
  const ofRun = { conversationId, ...run.scope, ...scopeFields(scope), ...withoutUndefined({ owner }) };
  const note = (entry: RunEntry) => claimed.write((claim) => store.append(claim, [entry]));
  const undoing = { run, registry: registryOf(tools), scope: ofRun, logger, note };
  const done: Compensation[] = [];
  for (const call of calls) {
    const { id: callId, name, idempotencyKey } = call;
    const before = run.compensated.get(idempotencyKey);
    const job = jobs.get(idempotencyKey);
    let report: Report | undefined;
    if (before?.isError === false) report = { status: 'before', text: before.text };
    else if (job?.attempt === 0) report = { status: 'cancelled' };
    else if (job === undefined) report = await undo(call, undoing);
    else {
      // A call whose job has ended has the outcome of the job.
      const result = job.result && new ToolResult(job.result);
      const ended = { result, status: result?.isError ? ('error' as const) : ('success' as const) };
      report = await undo({ ...call, ...(result ? ended : { status: 'started' }) }, undoing);
    }
    if (report !== undefined) done.push({ callId, tool: name, idempotencyKey, ...report });
    if (report?.status === 'failed') break;
  }
  return done;
}

/** A call that may have had an effect, with the key of that effect. */
interface UndoneCall extends Pick<CallRecord, 'id' | 'name' | 'rawArguments' | 'arguments'> {
  readonly idempotencyKey: string;
  /** `begun`: a call that never ended, because its run was interrupted. */
  readonly status: CallRecord['status'] | 'begun';
  readonly result?: ToolResult;
}

/** Last call first. */
function callsToUndo({ runId, iterations, open, toolCalls }: FoldedRun): readonly UndoneCall[] {
  const ended = toolCalls.map(restoredRecord).flatMap((record): readonly UndoneCall[] => {
    const { idempotencyKey, effects } = record;
    const isUnknown = effects === 'unknown';
    // Calls that were aborted before they had begun have no key.
    if (idempotencyKey === undefined || !(isUnknown || mayHaveRun(record))) return [];
    const status = isUnknown && record.status === 'success' ? 'error' : record.status;
    return [{ ...record, idempotencyKey, status }];
  });
  const begun = (open?.calls ?? []).flatMap((call, index): readonly UndoneCall[] => {
    if (call.status !== 'begun' || call.readOnly) return [];
    const { id, name, arguments: rawArguments, journal } = call;
    const idempotencyKey = keyOfCall(restoredCall(call, { runId, step: iterations, index }));
    const edited = journal?.edited && { arguments: journal.arguments };
    return [{ id, name, rawArguments, status: 'begun', idempotencyKey, ...edited }];
  });
  return [...ended, ...begun].reverse();
}

/** The jobs of calls, by key; jobs that have not started are cancelled. */
async function jobsLeft(
  store: CheckpointStore,
  calls: readonly UndoneCall[],
): Promise<ReadonlyMap<string, StoredJob>> {
  const found = new Map<string, StoredJob>();
  if (!keepsJobs(store)) return found;
  const { jobs } = store;
  for (const { name, status, idempotencyKey } of calls) {
    if (status === 'success') continue;
    const id = `task_${idempotencyKey}`;
    const stored = await jobs.job(id);
    if (stored === undefined) continue;
    const isWaiting = stored.result === undefined && stored.attempt === 0;
    if (isWaiting) await completeJob(jobs, stored.job, cancelledResult(name, WHY));
    // A worker may have started it meanwhile; a job with a result never starts.
    found.set(idempotencyKey, (isWaiting && (await jobs.job(id))) || stored);
  }
  return found;
}

interface Undoing {
  readonly run: Pick<FoldedRun, 'runId' | 'iterations' | 'compensated'>;
  readonly registry: ToolRegistry;
  readonly scope: CallScope;
  readonly logger: Logger | undefined;
  /** Adds an entry to the run. */
  readonly note: (entry: RunEntry) => Promise<void>;
}

type Report = Pick<Compensation, 'status' | 'text'>;

/** Undoes the effect of a call if it had one; `undefined` for a call that is not reported at all. */
async function undo(call: UndoneCall, undoing: Undoing): Promise<Report | undefined> {
  const { id: callId, idempotencyKey, name, rawArguments, status, result } = call;
  const { registry, note } = undoing;
  const tool = registry.get(name);
  if (tool === undefined)
    return { status: 'unknown', text: `\`tools\` has no '${name}', which may have had effects to undo.` };
  const { compensate, reconcile, annotations } = tool;
  /** With the arguments in the tool's form, also for a call that was cut off before they were stored. */
  const effectOf = async (): Promise<Effect> => {
    if (call.arguments !== undefined) return { callId, idempotencyKey, arguments: call.arguments };
    const checked = await registry.check(name, rawArguments);
    return { callId, idempotencyKey, arguments: checked.ok ? checked.arguments : {} };
  };
  const undone = async (given: ToolResult): Promise<Report> => {
    if (compensate === undefined) return { status: 'none' };
    const effect = { ...(await effectOf()), result: given };
    const { isError, forLLM: text } = await callBeside(tool, undoing, {
      description: `Undoes a call of ${name}`,
      effect: { callId, idempotencyKey: partKey(idempotencyKey, 'compensate') },
      execute: (_args: unknown, context: ToolContext) => compensate(effect, context),
    });
    await note({ type: 'compensated', idempotencyKey, isError, text });
    return { status: isError ? 'failed' : 'compensated', text };
  };
  if (status === 'success' && result !== undefined) return undone(result);
  if (annotations?.readOnly) return undefined;
  if (status === 'error' && compensate === undefined && reconcile === undefined) return undefined;
  let text = result?.forLLM ?? '';
  if (reconcile !== undefined && status !== 'started') {
    const known = await askTool(tool, reconcile, { effect: await effectOf(), undoing });
    if (known.status === 'done') return undone(known.result);
    if (known.status === 'not-done')
      return { status: 'none', text: 'Its tool reports that it was not executed.' };
    if (known.result.isError) text = [text, known.result.forLLM].filter((line) => line !== '').join('\n');
  }
  return { status: 'unknown', ...(text && { text }) };
}

const RECONCILED = oneOf('done', 'not-done', 'unknown');

/**
 * Calls the tool's `reconcile` for a call that was cut off or failed. If it throws, the error is logged, and the
 * answer is `unknown`.
 */
async function askTool(
  tool: ToolDefinition,
  reconcile: Reconcile,
  { effect, undoing }: { readonly effect: Effect; readonly undoing: Undoing },
): Promise<{ readonly status: Reconciliation['status']; readonly result: ToolResult }> {
  let status: Reconciliation['status'] = 'unknown';
  const { returnsContent } = tool;
  const result = await callBeside(tool, undoing, {
    description: `Reports the outcome of a call of ${tool.name}`,
    ...{ effect, returnsContent },
    execute: async (_args: unknown, context: ToolContext) => {
      const known: unknown = await reconcile(effect, context);
      if (!isRecord(known) || !RECONCILED.accepts(known.status))
        throw new TypeError('`reconcile` must return a `status` of done, not-done or unknown.');
      status = known.status as Reconciliation['status'];
      return known.result;
    },
  });
  return { status, result };
}

/** A companion function of a tool, and its effect. */
interface BesideMethod extends Pick<ToolDefinition, 'execute' | 'returnsContent'> {
  readonly description: string;
  readonly effect: Pick<Effect, 'callId' | 'idempotencyKey'>;
}

/** Calls a companion function of a tool as a separate tool: with a context, a timeout and the log. */
async function callBeside(
  { name, container, timeoutMs }: ToolDefinition,
  { run, scope, logger }: Undoing,
  { returnsContent, effect, ...about }: BesideMethod,
): Promise<ToolResult> {
  const tool = toDefinition({ name, ...about, timeoutMs }, { by: 'compensateRun', wrong: [] });
  const registry = new ToolRegistry(logger ? { logger } : {});
  registry.register(withoutUndefined({ ...tool, returnsContent, container }));
  const place = { runId: run.runId, step: run.iterations, index: 0 };
  const call = { id: effect.callId, name, arguments: {}, place, idempotencyKey: effect.idempotencyKey };
  return (await registry.invoke(call, scope)).result;
}
