import { partKey } from '../call/effect-key.js';
import { cancelledResult, completeJob } from '../call/job-dispatch.js';
import type { RegisteredTool } from '../call/registration.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import { type CallRecord, type CallScope, SCOPE_OPTION } from '../contract/call.js';
import { keepsJobs, type StoredJob } from '../contract/job-store.js';
import type { Logger } from '../contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../contract/run-checkpoint.js';
import { RUN_ID } from '../contract/run-state.js';
import type { Compensate, Effect, Reconcile, Reconciliation, ToolDefinition } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import { ToolResult } from '../contract/tool-result.js';
import { toDefinition } from '../discovery/define-tool.js';
import { checkArguments, checkOptions } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isRecord } from '../kernel/json.js';
import { LOGGER, oneOf, optionTable, required } from '../kernel/options.js';
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
import { TOOLS } from './options.js';
import { checkOwner } from './run-owner.js';
import { endStoredRun } from './stored-run.js';
import { restoredCall, restoredRecord } from './suspend.js';

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
  /** Of the effect. */
  readonly idempotencyKey: string;
  /**
   * `compensated` now, or `before`; `failed`, and those that come earlier in the run were left; `none`: its tool has no
   * `compensate`, or says (`reconcile`) that the call was not done; `cancelled`: a job that nobody had begun, and nobody
   * begins any more; `unknown`: the call was cut off, has failed or goes on, or `tools` does not have its tool, so that
   * nobody knows whether there is an effect to undo.
   */
  readonly status: 'compensated' | 'before' | 'failed' | 'none' | 'cancelled' | 'unknown';
  /** What the compensation gave, or why it failed; of other calls, what is known. */
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
 * that it was done; of a call that was cut off or has failed, where `reconcile` of its tool says that it was done. It
 * stops at one that fails; called again, it goes on there. A run that has not ended is ended by this: nobody goes on
 * with a run whose effects are undone. Jobs of the run that nobody has begun are cancelled first.
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
    await claimed.write({ write: (claim) => store.end(claim, []) }).catch(() => {});
    await lookAgain(store, run);
  }
}

/** Claims a run that has ended; one that has not is ended first, as if it was cancelled. */
async function claimEnded(
  request: ClaimRequest<CheckpointStore>,
  scope: CallScope = {},
): Promise<{ readonly run: FoldedRun; readonly claimed: ClaimedRun }> {
  const { store, runId } = request;
  const known = await store.read(runId);
  if (known === undefined) throw new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
  const { owner } = known.state;
  checkOwner({ owner, isCertain: true }, { owner, ...scope });
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
  const registry = registryOf(tools);
  const { owner, turnOf: conversationId } = run;
  const surroundings = { ...(conversationId === undefined ? {} : { conversationId }), ...scope, owner };
  const undoing = { run, registry, scope: surroundings, logger };
  const done: Compensation[] = [];
  for (const call of calls) {
    const { id: callId, name, idempotencyKey } = call;
    const about = { callId, tool: name, idempotencyKey };
    const known = ofKey(idempotencyKey, { run, jobs });
    const found = known ?? (await findEffect(withJob(call, jobs.get(idempotencyKey)), undoing));
    if (!('tool' in found)) {
      if (found.status !== 'nothing') done.push({ ...about, ...found, status: found.status });
      continue;
    }
    const result = await undo(found, undoing);
    const entry = { type: 'compensated', idempotencyKey, ...result } as const;
    await claimed.write({ write: (claim) => store.append(claim, [entry]) });
    done.push({ ...about, status: result.isError ? 'failed' : 'compensated', text: result.text });
    if (result.isError) break;
  }
  return done;
}

/** What is known of an effect without its tool. */
function ofKey(
  key: string,
  { run, jobs }: Pick<Undoing, 'run'> & { readonly jobs: ReadonlyMap<string, StoredJob> },
): NoEffect | undefined {
  const before = run.compensated.get(key);
  if (before?.isError === false) return { status: 'before', text: before.text };
  return jobs.get(key)?.attempt === 0 ? { status: 'cancelled' } : undefined;
}

/** A call that may have done something, by the key of what that is. */
interface UndoneCall extends Pick<CallRecord, 'id' | 'name' | 'rawArguments' | 'arguments'> {
  readonly idempotencyKey: string;
  /** Of a call that never ended, because its run broke down: `begun`. */
  readonly status: CallRecord['status'] | 'begun';
  readonly result?: ToolResult;
}

