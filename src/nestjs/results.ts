import { isObservable, type Observable, tap } from 'rxjs';
import { CallContext, type StopListener } from '../call/context.js';
import { drain } from '../call/drain.js';
import { planOf } from '../call/plan.js';
import { CallSuspended } from '../call/replay.js';
import { isToolResultLike } from '../call/result.js';
import { failedResult } from '../call/result-text.js';
import { listFaults } from '../checking/faults.js';
import type { ToolDefinition } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import { errorResult, RetryToolCall, ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { isAsyncIterable, onAbort } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { enhancerName } from './error-texts.js';

/** Whether there is nothing to wait for in what a method returned: no promise, no observable, no async iterable. */
export function isComplete(returned: unknown): boolean {
  if (typeof returned !== 'object' || returned === null) return true;
  return !('then' in returned || isAsyncIterable(returned) || isObservable(returned));
}

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

/**
 * What counts of what interceptors made of a method's result. An envelope for responses (`map((data) => ({ data }))`)
 * would hide acknowledgements and images from the model; it is taken off. A value that no longer fits the declared
 * `output` is told as what it is: no mistake of the method's.
 */
export function mappedValue(value: unknown, { returned, tool, interceptors }: MappedParts): unknown {
  if (!returned.isNot(value)) return value;
  if (returned.isWrappedIn(value)) return returned.value;
  if (tool.output === undefined || tool.isOutputInferred || isToolResultLike(value)) return value;
  const { checkResult } = planOf({}, tool);
  const faults = checkResult?.(value) ?? [];
  if (checkResult === undefined || faults.length === 0 || !returned.fits(checkResult)) return value;
  const names = [...new Set(interceptors.map(enhancerName))].join(', ');
  const lines = [`A broken result came from tool '${tool.name}':`, ...listFaults(faults), changedBy(names)];
  return failedResult('InvalidResult', lines.join('\n'));
}

/** What stands around a value that interceptors may have mapped. */
interface MappedParts {
  readonly returned: ReturnedValue;
  readonly tool: ToolDefinition;
  readonly interceptors: readonly object[];
}

function changedBy(interceptors: string): string {
  return `The method has run, and what it returned fits; one of its interceptors (${interceptors}) changed it. One that is about responses has to leave tools alone: if (context.getType<string>() === 'tool') return next.handle();`;
}

/** What an exception filter answered, as text for the model. */
export function filteredText(answer: unknown): string {
  if (ToolResult.is(answer)) return answer.forLLM;
  return typeof answer === 'string' ? answer : JSON.stringify(answer);
}

/** A filter's answer stands for a failure, unless it says otherwise with a `ToolResult` of its own. */
export function filteredResult(answer: unknown, exception: unknown): ToolResult {
  if (ToolResult.is(answer)) return answer;
  const error = new ToolwrightError('ToolExecutionFailed', errorMessage(exception), { cause: exception });
  return errorResult(filteredText(answer)).withError(error);
}

/** A failure of what stands around a method, after the method was begun. */
interface FailedAround {
  readonly tool: string;
  readonly progress: 'begun' | 'returned';
  /** What the model is told of it. */
  readonly text: string;
  readonly exception: unknown;
}

/** A result that does not let the model think that nothing has happened. */
export function failedAround({ tool, progress, text, exception }: FailedAround): ToolResult {
  const happened =
    progress === 'returned'
      ? `The tool '${tool}' ran, but its result was lost afterwards: ${text}\nDo not repeat the call: its work is done.`
      : `The tool '${tool}' had begun when its call failed: ${text}\nDo not repeat the call without looking: its work may be done.`;
  return failedResult('ToolExecutionFailed', happened, exception);
}

/**
 * What a method throws to steer its call is no failure, and no business of exception filters; nor is the end of a
 * call that has been answered as aborted or timed out.
 */
export function passesFilters(thrown: unknown, context: ToolContext): boolean {
  if (RetryToolCall.is(thrown) || thrown instanceof CallSuspended) return true;
  return context instanceof CallContext && context.isStopped;
}
