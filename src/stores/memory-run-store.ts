import type { BudgetLedger, StoreWithBudgets } from '../contract/budget-ledger.js';
import type { ConversationLog } from '../contract/conversation-log.js';
import type { JobStore, StoreWithJobs } from '../contract/job-store.js';
import type { ResultCache, ResultStore, StoreWithCache, StoreWithResults } from '../contract/result-store.js';
import type { RetentionAges, RetentionReport, StoreWithRetention } from '../contract/retention.js';
import type {
  CheckpointStore,
  ExpiredQuery,
  ExpiredRun,
  KeptRun,
  RunCheckpoint,
  RunEntry,
  RunPage,
  RunQuery,
  RunStatus,
  RunSummary,
  SeizeLease,
  TakenRun,
} from '../contract/run-checkpoint.js';
import type { ClaimOutcome, RunClaim, RunLease, RunState, StoredResult } from '../contract/run-state.js';
import type { Schedule, ScheduleStore, StoreWithSchedules } from '../contract/schedule-store.js';
import type { ApprovalStore, StoreWithApprovals } from '../contract/standing-approvals.js';
import { checkOptions } from '../errors/author-fault.js';
import { pageAfter, readQuery } from '../errors/list-pages.js';
import { applyRetention } from '../errors/retention.js';
import { checkAge, expiryOf, refusedBegin, refusedSave, turnMark } from '../errors/store-checks.js';
import { FUNCTION, optionTable } from '../kernel/options.js';
import { MemoryApprovals } from './memory-approvals.js';
import { MemoryBudgets } from './memory-budgets.js';
import { MemoryConversationLog } from './memory-conversation-log.js';
import { MemoryJobs } from './memory-jobs.js';
import { MemoryResults } from './memory-results.js';
import { MemorySchedules } from './memory-schedules.js';

/** How a {@link MemoryRunStore} tells the time. */
export interface MemoryRunStoreOptions {
  /** Milliseconds since any moment; default: `Date.now`. A seam for tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<MemoryRunStoreOptions>('MemoryRunStore', { now: FUNCTION });

/** One run; what is JSON stands as text: what is given out must not change what is kept. */
interface HeldRun {
  readonly runId: string;
  readonly createdAt: number;
  changedAt: number;
  status: RunStatus;
  revision: number;
  generation: number;
  state: string;
  entries: string[];
  claim: string | undefined;
  leaseEnd: number | undefined;
  expiry: ReturnType<typeof expiryOf>;
}

/**
 * Keeps runs in this process, as long as it lives: for tests, and for a single process whose runs need not outlive
 * it. `SqliteRunStore` keeps them for good.
 *
 * @example
 * ```ts
 * const store = new MemoryRunStore();
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * if (run.state) await resumeStoredRun({ provider, model, tools }, { store, runId: run.state.runId }, answers);
 * ```
 */
export class MemoryRunStore
  implements
    CheckpointStore,
    StoreWithJobs,
    StoreWithBudgets,
    StoreWithCache,
    StoreWithApprovals,
    StoreWithSchedules,
    StoreWithResults,
    StoreWithRetention
{
  /** The started work that it keeps. */
  readonly jobs: JobStore;
  /** What its budgets have spent. */
  readonly budgets: BudgetLedger;
  /** The results that it keeps for a while. */
  readonly cache: ResultCache;
  /** The approvals that stand for later calls, too. */
  readonly approvals: ApprovalStore;
  /** The prompts that enter its conversations when their time has come. */
  readonly schedules: ScheduleStore;
  /** The large results that it keeps. */
  readonly results: ResultStore;
  /** The conversations that it keeps. */
  readonly conversations: ConversationLog;
  readonly #conversations: MemoryConversationLog;
  readonly #approvals: MemoryApprovals;
  readonly #budgets: MemoryBudgets;
  readonly #jobs: MemoryJobs;
  readonly #results: MemoryResults;
  readonly #schedules: MemorySchedules;
  readonly #runs = new Map<string, HeldRun>();
  readonly #now: () => number;

  constructor(options: MemoryRunStoreOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#now = options.now ?? Date.now;
    this.#budgets = new MemoryBudgets(this.#now);
    this.budgets = this.#budgets;
    this.cache = new MemoryCache(this.#now);
    this.#results = new MemoryResults(this.#now);
    this.results = this.#results;
    this.#conversations = new MemoryConversationLog(this.#now, {
      isAwaited: (id) => this.#jobs.hasOpenOf(id) || this.#schedulesOf(id).length > 0,
      remove: ({ conversationId, owner }) => this.#removeOf(conversationId, owner),
    });
    this.conversations = this.#conversations;
    this.#approvals = new MemoryApprovals(this.#now);
    this.approvals = this.#approvals;
    this.#schedules = new MemorySchedules(this.#now);
    this.schedules = this.#schedules;
    this.#jobs = new MemoryJobs(this.#now, this.conversations);
    this.jobs = this.#jobs;
  }

