import { isObservable, type Observable } from 'rxjs';
import type { ToolContext } from '../../contract/tool-context.js';
import { drain } from '../../invocation/drain.js';

/** What a method returned, once it is there. The values of an async iterable are progress; its return is the value. */
export async function returnedValue(returned: unknown, context: ToolContext): Promise<unknown> {
  const value = await returned;
  if (!isAsyncIterable(value)) return value;
  return drain(value, {
    get isStopped() {
      return context.signal.aborted;
    },
    progress: (update) => context.progress(update),
  });
}

/** The last value of an observable (nothing: `undefined`), which an abort ends; anything else as it is. */
export async function lastValue(value: unknown, context?: ToolContext): Promise<unknown> {
  return isObservable(value) ? lastEmitted(value, context?.signal) : value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function lastEmitted(values: Observable<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let last: unknown;
    const end = (): void => {
      subscription.unsubscribe();
      reject(signal?.reason);
    };
    const settle = (): void => signal?.removeEventListener('abort', end);
    const subscription = values.subscribe({
      next: (value) => {
        last = value;
      },
      error: (error) => {
        settle();
        reject(error);
      },
      complete: () => {
        settle();
        resolve(last);
      },
    });
    if (signal?.aborted && !subscription.closed) end();
    else if (!subscription.closed) signal?.addEventListener('abort', end);
  });
}
