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
import { checkOptions } from '../errors/author-fault.js';
import { pageAfter, readQuery } from '../errors/list-pages.js';
import { applyRetention } from '../errors/retention.js';
import { checkAge, expiryOf, refusedBegin, refusedSave } from '../errors/store-checks.js';
import { closeWithin } from '../kernel/async.js';
import { optionTable, PAUSE } from '../kernel/options.js';
import {
  checkPostgresOptions,
  Database,
  type Outcome,
  POSTGRES_RULES,
  type PostgresOptions,
} from './database.js';
import { PostgresApprovals } from './postgres-approvals.js';
import { PostgresBudgets } from './postgres-budgets.js';
import { PostgresCache } from './postgres-cache.js';
import { PostgresConversationLog } from './postgres-conversation-log.js';
import { PostgresJobs } from './postgres-jobs.js';
import { PostgresResults } from './postgres-results.js';
import { PostgresSchedules } from './postgres-schedules.js';
import { runStatements } from './run-statements.js';
import type { Statement } from './statements.js';

const OPTIONS = optionTable<PostgresOptions>('PostgresRunStore', POSTGRES_RULES);

/** How a {@link PostgresRunStore} is closed. */
export interface PostgresCloseOptions {
  /** Milliseconds after which its connections are cut. Default: as long as its statements take. */
  readonly timeoutMs?: number;
}

const CLOSE_OPTIONS = optionTable<PostgresCloseOptions>('PostgresRunStore.close', { timeoutMs: PAUSE });

/** How many runs are forgotten at once: others wait no longer than for these. */
const BATCH = 5_000;

const MOST_UNSURE = 10_000;

/** Of how many lost runs one is taken where others are always quicker. */
const MOST_LOOKED_AT = 64;

type Row = Outcome['rows'][number];

/** A run that is claimed, and its state as it stands. */
interface HeldState {
  readonly status: 'claimed';
  readonly state: string;
}

/**
 * Keeps runs in PostgreSQL (13 or newer), for any number of processes on any number of machines. Leases end by the
 * server's clock. Its tables are made and brought up to date before it is first used, or by `migrate`.
 *
 * While there is no connection, methods try again for `reconnectMs`; each may be sent twice and takes effect once. What
 * else the server refuses is thrown as `pg` throws it.
 *
 * @example
 * ```ts
 * const store = new PostgresRunStore({ connectionString: 'postgres://app@127.0.0.1:5432/shop' });
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * await store.close();
 * ```
 */