  /** Throws `RunClaimed` (517) where the run is claimed, under way or over, or where what is kept is newer. */
  save(state: RunState): void {
    const { runId, revision } = state;
    const kept = this.#runs.get(runId);
    if (kept === undefined) {
      const run = this.#newRun(runId);
      this.#put(run, { status: 'suspended', state });
      this.#runs.set(runId, run);
      return;
    }
    if (!this.#isFree(kept) || kept.status !== 'suspended' || kept.revision > revision)
      throw refusedSave(runId);
    this.#put(kept, { status: 'suspended', state });
    free(kept);
  }

  load(runId: string): RunState | undefined {
    const kept = this.#runs.get(runId);
    return kept?.status === 'suspended' ? (JSON.parse(kept.state) as RunState) : undefined;
  }

  claim(lease: RunLease): ClaimOutcome {
    const kept = this.#runs.get(lease.runId);
    if (kept === undefined || kept.status === 'ended') return { status: 'missing' };
    if (!this.#isFree(kept)) return { status: 'taken' };
    if (kept.status === 'running') return { status: 'lost' };
    this.#hold(kept, lease);
    return { status: 'claimed', state: JSON.parse(kept.state) as RunState };
  }

  renew(lease: RunLease): boolean {
    return this.#write(lease, (kept) => {
      kept.leaseEnd = this.#now() + lease.leaseMs;
    });
  }

