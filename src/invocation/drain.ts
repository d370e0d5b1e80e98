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
