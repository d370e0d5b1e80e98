import type { InboxContent, NewInboxEntry } from '../../core/contract/conversation-log.js';
import type { Job, JobEngine, JobOptions } from '../../core/contract/job-engine.js';
import { type JobStore, keepsJobs, type StoreWithJobs } from '../../core/contract/job-store.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { refuseOptions } from '../../core/errors/author-fault.js';
import { callListener, withinLimits } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { attachmentsText, failedResult, resultText, storedResult } from './result-text.js';

/** How long a call waits for a broker to take its job; after that, the next sweep of the store sends it. */
const SEND_WITHIN_MS = 5000;
/** How often missing results are looked up. */
const LOOK_EVERY_MS = 2000;

/** Receives the events of a job. */
interface JobFollower {
  readonly onUpdate: (update: unknown) => void;
  readonly onEnd: (result: ToolResult) => void;
  readonly onError: (error: unknown) => void;
  /** The engine does not answer: the result is looked up only in the store. */
  readonly onSilence: (error: unknown) => void;
}

/**
 * Enqueues the jobs of calls and receives their results: from an engine, and from the store for events that the
 * engine loses.
 */
export class JobDispatch {
  readonly #followers = new Map<string, JobFollower>();
  #unsubscribe: Promise<() => Promise<void>> | undefined;
  #looking: NodeJS.Timeout | undefined;
  #hasReported = false;

  constructor(
    readonly engine: JobEngine,
    private readonly jobs: JobStore,
  ) {}

  /** Whether this is the first time: work that stays in its process is reported once. */
  get isFirstClosure(): boolean {
    const isFirst = !this.#hasReported;
    this.#hasReported = true;
    return isFirst;
  }

  /**
   * Stores a job and enqueues it. Rejects if it cannot be stored; if the engine does not answer, it is enqueued
   * later.
   */
  async send(job: Job, options: JobOptions, onError: (error: unknown) => void): Promise<void> {
    await this.jobs.addJob(job, options);
    const sent = this.engine.enqueue(job, options);
    try {
      await withinLimits(sent, { signal: undefined, timeoutMs: SEND_WITHIN_MS });
    } catch (error) {
      sent.catch(() => {});
      onError(error);
      return;
    }
    void this.#noteSent(job.id);
  }

