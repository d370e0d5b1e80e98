import { setTimeout as pause } from 'node:timers/promises';
import type { CallJournal, CallScope, ToolPolicy } from '../../core/contract/call.js';
import type { Job, JobAttempt, JobEngine } from '../../core/contract/job-engine.js';
import type { JobBeginning, JobStore } from '../../core/contract/job-store.js';
import type { Logger } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { RunIds } from '../call/effect-key.js';
import { CONSOLE, logFailure, logSilence } from '../call/failure-log.js';
import type { Invocation } from '../call/invocation.js';
import { cancelledResult, completionEntry } from '../call/job-dispatch.js';
import { safeLog } from '../call/log.js';
import { failedResult, resultText, storedResult } from '../call/result-text.js';
import { fingerprintOf } from '../call/tasks.js';
import type { ToolRegistry } from '../call/tool-registry.js';

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;
/** The distance between returned jobs, up to the longest delay, so that many of them leave time for other jobs. */
const APART_MS = 30;
/** How long other workers may have the tool of a job, as in a rolling deploy. */
const MISSING_TOOL_MS = 600_000;
/** The most remembered jobs. */
const REMEMBERED = 10_000;

/**
 * Milliseconds for which a job without its tool is returned to its queue: one second at first, then twice as long each
 * time, and longer if many jobs are returned. Every second time it is returned immediately, because the end of a delay
 * may always wake the same worker first. `undefined` if no other worker has taken it for too long.
 */
function delaysOfMissingTools(limitMs = MISSING_TOOL_MS) {
  /** When each job first arrived here, by a monotonic clock. */
  const arrived = new Map<string, number>();
  /** When the latest jobs were returned, for as long as the longest delay. */
  const returned: number[] = [];
  return (jobId: string, attempt: number): number | undefined => {
    const now = performance.now();
    const since = arrived.get(jobId) ?? now;
    if (now - since >= limitMs) return undefined;
    arrived.delete(jobId);
    arrived.set(jobId, since);
    forgetOldest(arrived, REMEMBERED);
    if (attempt % 2 === 0) return 0;
    const isOver = (at: number | undefined) => at !== undefined && now - at > LONGEST_DELAY_MS;
    while (isOver(returned[0])) returned.shift();
    const number = returned.push(now);
    const growing = FIRST_DELAY_MS * 2 ** ((attempt - 1) / 2);
    return Math.min(LONGEST_DELAY_MS, Math.max(growing, number * APART_MS));
  };
}

/** The result of a job. */
export interface JobCompletion {
  readonly job: Job;
  readonly result: ToolResult;
}

/** The settings for running jobs. */
interface JobWork {
  readonly engine: JobEngine;
  readonly jobs: JobStore;
  readonly tools: ToolRegistry;
  readonly jobScope?: (job: Job) => CallScope | Promise<CallScope>;
  readonly policy?: ToolPolicy;
  readonly onAsyncResult?: (completion: JobCompletion) => unknown;
  readonly logger?: Logger;
  readonly missingToolMs?: number;
}

/** The outcome of one attempt. */
interface AttemptEnd {
  readonly result: ToolResult;
  /** Another attempt may succeed. */
  readonly isFailure: boolean;
  /** It was stopped before it had ended. */
  readonly isStopped?: boolean;
}

/** How long to wait for an unavailable store: before the job starts, and with a result that would be lost. */
const BEGIN_WITHIN_MS = 30_000;
const COMPLETE_WITHIN_MS = 300_000;
/** How often a result is committed with the end of its job, before it is recorded separately. */
const MOST_COMMITS = 3;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/** Runs jobs as calls of a registry, and records the result of each once. */
export class JobDoer {
  readonly #work: JobWork;
  readonly #log: Logger;
  readonly #enterSlot = toolSlots();
  readonly #reporting = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #leaving = new AbortController();
  readonly #delayOf: ReturnType<typeof delaysOfMissingTools>;
  readonly #reportedMissing = new Set<string>();

  constructor(work: JobWork) {
    this.#work = work;
    this.#log = safeLog(work.logger ?? CONSOLE);
    this.#delayOf = delaysOfMissingTools(work.missingToolMs);
  }

