import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
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
import type { ClaimOutcome, RunClaim, RunLease, RunState } from '../contract/run-state.js';
import type { ScheduleStore, StoreWithSchedules } from '../contract/schedule-store.js';
import type { ApprovalStore, StoreWithApprovals } from '../contract/standing-approvals.js';
import { checkOptions } from '../errors/author-fault.js';
import { pageAfter, readQuery } from '../errors/list-pages.js';
import { applyRetention } from '../errors/retention.js';
import { checkAge, expiryOf, refusedBegin, refusedSave } from '../errors/store-checks.js';
import { FUNCTION, optionTable, PAUSE } from '../kernel/options.js';
import { DATABASE_PATH, inTransaction, openDatabase, type Prepared, preparedIn } from './open-database.js';
import { SqliteApprovals } from './sqlite-approvals.js';
import { SqliteBudgets } from './sqlite-budgets.js';
import { SqliteCache } from './sqlite-cache.js';
import { SqliteConversationLog } from './sqlite-conversation-log.js';
import { SqliteJobs } from './sqlite-jobs.js';
import { SqliteResults } from './sqlite-results.js';
import { prepareRunsSchema } from './sqlite-runs-schema.js';
import { SqliteSchedules } from './sqlite-schedules.js';

/** Where a {@link SqliteRunStore} keeps its runs. */
export interface SqliteRunStoreOptions {
  /**
   * Path of the file, which is made where it is missing (its folder is not), or `':memory:'`. It may be a file
   * of the application: all tables begin with `toolwright_`. It is switched to a write-ahead log, which stands in
   * two files beside it. It holds conversations; keep it as safe as those.
   */
  readonly path: string;
  /** How long a method waits, and blocks, while another process writes; default 5,000. */
  readonly busyTimeoutMs?: number;
  /** Milliseconds since 1970; default: `Date.now`. A seam for tests: all processes must agree on it. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<SqliteRunStoreOptions>('SqliteRunStore', {
  path: DATABASE_PATH,
  busyTimeoutMs: PAUSE,
  now: FUNCTION,
});

const FREE = '(lease_end IS NULL OR lease_end <= $now)';
/** A turn that is open is the last one of its conversation. */
const NO_TURN = `NOT EXISTS (
  SELECT 1 FROM toolwright_conversations
  WHERE conversation_id = substr(run_id, 1, length(rtrim(run_id, '0123456789')) - 1)
    AND turn IS NOT NULL AND run_id = conversation_id || '.' || turns
)`;
const SUMMARY = 'run_id, status, generation, lease_end, created_at, changed_at';

const SQL = {
  save: `
    INSERT INTO toolwright_runs (run_id, revision, state, status, created_at, changed_at, expires_at, turn_of)
    VALUES ($runId, $revision, $state, 'suspended', $now, $now, $expiresAt, $turnOf)
    ON CONFLICT (run_id) DO UPDATE
    SET revision = excluded.revision, state = excluded.state, changed_at = excluded.changed_at, claim = NULL, lease_end = NULL,
      expires_at = excluded.expires_at, turn_of = excluded.turn_of
    WHERE status = 'suspended' AND toolwright_runs.revision <= excluded.revision AND ${FREE}`,
  load: "SELECT state FROM toolwright_runs WHERE run_id = $runId AND status = 'suspended'",
  status: `SELECT status, ${FREE} AS free FROM toolwright_runs WHERE run_id = $runId`,
  hold: `
    UPDATE toolwright_runs SET claim = $claim, lease_end = $leaseEnd, generation = generation + 1
    WHERE run_id = $runId`,
  renew: 'UPDATE toolwright_runs SET lease_end = $leaseEnd WHERE run_id = $runId AND claim = $claim',
  release: `
    UPDATE toolwright_runs SET claim = NULL, lease_end = NULL WHERE run_id = $runId AND claim = $claim`,
  suspend: `
    UPDATE toolwright_runs
    SET status = 'suspended', revision = $revision, state = $state, changed_at = $now, claim = NULL, lease_end = NULL,
      expires_at = $expiresAt, turn_of = $turnOf
    WHERE run_id = $runId AND claim = $claim`,
  keep: `
    UPDATE toolwright_runs SET status = 'running', revision = $revision, state = $state, changed_at = $now,
      expires_at = $expiresAt, turn_of = $turnOf
    WHERE run_id = $runId AND claim = $claim`,
  remove: 'DELETE FROM toolwright_runs WHERE run_id = $runId AND claim = $claim',
  begin: `
    INSERT INTO toolwright_runs (run_id, revision, state, status, created_at, changed_at, claim, lease_end, generation, expires_at, turn_of)
    VALUES ($runId, $revision, $state, 'running', $now, $now, $claim, $leaseEnd, 1, $expiresAt, $turnOf) ON CONFLICT DO NOTHING`,
  append: `
    INSERT INTO toolwright_run_entries (run_id, entries)
    SELECT run_id, $entries FROM toolwright_runs WHERE run_id = $runId AND claim = $claim`,
  end: `
    UPDATE toolwright_runs SET status = 'ended', changed_at = $now, expires_at = NULL, claim = NULL, lease_end = NULL
    WHERE run_id = $runId AND claim = $claim`,
  dropEntries: 'DELETE FROM toolwright_run_entries WHERE run_id = $runId',
  firstLost: `
    SELECT run_id FROM toolwright_runs
    WHERE status = 'running' AND coalesce(lease_end, 0) <= $now AND ${NO_TURN}
    ORDER BY coalesce(lease_end, 0) LIMIT 1`,
  read: `SELECT ${SUMMARY}, state FROM toolwright_runs WHERE run_id = $runId`,
  entries: 'SELECT entries FROM toolwright_run_entries WHERE run_id = $runId ORDER BY seq',
  list: `
    SELECT ${SUMMARY} FROM toolwright_runs WHERE changed_at <= $before AND (changed_at < $before OR run_id > $after)
    ORDER BY changed_at DESC, run_id LIMIT $limit`,
  listByStatus: `
    SELECT ${SUMMARY} FROM toolwright_runs
    WHERE status = $status AND changed_at <= $before AND (changed_at < $before OR run_id > $after)
    ORDER BY changed_at DESC, run_id LIMIT $limit`,
  expired: `
    SELECT run_id, turn_of FROM toolwright_runs
    WHERE (turn_of IS NULL) = $isOther AND expires_at <= $now AND status = 'suspended' AND ${FREE}
    ORDER BY expires_at LIMIT $limit`,
  removeOlderThan: `
    DELETE FROM toolwright_runs
    WHERE status IN ('ended', $alsoStatus) AND changed_at <= $limit AND ${FREE} AND ${NO_TURN}
    RETURNING run_id`,
} as const;

type SummaryRow = {
  readonly run_id: string;
  readonly status: RunStatus;
  readonly generation: number;
  readonly lease_end: number | null;
  readonly created_at: number;
  readonly changed_at: number;
};

/**
 * Keeps runs in an SQLite file, which several processes of one machine may use at the same time. A kept run survives
 * crashes and power failures. Its methods are synchronous; a file on a network drive is not safe with SQLite. The first
 * store of a process loads `node:sqlite`, and Node 22 then says on standard error that it is experimental.
 *
 * The constructor throws where the file cannot be opened, is no SQLite file, or was written by a newer version
 * of this package; methods throw what SQLite throws, for a full disk or a lock that outlasts `busyTimeoutMs`.
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * store.close();
 * ```
 */
export class SqliteRunStore
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
  /** The large results that it keeps, in the same file. */
  readonly results: ResultStore;
  /** The conversations that it keeps, in the same file. */
  readonly conversations: ConversationLog;
  readonly #conversations: SqliteConversationLog;
  readonly #database: DatabaseSync;
  readonly #statements: Prepared<keyof typeof SQL>;
  readonly #now: () => number;
  #isOpen = true;

