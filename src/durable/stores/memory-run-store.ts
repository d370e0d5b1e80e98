import {
  addAmounts,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  type BudgetReservation,
  conversationKey,
  grantedKey,
  NO_AMOUNTS,
  partBeyond,
  type ReservationOutcome,
  type StoreWithBudgets,
  windowOf,
} from '../../core/contract/budget-ledger.js';
import type { ConversationLog } from '../../core/contract/conversation-log.js';
import type { Job, JobOptions } from '../../core/contract/job-engine.js';
import type {
  CompletionOptions,
  JobBeginning,
  JobPage,
  JobQuery,
  JobStatus,
  JobStore,
  StoredJob,
  StoreWithJobs,
  UnsentQuery,
} from '../../core/contract/job-store.js';
import type {
  KeptResult,
  ResultCache,
  ResultKey,
  ResultStore,
  StoreWithCache,
  StoreWithResults,
} from '../../core/contract/result-store.js';
import type { RetentionAges, RetentionReport, StoreWithRetention } from '../../core/contract/retention.js';
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
} from '../../core/contract/run-checkpoint.js';
import type {
  ClaimOutcome,
  RunClaim,
  RunLease,
  RunState,
  StoredResult,
} from '../../core/contract/run-state.js';
import {
  type DueSchedules,
  ownerSubject,
  type Schedule,
  type ScheduleMove,
  type ScheduleQuery,
  type ScheduleStore,
  type StoreWithSchedules,
  subjectOf,
} from '../../core/contract/schedule-store.js';
import type {
  ApprovalStore,
  StandingApproval,
  StoreWithApprovals,
} from '../../core/contract/standing-approvals.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { jobPage, pageAfter, readJobQuery, readQuery } from '../../core/errors/list-pages.js';
import {
  applyRetention,
  checkAge,
  expiryOf,
  refusedBegin,
  refusedSave,
  turnMark,
} from '../../core/errors/store-checks.js';
import { plainJson } from '../../core/kernel/json.js';
import { FUNCTION, optionTable } from '../../core/kernel/options.js';
import { MemoryConversationLog } from './memory-conversation-log.js';

/** A part of a store in memory. */
abstract class MemoryPart {
  protected readonly now: () => number;

  constructor(now: () => number) {
    this.now = now;
  }
}

/** Schedules in memory; they end with the process, as its runs do. */
class MemorySchedules extends MemoryPart implements ScheduleStore {
  readonly #kept = new Map<string, Schedule>();

  clock(): number {
    return this.now();
  }

  addSchedule(schedule: Schedule, most = Number.POSITIVE_INFINITY): boolean {
    if (this.#kept.has(schedule.id)) return true;
    const subject = subjectOf(schedule);
    const others = [...this.#kept.values()].filter((kept) => subjectOf(kept) === subject);
    if (others.length >= most) return false;
    this.#kept.set(schedule.id, plainJson(schedule) as Schedule);
    return true;
  }

  listSchedules({ conversationId, owner, limit = DEFAULT_LIMIT }: ScheduleQuery = {}): readonly Schedule[] {
    const subject = ownerSubject(owner);
    const wanted = this.#sorted().filter(
      (kept) =>
        (conversationId === undefined || kept.conversationId === conversationId) &&
        (subject === undefined || subjectOf(kept) === subject),
    );
    return plainJson(wanted.slice(0, limit)) as readonly Schedule[];
  }

  cancelSchedule(id: string): boolean {
    return this.#kept.delete(id);
  }

  dueSchedules(limit: number): DueSchedules {
    const now = this.now();
    const sorted = this.#sorted();
    const due = sorted.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
    const next = sorted[due.length];
    return {
      now,
      due: plainJson(due) as readonly Schedule[],
      ...(next === undefined ? {} : { nextAt: next.dueAt }),
    };
  }

  moveSchedule({ id, dueAt, next }: ScheduleMove): boolean {
    const kept = this.#kept.get(id);
    if (kept?.dueAt !== dueAt) return false;
    if (next === undefined) this.#kept.delete(id);
    else this.#kept.set(id, { ...kept, dueAt: next });
    return true;
  }

  #sorted(): Schedule[] {
    return [...this.#kept.values()].sort(
      (one, other) => one.dueAt - other.dueAt || (one.id < other.id ? -1 : 1),
    );
  }
}

/** Stored as JSON, so that callers cannot change it through returned objects. */
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

/** The background jobs of a store in memory. */
class MemoryJobs implements JobStore {
  readonly #now: () => number;
  readonly #conversations: ConversationLog;
  /** Sorted by their last change, the earliest first. */
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

interface HeldAccount {
  spent: BudgetAmounts;
  changedAt: number;
}

interface HeldReservation {
  readonly places: readonly string[];
  readonly amounts: BudgetAmounts;
  leaseEnd: number;
}

class MemoryBudgets extends MemoryPart implements BudgetLedger {
  readonly #accounts = new Map<string, HeldAccount>();
  readonly #reservations = new Map<string, HeldReservation>();