/** The last call first. */
function callsToUndo({ runId, iterations, open, toolCalls }: FoldedRun): readonly UndoneCall[] {
  const ended = toolCalls.map(restoredRecord).flatMap((record): readonly UndoneCall[] => {
    const { idempotencyKey, status } = record;
    return idempotencyKey === undefined || !MAY_BE_DONE.has(status) ? [] : [{ ...record, idempotencyKey }];
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

/** Of calls with a key, which those do not have that were aborted before they had begun. */
const MAY_BE_DONE: ReadonlySet<CallRecord['status']> = new Set([
  'success',
  'started',
  'error',
  'aborted',
  'timed_out',
]);

/** The jobs of calls, by the keys of these; those that nobody has begun are cancelled. */
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
    // Somebody may have begun it meanwhile; nobody begins a job that has its result.
    found.set(idempotencyKey, (isWaiting && (await jobs.job(id))) || stored);
  }
  return found;
}

/** A call whose job has ended has done what the job did. */
function withJob(call: UndoneCall, job: StoredJob | undefined): UndoneCall {
  if (job === undefined) return call;
  if (job.result === undefined) return { ...call, status: 'started' };
  return { ...call, status: job.result.isError ? 'error' : 'success', result: new ToolResult(job.result) };
}

/** Where something is undone. */
interface Undoing {
  readonly run: Pick<FoldedRun, 'runId' | 'iterations' | 'compensated'>;
  readonly registry: ToolRegistry;
  readonly scope: CallScope;
  readonly logger: Logger | undefined;
}

/** An effect that can be undone. */
interface FoundEffect {
  readonly tool: ToolDefinition;
  readonly compensate: Compensate;
  readonly effect: Parameters<Compensate>[0];
}

/** What is told of a call where there is nothing to undo, or nobody knows whether there is. */
interface NoEffect extends Pick<Compensation, 'text'> {
  /** `nothing`: the call is not told at all. */
  readonly status: Exclude<Compensation['status'], 'compensated' | 'failed'> | 'nothing';
}

async function findEffect(call: UndoneCall, undoing: Undoing): Promise<FoundEffect | NoEffect> {
  const { name, status, result } = call;
  const tool = undoing.registry.get(name);
  if (tool === undefined)
    return { status: 'unknown', text: `\`tools\` has no '${name}', which may have something to undo.` };
  const { compensate, reconcile, annotations } = tool;
  const found = async (given: ToolResult): Promise<FoundEffect | NoEffect> =>
    compensate === undefined
      ? { status: 'none' }
      : { tool, compensate, effect: { ...(await effectOf(call, undoing)), result: given } };
  if (status === 'success' && result !== undefined) return found(result);
  if (annotations?.readOnly) return { status: 'nothing' };
  if (status === 'error' && compensate === undefined && reconcile === undefined) return { status: 'nothing' };
  if (reconcile === undefined || status === 'started') return unknownAs(result);
  const known = await askTool({ tool, reconcile, effect: await effectOf(call, undoing) }, undoing);
  if (known.status === 'done') return found(known.result);
  if (known.status === 'not-done') return { status: 'none', text: NOT_DONE };
  return unknownAs(result, ...(known.result.isError ? [known.result] : []));
}

function unknownAs(...results: readonly (ToolResult | undefined)[]): NoEffect {
  const texts = results.flatMap((result) => result?.forLLM || []);
  return { status: 'unknown', ...(texts.length === 0 ? {} : { text: texts.join('\n') }) };
}

const NOT_DONE = 'Its tool says that it was not done.';

/** With the arguments as the tool gets them, also of a call that was cut off before that was kept. */
async function effectOf(call: UndoneCall, { registry }: Undoing): Promise<Effect> {
  const { id: callId, idempotencyKey, name, rawArguments } = call;
  if (call.arguments !== undefined) return { callId, idempotencyKey, arguments: call.arguments };
  const checked = await registry.check(name, rawArguments);
  return { callId, idempotencyKey, arguments: checked.ok ? checked.arguments : {} };
}

interface AskedTool extends Pick<FoundEffect, 'tool'> {
  readonly reconcile: Reconcile;
  readonly effect: Effect;
}

/** What the tool knows of a call that was cut off, or that failed; what it throws is logged, and means nothing. */
async function askTool(
  { tool, reconcile, effect }: AskedTool,
  undoing: Undoing,
): Promise<{ readonly status: Reconciliation['status']; readonly result: ToolResult }> {
  let status: Reconciliation['status'] = 'unknown';
  const execute: ToolDefinition['execute'] = async (_args, context) => {
    const known: unknown = await reconcile(effect, context);
    if (!isRecord(known) || !RECONCILED.accepts(known.status))
      throw new TypeError('What `reconcile` gave says nothing.');
    status = known.status as Reconciliation['status'];
    return known.result;
  };
  const { name, returnsContent = false } = tool;
  const about = { description: `Says what came of a call of ${name}`, execute, returnsContent };
  const result = await callBeside(tool, about, { ...undoing, effect });
  return { status, result };
}

/** One compensation. */
async function undo(
  { tool, compensate, effect }: FoundEffect,
  undoing: Undoing,
): Promise<{ readonly isError: boolean; readonly text: string }> {
  const about = {
    description: `Undoes a call of ${tool.name}`,
    execute: (_args: unknown, context: ToolContext) => compensate(effect, context),
  };
  const idempotencyKey = partKey(effect.idempotencyKey, 'compensate');
  const result = await callBeside(tool, about, { ...undoing, effect: { ...effect, idempotencyKey } });
  return { isError: result.isError, text: result.forLLM };
}

const RECONCILED = oneOf('done', 'not-done', 'unknown');

interface BesideMethod extends Pick<ToolDefinition, 'execute' | 'returnsContent'> {
  readonly description: string;
}

/** Calls what a tool has beside its method, with all that surrounds a call: its context, the limit of its time, the log. */
async function callBeside(
  { name, container, timeoutMs }: ToolDefinition,
  { returnsContent, ...about }: BesideMethod,
  { effect, run, scope, logger }: Undoing & { readonly effect: Pick<Effect, 'callId' | 'idempotencyKey'> },
): Promise<ToolResult> {
  const limits = timeoutMs === undefined ? {} : { timeoutMs };
  const tool = toDefinition({ name, ...about, ...limits }, { by: 'compensateRun', wrong: [] });
  const registry = new ToolRegistry(logger ? { logger } : {}).register({
    ...tool,
    ...(returnsContent ? { returnsContent } : {}),
    ...(container ? { container } : {}),
  });
  const { callId: id, idempotencyKey } = effect;
  const place = { runId: run.runId, step: run.iterations, index: 0 };
  const { result } = await registry.invoke({ id, name, arguments: {}, place, idempotencyKey }, scope);
  return result;
}
