import { AsyncLocalStorage } from 'node:async_hooks';
import type { AsyncCallback } from '../contract/tool.js';
import { asyncResult, ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { onAbort } from '../kernel/on-abort.js';
import { AsyncCompletion } from './async-completion.js';
import type { BackgroundWork, CallContext } from './call-context.js';
import { callListener } from './call-listener.js';
import { Deadline } from './deadline.js';
import { failedResult } from './failed-result.js';
import { lineOf } from './line-of.js';
import type { PermittedCall } from './permitted-call.js';
import type { Ended } from './run-tool.js';
import { runWork, settled, settleWork, type WorkOf } from './settle-work.js';
import { TaskQueue } from './task-queue.js';
import { writeEnding } from './write-ending.js';
import { writeFailure } from './write-result.js';

/** What the work of a call needs to know of it. */
export interface CallTaskParts {
  readonly permitted: PermittedCall;
  readonly listener: AsyncCallback;
  readonly context: () => CallContext;
  /** Runs after the completion was delivered. */
  readonly onDelivered: () => void;
}

/** The task whose work runs here, so that work which it starts is known to be a part of it. */
const current = new AsyncLocalStorage<CallTask>();

/**
 * What outlives the answer of one call: work in the background, or a callback that is waited for. However it
 * ends (it settles, throws, is called back, takes too long, is cancelled, is aborted with its run), the first
 * end completes the call, and all later ones are only logged.
 */
export class CallTask implements BackgroundWork {
  readonly #parts: CallTaskParts;
  readonly #queue: TaskQueue;
  readonly #completion: AsyncCompletion;
  #id: string | undefined;
  #isAnswered = false;
  #deadline: Deadline | undefined;
  #unfollow: (() => void) | undefined;
  /** Whoever makes room in the queue, or cancels, must not lend its own async context to this call. */
  #inContextOfCall: <Value>(run: () => Value) => Value = (run) => run();

  constructor(parts: CallTaskParts) {
    this.#parts = parts;
    const { log, environment } = parts.permitted;
    this.#queue = environment.tasks ?? new TaskQueue();
    this.#completion = new AsyncCompletion({
      log,
      onComplete: () => this.#letGo(),
      deliver: (result) => this.#deliver(result),
    });
  }

  get id(): string | undefined {
    return this.#id;
  }

  /** It is decided what the call completes with, or that it does not. */
  get isSettled(): boolean {
    return this.#completion.isDecided;
  }

  get isOver(): boolean {
    return this.#id !== undefined && this.#completion.isDecided;
  }

  /** `context.background`. What the work itself starts is a part of it. */
  begin(
    work: () => unknown,
    acknowledgement = 'Started; the result will follow.',
  ): ToolResult | Promise<ToolResult> {
    const { permitted, context } = this.#parts;
    if (current.getStore() === this) return settleWork({ ...permitted, context: context() }, work);
    const why = this.#id === undefined ? this.#isAnswered && 'is answered' : 'has started its work';
    if (why) throw secondWork(permitted.tool.name, why);
    // The method asked something: it will run again with the answer, and start its work then.
    if (!context().replay?.isSuspended) this.#enter(() => this.#run(work));
    return asyncResult(acknowledgement);
  }

  report(update: unknown): void {
    if (this.#id !== undefined) this.#queue.report(this.#id, update);
  }

  /** The tool said `asyncResult`, and completes through its callback, or has done so already. */
  awaitCallback(): void {
    this.#enter();
    if (this.#completion.isDecided) this.#letGo();
    else this.#setLimit();
  }

  /** What a tool with `setCallback` gives its callback. */
  callBack(value: unknown): void {
    try {
      const ready = settled(value, this.#workOf);
      if (ready instanceof Promise) this.#completeWith(ready);
      else this.#complete({ how: 'returned', value: ready });
    } catch (error) {
      this.#complete({ how: 'threw', error });
    }
  }

  /** The call has been acknowledged: its completion may follow. */
  release(): void {
    this.#completion.release();
  }

  /** The call has been answered for good with this, and takes with it what it had started. */
  discard(result: ToolResult): void {
    this.#isAnswered = true;
    this.#completion.discard();
    this.#letGo();
    if (this.#id !== undefined) this.#queue.end(this.#id, result, () => {});
  }

  #enter(run?: () => void): void {
    const { call, tool, environment, log } = this.#parts.permitted;
    const { signal, conversationId } = environment.scope;
    const id = `task_${crypto.randomUUID()}`;
    this.#id = id;
    const inContext = AsyncLocalStorage.snapshot();
    this.#inContextOfCall = inContext;
    if (signal !== undefined && !signal.aborted) this.#unfollow = onAbort(signal, this.#abort);
    this.#queue.enter({
      id,
      callId: call.id,
      tool: tool.name,
      conversationId,
      line: lineOf(environment.scope),
      run: run && (() => inContext(run)),
      mayRun: () => !this.#isAborted(),
      cancel: (reason) => this.#cancel(reason),
      deaf: (error) => log.ignored('A listener for tasks threw', { error }),
    });
    this.#isAborted();
  }

  /** An abort that this call has not heard of yet, or was too late to hear of, ends its work here. */
  #isAborted(): boolean {
    const isAborted = this.#parts.permitted.environment.scope.signal?.aborted ?? false;
    if (isAborted) this.#abort();
    return isAborted;
  }

  #run(work: () => unknown): void {
    this.#setLimit();
    this.#completeWith(current.run(this, () => runWork(work, this.#workOf)));
  }

  #completeWith(value: Promise<unknown>): void {
    value.then(
      (settledValue) => this.#complete({ how: 'returned', value: settledValue }),
      (error) => this.#complete({ how: 'threw', error }),
    );
  }

  get #workOf(): WorkOf {
    const { permitted, context } = this.#parts;
    return { tool: permitted.tool, environment: permitted.environment, context: context() };
  }

  /** Counted from when the work begins; the run's own limit is for calls, and this outlives the run. */
  #setLimit(): void {
    const { timeoutMs } = this.#parts.permitted.tool;
    if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return;
    this.#deadline = new Deadline(timeoutMs, () => {
      const reason = new DOMException(`The work took longer than ${timeoutMs} ms`, 'TimeoutError');
      this.#stop(reason, () => this.#write({ how: 'timed_out', timeoutMs }));
    });
  }

  readonly #abort = (): void => {
    const { signal } = this.#parts.permitted.environment.scope;
    this.#stop(signal?.reason, () => this.#write({ how: 'aborted' }));
  };

  #cancel(reason: string | undefined): boolean {
    const { name } = this.#parts.permitted.tool;
    const why = reason === undefined ? '.' : `: ${reason}`;
    const result = failedResult('TaskCancelled', `The work of the tool '${name}' was cancelled${why}`);
    return this.#stop(result.error, () => result);
  }

  /**
   * Decides first, so that what the tool does when its signal is aborted comes too late to be its result.
   * `false` where that was decided already.
   */
  #stop(reason: unknown, write: () => ToolResult): boolean {
    if (this.#completion.isDecided) return false;
    this.#completion.complete(() => {
      this.#inContextOfCall(() => this.#parts.context().stop(reason));
      return write();
    });
    return true;
  }

  #complete(ended: Ended): void {
    const { tool, environment } = this.#parts.permitted;
    const { judgeCompletion } = environment;
    this.#completion.complete(() => {
      const result = this.#write(ended);
      try {
        return judgeCompletion ? this.#inContextOfCall(() => judgeCompletion(tool.name, result)) : result;
      } catch (error) {
        return writeFailure(tool.name, error, environment.describeError);
      }
    });
  }

  /** What was thrown or returned may throw again when it is looked at, and the call completes all the same. */
  #write(ended: Ended): ToolResult {
    const { permitted } = this.#parts;
    try {
      if (ended.how === 'threw' && isUnanswerable(ended.error))
        return failedResult('NotExecutableHere', ended.error.message);
      const { result } = writeEnding(permitted, ended);
      // Nothing follows a completion.
      return result.async ? new ToolResult({ ...result, async: false }) : result;
    } catch (error) {
      return writeFailure(permitted.tool.name, error, permitted.environment.describeError);
    }
  }

  /** Nothing is waited for any more: neither the limit, nor an abort, nor a slot in the queue. */
  #letGo(): void {
    this.#deadline?.meet();
    this.#unfollow?.();
    if (this.#id !== undefined) this.#queue.settle(this.#id);
  }

  #deliver(result: ToolResult): void {
    const { permitted, listener, context, onDelivered } = this.#parts;
    const { log, since } = permitted;
    const deliver = (): void => {
      log.completedAsync(result, performance.now() - since);
      callListener(
        () => this.#inContextOfCall(() => listener(context(), result)),
        (error) => log.ignored('A listener for async results threw', { error }),
      );
    };
    if (this.#id !== undefined) this.#queue.end(this.#id, result, deliver);
    onDelivered();
  }
}

/** Two pieces of work would need two completions, and a call has one. */
function secondWork(tool: string, why: string): ToolwrightError {
  return new ToolwrightError(
    'ToolExecutionFailed',
    `context.background: the call of '${tool}' ${why} already; start one piece of work, e.g. context.background(() => Promise.all([one(), two()])).`,
  );
}

/** A question in work that goes on after the answer (`context.ask`). */
function isUnanswerable(error: unknown): error is ToolwrightError {
  try {
    return ToolwrightError.is(error) && error.name === 'NotExecutableHere';
  } catch {
    return false;
  }
}
