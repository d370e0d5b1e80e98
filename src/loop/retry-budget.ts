import type { CallRecord } from '../contract/call-record.js';
import type { RunState } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { ToolwrightError } from '../errors/toolwright-error.js';

/** Names that no tool has share one budget: a model can invent a new one each time. */
const UNKNOWN: unique symbol = Symbol('unknown tools');

/** What a budget is made of. */
export interface RetryBudgetOptions {
  readonly maxRetries: number;
  readonly find: (name: string) => ToolDefinition | undefined;
  /** What a run that is resumed had spent before. */
  readonly spent?: RunState['retries'];
}

/** All rejections of a run, in retries of a tool: a model that errs at every other call gets nowhere either. */
const TOTAL_FACTOR = 10;

/**
 * How often the model may still correct itself: so many rejections of a tool in a row, counted once for each
 * assistant message, and ten times as many in the whole run. A success of the tool ends its row; unknown names,
 * which have no successes, stand in one row for the whole run.
 */
export class RetryBudget {
  readonly #maxRetries: number;
  readonly #find: (name: string) => ToolDefinition | undefined;
  /** In a row. */
  readonly #rejections = new Map<string | typeof UNKNOWN, number>();
  #total: number;

  constructor({ maxRetries, find, spent }: RetryBudgetOptions) {
    this.#maxRetries = maxRetries;
    this.#find = find;
    for (const [name, count] of spent?.byTool ?? []) this.#rejections.set(name, count);
    if (spent !== undefined && spent.unknown > 0) this.#rejections.set(UNKNOWN, spent.unknown);
    this.#total = spent?.total ?? [...this.#rejections.values()].reduce((sum, count) => sum + count, 0);
  }

  /** What was spent so far, for the state of a suspended run. */
  get spent(): RunState['retries'] {
    return {
      byTool: [...this.#rejections].filter((entry): entry is [string, number] => entry[0] !== UNKNOWN),
      unknown: this.#rejections.get(UNKNOWN) ?? 0,
      total: this.#total,
    };
  }

  /** The error that these records would lead to; nothing is counted yet. */
  foresee(records: readonly CallRecord[]): ToolwrightError | undefined {
    return new RetryBudget({ maxRetries: this.#maxRetries, find: this.#find, spent: this.spent }).spend(
      records,
    );
  }

  /** Which try of the model at this tool the next call is. */
  attempt(name: string): number {
    if (this.#rejections.size === 0) return 1;
    return (this.#rejections.get(this.#keyOf(name)) ?? 0) + 1;
  }

  /** Counts what one assistant message brought; the error, if a budget is used up. */
  spend(records: readonly CallRecord[]): ToolwrightError | undefined {
    if (this.#rejections.size > 0) this.#endRows(records);
    if (!records.some(isRejected)) return undefined;
    const rejected = new Map<string | typeof UNKNOWN, CallRecord>(
      records.filter(isRejected).map((record) => [this.#keyOf(record.name), record] as const),
    );
    let exhausted: ToolwrightError | undefined;
    for (const [key, record] of rejected) {
      const inRow = (this.#rejections.get(key) ?? 0) + 1;
      this.#rejections.set(key, inRow);
      this.#total += 1;
      exhausted ??= this.#judge(record, inRow);
    }
    return exhausted;
  }

  #endRows(records: readonly CallRecord[]): void {
    for (const { name, status } of records)
      if (status === 'success' || status === 'started') this.#rejections.delete(name);
  }

  #judge(record: CallRecord, inRow: number): ToolwrightError | undefined {
    const allowed = this.#find(record.name)?.retries ?? this.#maxRetries;
    if (inRow > allowed) {
      const row = `${inRow} unusable calls in a row`;
      return exhaustedError(record, `${row}, and may correct itself ${allowed} times`);
    }
    const most = TOTAL_FACTOR * Math.max(allowed, this.#maxRetries);
    if (this.#total <= most) return undefined;
    return exhaustedError(record, `${this.#total} unusable calls in this run, and may send ${most}`);
  }

  #keyOf(name: string): string | typeof UNKNOWN {
    return this.#find(name) === undefined ? UNKNOWN : name;
  }
}

function isRejected({ status }: CallRecord): boolean {
  return status === 'rejected';
}

function exhaustedError(record: CallRecord, told: string): ToolwrightError {
  const message = `The model sent ${told} (last: '${record.name}').`;
  return new ToolwrightError('ToolRetriesExhausted', message, { cause: record.result.error });
}
