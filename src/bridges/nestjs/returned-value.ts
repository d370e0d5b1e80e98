import { isObservable, type Observable } from 'rxjs';
import type { ToolContext } from '../../contract/tool-context.js';
import { CallContext, type StopListener } from '../../invocation/call-context.js';
import { drain } from '../../invocation/drain.js';
import { onAbort } from '../../kernel/on-abort.js';

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
  return isObservable(value) ? lastEmitted(value, context) : value;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
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
