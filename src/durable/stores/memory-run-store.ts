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
import { jobPage, pageAfter, type ReadQuery, readJobQuery, readQuery } from '../../core/errors/list-pages.js';
import {
  applyRetention,
  checkAge,
  expiryOf,
  refusedBegin,
  refusedSave,
  turnMark,
} from '../../core/errors/store-checks.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { FUNCTION, optionTable } from '../../core/kernel/options.js';
import { MemoryConversationLog } from './memory-conversation-log.js';

/** A part of a store in memory. */
abstract class MemoryPart {
  constructor(protected readonly now: () => number) {}
}

/** Removes the entries that are meant; returns their number. */
function removeWhere<Value>(
  entries: Map<string, Value>,
  isMeant: (value: Value, key: string) => boolean,
): number {
  const before = entries.size;
  for (const [key, value] of entries) if (isMeant(value, key)) entries.delete(key);
  return before - entries.size;
}

/** A record of a list. */
interface Listed {
  readonly id: string;
  readonly changedAt: number;
  readonly status: string;
}

/** The records of a page, and one more. The latest change comes first; records of the same time are sorted by id. */
function pageOf<Found extends Listed>(
  records: Iterable<Found>,
  { status, after, limit }: ReadQuery,
): readonly Found[] {
  return [...records]
    .filter((record) => status === undefined || record.status === status)
    .filter((record) => after === undefined || latestFirst(after, record) < 0)
    .sort(latestFirst)
    .slice(0, limit + 1);
}

