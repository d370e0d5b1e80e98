import { resultText } from '../call/result-text.js';
import type { CallRecord } from '../contract/call.js';
import type { RunState } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { canonicalJson } from '../kernel/json.js';
import { nodeCrypto } from '../kernel/node-module.js';
import { COUNT_LIMIT, type OptionRule, objectOf } from '../kernel/options.js';

/** When a run goes in circles: the same calls with the same results, and nothing new between them. */
export interface LoopGuardOptions {
  /** The model is told at so many repeats; default 3. */
  readonly tellAt?: number;
  /** The run ends at so many; default 6. */
  readonly endAt?: number;
}

const GUARD_NUMBERS = objectOf<LoopGuardOptions>(
  { tellAt: COUNT_LIMIT, endAt: COUNT_LIMIT },
  { fix: '{ tellAt: 3, endAt: 6 }' },
);

/** The model is told before the run ends; `Infinity` tells it never. */
export const LOOP_GUARD: OptionRule = {
  ...GUARD_NUMBERS,
  accepts: (value) => GUARD_NUMBERS.accepts(value) && tellsInTime(value as LoopGuardOptions),
  explain: (value, option) => {
    if (!GUARD_NUMBERS.accepts(value)) return GUARD_NUMBERS.explain?.(value, option) ?? [];
    const { tellAt, endAt } = value as LoopGuardOptions;
    const problem = `${option}.tellAt is ${tellAt}, but the run ends at ${endAt} repeats`;
    return [{ option: `${option}.tellAt`, problem, fix: `${option}: { tellAt: 3, endAt: 6 }` }];
  },
};

function tellsInTime({ tellAt = 0, endAt = tellAt }: LoopGuardOptions): boolean {
  return tellAt <= endAt || tellAt === Number.POSITIVE_INFINITY;
}

/** What the guard says of the calls of one message. */
interface GuardVerdict {
  /** By call id: what the model is told beside the result. */
  readonly notes: ReadonlyMap<string, string>;
  /** The run is stuck. */
  readonly error?: ToolwrightError;
}

const NOTHING: GuardVerdict = { notes: new Map() };

/** A call that was seen, and how often since the model last made progress. */
interface SeenCall {
  /** Its arguments are read where a second call has the same outcome, and not before. */
  readonly record: CallRecord | undefined;
  signature: string | undefined;
  count: number;
  /** Counts of an earlier stretch are over. */
  stretch: number;
  /** The last message that it was in. */
  message: number;
}

/** A call that may have been seen before, as it was made now. */
interface SeenAgain {
  readonly call: SeenCall;
  readonly record: CallRecord;
}

const NONE_AGAIN: readonly SeenAgain[] = [];

/**
 * Counts how often a call came back with the same result. A message with a call that was never seen is
 * progress and starts the count anew, so that A/B/A/B is found and a poll between other work is not. Rejected
 * calls count against retries only.
 */
export class LoopGuard {
  readonly #tellAt: number;
  readonly #endAt: number;
  /** In the order in which they came. */
  readonly #seen: SeenCall[] = [];
  /** By tool and result: most results come once, and only those that come again are told apart by arguments. */
  readonly #byTool = new Map<string, Map<string, SeenCall | Map<string, SeenCall>>>();
  /** From before the run was suspended. */
  readonly #remembered: ReadonlyMap<string, SeenCall>;
  #stretch = 0;
  #messages = 0;

  constructor({ tellAt = 3, endAt = 6 }: LoopGuardOptions = {}, memory?: RunState['guard']) {
    this.#tellAt = tellAt;
    this.#endAt = endAt;
    this.#remembered = memory === undefined ? NO_CALLS : callsIn(memory);
  }