  release(claim: RunClaim, state?: RunState): boolean {
    return this.#write(claim, (kept) => {
      if (state !== undefined) this.#put(kept, { status: 'suspended', state });
      free(kept);
    });
  }

  remove(claim: RunClaim): boolean {
    return this.#write(claim, () => this.#runs.delete(claim.runId));
  }

  /** Throws `RunClaimed` (517) where a run of this id is kept. */
  begin(lease: RunLease, checkpoint: RunCheckpoint): void {
    const { runId } = lease;
    if (this.#runs.has(runId)) throw refusedBegin(runId);
    const run = this.#newRun(runId);
    this.#put(run, { status: 'running', state: checkpoint });
    this.#hold(run, lease);
    this.#runs.set(runId, run);
  }

  append(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    const texts = asTexts(entries);
    return this.#write(claim, (kept) => kept.entries.push(...texts));
  }

  checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): boolean {
    return this.#write(claim, (kept) => this.#put(kept, { status: 'running', state: checkpoint }));
  }

  end(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    const texts = asTexts(entries);
    return this.#write(claim, (kept) => {
      kept.entries.push(...texts);
      kept.status = 'ended';
      kept.changedAt = this.#now();
      free(kept);
    });
  }

  claimLost(lease: Omit<RunLease, 'runId'>): TakenRun {
    let lost: HeldRun | undefined;
    for (const run of this.#runs.values()) {
      if (run.status !== 'running' || !this.#isFree(run) || this.#conversations.isOpenTurn(run.runId))
        continue;
      if (lost === undefined || (run.leaseEnd ?? 0) < (lost.leaseEnd ?? 0)) lost = run;
    }
    return lost === undefined ? { status: 'missing' } : this.#take(lost, lease);
  }

  seize(lease: SeizeLease): TakenRun {
    const kept = this.#runs.get(lease.runId);
    if (kept === undefined) return { status: 'missing' };
    return lease.from === 'nobody' && !this.#isFree(kept) ? { status: 'taken' } : this.#take(kept, lease);
  }

  read(runId: string): KeptRun | undefined {
    const kept = this.#runs.get(runId);
    return kept && keptRun(kept);
  }

  /** Throws `InvalidOptions` (521) for a query that is wrong. */
  list(query: RunQuery = {}): RunPage {
    const { status, after, limit } = readQuery(query);
    const place = after && { ...after, runId: after.id };
    const runs = [...this.#runs.values()]
      .filter((run) => status === undefined || run.status === status)
      .filter((run) => place === undefined || latestFirst(place, run) < 0)
      .sort(latestFirst);
    return pageAfter(runs.slice(0, limit + 1).map(summaryOf), limit);
  }

  expiredRuns({ of, limit }: ExpiredQuery): readonly ExpiredRun[] {
    const now = this.#now();
    const expired = [...this.#runs.values()].flatMap((run) => {
      const { expiresAt, turnOf } = run.expiry;
      const isMeant = expiresAt !== null && expiresAt <= now && (turnOf !== null) === (of === 'turns');
      return isMeant && run.status === 'suspended' && this.#isFree(run)
        ? [{ runId: run.runId, turnOf, expiresAt }]
        : [];
    });
    expired.sort((one, other) => one.expiresAt - other.expiresAt);
    return expired
      .slice(0, limit)
      .map(({ runId, turnOf }) => ({ runId, ...(turnOf === null ? {} : { conversationId: turnOf }) }));
  }

  /** Removes what nobody needs any more, by age; the example of `PostgresRunStore` holds here, too. */
  retention(ages: RetentionAges): Promise<RetentionReport> {
    return applyRetention(ages, {
      runs: (age) => this.#removeOld(age, (status) => status === 'ended'),
      jobs: (age) => this.#jobs.removeJobsOlderThan(age),
      conversations: this.conversations,
      idle: (age, limit) => this.#conversations.idle(age, limit),
    });
  }

  /**
   * Forgets the runs that nobody claims, that are not under way and that were suspended, or ended, so many
   * milliseconds ago: nobody will answer them any more. Gives their number.
   *
   * @deprecated Removes runs that wait for an answer, too; `retention({ runs: ageMs })` does not.
   */
  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    return this.#removeOld(ageMs, (status) => status !== 'running');
  }

  #removeOld(ageMs: number, isMeant: (status: RunStatus) => boolean): number {
    const limit = this.#now() - ageMs;
    const old = [...this.#runs.values()].filter(
      (run) =>
        isMeant(run.status) &&
        this.#isFree(run) &&
        run.changedAt <= limit &&
        !this.#conversations.isOpenTurn(run.runId),
    );
    for (const { runId } of old) this.#runs.delete(runId);
    return old.length;
  }

  #schedulesOf(conversationId: string): readonly Schedule[] {
    return this.#schedules.listSchedules({ conversationId, limit: Number.POSITIVE_INFINITY });
  }

  /** What is kept of a conversation beside it. */
  #removeOf(conversationId: string, owner: string | undefined): void {
    const mark = turnMark(conversationId);
    const ids = new Set<string>();
    for (const { runId, state } of this.#runs.values())
      if (isTurnOf(runId, conversationId) && state.includes(mark)) ids.add(runId);
    for (const runId of ids) this.#runs.delete(runId);
    this.#results.removeOf(
      (runId, of) => isTurnOf(runId, conversationId) && (ids.has(runId) || of === owner),
    );
    for (const { id } of this.#schedulesOf(conversationId)) this.#schedules.cancelSchedule(id);
    this.#approvals.removeWhere(({ scope, subject = '' }) =>
      scope === 'run' ? isTurnOf(subject, conversationId) : subject === conversationId,
    );
    this.#jobs.removeOf(conversationId);
    this.#budgets.removeOf(conversationId);
  }

  #newRun(runId: string): HeldRun {
    const now = this.#now();
    const times = { createdAt: now, changedAt: now, leaseEnd: undefined };
    const expiry = { expiresAt: null, turnOf: null };
    const nothing = { state: '', entries: [], claim: undefined, expiry };
    return { runId, status: 'running', revision: 0, generation: 0, ...times, ...nothing };
  }

  /** In place of what was kept of the run; not at all where it is no JSON. */
  #put(
    run: HeldRun,
    { status, state }: { readonly status: RunStatus; readonly state: RunState | RunCheckpoint },
  ): void {
    run.state = JSON.stringify(state);
    run.status = status;
    run.revision = state.revision;
    run.expiry = expiryOf(state);
    run.entries = [];
    run.changedAt = this.#now();
  }

  #take(run: HeldRun, lease: Omit<RunLease, 'runId'>): TakenRun {
    this.#hold(run, lease);
    return { status: 'claimed', run: keptRun(run) };
  }

  #hold(run: HeldRun, { claim, leaseMs }: Omit<RunLease, 'runId'>): void {
    run.claim = claim;
    run.leaseEnd = this.#now() + leaseMs;
    run.generation += 1;
  }

  #isFree({ leaseEnd }: HeldRun): boolean {
    return leaseEnd === undefined || leaseEnd <= this.#now();
  }

  /** Changes a run on behalf of who claimed it; false where that claim no longer holds. */
  #write({ runId, claim }: RunClaim, change: (run: HeldRun) => unknown): boolean {
    const kept = this.#runs.get(runId);
    if (kept === undefined || kept.claim !== claim) return false;
    change(kept);
    return true;
  }
}

