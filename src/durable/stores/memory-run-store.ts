import {
  addAmounts,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  conversationKey,
  grantedKey,
  NO_AMOUNTS,
  partBeyond,
  type StoreWithBudgets,
  windowOf,
} from '../../core/contract/budget-ledger.js';
import type { ConversationLog } from '../../core/contract/conversation-log.js';
import type { JobStatus, JobStore, StoredJob, StoreWithJobs } from '../../core/contract/job-store.js';
import {
  type KeptResult,
  RESULTS_OF_TURNS,
  type ResultCache,
  type ResultKey,
  type ResultStore,
  type StoreWithCache,
  type StoreWithResults,
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
import type { ClaimOutcome, RunClaim, RunLease, RunState } from '../../core/contract/run-state.js';
import {
  ownerSubject,
  type Schedule,
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
    .filter(
      (record) =>
        (status === undefined || record.status === status) &&
        (after === undefined || latestFirst(after, record) < 0),
    )
    .sort(latestFirst)
    .slice(0, limit + 1);
}

function latestFirst(one: Omit<Listed, 'status'>, other: Omit<Listed, 'status'>): number {
  return other.changedAt - one.changedAt || (one.id < other.id ? -1 : Number(one.id > other.id));
}

/** The clock of a store. */
type Clock = () => number;

/** Schedules in memory; they end with the process, as its runs do. */
function memorySchedules(kept: Map<string, Schedule>, now: Clock): ScheduleStore {
  const sorted = (): Schedule[] =>
    [...kept.values()].sort((one, other) => one.dueAt - other.dueAt || (one.id < other.id ? -1 : 1));
  return {
    clock: now,
    addSchedule(schedule, most = Number.POSITIVE_INFINITY) {
      if (kept.has(schedule.id)) return true;
      const subject = subjectOf(schedule);
      const others = [...kept.values().filter((other) => subjectOf(other) === subject)];
      if (others.length >= most) return false;
      kept.set(schedule.id, copyOf(schedule));
      return true;
    },
    listSchedules({ conversationId, owner, limit = DEFAULT_LIMIT } = {}) {
      const subject = ownerSubject(owner);
      const wanted = sorted().filter(
        (schedule) =>
          (conversationId === undefined || schedule.conversationId === conversationId) &&
          (subject === undefined || subjectOf(schedule) === subject),
      );
      return copyOf(wanted.slice(0, limit));
    },
    cancelSchedule: (id) => kept.delete(id),
    dueSchedules(limit) {
      const time = now();
      const first = sorted();
      const due = first.filter(({ dueAt }) => dueAt <= time).slice(0, limit);
      const next = first[due.length];
      return { now: time, due: copyOf(due), ...(next && { nextAt: next.dueAt }) };
    },
    moveSchedule({ id, dueAt, next }) {
      const schedule = kept.get(id);
      if (schedule?.dueAt !== dueAt) return false;
      if (next === undefined) kept.delete(id);
      else kept.set(id, { ...schedule, dueAt: next });
      return true;
    },
  };
}

/** A copy that callers may change. */
function copyOf<Value>(value: Value): Value {
  return plainJson(value) as Value;
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

/** The background jobs of a store in memory; `kept` is sorted by their last change, the earliest first. */
function memoryJobs(kept: Map<string, HeldJob>, now: Clock, conversations: ConversationLog): JobStore {
  const change = (held: HeldJob, changes: Partial<HeldJob>): void => {
    kept.delete(held.id);
    kept.set(held.id, Object.assign(held, changes, { changedAt: now() }));
  };
  return {
    addJob(job, options) {
      const { id } = job;
      if (kept.has(id)) return false;
      const addedAt = now();
      const held = { id, job: JSON.stringify({ job, options }), addedAt, changedAt: addedAt };
      kept.set(id, { ...held, status: 'waiting', isSent: false, attempt: 0 });
      return true;
    },
    unsentJobs({ olderThanMs, silentForMs, limit }) {
      const time = now();
      const isDue = ({ status, isSent, changedAt }: HeldJob): boolean =>
        status !== 'completed' && changedAt <= time - (isSent ? silentForMs : olderThanMs);
      return [...kept.values().filter(isDue).take(limit).map(read)];
    },
    jobSent(jobId) {
      const held = kept.get(jobId);
      if (held !== undefined && held.status !== 'completed') change(held, { isSent: true });
    },
    beginJob(jobId, attempt) {
      const held = kept.get(jobId);
      if (held === undefined) return { status: 'missing' };
      if (held.result !== undefined) return { status: 'settled', result: JSON.parse(held.result) };
      change(held, { status: 'running', isSent: true, attempt: Math.max(attempt, held.attempt) });
      return { status: 'run' };
    },
    completeJob(jobId, result, { entry } = {}) {
      const held = kept.get(jobId);
      if (held === undefined || held.result !== undefined) return false;
      if (entry !== undefined) conversations.enter(entry);
      change(held, { status: 'completed', result: JSON.stringify(result) });
      return true;
    },
    job(jobId) {
      const held = kept.get(jobId);
      return held && read(held);
    },
    listJobs(query = {}) {
      const wanted = readJobQuery(query);
      return jobPage(pageOf(kept.values(), wanted).map(read), wanted.limit);
    },
    removeJobsOlderThan(ageMs) {
      checkAge(ageMs);
      const limit = now() - ageMs;
      return removeWhere(kept, ({ status, changedAt }) => status === 'completed' && changedAt <= limit);
    },
  };
}

function isJobOf(held: HeldJob, conversationId: string): boolean {
  return read(held).job.scope.conversationId === conversationId;
}

function read({ job, status, attempt, addedAt, changedAt, result }: HeldJob): StoredJob {
  return {
    ...JSON.parse(job),
    ...{ status, attempt, addedAt, changedAt },
    ...(result && { result: JSON.parse(result) }),
  };
}

interface HeldAccount {
  spent: BudgetAmounts;
  changedAt: number;
}

interface HeldReservation {
  readonly amounts: BudgetAmounts;
  leaseEnd: number;
  /** Keys of accounts with their windows. */
  places: readonly string[];
}

/** The budgets of a store in memory. */
function memoryBudgets(
  accounts: Map<string, HeldAccount>,
  reservations: Map<string, HeldReservation>,
  now: Clock,
): BudgetLedger {
  const placeOf = ({ key, windowMs }: Pick<BudgetAccount, 'key' | 'windowMs'>): string =>
    `${windowOf(now(), windowMs)} ${windowMs ?? 0} ${key}`;
  const spentAt = (place: string): BudgetAmounts => accounts.get(place)?.spent ?? NO_AMOUNTS;
  const balance = (account: Pick<BudgetAccount, 'key' | 'windowMs'>): BudgetBalance => {
    const place = placeOf(account);
    const time = now();
    let reserved = NO_AMOUNTS;
    for (const { places, amounts, leaseEnd } of reservations.values())
      if (leaseEnd > time && places.includes(place)) reserved = addAmounts(reserved, amounts);
    return { spent: spentAt(place), reserved };
  };
  return {
    balance,
    reserve({ id, accounts: wanted, amounts, leaseMs }) {
      if (reservations.has(id)) return { status: 'reserved' };
      for (const { key, windowMs, limits } of wanted) {
        const { spent, reserved } = balance({ key, windowMs });
        const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
        if (beyond !== undefined) return { status: 'spent', key, ...beyond };
      }
      reservations.set(id, { places: wanted.map(placeOf), amounts, leaseEnd: now() + leaseMs });
      return { status: 'reserved' };
    },
    renewReservation(id, leaseMs) {
      const held = reservations.get(id);
      if (held !== undefined) held.leaseEnd = now() + leaseMs;
      return held !== undefined;
    },
    settle(id, spent) {
      const held = reservations.get(id);
      if (held === undefined) return false;
      reservations.delete(id);
      for (const place of held.places)
        accounts.set(place, { spent: addAmounts(spentAt(place), spent), changedAt: now() });
      return true;
    },
    removeOlderThan(ageMs) {
      checkAge(ageMs);
      const limit = now() - ageMs;
      removeWhere(reservations, ({ leaseEnd }) => leaseEnd <= limit);
      return removeWhere(accounts, ({ changedAt }) => changedAt <= limit);
    },
  };
}

/** A large result with its expiry. */
type HeldResult = Omit<KeptResult, 'lifeMs' | 'replaces'> & { readonly end: number };

/** Large results in memory; they end with the process, as its runs do. */
function memoryResults(kept: Map<string, HeldResult>, now: Clock): ResultStore {
  const removeExpiredResults = (): number => {
    const time = now();
    return removeWhere(kept, ({ end }) => end <= time);
  };
  // Different keys never give the same text.
  const placeOf = ({ runId, handle }: ResultKey): string => JSON.stringify([runId, handle]);
  return {
    removeExpiredResults,
    keepResult({ lifeMs, replaces, ...result }) {
      removeExpiredResults();
      const held = kept.get(placeOf(result));
      if (replaces !== undefined && held !== undefined && held.text !== replaces) return false;
      kept.set(placeOf(result), { ...result, end: now() + lifeMs });
      return true;
    },
    readResult(key) {
      const held = kept.get(placeOf(key));
      return held !== undefined && held.owner === key.owner && held.end > now() ? held.text : undefined;
    },
  };
}

const DEFAULT_LIMIT = 100;

/** The standing approvals of a store in memory, in the order in which they were added. */
function memoryApprovals(kept: Map<string, StandingApproval>, now: Clock): ApprovalStore {
  const standing = (): typeof kept => {
    const time = now();
    removeWhere(kept, ({ expiresAt }) => expiresAt !== undefined && expiresAt <= time);
    return kept;
  };
  return {
    addApproval(approval) {
      standing().delete(approval.id);
      kept.set(approval.id, copyOf(approval));
    },
    findApproval(ids) {
      const all = standing();
      for (const id of ids) {
        const found = all.get(id);
        if (found !== undefined) return copyOf(found);
      }
      return undefined;
    },
    listApprovals: (limit = DEFAULT_LIMIT) => copyOf([...standing().values()].reverse().slice(0, limit)),
    revokeApproval: (id) => standing().delete(id),
  };
}

/** The most cached results; the oldest are removed first. */
const MOST = 10_000;

/** The cached results of a store in memory. */
function memoryCache(now: Clock): ResultCache {
  const kept = new Map<string, { readonly result: string; readonly end: number }>();
  return {
    cachedResult(key) {
      const held = kept.get(key);
      return held !== undefined && held.end > now() ? JSON.parse(held.result) : undefined;
    },
    cacheResult(key, result, lifetimeMs) {
      kept.delete(key);
      kept.set(key, { result: JSON.stringify(result), end: now() + lifetimeMs });
      forgetOldest(kept, MOST);
    },
    forgetResult(key) {
      const time = now();
      removeWhere(kept, ({ end }, other) => other === key || end <= time);
    },
  };
}

/** Options of a {@link MemoryRunStore}. */
export interface MemoryRunStoreOptions {
  /** Milliseconds since any fixed time; default: `Date.now`. For tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<MemoryRunStoreOptions>('MemoryRunStore', { now: FUNCTION });

/** A run without a holder. */
const FREED = { claim: undefined, leaseEnd: undefined };

/** A run, stored as JSON, so that callers cannot change it through returned objects. */
interface HeldRun extends HeldContent {
  readonly id: string;
  readonly createdAt: number;
  generation: number;
  claim: string | undefined;
  leaseEnd: number | undefined;
}

/** What a state or a checkpoint replaces. */
interface HeldContent {
  status: RunStatus;
  revision: number;
  state: string;
  /** What was added at once, a JSON array each. */
  entries: string[];
  expiry: ReturnType<typeof expiryOf>;
  changedAt: number;
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
  readonly #jobs = new Map<string, HeldJob>();
  readonly #accounts = new Map<string, HeldAccount>();
  readonly #reservations = new Map<string, HeldReservation>();
  readonly #approvals = new Map<string, StandingApproval>();
  readonly #schedules = new Map<string, Schedule>();
  readonly #results = new Map<string, HeldResult>();
  readonly #conversations = new MemoryConversationLog(this.#now, {
    isAwaited: (id) =>
      this.#schedules.values().some((schedule) => schedule.conversationId === id) ||
      this.#jobs.values().some((held) => held.status !== 'completed' && isJobOf(held, id)),
    remove: ({ conversationId, owner }) => this.#removeOf(conversationId, owner),
  });
  /** Background jobs. */
  readonly jobs: JobStore = memoryJobs(this.#jobs, this.#now, this.#conversations);
  /** What budgets have spent. */
  readonly budgets: BudgetLedger = memoryBudgets(this.#accounts, this.#reservations, this.#now);
  /** Cached results. */
  readonly cache: ResultCache = memoryCache(this.#now);
  /** Approvals that stand for later calls. */
  readonly approvals: ApprovalStore = memoryApprovals(this.#approvals, this.#now);
  /** Prompts that enter conversations at a scheduled time. */
  readonly schedules: ScheduleStore = memorySchedules(this.#schedules, this.#now);
  /** Large results. */
  readonly results: ResultStore = memoryResults(this.#results, this.#now);
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
    const content = this.#content('suspended', state);
    if (kept === undefined) {
      this.#add(runId, content);
      return;
    }
    const isOther = kept.revision === revision && kept.state !== content.state;
    if (!this.#isFree(kept) || kept.status !== 'suspended' || kept.revision > revision || isOther)
      throw refusedSave(runId);
    Object.assign(kept, content, FREED);
  }

  load(runId: string): RunState | undefined {
    const kept = this.#runs.get(runId);
    return kept?.status === 'suspended' ? JSON.parse(kept.state) : undefined;
  }

  claim(lease: RunLease): ClaimOutcome {
    const kept = this.#runs.get(lease.runId);
    if (kept === undefined || kept.status === 'ended') return { status: 'missing' };
    if (!this.#isFree(kept)) return { status: 'taken' };
    if (kept.status === 'running') return { status: 'lost' };
    this.#hold(kept, lease);
    return { status: 'claimed', state: JSON.parse(kept.state) };
  }

  renew(lease: RunLease): boolean {
    const kept = this.#heldBy(lease);
    if (kept !== undefined) kept.leaseEnd = this.#now() + lease.leaseMs;
    return kept !== undefined;
  }

  release(claim: RunClaim, state?: RunState): boolean {
    const content = state && this.#content('suspended', state);
    return this.#change(claim, { ...content, ...FREED });
  }

  remove(claim: RunClaim): boolean {
    return this.#heldBy(claim) !== undefined && this.#runs.delete(claim.runId);
  }

  /** Throws `RunClaimed` (517) if a run with this id exists. */
  begin(lease: RunLease, checkpoint: RunCheckpoint): void {
    const { runId } = lease;
    if (this.#runs.has(runId)) throw refusedBegin(runId);
    this.#hold(this.#add(runId, this.#content('running', checkpoint)), lease);
  }

  append(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    const text = JSON.stringify(entries);
    const kept = this.#heldBy(claim);
    kept?.entries.push(text);
    return kept !== undefined;
  }

  checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): boolean {
    return this.#change(claim, this.#content('running', checkpoint));
  }

  end(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    if (!this.append(claim, entries)) return false;
    return this.#change(claim, { status: 'ended', changedAt: this.#now(), ...FREED });
  }

  claimLost(lease: Omit<RunLease, 'runId'>): TakenRun {
    const [lost] = this.#runs
      .values()
      .filter(
        (run) => run.status === 'running' && this.#isFree(run) && !this.#conversations.isOpenTurn(run.id),
      )
      .toArray()
      .sort((one, other) => (one.leaseEnd ?? 0) - (other.leaseEnd ?? 0));
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
      runs: (age) => this.#removeOld(age, 'ended'),
      jobs: (age) => this.jobs.removeJobsOlderThan(age),
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
    return this.#removeOld(ageMs, 'ended', 'suspended');
  }

  #removeOld(ageMs: number, ...statuses: readonly RunStatus[]): number {
    const limit = this.#now() - ageMs;
    return removeWhere(
      this.#runs,
      (run) =>
        statuses.includes(run.status) &&
        this.#isFree(run) &&
        run.changedAt <= limit &&
        !this.#conversations.isOpenTurn(run.id),
    );
  }

  /** Removes what the store has of a conversation outside the conversation log. */
  #removeOf(conversationId: string, owner: string | undefined): void {
    const mark = turnMark(conversationId);
    const start = `${conversationId}.`;
    const isTurn = (runId: string): boolean =>
      runId.startsWith(start) && /^\d+$/.test(runId.slice(start.length));
    const ids = new Set<string>();
    for (const { id, state } of this.#runs.values()) if (isTurn(id) && state.includes(mark)) ids.add(id);
    for (const id of ids) this.#runs.delete(id);
    removeWhere(
      this.#results,
      ({ runId, owner: whose }) =>
        runId === conversationId + RESULTS_OF_TURNS || (isTurn(runId) && (ids.has(runId) || whose === owner)),
    );
    removeWhere(this.#schedules, (schedule) => schedule.conversationId === conversationId);
    removeWhere(this.#approvals, ({ scope, subject = '' }) =>
      scope === 'run' ? isTurn(subject) : subject === conversationId,
    );
    removeWhere(this.#jobs, (held) => isJobOf(held, conversationId));
    const key = conversationKey(conversationId);
    const keys = [key, grantedKey(key)];
    const isAccount = (place: string): boolean => keys.includes(place.split(' ').slice(2).join(' '));
    removeWhere(this.#accounts, (_, place) => isAccount(place));
    for (const held of this.#reservations.values())
      held.places = held.places.filter((place) => !isAccount(place));
  }

  #add(id: string, content: HeldContent): HeldRun {
    const run = { id, generation: 0, createdAt: content.changedAt, ...FREED, ...content };
    this.#runs.set(id, run);
    return run;
  }

  /** Throws if the state cannot be written as JSON. */
  #content(status: RunStatus, state: RunState | RunCheckpoint): HeldContent {
    return {
      status,
      revision: state.revision,
      state: JSON.stringify(state),
      entries: [],
      expiry: expiryOf(state),
      changedAt: this.#now(),
    };
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
  #change(claim: RunClaim, changes: Partial<HeldRun>): boolean {
    const kept = this.#heldBy(claim);
    if (kept !== undefined) Object.assign(kept, changes);
    return kept !== undefined;
  }

  /** The run of a claim; `undefined` if the claim no longer holds. */
  #heldBy({ runId, claim }: RunClaim): HeldRun | undefined {
    const kept = this.#runs.get(runId);
    return kept?.claim === claim ? kept : undefined;
  }
}

function summaryOf({ id: runId, status, generation, leaseEnd, createdAt, changedAt }: HeldRun): RunSummary {
  return withoutUndefined({ runId, status, generation, createdAt, changedAt, leaseEnd });
}

function keptRun(run: HeldRun): KeptRun {
  return {
    ...summaryOf(run),
    state: JSON.parse(run.state),
    entries: run.entries.flatMap((entries): RunEntry[] => JSON.parse(entries)),
  };
}