  /** What the guard has seen so far, for the state of a suspended run. */
  get memory(): NonNullable<RunState['guard']> {
    const byOutcome = Map.groupBy(this.#seen, outcomeOf);
    const calls = [...this.#remembered.values(), ...[...byOutcome.values()].flat()];
    const told = calls.flatMap((call): readonly [string, number][] => {
      const signature = signatureOf(call);
      return signature === undefined ? [] : [[signature, this.#countOf(call)]];
    });
    return { seen: told.map(([signature]) => signature), counts: told.filter(([, count]) => count > 0) };
  }

  /** Looks at the calls of one assistant message. */
  watch(records: readonly CallRecord[]): GuardVerdict {
    this.#messages += 1;
    const next = this.#stretch + 1;
    let again: SeenAgain[] | undefined;
    for (const record of records) {
      const call = this.#find(record, next);
      if (call === undefined) continue;
      if (call.stretch === next) this.#stretch = next;
      // A call that was never seen before has its count; most guards let one pass.
      if (call.record === record && this.#tellAt > 1 && this.#endAt > 1) continue;
      again ??= [];
      again.push({ call, record });
    }
    let verdict = NOTHING;
    for (const { call, record } of again ?? NONE_AGAIN) {
      // Of the same calls in one message, all are told and one is counted.
      call.count = this.#countOf(call) + (call.message === this.#messages ? 0 : 1);
      call.stretch = this.#stretch;
      call.message = this.#messages;
      if (call.count >= this.#tellAt || call.count >= this.#endAt)
        verdict = this.#judge(verdict, record, call.count);
    }
    return verdict;
  }

  #countOf({ count, stretch }: SeenCall): number {
    return stretch === this.#stretch ? count : 0;
  }

  /** The call as it was seen before; otherwise one of the next stretch. `undefined` where it does not count. */
  #find(record: CallRecord, stretch: number): SeenCall | undefined {
    if (record.status === 'rejected' || record.status === 'not_run') return undefined;
    const call: SeenCall = { record, signature: undefined, count: 1, stretch, message: this.#messages };
    const remembered = this.#remembered.size > 0 && this.#remembered.get(signatureOf(call) ?? '');
    if (remembered) return remembered;
    const result = shortened(resultText(record.result));
    const byResult = this.#byTool.get(record.name) ?? new Map<string, SeenCall | Map<string, SeenCall>>();
    if (byResult.size === 0) this.#byTool.set(record.name, byResult);
    const seen = byResult.get(result);
    if (seen === undefined) {
      byResult.set(result, call);
      this.#seen.push(call);
      return call;
    }
    const bySignature = seen instanceof Map ? seen : new Map<string, SeenCall>();
    if (!(seen instanceof Map)) {
      byResult.set(result, bySignature);
      const first = signatureOf(seen);
      if (first !== undefined) bySignature.set(first, seen);
    }
    const signature = signatureOf(call);
    if (signature === undefined) return undefined;
    const same = bySignature.get(signature);
    if (same !== undefined) return same;
    bySignature.set(signature, call);
    this.#seen.push(call);
    return call;
  }

  #judge({ notes, error }: GuardVerdict, { id, name }: CallRecord, count: number): GuardVerdict {
    const note = `[This call gave the same result ${count} times. Do something else.]`;
    return {
      notes: count >= this.#tellAt ? new Map([...notes, [id, note]]) : notes,
      error: error ?? (count >= this.#endAt ? stuck(name, count) : undefined),
    };
  }
}

const NO_CALLS: ReadonlyMap<string, SeenCall> = new Map();

/** Calls from before the run was suspended, by their signatures. */
function callsIn({ seen, counts }: NonNullable<RunState['guard']>): ReadonlyMap<string, SeenCall> {
  const countOf = new Map(counts);
  return new Map(
    seen.map((signature) => {
      const count = countOf.get(signature) ?? 0;
      return [signature, { record: undefined, signature, count, stretch: 0, message: 0 }];
    }),
  );
}

/** A run keeps what every call gave; of long texts only the digest. */
const LONG_TEXT = 500;

/** The tool and what it gave. */
function outcomeOf({ record }: SeenCall): string | undefined {
  if (record === undefined) return undefined;
  const { name, result } = record;
  // Two screenshots have the same text, and are not the same result.
  const pictures = result.content?.filter(({ type }) => type !== 'text') ?? [];
  const parts = pictures.length === 0 ? '' : JSON.stringify(pictures);
  return shortened(`${name}\n${resultText(result)}\n${parts}`);
}

/** What makes two calls the same, whatever the order of their arguments; `undefined` where JSON cannot say it. */
function signatureOf(call: SeenCall): string | undefined {
  if (call.signature !== undefined || call.record === undefined) return call.signature;
  try {
    const args = canonicalJson(call.record.arguments);
    call.signature = shortened(`${args}\n${outcomeOf(call)}`);
  } catch {}
  return call.signature;
}

function shortened(text: string): string {
  return text.length > LONG_TEXT ? nodeCrypto().hash('sha256', text) : text;
}

function stuck(name: string, count: number): ToolwrightError {
  return new ToolwrightError(
    'ToolLoopStuck',
    `The model called '${name}' ${count} times with the same arguments and the same result.`,
  );
}

/** Names that no tool has share one budget: a model can invent a new one each time. */
const UNKNOWN: unique symbol = Symbol('unknown tools');

/** The tools of a run, by their names. */
interface OfferedTools {
  offered(name: string): ToolDefinition | undefined;
}

/** What a budget is made of. */
interface RetryBudgetOptions {
  /** Default: 2. */
  readonly maxRetries: number | undefined;
  readonly tools: OfferedTools;
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
  readonly #tools: OfferedTools;
  /** In a row. */
  readonly #rejections = new Map<string | typeof UNKNOWN, number>();
  #total: number;

  constructor({ maxRetries = 2, tools, spent }: RetryBudgetOptions) {
    this.#maxRetries = maxRetries;
    this.#tools = tools;
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
    const now = { maxRetries: this.#maxRetries, tools: this.#tools, spent: this.spent };
    return new RetryBudget(now).spend(records);
  }

  /** Which try of the model at this tool the next call is. */
  attempt(name: string): number {
    if (this.#rejections.size === 0) return 1;
    return (this.#rejections.get(this.#keyOf(name)) ?? 0) + 1;
  }

  /** Counts what one assistant message brought; the error, if a budget is used up. */
  spend(records: readonly CallRecord[]): ToolwrightError | undefined {
    if (this.#rejections.size > 0) this.#endRows(records);
    let rejected: Map<string | typeof UNKNOWN, CallRecord> | undefined;
    for (const record of records) {
      if (record.status !== 'rejected') continue;
      rejected ??= new Map();
      rejected.set(this.#keyOf(record.name), record);
    }
    if (rejected === undefined) return undefined;
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
    const allowed = this.#tools.offered(record.name)?.retries ?? this.#maxRetries;
    if (inRow > allowed) {
      const row = `${inRow} unusable calls in a row`;
      return exhaustedError(record, `${row}, and may correct itself ${allowed} times`);
    }
    const most = TOTAL_FACTOR * Math.max(allowed, this.#maxRetries);
    if (this.#total <= most) return undefined;
    return exhaustedError(record, `${this.#total} unusable calls in this run, and may send ${most}`);
  }

  #keyOf(name: string): string | typeof UNKNOWN {
    return this.#tools.offered(name) === undefined ? UNKNOWN : name;
  }
}

function exhaustedError(record: CallRecord, told: string): ToolwrightError {
  const message = `The model sent ${told} (last: '${record.name}').`;
  return new ToolwrightError('ToolRetriesExhausted', message, { cause: record.result.error });
}