  reserve({ id, accounts, amounts, leaseMs }: BudgetReservation): ReservationOutcome {
    if (this.#reservations.has(id)) return { status: 'reserved' };
    for (const { key, windowMs, limits } of accounts) {
      const { spent, reserved } = this.balance({ key, windowMs });
      const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
      if (beyond !== undefined) return { status: 'spent', key, ...beyond };
    }
    const places = accounts.map((account) => this.#placeOf(account));
    this.#reservations.set(id, { places, amounts, leaseEnd: this.now() + leaseMs });
    return { status: 'reserved' };
  }

  renewReservation(id: string, leaseMs: number): boolean {
    const held = this.#reservations.get(id);
    if (held !== undefined) held.leaseEnd = this.now() + leaseMs;
    return held !== undefined;
  }

  settle(id: string, spent: BudgetAmounts): boolean {
    const held = this.#reservations.get(id);
    if (held === undefined) return false;
    this.#reservations.delete(id);
    for (const place of held.places) {
      const before = this.#accounts.get(place)?.spent ?? NO_AMOUNTS;
      this.#accounts.set(place, { spent: addAmounts(before, spent), changedAt: this.now() });
    }
    return true;
  }

  balance(account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance {
    const place = this.#placeOf(account);
    const now = this.now();
    let reserved = NO_AMOUNTS;
    for (const { places, amounts, leaseEnd } of this.#reservations.values())
      if (leaseEnd > now && places.includes(place)) reserved = addAmounts(reserved, amounts);
    return { spent: this.#accounts.get(place)?.spent ?? NO_AMOUNTS, reserved };
  }

  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.now() - ageMs;
    for (const [id, { leaseEnd }] of this.#reservations) if (leaseEnd <= limit) this.#reservations.delete(id);
    const old = [...this.#accounts].filter(([, { changedAt }]) => changedAt <= limit);
    for (const [place] of old) this.#accounts.delete(place);
    return old.length;
  }

  removeOf(conversationId: string): void {
    const key = conversationKey(conversationId);
    const isMeant = (place: string): boolean => {
      const [, , ...words] = place.split(' ');
      return [key, grantedKey(key)].includes(words.join(' '));
    };
    for (const place of this.#accounts.keys()) if (isMeant(place)) this.#accounts.delete(place);
    for (const [id, { places, ...held }] of this.#reservations)
      if (places.some(isMeant))
        this.#reservations.set(id, { ...held, places: places.filter((place) => !isMeant(place)) });
  }

  #placeOf({ key, windowMs }: Pick<BudgetAccount, 'key' | 'windowMs'>): string {
    return `${windowOf(this.now(), windowMs)} ${windowMs ?? 0} ${key}`;
  }
}

/** A result with its expiry and its owner. */
interface HeldResult {
  readonly owner: string | undefined;
  readonly text: string;
  readonly end: number;
}

/** Large results in memory; they end with the process, as its runs do. */
class MemoryResults extends MemoryPart implements ResultStore {
  readonly #results = new Map<string, HeldResult>();

  keepResult({ owner, text, lifeMs, replaces, ...key }: KeptResult): boolean {
    this.removeExpiredResults();
    const held = this.#results.get(placeOf(key));
    if (replaces !== undefined && held !== undefined && held.text !== replaces) return false;
    this.#results.set(placeOf(key), { owner, text, end: this.now() + lifeMs });
    return true;
  }

  readResult({ owner, ...key }: ResultKey): string | undefined {
    const held = this.#results.get(placeOf(key));
    if (held === undefined || held.owner !== owner || held.end <= this.now()) return undefined;
    return held.text;
  }

  /** Removes the results of the selected runs. */
  removeOf(isMeant: (runId: string, owner: string | undefined) => boolean): void {
    for (const [place, { owner }] of this.#results) {
      const [runId] = JSON.parse(place) as [string];
      if (isMeant(runId, owner)) this.#results.delete(place);
    }
  }

  removeExpiredResults(): number {
    const now = this.now();
    const over = [...this.#results].filter(([, { end }]) => end <= now);
    for (const [place] of over) this.#results.delete(place);
    return over.length;
  }
}

/** A map key; different result keys never give the same text. */
function placeOf({ runId, handle }: ResultKey): string {
  return JSON.stringify([runId, handle]);
}

const DEFAULT_LIMIT = 100;

class MemoryApprovals extends MemoryPart implements ApprovalStore {
  readonly #kept = new Map<string, StandingApproval>();

  addApproval(approval: StandingApproval): void {
    for (const { id } of [...this.#kept.values()]) this.#standing(id);
    this.#kept.delete(approval.id);
    this.#kept.set(approval.id, plainJson(approval) as StandingApproval);
  }

  findApproval(ids: readonly string[]): StandingApproval | undefined {
    for (const id of ids) {
      const found = this.#standing(id);
      if (found !== undefined) return plainJson(found) as StandingApproval;
    }
    return undefined;
  }

  listApprovals(limit = DEFAULT_LIMIT): readonly StandingApproval[] {
    const standing = [...this.#kept.values()].filter(({ id }) => this.#standing(id) !== undefined);
    return plainJson(standing.toReversed().slice(0, limit)) as readonly StandingApproval[];
  }

  revokeApproval(id: string): boolean {
    const stood = this.#standing(id) !== undefined;
    this.#kept.delete(id);
    return stood;
  }

  removeWhere(isMeant: (approval: StandingApproval) => boolean): void {
    for (const [id, approval] of this.#kept) if (isMeant(approval)) this.#kept.delete(id);
  }

  /** Returns a standing approval; removes it if it has expired. */
  #standing(id: string): StandingApproval | undefined {
    const found = this.#kept.get(id);
    if (found?.expiresAt === undefined || found.expiresAt > this.now()) return found;
    this.#kept.delete(id);
    return undefined;
  }
}

/** Options of a {@link MemoryRunStore}. */
export interface MemoryRunStoreOptions {
  /** Milliseconds since any fixed time; default: `Date.now`. For tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<MemoryRunStoreOptions>('MemoryRunStore', { now: FUNCTION });

/** A run, stored as JSON, so that callers cannot change it through returned objects. */
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
 * Stores runs in the memory of this process: for tests, and for a single process whose runs need not survive it. Use
 * `SqliteRunStore` for permanent storage.
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
  /** Background jobs. */
  readonly jobs: JobStore;
  /** What budgets have spent. */
  readonly budgets: BudgetLedger;
  /** Cached results. */
  readonly cache: ResultCache;
  /** Approvals that stand for later calls. */
  readonly approvals: ApprovalStore;
  /** Prompts that enter conversations at a scheduled time. */
  readonly schedules: ScheduleStore;
  /** Large results. */
  readonly results: ResultStore;
  /** Conversations. */
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

  /** Throws `RunClaimed` (517) if the run is claimed, running or ended, or if the stored state is newer. */
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

  /** Throws `RunClaimed` (517) if a run with this id exists. */
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

  /** Throws `InvalidOptions` (521) for a wrong query. */
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

  /** Removes old data by age, as `PostgresRunStore.retention` does; see its example. */
  retention(ages: RetentionAges): Promise<RetentionReport> {
    return applyRetention(ages, {
      runs: (age) => this.#removeOld(age, (status) => status === 'ended'),
      jobs: (age) => this.#jobs.removeJobsOlderThan(age),
      conversations: this.conversations,
      idle: (age, limit) => this.#conversations.idle(age, limit),
    });
  }

  /**
   * Removes unclaimed runs that were suspended, or ended, at least `ageMs` milliseconds ago; running runs stay. Returns
   * their number.
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

  /** Removes what the store has of a conversation outside the conversation log. */
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

  /** Replaces the stored run. Changes nothing if the state cannot be written as JSON. */
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

  /** Changes a run for the holder of a claim; false if the claim no longer holds. */
  #write({ runId, claim }: RunClaim, change: (run: HeldRun) => unknown): boolean {
    const kept = this.#runs.get(runId);
    if (kept === undefined || kept.claim !== claim) return false;
    change(kept);
    return true;
  }
}

/** Whether a run id has the form of a turn of the conversation. */
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

/** Sorts the latest change first; runs of the same time by id. */
function latestFirst(one: ListPlace, other: ListPlace): number {
  return other.changedAt - one.changedAt || (one.runId < other.runId ? -1 : Number(one.runId > other.runId));
}

type ListPlace = Pick<HeldRun, 'changedAt' | 'runId'>;

/** The most entries; the oldest are removed first. */
const MOST = 10_000;

/** The cached results of a store in memory. */
class MemoryCache extends MemoryPart implements ResultCache {
  readonly #kept = new Map<string, { readonly result: string; readonly end: number }>();

  cachedResult(key: string): StoredResult | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.end <= this.now()) return undefined;
    return JSON.parse(kept.result) as StoredResult;
  }

  cacheResult(key: string, result: StoredResult, lifetimeMs: number): void {
    this.#kept.delete(key);
    this.#kept.set(key, { result: JSON.stringify(result), end: this.now() + lifetimeMs });
    if (this.#kept.size > MOST) this.#kept.delete(this.#kept.keys().next().value as string);
  }

  forgetResult(key: string): void {
    this.#kept.delete(key);
    for (const [other, { end }] of this.#kept) if (end <= this.now()) this.#kept.delete(other);
  }
}