  constructor(options: SqliteRunStoreOptions) {
    checkOptions(options, OPTIONS);
    const { path, busyTimeoutMs = 5000, now = Date.now } = options;
    this.#database = openDatabase({ path, busyTimeoutMs });
    this.#now = now;
    try {
      // One change for the tables of all parts: each of its own would wait for the disk.
      this.#database.exec('BEGIN IMMEDIATE');
      prepareRunsSchema(this.#database);
      this.#conversations = new SqliteConversationLog(this.#database, now);
      this.conversations = this.#conversations;
      this.#statements = preparedIn(this.#database, SQL);
      this.budgets = new SqliteBudgets(this.#database, now);
      this.cache = new SqliteCache(this.#database, now);
      this.results = new SqliteResults(this.#database, now);
      const kept = { database: this.#database, now, conversations: this.#conversations };
      this.jobs = new SqliteJobs(kept);
      this.approvals = new SqliteApprovals(this.#database, now);
      this.schedules = new SqliteSchedules(this.#database, now);
      this.#database.exec('COMMIT');
    } catch (cause) {
      this.#database.close();
      throw new Error(`Cannot keep runs in '${path}': ${(cause as Error).message}`, { cause });
    }
  }

  /** Throws `RunClaimed` (517) where the run is claimed, under way or over, or where what is kept is newer. */
  save(state: RunState): void {
    const { runId } = state;
    if (!this.#change('save', { runId, ...this.#kept(state) })) throw refusedSave(runId);
  }

  load(runId: string): RunState | undefined {
    const row = this.#statements.load.get({ runId });
    return row && (JSON.parse(String(row.state)) as RunState);
  }

  claim(lease: RunLease): ClaimOutcome {
    const { runId } = lease;
    return inTransaction(this.#database, (): ClaimOutcome => {
      const kept = this.#statements.status.get({ runId, now: this.#now() });
      if (kept === undefined || kept.status === 'ended') return { status: 'missing' };
      if (kept.free === 0) return { status: 'taken' };
      const state = this.load(runId);
      if (state === undefined) return { status: 'lost' };
      this.#hold(lease);
      return { status: 'claimed', state };
    });
  }

  renew({ runId, claim, leaseMs }: RunLease): boolean {
    return this.#change('renew', { runId, claim, leaseEnd: this.#now() + leaseMs });
  }

  release({ runId, claim }: RunClaim, state?: RunState): boolean {
    if (state === undefined) return this.#change('release', { runId, claim });
    return this.#replace('suspend', { runId, claim, ...this.#kept(state) });
  }

  remove({ runId, claim }: RunClaim): boolean {
    return this.#replace('remove', { runId, claim });
  }

  /** Throws `RunClaimed` (517) where a run of this id is kept. */
  begin({ runId, claim, leaseMs }: RunLease, checkpoint: RunCheckpoint): void {
    const leaseEnd = this.#now() + leaseMs;
    if (!this.#change('begin', { runId, claim, leaseEnd, ...this.#kept(checkpoint) }))
      throw refusedBegin(runId);
  }

  append({ runId, claim }: RunClaim, entries: readonly RunEntry[]): boolean {
    return this.#change('append', { runId, claim, entries: JSON.stringify(entries) });
  }

  checkpoint({ runId, claim }: RunClaim, checkpoint: RunCheckpoint): boolean {
    return this.#replace('keep', { runId, claim, ...this.#kept(checkpoint) });
  }

  end({ runId, claim }: RunClaim, entries: readonly RunEntry[]): boolean {
    const texts = JSON.stringify(entries);
    return inTransaction(
      this.#database,
      () =>
        this.#change('append', { runId, claim, entries: texts }) &&
        this.#change('end', { runId, claim, now: this.#now() }),
    );
  }

  claimLost(lease: Omit<RunLease, 'runId'>): TakenRun {
    return inTransaction(this.#database, (): TakenRun => {
      const lost = this.#statements.firstLost.get({ now: this.#now() });
      if (lost === undefined) return { status: 'missing' };
      return this.#take({ ...lease, runId: String(lost.run_id) });
    });
  }

  seize({ from, ...lease }: SeizeLease): TakenRun {
    return inTransaction(this.#database, (): TakenRun => {
      const kept = this.#statements.status.get({ runId: lease.runId, now: this.#now() });
      if (kept === undefined) return { status: 'missing' };
      return from === 'nobody' && kept.free === 0 ? { status: 'taken' } : this.#take(lease);
    });
  }

  read(runId: string): KeptRun | undefined {
    // One moment, as another process may write between two statements.
    this.#database.exec('BEGIN');
    try {
      return this.#read(runId);
    } finally {
      this.#database.exec('COMMIT');
    }
  }

  /** Throws `InvalidOptions` (521) for a query that is not one. */
  list(query: RunQuery = {}): RunPage {
    const { status, after, limit } = readQuery(query);
    const place = { before: after?.changedAt ?? Number.MAX_VALUE, after: after?.id ?? '' };
    const wanted = { ...place, limit: limit + 1 };
    const rows =
      status === undefined
        ? this.#statements.list.all(wanted)
        : this.#statements.listByStatus.all({ ...wanted, status });
    return pageAfter((rows as SummaryRow[]).map(summaryOf), limit);
  }

  expiredRuns({ of, limit }: ExpiredQuery): readonly ExpiredRun[] {
    const isOther = of === 'others' ? 1 : 0;
    const rows = this.#statements.expired.all({ isOther, limit, now: this.#now() });
    return rows.map(({ run_id: runId, turn_of: turnOf }) => ({
      runId: String(runId),
      ...(turnOf === null ? {} : { conversationId: String(turnOf) }),
    }));
  }

  /**
   * Forgets the runs that nobody claims, that are not under way and that were suspended, or ended, so many
   * milliseconds ago: nobody will answer them any more. Gives their number.
   *
   * @deprecated Removes runs that wait for an answer, too; `retention({ runs: ageMs })` does not.
   */
  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    return this.#removeOld(ageMs, 'suspended');
  }

  /** Removes what nobody needs any more, by age; the example of `PostgresRunStore` holds here, too. */
  retention(ages: RetentionAges): Promise<RetentionReport> {
    return applyRetention(ages, {
      runs: (age) => this.#removeOld(age, 'ended'),
      jobs: (age) => this.jobs.removeJobsOlderThan(age),
      conversations: this.conversations,
      idle: (age, limit) => this.#conversations.idle(age, limit),
    });
  }

  /** Those that have ended, or are of another status. */
  #removeOld(ageMs: number, alsoStatus: RunStatus): number {
    return inTransaction(this.#database, () => {
      const now = this.#now();
      const removed = this.#statements.removeOlderThan.all({ now, limit: now - ageMs, alsoStatus });
      for (const row of removed) this.#statements.dropEntries.run({ runId: String(row.run_id) });
      return removed.length;
    });
  }

  /** Closes the file; closing twice is no fault. Any other method throws afterwards. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#conversations.stopWatching();
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #kept(state: RunState | RunCheckpoint) {
    const { revision } = state;
    return { revision, state: JSON.stringify(state), now: this.#now(), ...expiryOf(state) };
  }

  #change(statement: keyof typeof SQL, values: Record<string, SQLInputValue>): boolean {
    return this.#statements[statement].run(values).changes !== 0;
  }

  /** Changes a run and forgets its entries, where the claim holds. */
  #replace(
    statement: 'suspend' | 'keep' | 'remove',
    values: Record<string, SQLInputValue> & { readonly runId: string },
  ): boolean {
    return inTransaction(this.#database, () => {
      const isDone = this.#change(statement, values);
      if (isDone) this.#statements.dropEntries.run({ runId: values.runId });
      return isDone;
    });
  }

  #hold({ runId, claim, leaseMs }: RunLease): void {
    this.#change('hold', { runId, claim, leaseEnd: this.#now() + leaseMs });
  }

  #take(lease: RunLease): TakenRun {
    this.#hold(lease);
    const run = this.#read(lease.runId);
    return run === undefined ? { status: 'missing' } : { status: 'claimed', run };
  }

  #read(runId: string): KeptRun | undefined {
    const row = this.#statements.read.get({ runId });
    if (row === undefined) return undefined;
    const writes = this.#statements.entries.all({ runId });
    return {
      ...summaryOf(row as SummaryRow),
      state: JSON.parse(String(row.state)) as KeptRun['state'],
      entries: writes.flatMap(({ entries }) => JSON.parse(String(entries)) as RunEntry[]),
    };
  }
}

function summaryOf(row: SummaryRow): RunSummary {
  const { run_id: runId, status, generation, lease_end: leaseEnd } = row;
  const times = { createdAt: row.created_at, changedAt: row.changed_at };
  const summary = { runId, status, generation, ...times };
  return leaseEnd === null ? summary : { ...summary, leaseEnd };
}
