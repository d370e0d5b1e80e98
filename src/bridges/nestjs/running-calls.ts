import { setMaxListeners } from 'node:events';
import { CallContext } from '../../invocation/call-context.js';
import { MAX_TIMER_MS } from '../../invocation/max-timer-ms.js';
import type { TaskQueue } from '../../invocation/task-queue.js';
import type { ToolCallInfo } from './tool-call.js';

/** Why what still ran at the end of a shutdown was ended. */
export const SHUTDOWN = new DOMException('The application is shutting down.', 'AbortError');

/** How long aborted runs may take to end: a reader that has left may keep one for ever. */
const ABORT_GRACE_MS = 1_000;

/** The call of a tool. */
type CallUnderWay = Pick<ToolCallInfo, 'context' | 'tool'>;

/** The calls, runs and background tasks that are under way, so that a shutdown can wait for them and end what does not end. */
export class RunningCalls {
  readonly #running = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();
  /** What ends each call: listeners of the signal would cost more than the rest of a call. */
  readonly #ends = new Set<() => void>();
  readonly #tasks: TaskQueue;

  constructor(tasks: TaskQueue) {
    this.#tasks = tasks;
    // Every call under way listens, and there may be many; that is no leak.
    setMaxListeners(0, this.#ending.signal);
  }

  /** Aborted when a shutdown has waited long enough. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Keeps a call until it has ended; one whose method does not take the signal, no longer than until it was stopped.
   * A shutdown that waits no longer stops it and rejects.
   */
  async call<Value>({ context, tool }: CallUnderWay, work: () => Promise<Value>): Promise<Value> {
    const { signal } = this;
    signal.throwIfAborted();
    const call = new Promise<Value>((resolve, reject) => {
      const end = (): void => {
        if (context instanceof CallContext) context.stop(signal.reason);
        reject(signal.reason);
      };
      this.#ends.add(end);
      work()
        .then(resolve, reject)
        .finally(() => this.#ends.delete(end));
    });
    const isAnsweredAtOnce = context instanceof CallContext && !tool.observesSignal;
    this.track(isAnsweredAtOnce ? untilStopped(call, context) : call);
    return call;
  }

  /** Keeps a run until it has ended; it ends itself by the signal. */
  track<Value>(running: Promise<Value>): Promise<Value> {
    this.#running.add(running);
    const forget = (): void => {
      this.#running.delete(running);
    };
    running.then(forget, forget);
    return running;
  }

  /** Waits until nothing runs any more; after `limitMs` what still runs is aborted. */
  async end(limitMs: number): Promise<void> {
    await this.#settled(limitMs);
    this.#ending.abort(SHUTDOWN);
    for (const end of this.#ends) end();
    for (const { id } of this.#tasks.tasks) this.#tasks.cancel(id, SHUTDOWN.message);
    await this.#settled(ABORT_GRACE_MS);
  }

  get #isBusy(): boolean {
    return this.#running.size > 0 || this.#tasks.tasks.length > 0;
  }

  /** When nothing runs any more, or the time is up. */
  async #settled(limitMs: number): Promise<void> {
    let limit: NodeJS.Timeout | undefined;
    const isLate = new Promise<true>((resolve) => {
      limit = setTimeout(() => resolve(true), Math.min(limitMs, MAX_TIMER_MS));
    });
    while (this.#isBusy) {
      const settled = Promise.allSettled([...this.#running, this.#tasks.idle()]);
      if ((await Promise.race([settled, isLate])) === true) break;
    }
    clearTimeout(limit);
  }
}

/** Ends with the call, or where it was answered before its method has ended. */
function untilStopped(call: Promise<unknown>, context: CallContext): Promise<unknown> {
  return new Promise((resolve, reject) => {
    call.then(resolve, reject);
    context.onStop(resolve);
  });
}
