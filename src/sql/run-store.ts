import { randomUUID } from 'node:crypto';
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
import { pageAfter, readQuery } from '../errors/list-pages.js';
import { applyRetention } from '../errors/retention.js';
import { checkAge, expiryOf, refusedBegin, refusedSave } from '../errors/store-checks.js';
import { SqlApprovals } from './approvals.js';
import { SqlBudgets } from './budgets.js';
import { SqlConversationLog } from './conversation-log.js';
import {
  type Outcome,
  pageBehind,
  type Row,
  removeOld,
  type SqlDriver,
  type Statement,
  statements,
  wholeMs,
} from './driver.js';
import { SqlJobs } from './jobs.js';
import { SqlCache, SqlResults } from './results.js';
import { SqlSchedules } from './schedules.js';

const FREE = '(lease_end IS NULL OR lease_end <= {now})';
const SUMMARY = 'run_id, status, generation, lease_end, created_at, changed_at';
const FREED = 'claim = NULL, lease_end = NULL, ended_claim = $2';
const HELD = 'run_id = $1 AND claim = $2';

/** The run of the turn that the conversation has open whose id it may have, by its key; an open turn is the last one. */
const OPEN_TURN = `coalesce((
  SELECT conversation_id || '.' || turns FROM :fleet_conversations
  WHERE conversation_id = substr(run_id, 1, length(rtrim(run_id, '0123456789')) - 1) AND turn IS NOT NULL
), '')`;

const pageStatement = (where: string) =>
  pageBehind({ table: ':runs', columns: SUMMARY, id: 'run_id', where });

/** `$1` is the run and `$2` the claim, where a statement has them. */
const SQL = statements('run', {
  // A copy changes nothing: what is kept is what it brings.
  save: `
    INSERT INTO :runs AS kept (run_id, status, revision, state, created_at, changed_at, expires_at, turn_of)
    SELECT $1, 'suspended', $2::integer, $3, at.now, at.now, $4::bigint, $5 FROM (SELECT {now} AS now) AS at WHERE true
    ON CONFLICT (run_id) DO UPDATE
    SET revision = excluded.revision, state = excluded.state, changed_at = excluded.changed_at,
      claim = NULL, lease_end = NULL, expires_at = excluded.expires_at, turn_of = excluded.turn_of
    WHERE kept.status = 'suspended' AND kept.revision <= excluded.revision
      AND (kept.lease_end IS NULL OR kept.lease_end <= {now})
      AND (kept.revision < excluded.revision OR kept.state <> excluded.state)
    RETURNING run_id`,
  saved: `
    SELECT run_id FROM :runs
    WHERE run_id = $1 AND status = 'suspended' AND revision = $2::integer AND state = $3 AND ${FREE}`,
  load: "SELECT state FROM :runs WHERE run_id = $1 AND status = 'suspended'",
  claimable: `SELECT {version} AS version, claim, status, NOT ${FREE} AS is_held FROM :runs WHERE run_id = $1`,
  // As it was read: a copy that comes later finds another version of the row.
  hold: `
    UPDATE :runs SET claim = $2, lease_end = {now} + $3::bigint, generation = generation + 1
    WHERE run_id = $1 AND {version} = $4 RETURNING state`,
  renew: `UPDATE :runs SET lease_end = {now} + $3::bigint WHERE ${HELD} RETURNING run_id`,
  release: `UPDATE :runs SET ${FREED} WHERE ${HELD} RETURNING run_id`,
  suspend: {
    steps: {
      done: `
        UPDATE :runs SET status = 'suspended', revision = $3, state = $4, changed_at = {now}, ${FREED},
          expires_at = $5, turn_of = $6
        WHERE ${HELD} RETURNING run_id`,
      dropped: 'DELETE FROM :run_entries WHERE run_id = $1 AND {done}',
    },
  },
  remove: `DELETE FROM :runs WHERE ${HELD} RETURNING run_id`,
  begin: `
    INSERT INTO :runs (run_id, status, revision, state, created_at, changed_at, claim, lease_end, generation)
    SELECT $1, 'running', $3::integer, $4, at.now, at.now, $2, at.now + $5::bigint, 1
    FROM (SELECT {now} AS now) AS at WHERE true
    ON CONFLICT DO NOTHING RETURNING run_id`,
  append: `
    INSERT INTO :run_entries (run_id, write_id, entries) SELECT run_id, $3, $4 FROM :runs WHERE ${HELD} FOR NO KEY UPDATE
    ON CONFLICT DO NOTHING RETURNING run_id`,
  // Leaves its name, '$5', among the entries, by which a copy knows that it is one.
  keep: {
    steps: {
      done: `
        UPDATE :runs SET status = 'running', revision = $3, state = $4, changed_at = {now}, expires_at = NULL
        WHERE ${HELD} AND NOT EXISTS (SELECT 1 FROM :run_entries WHERE run_id = $1 AND write_id = $5)
        RETURNING run_id`,
      dropped: 'DELETE FROM :run_entries WHERE run_id = $1 AND {done}',
      marked: `
        INSERT INTO :run_entries (run_id, write_id, entries) SELECT $1, $5, '[]' WHERE {done} ON CONFLICT DO NOTHING`,
    },
  },
  end: {
    steps: {
      done: `
        UPDATE :runs SET status = 'ended', changed_at = {now}, expires_at = NULL, ${FREED}
        WHERE ${HELD} RETURNING run_id`,
      added: `
        INSERT INTO :run_entries (run_id, write_id, entries) SELECT $1, $3, $4 WHERE {done} ON CONFLICT DO NOTHING`,
    },
  },
  has_held: 'SELECT run_id FROM :runs WHERE run_id = $1 AND (claim = $2 OR ended_claim = $2)',
  is_kept: 'SELECT run_id FROM :runs WHERE run_id = $1',
  // One of the '$1' that were lost first: those who look at the same moment take different ones.
  lost: `
    SELECT run_id, version FROM (
      SELECT run_id, {version} AS version FROM :runs
      WHERE status = 'running' AND coalesce(lease_end, 0) <= {at} AND run_id <> ${OPEN_TURN}
      ORDER BY coalesce(lease_end, 0) LIMIT $1
    ) AS first ORDER BY random() LIMIT 1`,
  read: `
    SELECT ${SUMMARY}, state, (
      SELECT string_agg(entries, ',' ORDER BY seq) FROM :run_entries WHERE run_id = $1
    ) AS entries
    FROM :runs WHERE run_id = $1`,
  list: pageStatement('true'),
  list_of: pageStatement('status = $4'),
  expired: `
    SELECT run_id, turn_of FROM :runs
    WHERE expires_at <= {at} AND (turn_of IS NULL) = $1 AND status = 'suspended' AND ${FREE}
    ORDER BY expires_at LIMIT $2`,
  remove_old: `
    WITH old AS MATERIALIZED (
      SELECT run_id FROM :runs
      WHERE status IN ('ended', $3) AND changed_at <= {at} - $1::bigint AND ${FREE} AND run_id <> ${OPEN_TURN}
      ORDER BY changed_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM :runs WHERE run_id IN (SELECT run_id FROM old)`,
});