function latestFirst(one: Omit<Listed, 'status'>, other: Omit<Listed, 'status'>): number {
  return other.changedAt - one.changedAt || (one.id < other.id ? -1 : Number(one.id > other.id));
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
    return { now, due: plainJson(due) as readonly Schedule[], ...(next && { nextAt: next.dueAt }) };
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
  /** Sorted by their last change, the earliest first. */
  readonly #jobs = new Map<string, HeldJob>();

  constructor(
    private readonly now: () => number,
    private readonly conversations: ConversationLog,
  ) {}

  addJob(job: Job, options: JobOptions): boolean {
    const { id } = job;
    if (this.#jobs.has(id)) return false;
    const addedAt = this.now();
    const held = { id, job: JSON.stringify({ job, options }), addedAt, changedAt: addedAt };
    this.#jobs.set(id, { ...held, status: 'waiting', isSent: false, attempt: 0 });
    return true;
  }

  unsentJobs({ olderThanMs, silentForMs, limit }: UnsentQuery): readonly StoredJob[] {
    const now = this.now();
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
    if (entry !== undefined) this.conversations.enter(entry);
    this.#change(held, { status: 'completed', result: JSON.stringify(result) });
    return true;
  }

  job(jobId: string): StoredJob | undefined {
    const held = this.#jobs.get(jobId);
    return held && read(held);
  }

  listJobs(query: JobQuery = {}): JobPage {
    const wanted = readJobQuery(query);
    return jobPage(pageOf(this.#jobs.values(), wanted).map(read), wanted.limit);
  }

  removeJobsOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.now() - ageMs;
    return removeWhere(this.#jobs, ({ status, changedAt }) => status === 'completed' && changedAt <= limit);
  }

  hasOpenOf(conversationId: string): boolean {
    return this.#jobs.values().some((held) => held.status !== 'completed' && isJobOf(held, conversationId));
  }

  removeOf(conversationId: string): void {
    removeWhere(this.#jobs, (held) => isJobOf(held, conversationId));
  }

  #change(held: HeldJob, changes: Partial<HeldJob>): void {
    Object.assign(held, changes, { changedAt: this.now() });
    this.#jobs.delete(held.id);
    this.#jobs.set(held.id, held);
  }
}

function isJobOf(held: HeldJob, conversationId: string): boolean {
  return read(held).job.scope.conversationId === conversationId;
}

function read({ job, status, attempt, addedAt, changedAt, result }: HeldJob): StoredJob {
  return {
    ...(JSON.parse(job) as Pick<StoredJob, 'job' | 'options'>),
    status,
    attempt,
    addedAt,
    changedAt,
    ...(result && { result: JSON.parse(result) as StoredResult }),
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
    removeWhere(this.#reservations, ({ leaseEnd }) => leaseEnd <= limit);
    return removeWhere(this.#accounts, ({ changedAt }) => changedAt <= limit);
  }

  removeOf(conversationId: string): void {
    const key = conversationKey(conversationId);
    const isMeant = (place: string): boolean => {
      const [, , ...words] = place.split(' ');
      return [key, grantedKey(key)].includes(words.join(' '));
    };
    removeWhere(this.#accounts, (_, place) => isMeant(place));
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
    removeWhere(this.#results, ({ owner }, place) => isMeant((JSON.parse(place) as [string])[0], owner));
  }

  removeExpiredResults(): number {
    const now = this.now();
    return removeWhere(this.#results, ({ end }) => end <= now);
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
    this.#removeExpired();
    this.#kept.delete(approval.id);
    this.#kept.set(approval.id, plainJson(approval) as StandingApproval);
  }

  findApproval(ids: readonly string[]): StandingApproval | undefined {
    this.#removeExpired();
    const found = ids.map((id) => this.#kept.get(id)).find((approval) => approval !== undefined);
    return plainJson(found) as StandingApproval | undefined;
  }

  listApprovals(limit = DEFAULT_LIMIT): readonly StandingApproval[] {
    this.#removeExpired();
    return plainJson([...this.#kept.values()].reverse().slice(0, limit)) as readonly StandingApproval[];
  }

  revokeApproval(id: string): boolean {
    this.#removeExpired();
    return this.#kept.delete(id);
  }

  removeWhere(isMeant: (approval: StandingApproval) => boolean): void {
    removeWhere(this.#kept, isMeant);
  }

  #removeExpired(): void {
    const now = this.now();
    removeWhere(this.#kept, ({ expiresAt }) => expiresAt !== undefined && expiresAt <= now);
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
  readonly id: string;
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
  #clock = Date.now;
  readonly #now = () => this.#clock();
  readonly #runs = new Map<string, HeldRun>();
  readonly #conversations = new MemoryConversationLog(this.#now, {
    isAwaited: (id) => this.#jobs.hasOpenOf(id) || this.#schedulesOf(id).length > 0,
    remove: ({ conversationId, owner }) => this.#removeOf(conversationId, owner),
  });
  readonly #jobs = new MemoryJobs(this.#now, this.#conversations);
  readonly #budgets = new MemoryBudgets(this.#now);
  readonly #approvals = new MemoryApprovals(this.#now);
  readonly #schedules = new MemorySchedules(this.#now);
  readonly #results = new MemoryResults(this.#now);
  /** Background jobs. */
  readonly jobs: JobStore = this.#jobs;
  /** What budgets have spent. */
  readonly budgets: BudgetLedger = this.#budgets;
  /** Cached results. */
  readonly cache: ResultCache = new MemoryCache(this.#now);
  /** Approvals that stand for later calls. */
  readonly approvals: ApprovalStore = this.#approvals;
  /** Prompts that enter conversations at a scheduled time. */
  readonly schedules: ScheduleStore = this.#schedules;
  /** Large results. */
  readonly results: ResultStore = this.#results;
  /** Conversations. */
  readonly conversations: ConversationLog = this.#conversations;

  constructor(options: MemoryRunStoreOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#clock = options.now ?? Date.now;
  }

  /**
   * Throws `RunClaimed` (517) if the run is claimed, running or ended, or if the stored state has a later revision, or
   * the same revision and other content.
   */
  save(state: RunState): void {
    const { runId, revision } = state;
    const kept = this.#runs.get(runId);
    if (kept === undefined) {
      const run = this.#newRun(runId);
      this.#put(run, { status: 'suspended', state });
      this.#runs.set(runId, run);
      return;
    }
    const isOther = kept.revision === revision && kept.state !== JSON.stringify(state);
    if (!this.#isFree(kept) || kept.status !== 'suspended' || kept.revision > revision || isOther)
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
      if (run.status !== 'running' || !this.#isFree(run) || this.#conversations.isOpenTurn(run.id)) continue;
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
    const wanted = readQuery(query);
    return pageAfter(pageOf(this.#runs.values(), wanted).map(summaryOf), wanted.limit);
  }

  expiredRuns({ of, limit }: ExpiredQuery): readonly ExpiredRun[] {
    const now = this.#now();
    const expired = [...this.#runs.values()].flatMap((run) => {
      const { expiresAt, turnOf } = run.expiry;
      const isMeant =
        (turnOf !== null) === (of === 'turns') && run.status === 'suspended' && this.#isFree(run);
      return isMeant && expiresAt !== null && expiresAt <= now ? [{ runId: run.id, turnOf, expiresAt }] : [];
    });
    return expired
      .sort((one, other) => one.expiresAt - other.expiresAt)
      .slice(0, limit)
      .map(({ runId, turnOf }) => ({ runId, ...(turnOf !== null && { conversationId: turnOf }) }));
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
    return removeWhere(
      this.#runs,
      (run) =>
        isMeant(run.status) &&
        this.#isFree(run) &&
        run.changedAt <= limit &&
        !this.#conversations.isOpenTurn(run.id),
    );
  }

  #schedulesOf(conversationId: string): readonly Schedule[] {
    return this.#schedules.listSchedules({ conversationId, limit: Number.POSITIVE_INFINITY });
  }

  /** Removes what the store has of a conversation outside the conversation log. */
  #removeOf(conversationId: string, owner: string | undefined): void {
    const mark = turnMark(conversationId);
    const ids = new Set<string>();
    for (const { id, state } of this.#runs.values())
      if (isTurnOf(id, conversationId) && state.includes(mark)) ids.add(id);
    removeWhere(this.#runs, ({ id }) => ids.has(id));
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

  #newRun(id: string): HeldRun {
    const now = this.#now();
    return {
      id,
      status: 'running',
      revision: 0,
      generation: 0,
      createdAt: now,
      changedAt: now,
      state: '',
      entries: [],
      claim: undefined,
      leaseEnd: undefined,
      expiry: { expiresAt: null, turnOf: null },
    };
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

function summaryOf({ id: runId, status, generation, leaseEnd, createdAt, changedAt }: HeldRun): RunSummary {
  return withoutUndefined({ runId, status, generation, createdAt, changedAt, leaseEnd });
}

function keptRun(run: HeldRun): KeptRun {
  return {
    ...summaryOf(run),
    state: JSON.parse(run.state) as KeptRun['state'],
    entries: run.entries.map((entry) => JSON.parse(entry) as RunEntry),
  };
}

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
    forgetOldest(this.#kept, MOST);
  }

  forgetResult(key: string): void {
    const now = this.now();
    removeWhere(this.#kept, ({ end }, other) => other === key || end <= now);
  }
}
