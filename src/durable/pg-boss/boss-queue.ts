import type { Db, JobWithMetadata, PgBoss, QueueOptions, SendOptions } from 'pg-boss';
import type {
  DeadJob,
  DeadJobQuery,
  Job,
  JobOptions,
  SqlTransaction,
} from '../../core/contract/job-engine.js';
import { withinLimits } from '../../core/kernel/async.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { jobOf, type StorableJob, storableJob } from '../../run/jobs/running-jobs.js';

/** The name of the queue, and how long a silent worker holds its jobs. */
interface QueuePlace {
  readonly name: string;
  readonly heartbeatSeconds: number;
}

/** The data that pg-boss stores for a job. */
interface Payload {
  readonly job: StorableJob;
  readonly attempts: number;
  /** Failed attempts. pg-boss itself counts started attempts. */
  readonly failed?: number;
  /** Started attempts before the job was last returned to the queue; pg-boss no longer counts them. */
  readonly begun?: number;
}

/** Data of a dead job; without `error` if pg-boss itself gave the job up. */
interface DeadPayload extends Payload {
  readonly error?: string;
  readonly made?: number;
}

/** A job that this process holds, with the attempt that it is. */
export interface TakenJob
  extends Pick<
    JobWithMetadata,
    'id' | 'priority' | 'retryCount' | 'retryLimit' | 'retryDelay' | 'retryBackoff'
  > {
  /** The queue's name in pg-boss. */
  readonly queue: string;
  readonly job: Job;
  readonly attempts: number;
  /** Earlier failed attempts. */
  readonly failed: number;
  /** Earlier started attempts. */
  readonly begun: number;
}

/** A job that its worker returns, and the delay in milliseconds before any worker gets it. */
export interface ReturnedJob {
  readonly taken: TakenJob;
  readonly delay: number;
}

/** The result of a pg-boss command; pg-boss does not declare its type. */
interface CommandOutcome {
  readonly affected: number;
  /** Ids of the jobs that the command changed. */
  readonly settled?: readonly string[];
}

const DAY = 86_400;
/** pg-boss allows less than a day per attempt, whatever the heartbeat. */
const EXPIRE_SECONDS = DAY - 1;
const KEEP_SECONDS = 30 * DAY;
/** States of a dead job in its own queue. The dead-letter queue has a copy of it. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed']);
/** A job counts as dead after more worker crashes than this: the job itself may cause them. */
const MOST_DEATHS = 10;

/** The engine's queue in pg-boss, the queues of tools, and the dead-letter queue that they share. */
export class BossQueue {
  readonly #boss: PgBoss;
  readonly #place: QueuePlace;
  readonly #made = new Map<string, Promise<void>>();
  #ready: Promise<void> | undefined;

  constructor(boss: PgBoss, place: QueuePlace) {
    this.#boss = boss;
    this.#place = place;
  }

  get heartbeatSeconds(): number {
    return this.#place.heartbeatSeconds;
  }

  get database(): Db {
    return this.#boss.getDb();
  }

  /** Starts pg-boss and creates the queues, once; after a failure, the next call tries again. */
  ready(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #prepare(): Promise<void> {
    await this.#boss.start();
    await this.#boss.createQueue(this.#deadName, { retentionSeconds: KEEP_SECONDS });
    await this.#make(this.#place.name);
  }

  async #make(name: string): Promise<void> {
    const { heartbeatSeconds } = this.#place;
    const options: QueueOptions = {
      retentionSeconds: KEEP_SECONDS,
      heartbeatSeconds,
      expireInSeconds: EXPIRE_SECONDS,
    };
    await this.#boss.createQueue(name, { ...options, deadLetter: this.#deadName });
    // The queue may have existed before without a heartbeat, which is pg-boss's default.
    const known = await this.#boss.getQueue(name);
    if (known?.heartbeatSeconds !== heartbeatSeconds || known.deadLetter !== this.#deadName)
      await this.#boss.updateQueue(name, { ...options, deadLetter: this.#deadName });
  }

  /** The name in pg-boss of a tool's queue or of the engine's own; creates a tool's queue on first use. */
  async nameOf(queue: string | undefined): Promise<string> {
    await this.ready();
    if (queue === undefined) return this.#place.name;
    const name = `${this.#place.name}/${queue}`;
    const making = this.#made.get(name) ?? this.#make(name);
    this.#made.set(name, making);
    await making.catch((error) => {
      this.#made.delete(name);
      throw error;
    });
    return name;
  }

