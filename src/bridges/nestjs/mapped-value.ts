import { isObservable, type Observable, tap } from 'rxjs';
import { describeFaults } from '../../checking/describe-faults.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { ToolResult } from '../../contract/tool-result.js';
import { planOf } from '../../invocation/call-plan.js';
import { failedResult } from '../../invocation/failed-result.js';
import { isWorded } from '../../invocation/write-result.js';
import { enhancerName } from './enhancer-name.js';

/** How far the method of a call has come, while its interceptors stand around it. */
export type MethodProgress = 'waiting' | 'begun' | 'returned' | 'threw';

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
      return (value as Observable<unknown>).pipe(tap({ next: (one) => this.#keep(one), error: fail }));
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
    if (typeof value !== 'object' || value === null || ToolResult.is(value) || !isWorded(this.#last))
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
  if (tool.output === undefined || tool.isOutputInferred || isWorded(value)) return value;
  const { checkResult } = planOf(tool, {});
  const faults = checkResult?.(value) ?? [];
  if (checkResult === undefined || faults.length === 0 || !returned.fits(checkResult)) return value;
  const names = [...new Set(interceptors.map(enhancerName))].join(', ');
  const broken = describeFaults(tool.name, faults).replace(
    'Validation failed for',
    'A broken result came from',
  );
  return failedResult('InvalidResult', `${broken}\n${CHANGED.replace('…', names)}`);
}

/** What stands around a value that interceptors may have mapped. */
export interface MappedParts {
  readonly returned: ReturnedValue;
  readonly tool: ToolDefinition;
  readonly interceptors: readonly object[];
}

const CHANGED =
  "The method has run, and what it returned fits; one of its interceptors (…) changed it. One that is about responses has to leave tools alone: if (context.getType<string>() === 'tool') return next.handle();";