const MOST_UNSURE = 10_000;

/** Of how many lost runs one is taken where others are always quicker. */
const MOST_LOOKED_AT = 64;

/** The runs of a database, and all else that a store keeps. A store adds how its database is opened and closed. */
export class SqlRunStore
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
  /** The large results that it keeps, in the same database. */
  readonly results: ResultStore;
  /** The conversations that it keeps, in the same database. */
  readonly conversations: ConversationLog;
  readonly #driver: SqlDriver;
  /** Names of writes whose answer may be lost: the same entries given again are the same write. */
  readonly #writes = new WeakMap<readonly RunEntry[], string>();
  /** Claims of which a statement failed although it may have been carried out. */
  readonly #unsure = new Set<string>();

  protected constructor(
    driver: SqlDriver,
    { jobs = new SqlJobs(driver) }: { readonly jobs?: JobStore } = {},
  ) {
    this.#driver = driver;
    this.jobs = jobs;
    this.budgets = new SqlBudgets(driver);
    this.cache = new SqlCache(driver);
    this.approvals = new SqlApprovals(driver);
    this.schedules = new SqlSchedules(driver);
    this.results = new SqlResults(driver);
    this.conversations = new SqlConversationLog(driver);
  }

  /** Rejects with `RunClaimed` (517) where the run is claimed, under way or over, or where what is kept is newer. */
  async save(state: RunState): Promise<void> {
    const { runId, revision } = state;
    const { expiresAt, turnOf } = expiryOf(state);
    const values = [runId, revision, JSON.stringify(state)];
    if (hasRows(await this.#driver.run(SQL.save, [...values, expiresAt, turnOf]))) return;
    if (!hasRows(await this.#driver.run(SQL.saved, values))) throw refusedSave(runId);
  }

  async load(runId: string): Promise<RunState | undefined> {
    const { rows } = await this.#driver.run(SQL.load, [runId]);
    return rows[0] && (JSON.parse(String(rows[0].state)) as RunState);
  }

  async claim(lease: RunLease): Promise<ClaimOutcome> {
    const outcome = await this.#hold(lease, ({ status, is_held: isHeld }) => {
      if (status === 'ended') return 'missing';
      if (isHeld) return 'taken';
      return status === 'suspended' ? undefined : 'lost';
    });
    if (outcome.status !== 'claimed') return outcome;
    return { status: 'claimed', state: await this.#readable(lease, outcome.state) };
  }

  async renew(lease: RunLease): Promise<boolean> {
    return hasRows(await this.#send(SQL.renew, lease, wholeMs(lease.leaseMs)));
  }

  async release(claim: RunClaim, state?: RunState): Promise<boolean> {
    if (state === undefined) return this.#finish(SQL.release, claim);
    const { expiresAt, turnOf } = expiryOf(state);
    return this.#finish(SQL.suspend, claim, state.revision, JSON.stringify(state), expiresAt, turnOf);
  }

  async remove(claim: RunClaim): Promise<boolean> {
    const outcome = await this.#send(SQL.remove, claim);
    if (hasRows(outcome) || !outcome.isRepeated) return hasRows(outcome);
    // Nobody else removes what is claimed.
    return !hasRows(await this.#driver.run(SQL.is_kept, [claim.runId]));
  }

  /** Rejects with `RunClaimed` (517) where a run of this id is kept. */
  async begin(lease: RunLease, checkpoint: RunCheckpoint): Promise<void> {
    const values = [checkpoint.revision, JSON.stringify(checkpoint), wholeMs(lease.leaseMs)];
    if (!(await this.#finish(SQL.begin, lease, ...values))) throw refusedBegin(lease.runId);
  }

  /** In one round trip. */
  append(claim: RunClaim, entries: readonly RunEntry[]): Promise<boolean> {
    return this.#finish(SQL.append, claim, this.#nameOf(entries), JSON.stringify(entries));
  }

  checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): Promise<boolean> {
    return this.#finish(SQL.keep, claim, checkpoint.revision, JSON.stringify(checkpoint), randomUUID());
  }

  end(claim: RunClaim, entries: readonly RunEntry[]): Promise<boolean> {
    return this.#finish(SQL.end, claim, this.#nameOf(entries), JSON.stringify(entries));
  }

  async claimLost({ claim, leaseMs }: Omit<RunLease, 'runId'>): Promise<TakenRun> {
    for (let among = 1; ; among = Math.min(2 * among, MOST_LOOKED_AT)) {
      const [lost] = (await this.#driver.run(SQL.lost, [among])).rows;
      if (lost === undefined) return { status: 'missing' };
      const runId = String(lost.run_id);
      if (await this.#finish(SQL.hold, { runId, claim }, wholeMs(leaseMs), lost.version))
        return this.#taken(runId);
    }
  }

  async seize(lease: SeizeLease): Promise<TakenRun> {
    const outcome = await this.#hold(lease, ({ is_held: isHeld }) =>
      isHeld && lease.from === 'nobody' ? 'taken' : undefined,
    );
    return outcome.status === 'claimed' ? this.#taken(lease.runId) : { status: outcome.status };
  }

  async read(runId: string): Promise<KeptRun | undefined> {
    const [row] = (await this.#driver.run(SQL.read, [runId])).rows;
    if (row === undefined) return undefined;
    const writes = JSON.parse(`[${row.entries ?? ''}]`) as RunEntry[][];
    const state = JSON.parse(String(row.state)) as KeptRun['state'];
    return { ...summaryOf(row), state, entries: writes.flat() };
  }

  /** Rejects with `InvalidOptions` (521) for a query that is not one. */
  async list(query: RunQuery = {}): Promise<RunPage> {
    const { status, after, limit } = readQuery(query);
    const place = [after?.changedAt ?? Number.MAX_SAFE_INTEGER, after?.id ?? '', limit + 1];
    const { rows } = await (status === undefined
      ? this.#driver.run(SQL.list, place)
      : this.#driver.run(SQL.list_of, [...place, status]));
    return pageAfter(rows.map(summaryOf), limit);
  }

  async expiredRuns({ of, limit }: ExpiredQuery): Promise<readonly ExpiredRun[]> {
    const { rows } = await this.#driver.run(SQL.expired, [of === 'others', limit]);
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
  async removeOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    return this.#removeOld(ageMs, 'suspended');
  }

  /**
   * Removes what nobody needs any more, by age, and tells how much that was. Never removes runs that wait or are under
   * way, unfinished jobs, or conversations with an open turn.
   *
   * @example
   * ```ts
   * const store = new PostgresRunStore({ connectionString: 'postgres://app@127.0.0.1:5432/shop' });
   * const DAY = 86_400_000;
   * const removed = await store.retention({ runs: 7 * DAY, jobs: DAY, events: 30 * DAY, conversations: 365 * DAY });
   * console.log(removed); // { runs: 1200, jobs: 310, events: 52000, conversations: 4 }
   * ```
   *
   * @throws InvalidOptionsError (521) for an age that is not a number of milliseconds.
   */
  retention(ages: RetentionAges): Promise<RetentionReport> {
    const conversations = this.conversations as SqlConversationLog;
    return applyRetention(ages, {
      runs: (age) => this.#removeOld(age, 'ended'),
      jobs: (age) => this.jobs.removeJobsOlderThan(age),
      conversations,
      idle: (age, limit) => conversations.idle(age, limit),
    });
  }

  /** Those that have ended, or are of another status. */
  #removeOld(ageMs: number, alsoStatus: RunStatus): Promise<number> {
    return removeOld(this.#driver.run, SQL.remove_old, [ageMs, alsoStatus]);
  }

  /** Claims a run as it was read, unless that refuses it: a copy that comes later finds another one. */
  async #hold<Refusal extends 'taken' | 'lost' | 'missing'>(
    lease: RunLease,
    refuse: (row: Row) => Refusal | undefined,
  ): Promise<{ readonly status: Refusal | 'missing' } | HeldState> {
    for (let isUnsure = this.#unsure.has(lease.claim); ; ) {
      const [row] = (await this.#driver.run(SQL.claimable, [lease.runId])).rows;
      if (row === undefined) return { status: 'missing' };
      const isOwn = isUnsure && row.claim === lease.claim;
      const refusal = refuse(isOwn ? { ...row, is_held: false } : row);
      if (refusal !== undefined) return { status: refusal };
      const held = await this.#send(SQL.hold, lease, wholeMs(lease.leaseMs), row.version);
      if (held.rows[0] !== undefined) return { status: 'claimed', state: String(held.rows[0].state) };
      isUnsure ||= held.isRepeated;
    }
  }

  /** Sends what somebody does who claimed a run. */
  async #send(
    statement: Statement,
    { runId, claim }: RunClaim,
    ...values: readonly unknown[]
  ): Promise<Outcome> {
    const wasUnsure = this.#unsure.has(claim);
    try {
      const outcome = await this.#driver.run(statement, [runId, claim, ...values]);
      this.#unsure.delete(claim);
      return wasUnsure ? { ...outcome, isRepeated: true } : outcome;
    } catch (error) {
      this.#unsure.add(claim);
      const [oldest] = this.#unsure;
      if (oldest !== undefined && this.#unsure.size > MOST_UNSURE) this.#unsure.delete(oldest);
      throw error;
    }
  }

  /** The same where the statement can be carried out once only: sent again, it finds that it was. */
  async #finish(statement: Statement, claim: RunClaim, ...values: readonly unknown[]): Promise<boolean> {
    const outcome = await this.#send(statement, claim, ...values);
    if (hasRows(outcome) || !outcome.isRepeated) return hasRows(outcome);
    return hasRows(await this.#driver.run(SQL.has_held, [claim.runId, claim.claim]));
  }

  /** Entries of who had the run before are there by now: this is a statement of its own, after the claim. */
  async #taken(runId: string): Promise<TakenRun> {
    const run = await this.read(runId);
    return run === undefined ? { status: 'missing' } : { status: 'claimed', run };
  }

  /** A run whose state somebody broke is not left claimed. */
  async #readable(claim: RunClaim, state: string): Promise<RunState> {
    try {
      return JSON.parse(state) as RunState;
    } catch (error) {
      await this.release(claim);
      throw error;
    }
  }

  #nameOf(entries: readonly RunEntry[]): string {
    const name = this.#writes.get(entries) ?? randomUUID();
    this.#writes.set(entries, name);
    return name;
  }
}

/** A run that is claimed, and its state as it stands. */
interface HeldState {
  readonly status: 'claimed';
  readonly state: string;
}

function hasRows({ rows }: Outcome): boolean {
  return rows.length > 0;
}

function summaryOf(row: Row): RunSummary {
  const summary = {
    runId: String(row.run_id),
    status: row.status as RunStatus,
    generation: Number(row.generation),
    createdAt: Number(row.created_at),
    changedAt: Number(row.changed_at),
  };
  return row.lease_end === null ? summary : { ...summary, leaseEnd: Number(row.lease_end) };
}