/** Whether an id is one that turns of a conversation have. */
function isTurnOf(runId: string, conversationId: string): boolean {
  const start = `${conversationId}.`;
  return runId.startsWith(start) && /^\d+$/.test(runId.slice(start.length));
}

function free(run: HeldRun): void {
  run.claim = undefined;
  run.leaseEnd = undefined;
}

function asTexts(entries: readonly RunEntry[]): readonly string[] {
  return entries.map((entry) => JSON.stringify(entry));
}

function summaryOf({ runId, status, generation, leaseEnd, createdAt, changedAt }: HeldRun): RunSummary {
  const summary = { runId, status, generation, createdAt, changedAt };
  return leaseEnd === undefined ? summary : { ...summary, leaseEnd };
}

function keptRun(run: HeldRun): KeptRun {
  return {
    ...summaryOf(run),
    state: JSON.parse(run.state) as KeptRun['state'],
    entries: run.entries.map((entry) => JSON.parse(entry) as RunEntry),
  };
}

/** The order of a list: the latest change first; of the same moment, by their ids. */
function latestFirst(one: ListPlace, other: ListPlace): number {
  return other.changedAt - one.changedAt || (one.runId < other.runId ? -1 : Number(one.runId > other.runId));
}

type ListPlace = Pick<HeldRun, 'changedAt' | 'runId'>;

/** So many are kept at most; of more, the oldest are forgotten. */
const MOST = 10_000;

/** The results that a store in memory keeps. */
class MemoryCache implements ResultCache {
  readonly #kept = new Map<string, { readonly result: string; readonly end: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  cachedResult(key: string): StoredResult | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.end <= this.#now()) return undefined;
    return JSON.parse(kept.result) as StoredResult;
  }

  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void {
    this.#kept.delete(key);
    this.#kept.set(key, { result: JSON.stringify(result), end: this.#now() + lifetimeMs });
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string);
  }

  forgetResult(key: string): void {
    this.#kept.delete(key);
    for (const [other, { end }] of this.#kept) if (end <= this.#now()) this.#kept.delete(other);
  }
}