  /** One attempt. Rejects if it failed, so that the engine tries again or lists the job as dead. */
  async handle(job: Job, attempt: JobAttempt): Promise<void> {
    // Before any write, because there may be thousands of them.
    if (await this.#leaveToOthers(job, attempt)) return;
    const background = this.#work.tools.offered(job.tool)?.background;
    const concurrency = typeof background === 'object' ? background.concurrency : undefined;
    const leave = await this.#enterSlot(job.tool, concurrency);
    try {
      // It has waited for a slot and has not started.
      if (this.#leaving.signal.aborted) return await attempt.giveBack();
      const beginning = await this.#begin(job, attempt);
      if (beginning === undefined) await attempt.giveBack();
      else if (beginning.status === 'run') await this.#attempt(job, attempt);
      // Its worker crashed before the engine and listeners had received the result.
      else if (beginning.status === 'settled') await this.#report(job, new ToolResult(beginning.result));
      else this.#log.warn('A job came that the store does not know; it is not done', { jobId: job.id });
    } finally {
      leave();
    }
  }

  /** From now on, an unavailable store is not waited for: its jobs are left to other processes. */
  close(): void {
    this.#closing.abort();
  }

  /** Stops running jobs and returns them for other processes. */
  leave(): void {
    this.close();
    this.#leaving.abort(new DOMException('The process that did the job was closed', 'AbortError'));
  }

  /**
   * Whether a job was returned to its queue because its tool is missing here: in a rolling deploy, another worker has
   * it.
   */
  async #leaveToOthers({ id, tool }: Job, attempt: JobAttempt): Promise<boolean> {
    if (this.#work.tools.offered(tool) !== undefined) return false;
    const delay = this.#delayOf(id, attempt.attempt);
    if (delay === undefined) return false;
    if (!this.#reportedMissing.has(tool))
      this.#log.warn('A job is given back, as its tool is missing here', { jobId: id, tool });
    this.#reportedMissing.add(tool);
    attempt.signal.throwIfAborted();
    await attempt.giveBack({ delay });
    return true;
  }

  /** Resolves when all completions have been delivered. */
  async idle(): Promise<void> {
    await Promise.all(this.#reporting);
  }

  /** `undefined` if the store is unavailable; that uses up no attempt of the tool. */
  async #begin(job: Job, { attempt, signal }: JobAttempt): Promise<JobBeginning | undefined> {
    try {
      const begin = () => this.#work.jobs.beginJob(job.id, attempt);
      return await this.#insist(begin, { signal, withinMs: BEGIN_WITHIN_MS });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      this.#logFailure('A job is given back, as the store cannot be reached', job, error);
      return undefined;
    }
  }

  async #attempt(job: Job, attempt: JobAttempt): Promise<void> {
    const { result, isFailure, isStopped } = await this.#run(job, attempt);
    const { signal } = attempt;
    if (isStopped && this.#leaving.signal.aborted && !signal.aborted) return attempt.giveBack();
    // Another worker has the job now, and must complete it.
    if (signal.aborted && !isCancelled(signal)) throw signal.reason;
    // With a logger, the call has logged it.
    if (isFailure && this.#work.logger === undefined)
      this.#logFailure('A job failed', job, result.error ?? result.forLLM);
    const isOver = !isFailure || attempt.isLast;
    if (isOver && (await this.#complete(job, attempt, { result, isFailure })))
      await this.#report(job, result);
    if (isFailure) throw result.error ?? new Error(resultText(result));
  }

  /** Whether this was the first result of the job. */
  async #complete(job: Job, attempt: JobAttempt, end: AttemptEnd): Promise<boolean> {
    const { signal } = attempt;
    try {
      const record = this.#recorder(job, attempt, end);
      return await this.#insist(record, { signal, withinMs: COMPLETE_WITHIN_MS });
    } catch (error) {
      this.#logFailure('The result of a job could not be recorded', job, error);
      // As if this process had crashed: another one repeats the work.
      if (this.#closing.signal.aborted && !signal.aborted) await attempt.giveBack();
      throw error;
    }
  }

  /** Creates a function that records a result, and can be called again after a failure. */
  #recorder(
    job: Job,
    { commit, signal }: JobAttempt,
    { result, isFailure }: AttemptEnd,
  ): () => Promise<boolean> {
    const { jobs, onAsyncResult } = this.#work;
    const stored = storedResult(result);
    const entry = completionEntry(job, result);
    const reported = withoutUndefined({ entry });
    // Listeners must receive it again after a crash, so the engine must still have the job.
    if (commit === undefined || isFailure || onAsyncResult !== undefined)
      return async () => jobs.completeJob(job.id, stored, reported);
    let [failures, isFirst] = [0, false];
    const hasResult = async () => (await jobs.job(job.id))?.result !== undefined;
    return async () => {
      // The answer to a commit may have been lost.
      if (failures > 0 && (await hasResult())) return isFirst;
      let failure: unknown = new Error('it was written where the store does not find it');
      try {
        await commit(async (transaction) => {
          isFirst = await jobs.completeJob(job.id, stored, { transaction, ...reported });
        });
        // Another worker may have recorded a result.
        if (isFirst || (await hasResult())) return isFirst;
      } catch (error) {
        failures += 1;
        if (signal.aborted || failures < MOST_COMMITS) throw error;
        failure = error;
      }
      if ((await jobs.job(job.id)) === undefined) {
        const message =
          'The result of a job was dropped: its conversation, or the job alone, was deleted meanwhile';
        this.#log.info(message, { jobId: job.id });
        return false;
      }
      const isNew = await jobs.completeJob(job.id, stored, reported);
      const what = 'A result could not be committed with the end of its job, and was recorded alone';
      this.#logFailure(what, job, failure);
      return isNew;
    };
  }

  /** An unavailable store uses up no attempt, and no work is repeated. Rejects with the last error of the store. */
  async #insist<Value>(
    work: () => Value | Promise<Value>,
    { signal, withinMs }: { readonly signal: AbortSignal; readonly withinMs: number },
  ): Promise<Value> {
    const closing = this.#closing.signal;
    const end = performance.now() + withinMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted || closing.aborted || performance.now() + wait > end) throw error;
      }
      await pause(wait, undefined, { signal: AbortSignal.any([signal, closing]) }).catch(() => {});
    }
  }

  #logFailure(what: string, { id: jobId, tool }: Job, error: unknown): void {
    logFailure(this.#work.logger, { what, error, at: { jobId, tool } });
  }

  async #report(job: Job, result: ToolResult): Promise<void> {
    const { engine, logger, onAsyncResult } = this.#work;
    await onAsyncResult?.({ job, result });
    // Not awaited: processes that wait for the job check the store, too.
    const report = engine
      .publish({ type: 'end', jobId: job.id })
      .catch((error) => logSilence(engine, { logger, error }))
      .finally(() => this.#reporting.delete(report));
    this.#reporting.add(report);
  }

  async #run(job: Job, attempt: JobAttempt): Promise<AttemptEnd> {
    const { tools, policy, logger } = this.#work;
    const definition = tools.offered(job.tool);
    if (definition === undefined) {
      const message = `No worker has the tool '${job.tool}' that the job was started with.`;
      return { result: failedResult('ToolNotFound', message), isFailure: true };
    }
    const { callId: id, tool: name, arguments: args, idempotencyKey, trace: startedBy } = job;
    const isTransformed = job.transformed === true;
    if (whatChanged(job, definition).length > 0) {
      const checked = await tools.check(name, args, { transformed: isTransformed });
      // All arguments were accepted when the job was started.
      const lost =
        checked.ok && checked.removed.length > 0 && changedResult(job, definition, checked.removed);
      if (lost) return { result: lost, isFailure: false };
    }
    // Jobs of older versions count as approved.
    const { approved = {} } = job;
    const answeredBy = approved === false ? undefined : approved.answeredBy;
    const journal: CallJournal = {
      arguments: args,
      ...(approved !== false && { approved: true }),
      ...(answeredBy !== undefined && { given: [{ kind: 'approval', index: 0, answeredBy }] }),
      answers: [],
      once: [],
    };
    const request = { id, name, arguments: args, isTransformed, journal, idempotencyKey, startedBy };
    const options = {
      attempt: attempt.attempt,
      // As for all started work: only the tool's own limit applies.
      toolTimeoutMs: Number.POSITIVE_INFINITY,
      jobs: undefined,
      ...withoutUndefined({ policy, logger }),
    };
    // The caller's scopes were checked when the job was started.
    const scope = { ...(await this.#scopeOf(job, attempt)), scopes: definition.scopes ?? [] };
    const invocation = await RunIds.inJob(idempotencyKey, () => tools.invoke(request, scope, options));
    return endOf(invocation, { job, definition, signal: attempt.signal });
  }

  async #scopeOf(job: Job, { signal }: JobAttempt): Promise<CallScope> {
    const { engine, jobScope, logger } = this.#work;
    const given = await jobScope?.(job);
    return {
      ...given,
      ...job.scope,
      signal: AbortSignal.any([signal, this.#leaving.signal]),
      onUpdate: (update, call) => {
        engine
          .publish({ type: 'progress', jobId: job.id, update: plainJson(update) ?? null })
          .catch((error) => logSilence(engine, { logger, error }));
        return given?.onUpdate?.(update, call);
      },
    };
  }
}

function endOf(
  invocation: Invocation,
  {
    job,
    definition,
    signal,
  }: { readonly job: Job; readonly definition: ToolDefinition; readonly signal: AbortSignal },
): AttemptEnd {
  if (isCancelled(signal))
    return { result: cancelledResult(job.tool, signal.reason.message), isFailure: false };
  const { record, result } = invocation;
  const { status } = record;
  const { waits = [], journal } = invocation.status === 'suspended' ? invocation.suspension : {};
  if (status === 'rejected' || journal?.reasks !== undefined)
    return { result: changedResult(job, definition) ?? result, isFailure: false };
  if (waits.some(({ kind }) => kind === 'approval')) {
    const message = `The tool '${job.tool}' needs an approval by now, and this work was started without one. The work was not done. Call the tool again, and somebody is asked.`;
    return { result: failedResult('NotExecutableHere', message), isFailure: false };
  }
  const isStopped = status === 'aborted';
  return { result, isFailure: status === 'error' || status === 'timed_out', isStopped };
}

function isCancelled({ reason }: AbortSignal): boolean {
  return ToolwrightError.is(reason) && reason.name === 'TaskCancelled';
}

/** The outcome of a job whose arguments are no longer valid for the current tool. */
function changedResult(
  job: Job,
  definition: ToolDefinition,
  lost: readonly string[] = [],
): ToolResult | undefined {
  const changed = whatChanged(job, definition);
  if (changed.length === 0) return undefined;
  const missing =
    lost.length === 0 ? '' : ` It has no ${lost.map((path) => `'${path}'`).join(', ')} any more.`;
  return failedResult(
    'DefinitionChanged',
    `The tool '${job.tool}' was changed after the work had been started (${changed.join(' and ')}), and does not take its arguments any more: ${JSON.stringify(job.arguments)}.${missing} The work was not done.`,
  );
}

/** The parts of a tool that changed since a job was started. */
function whatChanged(job: Job, definition: ToolDefinition): readonly string[] {
  const [parameters, options] = job.fingerprint.split('.');
  const [parametersNow, optionsNow] = fingerprintOf(definition).split('.');
  return [
    ...(parameters === parametersNow ? [] : ['its parameters']),
    ...(options === optionsNow ? [] : ['its options']),
  ];
}

/** Limits the running jobs of each tool to its `concurrency`. */
function toolSlots() {
  /** The number of running jobs of each tool, and the jobs that wait for a slot. */
  const tools = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  /** Resolves when the job may run; call the returned function when it has ended. */
  return async (tool: string, concurrency = Number.POSITIVE_INFINITY): Promise<() => void> => {
    const slots = tools.get(tool) ?? { running: 0, waiting: [] };
    tools.set(tool, slots);
    if (slots.running < concurrency) slots.running += 1;
    else await new Promise<void>((resolve) => slots.waiting.push(resolve));
    return () => {
      // The slot goes to the next job, or becomes free.
      const next = slots.waiting.shift();
      if (next !== undefined) next();
      else slots.running -= 1;
      if (slots.running === 0) tools.delete(tool);
    };
  };
}
