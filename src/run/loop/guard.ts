import type { CallRecord } from '../../core/contract/call.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { COUNT_LIMIT, type OptionRule, objectOf } from '../../core/kernel/options.js';
import { resultText } from '../call/result-text.js';

/** Options to detect a run that repeats itself: the same calls with the same results, without progress between them. */
export interface LoopGuardOptions {
  /** The number of repeats at which the model is warned; default: 3. */
  readonly tellAt?: number;
  /** The number of repeats at which the run ends; default: 6. */
  readonly endAt?: number;
}

const GUARD_NUMBERS = objectOf<LoopGuardOptions>(
  { tellAt: COUNT_LIMIT, endAt: COUNT_LIMIT },
  { fix: '{ tellAt: 3, endAt: 6 }' },
);

/** The model is warned before the run ends; `Infinity`: never. */
export const LOOP_GUARD: OptionRule = {
  ...GUARD_NUMBERS,
  accepts: (value) => {
    if (!GUARD_NUMBERS.accepts(value)) return false;
    const { tellAt = 0, endAt = tellAt } = value as LoopGuardOptions;
    return tellAt <= endAt || tellAt === Number.POSITIVE_INFINITY;
  },
  explain: (value, option) => {
    if (!GUARD_NUMBERS.accepts(value)) return GUARD_NUMBERS.explain?.(value, option) ?? [];
    const { tellAt, endAt } = value as LoopGuardOptions;
    const problem = `${option}.tellAt is ${tellAt}, but the run ends at ${endAt} repeats`;
    return [{ option: `${option}.tellAt`, problem, fix: `${option}: { tellAt: 3, endAt: 6 }` }];
  },
};

/** The guard's findings for the calls of one message. */
interface GuardVerdict {
  /** By call id: the note that the model receives beside the result. */
  readonly notes?: ReadonlyMap<string, string>;
  readonly error?: ToolwrightError;
}

/** A repeated call, and how often it occurred since the model last made progress. */
interface SeenCall {
  /** Absent for a call from before a suspension. */
  readonly record: CallRecord | undefined;
  /** Computed when a second call has the same outcome, and not before. */
  signature: string | undefined;
  count: number;
  /** The stretch without progress that `count` belongs to. */
  stretch: number;
  /** The last message that contained it. */
  message: number;
}

const NO_VERDICT: GuardVerdict = {};

/**
 * Counts how often a call was repeated with the same result. A message with a new call is progress and resets the
 * counts, so that A/B/A/B is detected and polling between other work is not. Rejected calls count only against
 * retries.
 */
export class LoopGuard {
  readonly #tellAt: number;
  readonly #endAt: number;
  readonly #seen: SeenCall[] = [];
  /** By tool and result: most results occur once, and only repeated ones are distinguished by arguments. */
  readonly #byTool = new Map<string, Map<string, SeenCall | Map<string, SeenCall>>>();
  /** From before the run was suspended, by their signatures. */
  readonly #remembered: Map<string, SeenCall> | undefined;
  #stretch = 0;
  #messages = 0;

  constructor({ tellAt = 3, endAt = 6 }: LoopGuardOptions = {}, memory?: RunState['guard']) {
    this.#tellAt = tellAt;
    this.#endAt = endAt;
    if (memory === undefined) return;
    const countOf = new Map(memory.counts);
    this.#remembered = new Map();
    for (const signature of memory.seen) {
      const count = countOf.get(signature) ?? 0;
      this.#remembered.set(signature, { record: undefined, signature, count, stretch: 0, message: 0 });
    }
  }

