import { setTimeout as pause } from 'node:timers/promises';
import type {
  EngineCloseOptions,
  Job,
  JobNews,
  JobNewsListener,
  JobWorker,
  WorkOptions,
} from '../../core/contract/job-engine.js';
import type { Logger } from '../../core/contract/ports.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { closeWithin, OnFirstUse, unlessAborted, withinLimits } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { Listeners } from '../../core/kernel/listeners.js';
import { logAnswer, logFailure, logSilence } from '../call/failure-log.js';

/** The most remembered cancelled jobs that have not started here but may be about to. */
const REMEMBERED = 1000;

/**
 * How the run of a job ended. `lost`: the engine gave it to another worker, so that the result of its work does not
 * count.
 */
export type RunEnd = 'ended' | 'lost';

interface Running {
  readonly controller: AbortController;
  /** How the run ends although its work fails. */
  end?: RunEnd;
}

/**
 * How long a lost job is returned to its queue, if it still belongs to this process: the earlier attempt ends
 * meanwhile.
 */
export const LOST_DELAY_MS = 1_000;

/** The jobs that run in this process, so that they can be stopped. */
export class RunningJobs {
  readonly #running = new Map<string, Running>();
  readonly #cancelled = new Map<string, string | undefined>();

  /** Runs a job. A cancelled job has ended, whatever the result of its work; other errors of the work are thrown. */
  async run({ id }: Job, work: (signal: AbortSignal) => Promise<void>): Promise<RunEnd> {
    // Its lease expired while this process was overloaded, and the earlier attempt has not noticed it yet.
    if (this.#running.has(id)) {
      this.lose(id);
      return 'lost';
    }
    const running: Running = { controller: new AbortController() };
    this.#running.set(id, running);
    // The cancellation came before the job.
    if (this.#cancelled.has(id)) this.cancel(id, this.#cancelled.get(id));
    this.#cancelled.delete(id);
    try {
      await work(running.controller.signal);
    } catch (error) {
      if (running.end === undefined) throw error;
      return running.end;
    } finally {
      this.#running.delete(id);
    }
    return 'ended';
  }

  cancel(jobId: string, reason: string | undefined): void {
    const running = this.#running.get(jobId);
    if (running === undefined) {
      this.#cancelled.set(jobId, reason);
      forgetOldest(this.#cancelled, REMEMBERED);
      return;
    }
    running.end ??= 'ended';
    running.controller.abort(new ToolwrightError('TaskCancelled', reason ?? 'The job was cancelled.'));
  }

  /** Another worker has the job now. */
  lose(jobId: string): void {
    const running = this.#running.get(jobId);
    if (running === undefined) return;
    running.end = 'lost';
    running.controller.abort(new DOMException('Another worker has taken over the job', 'AbortError'));
  }
}

/**
 * A job in a form that database queues can store. PostgreSQL refuses JSON with U+0000 or lone surrogates, and models
 * write such texts.
 */
export type StorableJob = Job | { readonly id: string; readonly json: string };

/** Escapes that PostgreSQL refuses, as `JSON.stringify` writes them. */
const REFUSED = /\\u(?:0000|d[89a-f][\da-f]{2})/i;

/** The job itself, or its JSON text if a database would refuse it. */
export function storableJob(job: Job): StorableJob {
  const json = JSON.stringify(job);
  return REFUSED.test(json) ? { id: job.id, json } : job;
}

/** The stored job. */
export function jobOf(kept: StorableJob): Job {
  return 'json' in kept ? JSON.parse(kept.json) : kept;
}

/** The failure of an attempt with texts that every broker can store: PostgreSQL refuses U+0000 and lone surrogates. */
export function storableFailure(thrown: unknown): Error {
  const storable = (text: string) => text.toWellFormed().replaceAll('\0', '\ufffd');
  const failure = new Error(storable(errorMessage(thrown)));
  // BullMQ recognizes an error without further attempts by its name.
  if (thrown instanceof Error)
    Object.assign(failure, { name: thrown.name, stack: storable(String(thrown.stack)) });
  return failure;
}

/** A message between the engines of a queue. */
export type EngineMessage =
  | JobNews
  | { readonly type: 'cancel'; readonly jobId: string; readonly reason?: string }
  | { readonly type: 'wake' };

/** The messages of a queue for the listeners in this process. */
export abstract class EngineNews<Connection> {
  protected readonly listeners = new Listeners<EngineMessage>();
  protected readonly connection = new OnFirstUse(() => this.connect());

  constructor(protected readonly onError: (error: unknown) => void) {}

  abstract publish(message: EngineMessage): Promise<void>;
  /** Opens the connection over which messages arrive. */
  protected abstract connect(): Promise<Connection>;

  /** Resolves once the listener is sure to receive what is published from then on. */
  async subscribe(receive: (message: EngineMessage) => void): Promise<() => Promise<void>> {
    const unsubscribe = this.listeners.add(receive);
    try {
      await this.connection.get();
    } catch (error) {
      unsubscribe();
      throw error;
    }
    return async () => unsubscribe();
  }

  protected deliver(message: EngineMessage): void {
    this.listeners.notify(message, this.onError);
  }
}

/** While closing: how long a broker may be silent, twice, before its connections are cut. */
const SILENT_MS = 2_000;

/** Whether a request succeeds in time. */
export function isAnswered(request: Promise<unknown>, timeoutMs = SILENT_MS): Promise<boolean> {
  const answer = withinLimits(request, { signal: undefined, timeoutMs });
  return answer.then(
    () => true,
    () => false,
  );
}

/** How long an engine with an error may take to answer before it counts as unavailable. */
const ANSWERS_WITHIN_MS = 1_000;
const ASK_AGAIN_MS = 500;

/** A worker that can be made to look for jobs, unless its broker does that. */
type BrokerWorker = JobWorker & { wake?(): void };

/** What engines with a broker share: workers, cancelled jobs, news, logs of an unavailable broker, and closing. */
export abstract class BrokerEngine {
  protected abstract readonly news: EngineNews<unknown>;
  protected readonly running = new RunningJobs();
  protected readonly workers = new Set<BrokerWorker>();
  protected readonly listening = new OnFirstUse(() =>
    this.news.subscribe((message) => {
      if (message.type === 'cancel') this.running.cancel(message.jobId, message.reason);
      if (message.type === 'wake') this.wakeWorkers();
    }),
  );
  readonly #logger: Logger | undefined;
  /** Loggers of the workers, which receive events if the engine has no logger. */
  readonly #listeners = new Set<{ readonly logger: Logger | undefined }>();
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();
  /** Aborted when the engine is closed. */
  protected readonly closed: AbortSignal = this.#closed.signal;
  /** Aborted with the error while the engine is unavailable. */
  #away = new AbortController();
  #isLooking = false;

  /** `logger` receives every error, once a minute; `name` is `BullMQ, queue 'toolwright' in Redis at 127.0.0.1:6379`. */
  protected constructor(
    readonly name: string,
    logger: Logger | undefined,
  ) {
    this.#logger = logger;
  }

  /** Resolves when the broker has answered; may reject if it is unavailable. */
  protected abstract ask(): Promise<unknown>;
  /** Whether a request would not open a connection of its own. */
  protected abstract get isConnected(): boolean;
  /** Opens a worker and adds it to `workers`; it removes itself when it is closed. */
  protected abstract open(options: WorkOptions): Promise<JobWorker>;
  protected abstract closeInOrder(): Promise<unknown>;
  /** Closes all connections immediately. The promise resolves when they are closed. */
  protected abstract cut(): Promise<unknown> | undefined;

  async work({ logger, ...options }: WorkOptions): Promise<JobWorker> {
    const listener = { logger };
    if (this.#logger === undefined) this.#listeners.add(listener);
    const stopLogging = () => this.#listeners.delete(listener);
    try {
      await this.listening.get();
      const worker = await this.open(options);
      return { close: () => worker.close().finally(stopLogging) };
    } catch (error) {
      stopLogging();
      throw error;
    }
  }

  publish(news: JobNews): Promise<void> {
    return this.news.publish(news);
  }

  /** Subscribes to the messages that are for applications. */
  subscribe(listener: JobNewsListener): Promise<() => Promise<void>> {
    return this.news.subscribe((message) => {
      if (message.type === 'progress' || message.type === 'end') listener(message);
    });
  }

  async close({ timeoutMs }: EngineCloseOptions = {}): Promise<void> {
    this.#closing.abort();
    const cut = () => this.cut();
    const closing = this.unlessSilent(this.closeInOrder(), cut);
    await closeWithin(closing, { timeoutMs }, () => void cut()).finally(() => {
      this.#closed.abort(new Error(`The engine of ${this.name.replace(/,.*/s, '')} was closed.`));
    });
  }

  /**
   * Closing, which waits for the broker: if that is silent, connections are cut instead. Other workers find the
   * unfinished jobs when the leases end. A silence after an error is enough; without one, an answer may only be late.
   */
  protected async unlessSilent(
    closing: Promise<unknown>,
    cut: () => Promise<unknown> | undefined,
  ): Promise<void> {
    const ended = new AbortController();
    const signal = AbortSignal.any([ended.signal, this.closed]);
    const cutWhenSilent = async (): Promise<void> => {
      for (let silences = 0; silences < (this.#isLooking ? 1 : 2); ) {
        // An error is an answer, too, unless the engine is known to be unavailable: then it may still come back.
        const ask = () => (this.#away.signal.aborted ? this.#answer() : this.ask().catch(() => {}));
        const isSilent = this.isConnected && !(await isAnswered(ask()));
        if (signal.aborted) return;
        silences = isSilent ? silences + 1 : 0;
        if (!isSilent) await pause(SILENT_MS, undefined, { signal }).catch(() => {});
      }
      await (cut() ?? pause(SILENT_MS, undefined, { signal }).catch(() => {}));
    };
    await Promise.race([closing.finally(() => ended.abort()), cutWhenSilent()]);
  }

  protected wakeWorkers(): void {
    for (const worker of this.workers) worker.wake?.();
  }

  protected async closeWorkers(): Promise<void> {
    await Promise.all(Array.from(this.workers, (worker) => worker.close()));
  }

  /** The answer to a request; rejects if the engine becomes unavailable, because the request would wait. */
  protected unlessAway<Value>(request: Promise<Value>): Promise<Value> {
    return unlessAborted(request, this.#away.signal);
  }

  /** Every connection repeats the same failure: only the first report counts. */
  protected readonly onError = (error: unknown): void => {
    if (this.#logger !== undefined) logFailure(this.#logger, { what: this.name, error });
    if (this.#isLooking || this.#closed.signal.aborted) return;
    this.#isLooking = true;
    void this.#look(error).finally(() => {
      this.#isLooking = false;
    });
  };

  /** Determines whether the engine still answers after an error, and logs it for the workers. */
  async #look(error: unknown): Promise<void> {
    const answer = this.#answer();
    if (await isAnswered(answer, ANSWERS_WITHIN_MS))
      return this.#log((logger) => logFailure(logger, { what: this.name, error }));
    this.#log((logger) => logSilence(this, { logger, error }));
    // While closing, requests wait for the end of that.
    if (!this.#closing.signal.aborted) this.#away.abort(error);
    if (!(await answer)) return;
    this.#away = new AbortController();
    this.#log((logger) => logAnswer(this, logger));
  }

  /** True as soon as the engine answers, false if it is closed before. */
  async #answer(): Promise<boolean> {
    const { signal } = this.#closed;
    for (;;) {
      try {
        await unlessAborted(this.ask(), signal);
        return true;
      } catch {
        await pause(ASK_AGAIN_MS, undefined, { signal, ref: false }).catch(() => {});
      }
      if (signal.aborted) return false;
    }
  }

  #log(log: (logger: Logger | undefined) => void): void {
    if (this.#closing.signal.aborted) return;
    for (const { logger } of this.#listeners) log(logger);
  }
}
