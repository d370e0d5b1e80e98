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
import { jobOf, type StorableJob, storableJob } from '../../run/jobs/stored-job.js';

/** Which queue, and for how long a silent worker holds its jobs. */
interface QueuePlace {
  readonly name: string;
  readonly heartbeatSeconds: number;
}

/** What pg-boss keeps of a job. */
interface Payload {
  readonly job: StorableJob;
  readonly attempts: number;
  /** Attempts that have failed. What pg-boss counts are beginnings. */
  readonly failed?: number;
  /** Beginnings that pg-boss no longer counts, since the job was last given back. */
  readonly begun?: number;
}

/** Of a dead one; without `error` where pg-boss itself gave it up. */
interface DeadPayload extends Payload {
  readonly error?: string;
  readonly made?: number;
}

/** A job that this process has, and which of the job's beginnings it is. */
export interface TakenJob
  extends Pick<
    JobWithMetadata,
    'id' | 'priority' | 'retryCount' | 'retryLimit' | 'retryDelay' | 'retryBackoff'
  > {
  /** By the name that pg-boss has of it. */
  readonly queue: string;
  readonly job: Job;
  readonly attempts: number;
  /** Attempts that have failed before. */
  readonly failed: number;
  /** Beginnings before this one. */
  readonly begun: number;
}

/** A job that its worker returns, and for how many milliseconds no worker gets it. */
export interface ReturnedJob {
  readonly taken: TakenJob;
  readonly delay: number;
}

/** What commands give, of which pg-boss declares nothing. */
interface CommandOutcome {
  readonly affected: number;
  /** Ids of the jobs that were still as the command wanted them. */
  readonly settled?: readonly string[];
}

const DAY = 86_400;
/** pg-boss lets none run for longer than a day, however often it is heard of. */
const EXPIRE_SECONDS = DAY - 1;
const KEEP_SECONDS = 30 * DAY;
/** What a dead job of the queue is among its own: its copy is the dead one. */
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed']);
/** How many workers may die of a job before it counts as dead: it may be what they die of. */
const MOST_DEATHS = 10;

/** A queue of pg-boss, those of tools, and the one that keeps the dead jobs of all, in the words of the engine. */
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

  /** Starts pg-boss and makes the queues, once; a failure is no answer for ever. */
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
    // One that was made before, perhaps without a heartbeat, which pg-boss has off by default.
    const known = await this.#boss.getQueue(name);
    if (known?.heartbeatSeconds !== heartbeatSeconds || known.deadLetter !== this.#deadName)
      await this.#boss.updateQueue(name, { ...options, deadLetter: this.#deadName });
  }

  /** The name that pg-boss has of the queue of a tool, or of that of the engine; the queue is made when it is first named. */
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

  /** The names that pg-boss has of the queue of the engine and of those of tools. */
  async #names(): Promise<readonly string[]> {
    await this.ready();
    const { name: own } = this.#place;
    const all = await this.#boss.getQueues();
    return all.map(({ name }) => name).filter((name) => name === own || name.startsWith(`${own}/`));
  }

  /** Whether it is new. */
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

  /** Those of the jobs that are still this process's, by id. */
  async touch(queue: string, jobs: readonly TakenJob[]): Promise<ReadonlySet<string>> {
    const outcome = await this.#boss.touch(queue, jobs.map(attemptOf));
    const { settled } = outcome as CommandOutcome;
    return new Set(settled ?? jobs.map(({ id }) => id));
  }

  async complete(queue: string, jobs: readonly TakenJob[]): Promise<void> {
    await this.#boss.complete(queue, jobs.map(attemptOf));
  }

  /** Completes a job in one transaction with what is written to the same database. */
  async commit(job: TakenJob, write: (transaction: SqlTransaction) => Promise<void>): Promise<void> {
    if (this.database.beginTransaction === undefined)
      throw new Error('The database of this pg-boss cannot begin transactions.');
    await this.#transact(async (db) => {
      await write({ query: (text, values) => db.executeSql(text, values && [...values]) });
      await this.#completeIn(db, job);
    });
  }

  /** Fails where the job is another worker's by now. */
  async #completeIn(db: Db, job: TakenJob): Promise<void> {
    const outcome = await this.#boss.complete(job.queue, [attemptOf(job)], null, { db });
    if ((outcome as CommandOutcome).affected !== 1)
      throw new Error(`The job '${job.job.id}' is another worker's by now.`);
  }

  /** One after the other where the database, which the application has made, knows no transactions. */
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

  /** The attempt has failed: the job waits for its next one, unless it is another worker's by now. */
  async retry(taken: TakenJob, message: string): Promise<void> {
    const { id, queue, failed } = taken;
    await this.#transact(async (db) => {
      const outcome = await this.#boss.fail(queue, [attemptOf(taken)], { message }, { db });
      if ((outcome as CommandOutcome).affected === 0) return;
      await this.#boss.update(queue, { ...payloadOf(taken), failed: failed + 1 }, { id, db });
    });
  }

  /**
   * The attempts count for nothing: the jobs wait for others, without the pause after a failure, behind those that wait
   * already. Two statements for any number of jobs: there may be thousands of a tool that a worker lacks. Those that are
   * another worker's by now are left as they are.
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

  /** The last attempt has failed: the job is kept among the dead ones, unless it is another worker's by now. */
  async bury(taken: TakenJob, error: string): Promise<void> {
    const { id, begun } = taken;
    const data: DeadPayload = { ...payloadOf(taken), error, made: begun + 1 };
    await this.#transact(async (db) => {
      await this.#completeIn(db, taken);
      await this.#boss.send(this.#deadName, data, { id, db });
    });
  }

  /** Whether it waited or ran. */
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

  /** Sends a dead job anew; false where it is not dead, or is revived by somebody else. */
  async revive(job: Job, options: JobOptions): Promise<boolean> {
    await this.ready();
    const copies = await this.#copiesOf(job.id);
    if (copies.length === 0) return false;
    // Before the transaction, which may hold the only connection: the queue may have to be made.
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
    // By its id, which is quick; what pg-boss gave up is looked for among all dead ones only where there is such a job.
    const found = await Promise.all(queues.map((name) => this.#boss.findJobs(name, { id: uuidOf(jobId) })));
    if (!found.flat().some(({ state }) => ENDED.has(state))) return [];
    return (await this.#copiesOf(jobId)).map(deadJob).slice(0, 1);
  }

  /** What the queue of dead jobs has of one: under its own id, or under another where pg-boss put it there. */
  async #copiesOf(jobId: string): Promise<readonly JobWithMetadata<DeadPayload>[]> {
    return this.#boss.findJobs<DeadPayload>(this.#deadName, { data: { job: { id: jobId } } });
  }

  async stop(): Promise<void> {
    await this.#ready?.catch(() => {});
    await this.#boss.stop({ graceful: false });
  }

  /** Whether the database says anything, be it an error, or nothing was asked of it yet. */
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

/** pg-boss wants UUIDs: the same one for the same id, of version 8, which is for what one makes up. */
function uuidOf(jobId: string): string {
  const hex = nodeCrypto().createHash('sha256').update(jobId).digest('hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