  /** The guard's data for the state of a suspended run. */
  get memory(): NonNullable<RunState['guard']> {
    const calls = [...(this.#remembered?.values() ?? []), ...this.#seen];
    const what = calls.flatMap((call): readonly [string, number][] => {
      const signature = signatureOf(call);
      return signature === undefined ? [] : [[signature, this.#countOf(call)]];
    });
    return { seen: what.map(([signature]) => signature), counts: what.filter(([, count]) => count > 0) };
  }

  watch(records: readonly CallRecord[]): GuardVerdict {
    this.#messages += 1;
    const next = this.#stretch + 1;
    let again: { readonly call: SeenCall; readonly record: CallRecord }[] | undefined;
    for (const record of records) {
      const call = this.#find(record, next);
      if (call === undefined) continue;
      if (call.stretch === next) this.#stretch = next;
      // A new call has its count; most guards allow one.
      if (call.record === record && this.#tellAt > 1 && this.#endAt > 1) continue;
      again ??= [];
      again.push({ call, record });
    }
    if (again === undefined) return NO_VERDICT;
    const notes = new Map<string, string>();
    let error: ToolwrightError | undefined;
    for (const { call, record } of again) {
      // If a message contains equal calls, all get the note and one is counted.
      const count = this.#countOf(call) + (call.message === this.#messages ? 0 : 1);
      Object.assign(call, { count, stretch: this.#stretch, message: this.#messages });
      const { id, name } = record;
      if (count >= this.#tellAt)
        notes.set(id, `[This call returned the same result ${count} times. Do something else.]`);
      if (count >= this.#endAt)
        error ??= new ToolwrightError(
          'ToolLoopStuck',
          `The model called '${name}' ${count} times with the same arguments and the same result.`,
        );
    }
    return { notes, error };
  }

  #countOf({ count, stretch }: SeenCall): number {
    return stretch === this.#stretch ? count : 0;
  }

  /** The earlier record of the call; otherwise one of the next stretch. `undefined` if it does not count. */
  #find(record: CallRecord, stretch: number): SeenCall | undefined {
    if (record.status === 'rejected' || record.status === 'not_run') return undefined;
    const call: SeenCall = { record, signature: undefined, count: 1, stretch, message: this.#messages };
    const remembered = this.#remembered?.get(signatureOf(call) ?? '');
    if (remembered !== undefined) return remembered;
    const result = shortened(resultText(record.result));
    let byResult = this.#byTool.get(record.name);
    if (byResult === undefined) {
      byResult = new Map();
      this.#byTool.set(record.name, byResult);
    }
    const seen = byResult.get(result);
    if (seen === undefined) {
      byResult.set(result, call);
      this.#seen.push(call);
      return call;
    }
    const bySignature = seen instanceof Map ? seen : new Map([[signatureOf(seen) ?? '', seen]]);
    if (bySignature !== seen) byResult.set(result, bySignature);
    const signature = signatureOf(call);
    if (signature === undefined) return undefined;
    const same = bySignature.get(signature);
    if (same !== undefined) return same;
    bySignature.set(signature, call);
    this.#seen.push(call);
    return call;
  }
}

/** A run stores the result of every call; of longer texts only the digest. */
const LONG_TEXT = 500;

function shortened(text: string): string {
  return text.length > LONG_TEXT ? nodeCrypto().hash('sha256', text) : text;
}

/** Identifies calls, independent of the order of their arguments; `undefined` if JSON cannot represent them. */
function signatureOf(call: SeenCall): string | undefined {
  if (call.signature !== undefined || call.record === undefined) return call.signature;
  const { name, result, arguments: args } = call.record;
  // Two screenshots have the same text, but are not the same result.
  const pictures = result.content?.filter(({ type }) => type !== 'text') ?? [];
  try {
    const parts = pictures.length === 0 ? '' : JSON.stringify(pictures);
    const outcome = shortened(`${name}\n${resultText(result)}\n${parts}`);
    call.signature = shortened(`${canonicalJson(args)}\n${outcome}`);
  } catch {}
  return call.signature;
}

/** Unknown names share one retry budget, because a model can invent a new name each time. */
const UNKNOWN: unique symbol = Symbol('unknown tools');

interface RetryBudgetOptions {
  /** Default: 2. */
  readonly maxRetries: number | undefined;
  readonly tools: { offered(name: string): ToolDefinition | undefined };
  /** The retries that a resumed run had used before. */
  readonly spent?: RunState['retries'];
}

/**
 * The limit of all rejections of a run, in retries of a tool: a model that fails at every second call makes no
 * progress either.
 */
const TOTAL_FACTOR = 10;

/**
 * How often the model may still correct itself: this many rejections of a tool in a row, counted once per assistant
 * message, and ten times as many in the whole run. A success of the tool ends its row. Unknown names, which have no
 * successes, share one row for the whole run.
 */
export class RetryBudget {
  readonly #maxRetries: number;
  readonly #tools: RetryBudgetOptions['tools'];
  readonly #rejections = new Map<string | typeof UNKNOWN, number>();
  #total: number;

  constructor({ maxRetries = 2, tools, spent }: RetryBudgetOptions) {
    this.#maxRetries = maxRetries;
    this.#tools = tools;
    for (const [name, count] of spent?.byTool ?? []) this.#rejections.set(name, count);
    if (spent !== undefined && spent.unknown > 0) this.#rejections.set(UNKNOWN, spent.unknown);
    this.#total = spent?.total ?? [...this.#rejections.values()].reduce((sum, count) => sum + count, 0);
  }

  /** The used retries, for the state of a suspended run. */
  get spent(): RunState['retries'] {
    return {
      byTool: [...this.#rejections].filter((entry): entry is [string, number] => entry[0] !== UNKNOWN),
      unknown: this.#rejections.get(UNKNOWN) ?? 0,
      total: this.#total,
    };
  }

  /** The error that these records would cause; does not count them. */
  foresee(records: readonly CallRecord[]): ToolwrightError | undefined {
    const now = { maxRetries: this.#maxRetries, tools: this.#tools, spent: this.spent };
    return new RetryBudget(now).spend(records);
  }

  /** The number of the model's next attempt at this tool. */
  attempt(name: string): number {
    if (this.#rejections.size === 0) return 1;
    return (this.#rejections.get(this.#keyOf(name)) ?? 0) + 1;
  }

  /** Counts the calls of one assistant message; returns the error if a budget is used up. */
  spend(records: readonly CallRecord[]): ToolwrightError | undefined {
    let rejected: Map<string | typeof UNKNOWN, CallRecord> | undefined;
    for (const record of records) {
      const { name, status } = record;
      if (status === 'rejected') {
        rejected ??= new Map();
        rejected.set(this.#keyOf(name), record);
      } else if (this.#rejections.size > 0 && (status === 'success' || status === 'started'))
        this.#rejections.delete(name);
    }
    let exhausted: ToolwrightError | undefined;
    for (const [key, record] of rejected ?? []) {
      const inRow = (this.#rejections.get(key) ?? 0) + 1;
      this.#rejections.set(key, inRow);
      this.#total += 1;
      const { name, result } = record;
      const allowed = this.#tools.offered(name)?.retries ?? this.#maxRetries;
      const most = TOTAL_FACTOR * Math.max(allowed, this.#maxRetries);
      if (inRow <= allowed && this.#total <= most) continue;
      const what =
        inRow > allowed
          ? `${inRow} unusable calls in a row, and may correct itself ${allowed} times`
          : `${this.#total} unusable calls in this run, and may send ${most}`;
      const message = `The model sent ${what} (last: '${name}').`;
      exhausted ??= new ToolwrightError('ToolRetriesExhausted', message, { cause: result.error });
    }
    return exhausted;
  }

  #keyOf(name: string): string | typeof UNKNOWN {
    return this.#tools.offered(name) === undefined ? UNKNOWN : name;
  }
}