  /** The names in pg-boss of the engine's queue and of the tools' queues. */
  async #names(): Promise<readonly string[]> {
    await this.ready();
    const { name: own } = this.#place;
    const all = await this.#boss.getQueues();
    return all.map(({ name }) => name).filter((name) => name === own || name.startsWith(`${own}/`));
  }

  /** Resolves with false if the job exists already. */
  async send(job: Job, options: JobOptions, within: { readonly db?: Db } = {}): Promise<boolean> {
    const name = await this.nameOf(options.queue);
    const { attempts = 1, backoff, priority = 0, delay = 0 } = options;
    const data: Payload = { job: storableJob(job), attempts };
    const sending: SendOptions = {
      ...within,
      id: uuidOf(job.id),
      priority: priority === 0 ? 0 : -priority,
      retryLimit: attempts - 1 + MOST_DEATHS,
      ...(backoff ? { retryDelay: Math.ceil(backoff.delay / 1000) } : {}),
      ...(backoff?.type === 'exponential' ? { retryBackoff: true } : {}),
      ...(delay > 0 ? { startAfter: new Date(Date.now() + delay) } : {}),
    };
    return (await this.#boss.send(name, data, sending)) !== null;
  }

  async take(queue: string, limit: number): Promise<readonly TakenJob[]> {
    const taken = await this.#boss.fetch<Payload>(queue, {
      batchSize: limit,
      includeMetadata: true,
    });
    return taken.map(({ data: { job, attempts, failed = 0, begun = 0 }, ...metadata }) => {
      return { ...metadata, queue, job: jobOf(job), attempts, failed, begun: begun + metadata.retryCount };
    });
  }

  /** Ids of the jobs that this process still holds. */
  async touch(queue: string, jobs: readonly TakenJob[]): Promise<ReadonlySet<string>> {
    const outcome = await this.#boss.touch(queue, jobs.map(attemptOf));
    const { settled } = outcome as CommandOutcome;
    return new Set(settled ?? jobs.map(({ id }) => id));
  }

  async complete(queue: string, jobs: readonly TakenJob[]): Promise<void> {
    await this.#boss.complete(queue, jobs.map(attemptOf));
  }

  /** Completes a job in one transaction with writes to the same database. */
  async commit(job: TakenJob, write: (transaction: SqlTransaction) => Promise<void>): Promise<void> {
    if (this.database.beginTransaction === undefined)
      throw new Error('The database of this pg-boss cannot begin transactions.');
    await this.#transact(async (db) => {
      await write({ query: (text, values) => db.executeSql(text, values && [...values]) });
      await this.#completeIn(db, job);
    });
  }

  /** Throws if another worker has taken the job. */
  async #completeIn(db: Db, job: TakenJob): Promise<void> {
    const outcome = await this.#boss.complete(job.queue, [attemptOf(job)], null, { db });
    if ((outcome as CommandOutcome).affected !== 1)
      throw new Error(`The job '${job.job.id}' is another worker's by now.`);
  }

  /** Without a transaction if the application's database object cannot begin any. */
  async #transact<Value>(work: (db: Db) => Promise<Value>): Promise<Value> {
    const transaction = await this.database.beginTransaction?.();
    if (transaction === undefined) return work(this.database);
    try {
      const value = await work(transaction.db);
      await transaction.commit();
      return value;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  }

  /** Records a failed attempt; the job waits for its next one. Changes nothing if another worker has taken the job. */
  async retry(taken: TakenJob, message: string): Promise<void> {
    const { id, queue, failed } = taken;
    await this.#transact(async (db) => {
      const outcome = await this.#boss.fail(queue, [attemptOf(taken)], { message }, { db });
      if ((outcome as CommandOutcome).affected === 0) return;
      await this.#boss.update(queue, { ...payloadOf(taken), failed: failed + 1 }, { id, db });
    });
  }

  /**
   * Returns jobs to the end of the queue. The attempts do not count as failures, and there is no backoff. Takes two
   * statements for any number of jobs, because a worker may lack a tool that thousands of jobs need. Jobs that another
   * worker has taken are left as they are.
   */
  async giveBack(queue: string, returned: readonly ReturnedJob[]): Promise<void> {
    await this.#transact(async (db) => {
      const attempts = returned.map(({ taken }) => attemptOf(taken));
      const outcome = await this.#boss.deleteJob(queue, attempts, { db });
      const { settled, affected } = outcome as CommandOutcome;
      const left = new Set(settled ?? (affected === attempts.length ? attempts.map(({ id }) => id) : []));
      const jobs = returned.flatMap(({ taken, delay }) => {
        const { id, priority, retryCount, retryLimit, retryDelay, retryBackoff, begun } = taken;
        if (!left.has(id)) return [];
        const data: Payload = { ...payloadOf(taken), begun: begun + 1 };
        const startAfter = delay === 0 ? 0 : new Date(Date.now() + delay);
        return [
          { id, data, priority, startAfter, retryLimit: retryLimit - retryCount, retryDelay, retryBackoff },
        ];
      });
      if (jobs.length > 0) await this.#boss.insert(queue, jobs, { db });
    });
  }

  /** Records the last failed attempt: the job moves to the dead ones, unless another worker has taken it. */
  async bury(taken: TakenJob, error: string): Promise<void> {
    const { id, begun } = taken;
    const data: DeadPayload = { ...payloadOf(taken), error, made: begun + 1 };
    await this.#transact(async (db) => {
      await this.#completeIn(db, taken);
      await this.#boss.send(this.#deadName, data, { id, db });
    });
  }

  /** Resolves with true if the job was waiting or running. */
  async cancel(jobId: string): Promise<boolean> {
    const cancelled = (await this.#names()).map((name) => this.#boss.cancel(name, uuidOf(jobId)));
    const outcomes = await Promise.all(cancelled);
    return outcomes.some((outcome) => (outcome as CommandOutcome).affected > 0);
  }

  async dead({ limit = 100, jobIds }: DeadJobQuery): Promise<readonly DeadJob[]> {
    await this.ready();
    if (jobIds !== undefined) {
      const names = jobIds.length === 0 ? [] : await this.#names();
      return (await Promise.all(jobIds.map((id) => this.#deadOf(id, names)))).flat();
    }
    const found = await this.#boss.findJobs<DeadPayload>(this.#deadName);
    const latest = [...found].sort((one, other) => other.createdOn.getTime() - one.createdOn.getTime());
    return latest.slice(0, limit).map(deadJob);
  }

  /** Sends a dead job again; false if it is not dead, or if another process was faster. */
  async revive(job: Job, options: JobOptions): Promise<boolean> {
    await this.ready();
    const copies = await this.#copiesOf(job.id);
    if (copies.length === 0) return false;
    // Before the transaction, which may hold the only connection: creating the queue needs a connection.
    const names = [...(await this.#names()), await this.nameOf(options.queue)];
    return this.#transact(async (db) => {
      const ids = copies.map(({ id }) => id);
      const outcome = await this.#boss.deleteJob(this.#deadName, ids, { db });
      if ((outcome as CommandOutcome).affected === 0) return false;
      for (const name of new Set(names)) await this.#boss.deleteJob(name, uuidOf(job.id), { db });
      return this.send(job, options, { db });
    });
  }

  async #deadOf(jobId: string, queues: readonly string[]): Promise<readonly DeadJob[]> {
    // Looking a job up by its id is fast. All dead jobs are searched, which is slow, only if that finds the job.
    const found = await Promise.all(queues.map((name) => this.#boss.findJobs(name, { id: uuidOf(jobId) })));
    if (!found.flat().some(({ state }) => ENDED.has(state))) return [];
    return (await this.#copiesOf(jobId)).map(deadJob).slice(0, 1);
  }

  /** Copies of a job in the dead-letter queue. A copy that pg-boss put there has another id. */
  async #copiesOf(jobId: string): Promise<readonly JobWithMetadata<DeadPayload>[]> {
    return this.#boss.findJobs<DeadPayload>(this.#deadName, { data: { job: { id: jobId } } });
  }

  async stop(): Promise<void> {
    await this.#ready?.catch(() => {});
    await this.#boss.stop({ graceful: false });
  }

  /** Whether the database responds, even with an error. True if no request was sent yet. */
  async answers(withinMs: number): Promise<boolean> {
    if (this.#ready === undefined) return true;
    const asked = this.database.executeSql('SELECT 1').then(
      () => true,
      () => true,
    );
    return withinLimits(asked, { signal: undefined, timeoutMs: withinMs }).catch(() => false);
  }

  get #deadName(): string {
    return `${this.#place.name}_dead`;
  }
}

function deadJob({ data, sourceOutput, sourceRetryCount }: JobWithMetadata<DeadPayload>): DeadJob {
  return {
    job: jobOf(data.job),
    error: data.error ?? messageIn(sourceOutput),
    attempts: data.made ?? (data.begun ?? 0) + (sourceRetryCount ?? 0) + 1,
    workersDied: data.error === undefined,
  };
}

function payloadOf({ job, attempts, failed, begun, retryCount }: TakenJob): Payload {
  return { job: storableJob(job), attempts, failed, begun: begun - retryCount };
}

function attemptOf({ id, retryCount }: TakenJob): { readonly id: string; readonly retryCount: number } {
  return { id, retryCount };
}

/** Outputs of pg-boss are `{ message }` or `{ value: { message } }`. */
function messageIn(output: unknown): string {
  const { message, value } = (output ?? {}) as {
    readonly message?: string;
    readonly value?: { message?: string };
  };
  return message ?? value?.message ?? 'its workers died';
}

/** pg-boss needs UUIDs: derives a UUID of version 8 (custom) from the id, always the same. */
function uuidOf(jobId: string): string {
  const hex = nodeCrypto().createHash('sha256').update(jobId).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
