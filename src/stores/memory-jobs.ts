import type { ConversationLog } from '../contract/conversation-log.js';
import type { Job, JobOptions } from '../contract/job-engine.js';
import type {
  CompletionOptions,
  JobBeginning,
  JobPage,
  JobQuery,
  JobStatus,
  JobStore,
  StoredJob,
  UnsentQuery,
} from '../contract/job-store.js';
import type { StoredResult } from '../contract/run-state.js';
import { jobPage, readJobQuery } from '../errors/list-pages.js';
import { checkAge } from '../errors/store-checks.js';

/** What is JSON stands as text: what is given out must not change what is kept. */
interface HeldJob {
  readonly id: string;
  readonly job: string;
  readonly addedAt: number;
  status: JobStatus;
  isSent: boolean;
  attempt: number;
  changedAt: number;
  result?: string;
}

/** The started work of a store in memory. */
export class MemoryJobs implements JobStore {
  readonly #now: () => number;
  readonly #conversations: ConversationLog;
  /** In the order of their last change, the earliest first. */
  readonly #jobs = new Map<string, HeldJob>();

  constructor(now: () => number, conversations: ConversationLog) {
    this.#now = now;
    this.#conversations = conversations;
  }

  addJob(job: Job, options: JobOptions): boolean {
    const { id } = job;
    if (this.#jobs.has(id)) return false;
    const addedAt = this.#now();
    const held = { id, job: JSON.stringify({ job, options }), addedAt, changedAt: addedAt };
    this.#jobs.set(id, { ...held, status: 'waiting', isSent: false, attempt: 0 });
    return true;
  }

  unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): readonly StoredJob[] {
    const now = this.#now();
    const isDue = ({ status, isSent, changedAt }: HeldJob): boolean =>
      status !== 'completed' && changedAt <= now - (isSent ? silentForMs : olderThanMs);
    return Array.from(this.#jobs.values()).filter(isDue).slice(0, limit).map(read);
  }

  jobSent(jobId: string): void {
    const held = this.#jobs.get(jobId);
    if (held !== undefined && held.status !== 'completed') this.#change(held, { isSent: true });
  }

  beginJob(jobId: string, attempt: number): JobBeginning {
    const held = this.#jobs.get(jobId);
    if (held === undefined) return { status: 'missing' };
    if (held.result !== undefined) return { status: 'settled', result: JSON.parse(held.result) };
    this.#change(held, { status: 'running', isSent: true, attempt: Math.max(attempt, held.attempt) });
    return { status: 'run' };
  }

  completeJob(jobId: string, result: StoredResult, { entry }: CompletionOptions = {}): boolean {
    const held = this.#jobs.get(jobId);
    if (held === undefined || held.result !== undefined) return false;
    if (entry !== undefined) this.#conversations.enter(entry);
    this.#change(held, { status: 'completed', result: JSON.stringify(result) });
    return true;
  }

  job(jobId: string): StoredJob | undefined {
    const held = this.#jobs.get(jobId);
    return held && read(held);
  }

  listJobs(query: JobQuery = {}): JobPage {
    const { status, after, limit } = readJobQuery(query);
    const found = Array.from(this.#jobs.values())
      .filter((held) => status === undefined || held.status === status)
      .sort((one, other) => other.changedAt - one.changedAt || (one.id < other.id ? -1 : 1))
      .filter(({ id, changedAt }) => {
        if (after === undefined || changedAt < after.changedAt) return true;
        return changedAt === after.changedAt && id > after.id;
      });
    return jobPage(found.slice(0, limit + 1).map(read), limit);
  }

  removeJobsOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.#now() - ageMs;
    const old = [...this.#jobs.values()].filter(
      ({ status, changedAt }) => status === 'completed' && changedAt <= limit,
    );
    for (const { id } of old) this.#jobs.delete(id);
    return old.length;
  }

  hasOpenOf(conversationId: string): boolean {
    return this.#of(conversationId).some(({ status }) => status !== 'completed');
  }

  removeOf(conversationId: string): void {
    for (const { id } of this.#of(conversationId)) this.#jobs.delete(id);
  }

  #of(conversationId: string): readonly HeldJob[] {
    return [...this.#jobs.values()].filter((held) => read(held).job.scope.conversationId === conversationId);
  }

  #change(held: HeldJob, changes: Partial<HeldJob>): void {
    Object.assign(held, changes, { changedAt: this.#now() });
    this.#jobs.delete(held.id);
    this.#jobs.set(held.id, held);
  }
}

function read({ job, status, attempt, addedAt, changedAt, result }: HeldJob): StoredJob {
  return {
    ...(JSON.parse(job) as Pick<StoredJob, 'job' | 'options'>),
    status,
    attempt,
    addedAt,
    changedAt,
    ...(result === undefined ? {} : { result: JSON.parse(result) as StoredResult }),
  };
}
