import { randomUUID } from 'node:crypto';
import {
  addAmounts,
  type BudgetAmounts,
  type BudgetBalance,
  type BudgetLedger,
  partBeyond,
  type ReservationOutcome,
  type StoreWithBudgets,
} from '../../core/contract/budget-ledger.js';
import type { ConversationLog } from '../../core/contract/conversation-log.js';
import type { JobStore, StoreWithJobs } from '../../core/contract/job-store.js';
import type {
  ResultCache,
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
import { pageAfter, readQuery } from '../../core/errors/list-pages.js';
import {
  applyRetention,
  checkAge,
  expiryOf,
  refusedBegin,
  refusedSave,
} from '../../core/errors/store-checks.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { SqlConversationLog } from './conversation-log.js';
import {
  isDone,
  type Outcome,
  pageStatements,
  type Row,
  type RunStatement,
  readPage,
  removeOld,
  type SqlDriver,
  type Statement,
  statements,
  type Transaction,
  wholeMs,
  writtenRow,
} from './driver.js';
import { sqlJobs } from './jobs.js';

/** An owner may be too long for an index, so the index has its digest. */
const ofSubject = (subject: string) => `md5(subject) = md5(${subject}) AND subject = ${subject}`;

const LISTED = 'SELECT schedule, due_at FROM :schedules';
const FIRST = 'ORDER BY due_at, id LIMIT $1';

const SCHEDULE_SQL = statements('schedule', {
  clock: 'SELECT {now} AS now',
  find: 'SELECT 1 FROM :schedules WHERE id = $1',
  add: `
    INSERT INTO :schedules (id, conversation_id, subject, due_at, schedule)
    SELECT $1::text, $2::text, $3::text, $4::bigint, $5::text
    WHERE $6::bigint IS NULL OR (SELECT count(*) FROM :schedules WHERE ${ofSubject('$3::text')}) < $6::bigint
    ON CONFLICT DO NOTHING`,
  list: `${LISTED} ${FIRST}`,
  list_conversation: `
    ${LISTED} WHERE conversation_id = $2 AND ($3::text IS NULL OR subject = $3::text) ${FIRST}`,
  list_owner: `${LISTED} WHERE ${ofSubject('$2::text')} ${FIRST}`,
  cancel: 'DELETE FROM :schedules WHERE id = $1',
  due: `
    SELECT clock.now, first.schedule, first.due_at FROM (SELECT {now} AS now) AS clock
    LEFT JOIN (SELECT id, schedule, due_at FROM :schedules ${FIRST}) AS first ON true
    ORDER BY first.due_at, first.id`,
  move: 'UPDATE :schedules SET due_at = $3 WHERE id = $1 AND due_at = $2',
  end: 'DELETE FROM :schedules WHERE id = $1 AND due_at = $2',
});

/** The schedules of a store; the database's clock decides when they are due. */
function sqlSchedules(driver: SqlDriver): ScheduleStore {
  const { run } = driver;
  return {
    clock: async () => Number((await run(SCHEDULE_SQL.clock, [])).rows[0]?.now),
    addSchedule(schedule, most = Number.POSITIVE_INFINITY) {
      const { id, conversationId, dueAt } = schedule;
      const subject = subjectOf(schedule);
      const limit = Number.isFinite(most) ? most : null;
      const values = [id, conversationId, subject, Math.ceil(dueAt), JSON.stringify(schedule), limit];
      // Two concurrent inserts would not see each other without a lock.
      const locks = { of: 'schedules', names: [subject] };
      return driver.transaction(locks, function* (): Transaction<boolean> {
        if ((yield [SCHEDULE_SQL.find, [id]]).rows.length > 0) return true;
        return (yield [SCHEDULE_SQL.add, values]).count > 0;
      });
    },
    async listSchedules({ conversationId, owner, limit = DEFAULT_LIMIT } = {}) {
      const subject = ownerSubject(owner);
      let found: Promise<Outcome>;
      if (conversationId !== undefined)
        found = run(SCHEDULE_SQL.list_conversation, [limit, conversationId, subject ?? null]);
      else if (subject !== undefined) found = run(SCHEDULE_SQL.list_owner, [limit, subject]);
      else found = run(SCHEDULE_SQL.list, [limit]);
      return (await found).rows.map(scheduleOf);
    },
    cancelSchedule: async (id) => (await run(SCHEDULE_SQL.cancel, [id])).count > 0,
    async dueSchedules(limit) {
      const { rows } = await run(SCHEDULE_SQL.due, [limit + 1]);
      const now = Number(rows[0]?.now);
      const first = rows.filter(({ schedule }) => schedule !== null).map(scheduleOf);
      const due = first.filter(({ dueAt }) => dueAt <= now).slice(0, limit);
      const next = first[due.length];
      return { now, due, ...(next && { nextAt: next.dueAt }) };
    },
    async moveSchedule({ id, dueAt, next }) {
      const { count } = await (next === undefined
        ? run(SCHEDULE_SQL.end, [id, dueAt])
        : run(SCHEDULE_SQL.move, [id, dueAt, Math.ceil(next)]));
      return count > 0;
    },
  };
}

function scheduleOf({ schedule, due_at: dueAt }: Row): Schedule {
  return { ...JSON.parse(String(schedule)), dueAt: Number(dueAt) };
}

const NAMES = 'tokens, cost, calls, steps, time_ms';

const sums = (table: string, prefix: string): string =>
  NAMES.split(', ')
    .map((name) => `coalesce(sum(${table}.${name}), 0)::bigint AS ${prefix}${name}`)
    .join(', ');

const BUDGET_SQL = statements('budget', {
  // Reads both sums in one statement; otherwise a reservation settled in between would be in neither.
  balance: `
    WITH place AS MATERIALIZED (
      SELECT $1::text AS key, now - CASE WHEN $2::bigint = 0 THEN now ELSE now % $2::bigint END AS began_at,
        $2::bigint AS window_ms
      FROM (SELECT {now} AS now) AS clock
    ),
    spent AS (SELECT ${sums('b', '')} FROM :budgets b JOIN place USING (key, began_at, window_ms)),
    reserved AS (
      SELECT ${sums('r', 'reserved_')} FROM :reservations r JOIN place USING (key, began_at, window_ms)
      WHERE r.lease_end > {at}
    )
    SELECT place.began_at, spent.*, reserved.* FROM place, spent, reserved`,
  has: 'SELECT 1 FROM :reservations WHERE id = $1 LIMIT 1',
  reserve: `
    INSERT INTO :reservations (id, key, began_at, window_ms, lease_end, ${NAMES})
    VALUES ($1, $2, $3, $4, {now} + $5::bigint, $6, $7, $8, $9, $10)`,
  renew: 'UPDATE :reservations SET lease_end = {now} + $2::bigint WHERE id = $1',
  settle: {
    steps: {
      // If two processes settle a reservation at the same time, the second finds no row.
      found: `
        SELECT id FROM :reservations WHERE id = $1 ORDER BY key, began_at, window_ms LIMIT 1 FOR UPDATE`,
      spent: `
        INSERT INTO :budgets AS b (key, began_at, window_ms, changed_at, ${NAMES})
        SELECT key, began_at, window_ms, {now}, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint
        FROM :reservations WHERE id = $1 AND {found} ORDER BY key, began_at, window_ms
        ON CONFLICT (key, began_at, window_ms) DO UPDATE SET changed_at = excluded.changed_at,
          tokens = b.tokens + excluded.tokens, cost = b.cost + excluded.cost, calls = b.calls + excluded.calls,
          steps = b.steps + excluded.steps, time_ms = b.time_ms + excluded.time_ms`,
      ended: 'DELETE FROM :reservations WHERE id = $1 AND {found}',
    },
  },
  forget_reserved: 'DELETE FROM :reservations WHERE lease_end <= {at} - $1::bigint',
  forget: `
    DELETE FROM :budgets WHERE (key, began_at, window_ms) IN (
      SELECT key, began_at, window_ms FROM :budgets WHERE changed_at <= {at} - $1::bigint LIMIT $2
    )`,
});

/** The budgets of a store. Windows and leases use the database's clock. */
function sqlBudgets(driver: SqlDriver): BudgetLedger {
  const { run } = driver;
  return {
    reserve({ id, accounts, amounts, leaseMs }) {
      // A reservation waits only for other reservations of the same account.
      const locks = { of: 'budgets', names: accounts.map(({ key }) => key) };
      return driver.transaction(locks, function* (): Transaction<ReservationOutcome> {
        if ((yield [BUDGET_SQL.has, [id]]).rows.length > 0) return { status: 'reserved' };
        const begun: unknown[] = [];
        for (const { key, windowMs = 0, limits } of accounts) {
          const [row = {}] = (yield [BUDGET_SQL.balance, [key, windowMs]]).rows;
          const { spent, reserved } = balanceOf(row);
          const beyond = partBeyond(limits, addAmounts(spent, reserved), amounts);
          if (beyond !== undefined) return { status: 'spent', key, ...beyond };
          begun.push(row.began_at);
        }
        for (const [index, { key, windowMs = 0 }] of accounts.entries()) {
          const values = [id, key, begun[index], windowMs, wholeMs(leaseMs), ...valuesOf(amounts)];
          yield [BUDGET_SQL.reserve, values];
        }
        return { status: 'reserved' };
      });
    },
    renewReservation: async (id, leaseMs) => (await run(BUDGET_SQL.renew, [id, wholeMs(leaseMs)])).count > 0,
    // A repeated statement finds nothing left to settle.
    settle: async (id, spent) => isDone(await run(BUDGET_SQL.settle, [id, ...valuesOf(spent)])),
    async balance({ key, windowMs = 0 }) {
      return balanceOf((await run(BUDGET_SQL.balance, [key, windowMs])).rows[0] ?? {});
    },
    async removeOlderThan(ageMs) {
      checkAge(ageMs);
      await run(BUDGET_SQL.forget_reserved, [wholeMs(ageMs)]);
      return removeOld(run, BUDGET_SQL.forget, [ageMs]);
    },
  };
}

function valuesOf({ tokens, cost, calls, steps, timeMs }: BudgetAmounts): readonly number[] {
  return [tokens, cost, calls, steps, timeMs];
}

function balanceOf(row: Row): BudgetBalance {
  const amounts = (prefix: string): BudgetAmounts => {
    const part = (name: string): number => Number(row[`${prefix}${name}`] ?? 0);
    return {
      tokens: part('tokens'),
      cost: part('cost'),
      calls: part('calls'),
      steps: part('steps'),
      timeMs: part('time_ms'),
    };
  };
  return { spent: amounts(''), reserved: amounts('reserved_') };
}

const CACHE = statements('result', {
  get: 'SELECT result FROM :results WHERE key = $1 AND ends_at > {now}',
  put: `
    INSERT INTO :results (key, result, ends_at) VALUES ($1, $2, {now} + $3::bigint)
    ON CONFLICT (key) DO UPDATE SET result = excluded.result, ends_at = excluded.ends_at`,
  forget: 'DELETE FROM :results WHERE key = $1 OR ends_at <= {at}',
});

/** The cached results of a store; they expire by the database's clock. */
function sqlCache({ run }: SqlDriver): ResultCache {
  return {
    async cachedResult(key) {
      const { rows } = await run(CACHE.get, [key]);
      return rows[0] && JSON.parse(String(rows[0].result));
    },
    async cacheResult(key, result, lifetimeMs) {
      await run(CACHE.put, [key, JSON.stringify(result), wholeMs(lifetimeMs)]);
    },
    async forgetResult(key) {
      await run(CACHE.forget, [key]);
    },
  };
}

const RESULTS = statements('kept_result', {
  keep: `
    INSERT INTO :kept_results AS kept (run_id, handle, owner, text, end_at)
    VALUES ($1, $2, $3, $4, {now} + $5::bigint)
    ON CONFLICT (run_id, handle) DO UPDATE SET owner = excluded.owner, text = excluded.text, end_at = excluded.end_at
    WHERE $6::text IS NULL OR kept.text IN ($6::text, excluded.text)`,
  read: `
    SELECT text FROM :kept_results
    WHERE run_id = $1 AND handle = $2 AND owner IS NOT DISTINCT FROM $3 AND end_at > {now}`,
  remove: `
    DELETE FROM :kept_results WHERE (run_id, handle) IN (
      SELECT run_id, handle FROM :kept_results WHERE end_at <= {at} - $1::bigint ORDER BY end_at
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )`,
});

/** How many expired entries are removed with each new one. */
const FEW = 1_000;

/** The large results of a store. */
function sqlResults({ run }: SqlDriver): ResultStore {
  return {
    async keepResult({ handle, runId, owner, text, lifeMs, replaces }) {
      await run(RESULTS.remove, [0, FEW]);
      // As JSON, because databases refuse lone surrogates and NUL in text; `null` is not the JSON of a text.
      const texts = [JSON.stringify(text), wholeMs(lifeMs), JSON.stringify(replaces) ?? null];
      return (await run(RESULTS.keep, [runId, handle, owner ?? null, ...texts])).count > 0;
    },
    async readResult({ handle, runId, owner }) {
      const { rows } = await run(RESULTS.read, [runId, handle, owner ?? null]);
      return rows[0] && JSON.parse(String(rows[0].text));
    },
    removeExpiredResults: () => removeOld(run, RESULTS.remove, [0]),
  };
}

const STANDS = '(expires_at IS NULL OR expires_at > {now})';

const APPROVALS = statements('approval', {
  add: {
    steps: {
      added: `
        INSERT INTO :approvals (id, approval, expires_at, seq)
        SELECT $1, $2, $3::bigint, coalesce(max(seq), 0) + 1 FROM :approvals WHERE true
        ON CONFLICT (id) DO UPDATE SET approval = excluded.approval, expires_at = excluded.expires_at, seq = excluded.seq
        RETURNING id`,
      forgotten: `DELETE FROM :approvals WHERE NOT ${STANDS} AND id <> $1`,
    },
  },
  find: `
    SELECT approval FROM :approvals JOIN {each $1} ON id = value WHERE ${STANDS} ORDER BY place LIMIT 1`,
  list: `SELECT approval FROM :approvals WHERE ${STANDS} ORDER BY seq DESC LIMIT $1`,
  revoke: `DELETE FROM :approvals WHERE id = $1 AND ${STANDS}`,
});

const DEFAULT_LIMIT = 100;

/** The standing approvals of a store. */
function sqlApprovals({ run }: SqlDriver): ApprovalStore {
  return {
    async addApproval(approval) {
      const { id, expiresAt } = approval;
      const values = [id, JSON.stringify(approval), expiresAt === undefined ? null : Math.ceil(expiresAt)];
      await run(APPROVALS.add, values);
    },
    async findApproval(ids) {
      const { rows } = await run(APPROVALS.find, [ids]);
      return rows[0] && approvalOf(rows[0]);
    },
    async listApprovals(limit = DEFAULT_LIMIT) {
      return (await run(APPROVALS.list, [limit])).rows.map(approvalOf);
    },
    revokeApproval: async (id) => (await run(APPROVALS.revoke, [id])).count > 0,
  };
}

function approvalOf({ approval }: Row): StandingApproval {
  return JSON.parse(String(approval));
}

const FREE = '(lease_end IS NULL OR lease_end <= {now})';
const SUMMARY = 'run_id, status, generation, lease_end, created_at, changed_at';
const FREED = 'claim = NULL, lease_end = NULL, ended_claim = $2';
const HELD = 'run_id = $1 AND claim = $2';

/**
 * The run id of the conversation's open turn, found by key; an open turn is always the last turn. A run id of only
 * digits is not of a turn, and databases refuse a negative length.
 */
const OPEN_TURN = `coalesce((
  SELECT conversation_id || '.' || turns FROM :fleet_conversations
  WHERE conversation_id = substr(run_id, 1, abs(length(rtrim(run_id, '0123456789')) - 1)) AND turn IS NOT NULL
), '')`;

/** `$1` is the run and `$2` the claim, in statements that use them. */
const SQL = statements('run', {
  // A repeated statement changes nothing, because the stored state equals its own.
  save: `
    INSERT INTO :runs AS kept (run_id, status, revision, state, created_at, changed_at, expires_at, turn_of)
    SELECT $1, 'suspended', $2::integer, $3, at.now, at.now, $4::bigint, $5 FROM (SELECT {now} AS now) AS at WHERE true
    ON CONFLICT (run_id) DO UPDATE
    SET revision = excluded.revision, state = excluded.state, changed_at = excluded.changed_at,
      claim = NULL, lease_end = NULL, expires_at = excluded.expires_at, turn_of = excluded.turn_of
    WHERE kept.status = 'suspended' AND kept.revision < excluded.revision
      AND (kept.lease_end IS NULL OR kept.lease_end <= {now})
    RETURNING run_id`,
  saved: `
    SELECT run_id FROM :runs
    WHERE run_id = $1 AND status = 'suspended' AND revision = $2::integer AND state = $3 AND ${FREE}`,
  load: "SELECT state FROM :runs WHERE run_id = $1 AND status = 'suspended'",
  claimable: `SELECT {version} AS version, claim, status, NOT ${FREE} AS is_held FROM :runs WHERE run_id = $1`,
  // Names the version that was read: a repeated statement finds another version.
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
  // Adds its name, `$5`, to the entries, so that a repeated statement recognizes itself.
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
  // A random choice from the `$1` oldest lost runs, so that concurrent processes take different runs.
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
  ...pageStatements(':runs', 'run_id', SUMMARY),
  expired: `
    SELECT run_id, turn_of FROM :runs
    WHERE expires_at <= {at} AND (turn_of IS NULL) = $1 AND status = 'suspended' AND ${FREE}
    ORDER BY expires_at LIMIT $2`,
  // Runs that have ended, or have the status `$3`.
  remove_old: `
    WITH old AS MATERIALIZED (
      SELECT run_id FROM :runs
      WHERE status IN ('ended', $3) AND changed_at <= {at} - $1::bigint AND ${FREE} AND run_id <> ${OPEN_TURN}
      ORDER BY changed_at LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM :runs WHERE run_id IN (SELECT run_id FROM old)`,
});

const MOST_UNSURE = 10_000;

/** The largest number of lost runs to choose from, when other processes keep taking the chosen ones. */
const MOST_LOOKED_AT = 64;

/** Runs in a SQL database, with everything else that a store contains. Subclasses open and close the database. */
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
  /** Large results, in the same database. */
  readonly results: ResultStore;
  /** Conversations, in the same database. */
  readonly conversations: ConversationLog;
  readonly #run: RunStatement;
  /** Names of writes: the same entries passed again are the same write, sent again because its response was lost. */
  readonly #writes = new WeakMap<readonly RunEntry[], string>();
  /** Claims with a failed statement that may have been executed. */
  readonly #unsure = new Set<string>();

  protected constructor(driver: SqlDriver, { jobs = sqlJobs(driver) }: { readonly jobs?: JobStore } = {}) {
    this.#run = driver.run;
    this.jobs = jobs;
    this.budgets = sqlBudgets(driver);
    this.cache = sqlCache(driver);
    this.approvals = sqlApprovals(driver);
    this.schedules = sqlSchedules(driver);
    this.results = sqlResults(driver);
    this.conversations = new SqlConversationLog(driver);
  }

  /**
   * Rejects with `RunClaimed` (517) if the run is claimed, running or ended, or if the stored state has a later revision, or
   * the same revision and other content.
   */
  async save(state: RunState): Promise<void> {
    const { runId, revision } = state;
    const { expiresAt, turnOf } = expiryOf(state);
    const values = [runId, revision, JSON.stringify(state)];
    if (hasRows(await this.#run(SQL.save, [...values, expiresAt, turnOf]))) return;
    if (!hasRows(await this.#run(SQL.saved, values))) throw refusedSave(runId);
  }

  async load(runId: string): Promise<RunState | undefined> {
    const { rows } = await this.#run(SQL.load, [runId]);
    return rows[0] && JSON.parse(String(rows[0].state));
  }

  async claim(lease: RunLease): Promise<ClaimOutcome> {
    const outcome = await this.#hold(lease, ({ status, is_held: isHeld }) => {
      if (status === 'ended') return 'missing';
      if (isHeld) return 'taken';
      return status === 'suspended' ? undefined : 'lost';
    });
    if (outcome.status !== 'claimed') return outcome;
    try {
      return { status: 'claimed', state: JSON.parse(outcome.state) };
    } catch (error) {
      // The run's state is damaged.
      await this.release(lease);
      throw error;
    }
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
    // Only the claim's holder removes a claimed run.
    return !hasRows(await this.#run(SQL.is_kept, [claim.runId]));
  }

  /** Rejects with `RunClaimed` (517) if a run with this id exists. */
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
      const [lost] = (await this.#run(SQL.lost, [among])).rows;
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
    const [row] = (await this.#run(SQL.read, [runId])).rows;
    if (row === undefined) return undefined;
    const writes: RunEntry[][] = JSON.parse(`[${row.entries ?? ''}]`);
    return { ...summaryOf(row), state: JSON.parse(String(row.state)), entries: writes.flat() };
  }

  /** Rejects with `InvalidOptions` (521) for a wrong query. */
  async list(query: RunQuery = {}): Promise<RunPage> {
    const wanted = readQuery(query);
    const rows = await readPage(this.#run, SQL, wanted);
    return pageAfter(rows.map(summaryOf), wanted.limit);
  }

  async expiredRuns({ of, limit }: ExpiredQuery): Promise<readonly ExpiredRun[]> {
    const { rows } = await this.#run(SQL.expired, [of === 'others', limit]);
    return rows.map(({ run_id: runId, turn_of: turnOf }) => ({
      runId: String(runId),
      ...(turnOf !== null && { conversationId: String(turnOf) }),
    }));
  }

  /**
   * Removes unclaimed runs that were suspended, or ended, at least `ageMs` milliseconds ago; running runs stay. Returns
   * their number.
   *
   * @deprecated Removes runs that wait for an answer, too; `retention({ runs: ageMs })` does not.
   */
  async removeOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    return removeOld(this.#run, SQL.remove_old, [ageMs, 'suspended']);
  }

  /**
   * Removes old data by age; returns how much was removed. Never removes waiting or running runs, unfinished jobs, or
   * conversations with an open turn.
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
      runs: (age) => removeOld(this.#run, SQL.remove_old, [age, 'ended']),
      jobs: (age) => this.jobs.removeJobsOlderThan(age),
      conversations,
      idle: (age, limit) => conversations.idle(age, limit),
    });
  }

  /** Claims a run in the version that was read, unless `refuse` objects. A repeated statement finds another version. */
  async #hold<Refusal extends 'taken' | 'lost' | 'missing'>(
    lease: RunLease,
    refuse: (row: Row) => Refusal | undefined,
  ): Promise<{ readonly status: Refusal | 'missing' } | HeldState> {
    for (let isUnsure = this.#unsure.has(lease.claim); ; ) {
      const [row] = (await this.#run(SQL.claimable, [lease.runId])).rows;
      if (row === undefined) return { status: 'missing' };
      const isOwn = isUnsure && row.claim === lease.claim;
      const refusal = refuse(isOwn ? { ...row, is_held: false } : row);
      if (refusal !== undefined) return { status: refusal };
      const held = await this.#send(SQL.hold, lease, wholeMs(lease.leaseMs), row.version);
      if (held.rows[0] !== undefined) return { status: 'claimed', state: String(held.rows[0].state) };
      isUnsure ||= held.isRepeated;
    }
  }

  /** Sends a statement of the holder of a claim. */
  async #send(
    statement: Statement,
    { runId, claim }: RunClaim,
    ...values: readonly unknown[]
  ): Promise<Outcome> {
    const wasUnsure = this.#unsure.has(claim);
    try {
      const outcome = await this.#run(statement, [runId, claim, ...values]);
      this.#unsure.delete(claim);
      return wasUnsure ? { ...outcome, isRepeated: true } : outcome;
    } catch (error) {
      this.#unsure.add(claim);
      forgetOldest(this.#unsure, MOST_UNSURE);
      throw error;
    }
  }

  /** Like `#send`, for statements that take effect once: a repeated one checks that its first execution succeeded. */
  async #finish(statement: Statement, claim: RunClaim, ...values: readonly unknown[]): Promise<boolean> {
    const written = await this.#send(statement, claim, ...values);
    const check = () => this.#run(SQL.has_held, [claim.runId, claim.claim]);
    return (await writtenRow(written, check)) !== undefined;
  }

  /** A separate statement after the claim, so that it includes the last entries of the previous holder. */
  async #taken(runId: string): Promise<TakenRun> {
    const run = await this.read(runId);
    return run === undefined ? { status: 'missing' } : { status: 'claimed', run };
  }

  #nameOf(entries: readonly RunEntry[]): string {
    const name = this.#writes.get(entries) ?? randomUUID();
    this.#writes.set(entries, name);
    return name;
  }
}

/** A claimed run, with its state as it is stored. */
interface HeldState {
  readonly status: 'claimed';
  readonly state: string;
}

function hasRows({ rows }: Outcome): boolean {
  return rows.length > 0;
}

function summaryOf(row: Row): RunSummary {
  return {
    runId: String(row.run_id),
    status: row.status as RunStatus,
    generation: Number(row.generation),
    createdAt: Number(row.created_at),
    changedAt: Number(row.changed_at),
    ...(row.lease_end !== null && { leaseEnd: Number(row.lease_end) }),
  };
}