  /** No call waits for this note: without it, the next sweep sends the job again, which the engine then ignores. */
  async #noteSent(jobId: string): Promise<void> {
    try {
      await this.jobs.jobSent(jobId);
    } catch {}
  }

  /** Reports on a job until it has its result, which it may have already. */
  follow(jobId: string, follower: JobFollower): void {
    this.#followers.set(jobId, follower);
    this.#unsubscribe ??= this.engine.subscribe((news) => {
      const follower = this.#followers.get(news.jobId);
      if (follower === undefined) return;
      if (news.type === 'end') void this.#look(news.jobId);
      else callListener(() => follower.onUpdate(news.update), follower.onError);
    });
    this.#unsubscribe.catch((error) => {
      if (this.#followers.get(jobId) === follower) follower.onSilence(error);
    });
    this.#looking ??= setInterval(() => {
      for (const id of this.#followers.keys()) void this.#look(id);
    }, LOOK_EVERY_MS).unref();
    void this.#look(jobId);
  }

  /** Stops reporting on it. */
  unfollow(jobId: string): void {
    if (this.#followers.delete(jobId) && this.#followers.size === 0) this.#rest();
  }

  /**
   * Cancels a job. Its result is recorded first, so that no worker completes it with another, and then it is removed
   * or aborted. Returns whether it had no result yet.
   */
  async cancel(jobId: string, reason: string | undefined, tool: string): Promise<boolean> {
    const stored = await this.jobs.job(jobId);
    const isFirst =
      stored !== undefined && (await completeJob(this.jobs, stored.job, cancelledResult(tool, reason)));
    await this.engine.cancel(jobId, reason);
    if (isFirst) await this.engine.publish({ type: 'end', jobId });
    return isFirst;
  }

  async #look(jobId: string): Promise<void> {
    const follower = this.#followers.get(jobId);
    try {
      const stored = await this.jobs.job(jobId);
      if (stored?.result === undefined || !this.#followers.delete(jobId)) return;
      follower?.onEnd(new ToolResult(stored.result));
    } catch (error) {
      // The next check may succeed.
      if (this.#followers.get(jobId) === follower) follower?.onError(error);
    }
    if (this.#followers.size === 0) this.#rest();
  }

  #rest(): void {
    clearInterval(this.#looking);
    this.#looking = undefined;
    const ended = this.#unsubscribe;
    this.#unsubscribe = undefined;
    // An engine that is closed has already ended it.
    ended?.then((end) => end()).catch(() => {});
  }
}

/**
 * Records a result that no attempt produced, and reports it to the job's conversation. Returns whether it is the
 * first result.
 */
export function completeJob(jobs: JobStore, job: Job, result: ToolResult): boolean | Promise<boolean> {
  return jobs.completeJob(job.id, storedResult(result), { entry: completionEntry(job, result) });
}

/** The completion of cancelled work. */
export function cancelledResult(tool: string, reason: string | undefined): ToolResult {
  const why = reason === undefined ? '.' : `: ${reason}`;
  return failedResult('TaskCancelled', `The work of the tool '${tool}' was cancelled${why}`);
}

/** An engine and the store of its jobs. */
interface JobPlace {
  readonly engine: JobEngine;
  readonly store: unknown;
}

const dispatches = new WeakMap<JobEngine, WeakMap<JobStore, JobDispatch>>();

/**
 * The dispatch of work with these options.
 *
 * @throws InvalidOptionsError (521) if the store is missing or stores no jobs, because jobs that a broker loses would
 * be lost; or if it cannot write in the transactions of the engine.
 */
export function jobsOf({ engine, store }: JobPlace, where: string): JobDispatch {
  const refuse = (problem: string, fix: string) => refuseOptions([{ where, option: 'store', problem, fix }]);
  if (!keepsJobs(store))
    refuse(
      store === undefined ? 'there is an engine but no store' : 'the store does not store jobs',
      "store: new SqliteRunStore({ path: 'runs.sqlite' })",
    );
  const { jobs } = store as StoreWithJobs;
  if (engine.commitsIn !== undefined && jobs.isKeptIn === undefined)
    refuse(
      'the engine is transactional, but the store is not in its database',
      "a PostgresRunStore in the engine's database; or an engine without transactional",
    );
  const known = cached(dispatches, engine, () => new WeakMap<JobStore, JobDispatch>());
  return cached(known, jobs, () => new JobDispatch(engine, jobs));
}

/** A call that has ended, or whose work has ended. */
export interface CompletedCall {
  readonly tool: string;
  readonly callId: string;
  readonly taskId?: string;
}

/** A completion as the origin of a turn, with the text that an answer of the call would have had. */
export function completionOf(
  { tool, callId, taskId }: CompletedCall,
  result: ToolResult,
): Extract<InboxContent, { readonly kind: 'completion' }> {
  const text = resultText(result) || attachmentsText(result);
  return withoutUndefined({ kind: 'completion', tool, callId, taskId, text });
}

/** The same as an inbox entry; `owner` is that of the turn that made the call. */
export function completionContent(call: CompletedCall, result: ToolResult, owner: unknown): InboxContent {
  const forUser = (!result.silent && result.forUser) || undefined;
  return withoutUndefined({ ...completionOf(call, result), forUser, owner });
}

/** The key of that entry: the completion of a call enters once, whichever process did its work. */
export function completionKey(idempotencyKey: string): string {
  return `completion task_${idempotencyKey}`;
}

/** The inbox entry that reports a job's result to the conversation whose turn started it. */
export function completionEntry(job: Job, result: ToolResult): NewInboxEntry | undefined {
  const { id: taskId, tool, callId, idempotencyKey, scope, runId = '' } = job;
  const { conversationId, owner } = scope;
  // Runs of conversations have the conversation's id and a number.
  const [, conversation] = /^(.+)\.\d+$/s.exec(runId) ?? [];
  if (conversationId === undefined || conversation !== conversationId) return undefined;
  const call = { tool, callId, taskId };
  const content = completionContent(call, result, owner);
  return { conversationId, key: completionKey(idempotencyKey), content, onlyKnown: true };
}
