import { ToolwrightError } from '../errors/toolwright-error.js';

/** Hears what a call has to report, as long as anybody waits for it: its context. */
export interface Reporter {
  /** The call was answered before its tool had ended. */
  readonly isStopped: boolean;
  progress(update: unknown): void;
}

/** Each value of an async iterable is progress; what the generator returns is the result. */
export async function drain(values: AsyncIterable<unknown>, context: Reporter): Promise<unknown> {
  const iterator = values[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done) return next.value;
    // Nobody waits for it any more; `return` lets the generator's `finally` run.
    if (context.isStopped) return (await iterator.return?.())?.value;
    context.progress(next.value);
  }
}

/** The same of an iterator that waits for nothing. What it yields is the result where it returns nothing. */
export function drainNow(values: Iterable<unknown>, context: Reporter): unknown {
  const yielded: unknown[] = [];
  const iterator = values[Symbol.iterator]();
  for (;;) {
    const next = iterator.next();
    if (next.done) return next.value === undefined ? yielded : next.value;
    context.progress(next.value);
    keep(yielded, next.value, iterator);
  }
}

/** More values than this are no answer for a model; an iterator may have no end. */
const MAX_VALUES = 100_000;

/** All values of an iterator. */
export function toList(values: Iterable<unknown>): readonly unknown[] {
  const list: unknown[] = [];
  const iterator = values[Symbol.iterator]();
  for (;;) {
    const next = iterator.next();
    if (next.done) return list;
    keep(list, next.value, iterator);
  }
}

function keep(list: unknown[], value: unknown, iterator: Iterator<unknown>): void {
  list.push(value);
  if (list.length <= MAX_VALUES) return;
  iterator.return?.();
  throw tooMuch(`${MAX_VALUES} values`);
}

/** All values of an async iterable, as long as anybody waits for them; `maxBytes` limits texts and bytes. */
export async function toListLater(
  values: AsyncIterable<unknown>,
  reporter: Reporter,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<readonly unknown[]> {
  const list: unknown[] = [];
  let bytes = 0;
  for await (const value of values) {
    list.push(value);
    bytes += sizeOf(value);
    if (reporter.isStopped) break;
    if (list.length > MAX_VALUES || bytes > maxBytes)
      throw tooMuch(`${MAX_VALUES} values or ${maxBytes} bytes`);
  }
  return list;
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  return ArrayBuffer.isView(value) ? value.byteLength : 0;
}

function tooMuch(limit: string): ToolwrightError {
  return new ToolwrightError(
    'ToolExecutionFailed',
    `The tool ran, but its result goes on after ${limit}. Return a part of it, or a link.`,
  );
}
