import { isObservable, type Observable, tap } from 'rxjs';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { onAbort } from '../../core/kernel/async.js';
import { CallContext, type StopListener } from '../../run/call/context.js';
import { isToolResultLike } from '../../run/call/result-form.js';

/** The last value of an observable (nothing: `undefined`), which an abort ends; anything else as it is. */
export function lastValue(value: unknown, context?: ToolContext): unknown {
  return isObservable(value) ? lastEmitted(value, context) : value;
}

function lastEmitted(values: Observable<unknown>, context: ToolContext | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let last: unknown;
    const subscription = values.subscribe({
      next: (value) => {
        last = value;
      },
      error: reject,
      complete: () => resolve(last),
    });
    if (context === undefined || subscription.closed) return;
    subscription.add(
      whenStopped(context, (reason) => {
        subscription.unsubscribe();
        reject(reason);
      }),
    );
  });
}

/** Hears that a call is stopped; gives what ends the hearing. */
function whenStopped(context: ToolContext, stop: StopListener): () => void {
  if (context instanceof CallContext) return context.onStop(stop);
  const { signal } = context;
  return onAbort(signal, () => stop(signal.reason));
}

/** How far the method of a call has come, while its interceptors stand around it. */
type MethodProgress = 'waiting' | 'begun' | 'returned' | 'threw';

/** What the method of a call returned or threw, as its interceptors got it. */
export class ReturnedValue {
  #last: unknown;
  #isThere = false;
  #thrown: unknown;
  #progress: MethodProgress = 'waiting';

  get progress(): MethodProgress {
    return this.#progress;
  }

  /** What the method threw, or what was in its way. */
  get thrown(): unknown {
    return this.#thrown;
  }

  /** Whether something was thrown within, and not by what stands around. */
  hasThrown(exception: unknown): boolean {
    return this.#progress === 'threw' && this.#thrown === exception;
  }

  /** The method is called from here on: what is in its way has been passed. */
  begin(): void {
    this.#progress = 'begun';
  }

  /** Keeps what the work gives on its way to the interceptors; of an observable, each value as it comes. */
  async follow(work: () => Promise<unknown>): Promise<unknown> {
    try {
      const value = await work();
      this.#progress = 'returned';
      if (!isObservable(value)) return this.#keep(value);
      const fail = (thrown: unknown): void => this.#fail(thrown);
      return (value as Observable<unknown>).pipe(tap({ next: (item) => this.#keep(item), error: fail }));
    } catch (thrown) {
      this.#fail(thrown);
      throw thrown;
    }
  }

  /** Whether a value is another than the method's. */
  isNot(value: unknown): boolean {
    return !this.#isThere || this.#last !== value;
  }

  /** Whether it is a result in its author's own words, and a value an envelope around it. */
  isWrappedIn(value: unknown): boolean {
    if (typeof value !== 'object' || value === null || ToolResult.is(value) || !isToolResultLike(this.#last))
      return false;
    return Object.values(value).includes(this.#last);
  }

  /** Whether the method kept its word, as far as it was asked. */
  fits(check: (value: unknown) => readonly unknown[]): boolean {
    return !this.#isThere || check(this.#last).length === 0;
  }

  get value(): unknown {
    return this.#last;
  }

  #keep(value: unknown): unknown {
    this.#last = value;
    this.#isThere = true;
    return value;
  }

  #fail(thrown: unknown): void {
    this.#progress = 'threw';
    this.#thrown = thrown;
  }
}