export class PostgresRunStore
  implements
    CheckpointStore,
    StoreWithJobs,
    StoreWithBudgets,
    StoreWithCache,
    StoreWithApprovals,
    StoreWithSchedules,
    StoreWithResults,
    StoreWithRetention,
    AsyncDisposable
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
  /** The large results that it keeps, in the same schema. */
  readonly results: ResultStore;
  /** The conversations that it keeps, in the same schema. */
  readonly conversations: ConversationLog;
  readonly #conversations: PostgresConversationLog;
  readonly #database: Database;
  readonly #sql: ReturnType<typeof runStatements>;
  /** Names of writes whose answer may be lost: the same entries given again are the same write. */
  readonly #writes = new WeakMap<readonly RunEntry[], string>();
  /** Claims of which a statement failed although it may have been carried out. */
  readonly #unsure = new Set<string>();

  /** @throws InvalidOptionsError (521) for wrong options. It connects later. */
  constructor(options: PostgresOptions) {
    checkPostgresOptions(options, OPTIONS);
    this.#database = new Database(options);
    this.#sql = runStatements(this.#database.schema);
    this.jobs = new PostgresJobs(this.#database);
    this.budgets = new PostgresBudgets(this.#database);
    this.cache = new PostgresCache(this.#database);
    this.approvals = new PostgresApprovals(this.#database);
    this.schedules = new PostgresSchedules(this.#database);
    this.results = new PostgresResults(this.#database);
    this.#conversations = new PostgresConversationLog(this.#database);
    this.conversations = this.#conversations;
  }

  /**
   * Makes the tables, or brings them up to date. Several processes may do so at once.
   *
   * @throws Error for tables that a newer version of this package made; what `pg` throws where it may not make them.
   */
  migrate(): Promise<void> {
    return this.#database.migrate();
  }

  /** Throws `RunClaimed` (517) where the run is claimed, under way or over, or where what is kept is newer. */
  async save(state: RunState): Promise<void> {
    const { runId, revision } = state;
    const { expiresAt, turnOf } = expiryOf(state);
    const values = [runId, revision, JSON.stringify(state), expiresAt, turnOf];
    const { rows } = await this.#database.run(this.#sql.save, () => values);
    if (rows.length === 0) throw refusedSave(runId);
  }

  async load(runId: string): Promise<RunState | undefined> {
    const { rows } = await this.#database.run(this.#sql.load, () => [runId]);
    return rows[0] && (JSON.parse(String(rows[0].state)) as RunState);
  }

  async claim(lease: RunLease): Promise<ClaimOutcome> {
    const outcome = await this.#hold(lease, ({ status, is_held: isHeld }) => {
      if (status === 'ended') return 'missing';
      if (isHeld === true) return 'taken';
      return status === 'suspended' ? undefined : 'lost';
    });
    if (outcome.status !== 'claimed') return outcome;
    return { status: 'claimed', state: await this.#readable(lease, outcome.state) };
  }

  async renew(lease: RunLease): Promise<boolean> {
    return hasRows(await this.#send(this.#sql.renew, lease, wholeMs(lease)));
  }

  async release(claim: RunClaim, state?: RunState): Promise<boolean> {
    if (state === undefined) return this.#finish(this.#sql.release, claim);
    const { expiresAt, turnOf } = expiryOf(state);
    const values = [state.revision, JSON.stringify(state), expiresAt, turnOf];
    return this.#finish(this.#sql.suspend, claim, ...values);
  }

  async remove(claim: RunClaim): Promise<boolean> {
    const outcome = await this.#send(this.#sql.remove, claim);
    if (hasRows(outcome) || !outcome.isRepeated) return hasRows(outcome);
    // Nobody else removes what is claimed.
    return !hasRows(await this.#database.run(this.#sql.isKept, () => [claim.runId]));
  }

  /** Throws `RunClaimed` (517) where a run of this id is kept. */
  async begin(lease: RunLease, checkpoint: RunCheckpoint): Promise<void> {
    const values = [checkpoint.revision, JSON.stringify(checkpoint), wholeMs(lease)];
    if (!(await this.#finish(this.#sql.begin, lease, ...values))) throw refusedBegin(lease.runId);
  }

  /** In one round trip. */
  async append(claim: RunClaim, entries: readonly RunEntry[]): Promise<boolean> {
    const values = [this.#nameOf(entries), JSON.stringify(entries)];
    return hasRows(await this.#send(this.#sql.append, claim, ...values));
  }

  async checkpoint(claim: RunClaim, checkpoint: RunCheckpoint): Promise<boolean> {
    const values = [checkpoint.revision, JSON.stringify(checkpoint), randomUUID()];
    return hasRows(await this.#send(this.#sql.keep, claim, ...values));
  }

  async end(claim: RunClaim, entries: readonly RunEntry[]): Promise<boolean> {
    return this.#finish(this.#sql.end, claim, this.#nameOf(entries), JSON.stringify(entries));
  }

  async claimLost(lease: Omit<RunLease, 'runId'>): Promise<TakenRun> {
    for (let among = 1; ; among = Math.min(2 * among, MOST_LOOKED_AT)) {
      const { rows } = await this.#database.run(this.#sql.lost, () => [among]);
      const [lost] = rows;
      if (lost === undefined) return { status: 'missing' };
      const claim = { runId: String(lost.run_id), claim: lease.claim };
      if (await this.#finish(this.#sql.hold, claim, wholeMs(lease), lost.version))
        return this.#taken(claim.runId);
    }
  }

  async seize(lease: SeizeLease): Promise<TakenRun> {
    const outcome = await this.#hold(lease, ({ is_held: isHeld }) =>
      isHeld === true && lease.from === 'nobody' ? 'taken' : undefined,
    );
    return outcome.status === 'claimed' ? this.#taken(lease.runId) : { status: outcome.status };
  }

  async read(runId: string): Promise<KeptRun | undefined> {
    const { rows } = await this.#database.run(this.#sql.read, () => [runId]);
    const [row] = rows;
    if (row === undefined) return undefined;
    const writes = JSON.parse(`[${row.entries ?? ''}]`) as RunEntry[][];
    return {
      ...summaryOf(row),
      state: JSON.parse(String(row.state)) as KeptRun['state'],
      entries: writes.flat(),
    };
  }

  /** Throws `InvalidOptions` (521) for a query that is not one. */
  async list(query: RunQuery = {}): Promise<RunPage> {
    const { status, after, limit } = readQuery(query);
    const place = [after?.changedAt ?? Number.MAX_SAFE_INTEGER, after?.id ?? '', limit + 1];
    const { rows } = await (status === undefined
      ? this.#database.run(this.#sql.list, () => place)
      : this.#database.run(this.#sql.listByStatus, () => [...place, status]));
    return pageAfter(rows.map(summaryOf), limit);
  }

  async expiredRuns({ of, limit }: ExpiredQuery): Promise<readonly ExpiredRun[]> {
    const { rows } = await this.#database.run(this.#sql.expired, () => [of === 'others', limit]);
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
    return applyRetention(ages, {
      runs: (age) => this.#removeOld(age, 'ended'),
      jobs: (age) => this.jobs.removeJobsOlderThan(age),
      conversations: this.conversations,
      idle: (age, limit) => this.#conversations.idle(age, limit),
    });
  }

  /** Those that have ended, or are of another status. */
  async #removeOld(ageMs: number, alsoStatus: RunStatus): Promise<number> {
    const age = Math.ceil(Math.min(ageMs, Number.MAX_SAFE_INTEGER));
    let removed = 0;
    for (;;) {
      const { rowCount } = await this.#database.run(this.#sql.removeOlderThan, () => [
        age,
        BATCH,
        alsoStatus,
      ]);
      removed += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return removed;
    }
  }

  /**
   * Closes the connections, unless they are of a pool of the application. Any other method throws afterwards. With
   * `timeoutMs`, connections that are still in use then are cut, whatever they do.
   */
  async close(options: PostgresCloseOptions = {}): Promise<void> {
    checkOptions(options, CLOSE_OPTIONS);
    const closing = this.#conversations.stopWatching().then(() => this.#database.close());
    await closeWithin(closing, options, () => this.#database.cut());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Claims a run as it was read, unless that refuses it: a copy that comes later finds another one. */
  async #hold<Refusal extends 'taken' | 'lost' | 'missing'>(
    lease: RunLease,
    refuse: (row: Row) => Refusal | undefined,
  ): Promise<{ readonly status: Refusal | 'missing' } | HeldState> {
    for (let isUnsure = this.#unsure.has(lease.claim); ; ) {
      const { rows } = await this.#database.run(this.#sql.claimable, () => [lease.runId]);
      const [row] = rows;
      if (row === undefined) return { status: 'missing' };
      const isOwn = isUnsure && row.claim === lease.claim;
      const refusal = refuse(isOwn ? { ...row, is_held: false } : row);
      if (refusal !== undefined) return { status: refusal };
      const held = await this.#send(this.#sql.hold, lease, wholeMs(lease), row.version);
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
      const outcome = await this.#database.run(statement, () => [runId, claim, ...values]);
      this.#unsure.delete(claim);
      return wasUnsure ? { ...outcome, isRepeated: true } : outcome;
    } catch (error) {
      this.#doubt(claim);
      throw error;
    }
  }

  /** The same where the statement can be carried out once only: sent again, it finds that it was. */
  async #finish(statement: Statement, claim: RunClaim, ...values: readonly unknown[]): Promise<boolean> {
    const outcome = await this.#send(statement, claim, ...values);
    if (hasRows(outcome) || !outcome.isRepeated) return hasRows(outcome);
    return hasRows(await this.#database.run(this.#sql.hasHeld, () => [claim.runId, claim.claim]));
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

  #doubt(claim: string): void {
    this.#unsure.add(claim);
    const [oldest] = this.#unsure;
    if (oldest !== undefined && this.#unsure.size > MOST_UNSURE) this.#unsure.delete(oldest);
  }

  #nameOf(entries: readonly RunEntry[]): string {
    const name = this.#writes.get(entries) ?? randomUUID();
    this.#writes.set(entries, name);
    return name;
  }
}

function hasRows({ rows }: Outcome): boolean {
  return rows.length > 0;
}

function wholeMs({ leaseMs }: Pick<RunLease, 'leaseMs'>): number {
  return Math.ceil(Math.min(leaseMs, 2 ** 52));
}

/** `pg` gives whole numbers of 64 bits as text. */
function summaryOf(row: Readonly<Record<string, unknown>>): RunSummary {
  const summary = {
    runId: String(row.run_id),
    status: row.status as RunStatus,
    generation: Number(row.generation),
    createdAt: Number(row.created_at),
    changedAt: Number(row.changed_at),
  };
  return row.lease_end === null ? summary : { ...summary, leaseEnd: Number(row.lease_end) };
}
