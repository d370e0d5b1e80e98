import { canonicalJson } from '../checking/canonical-json.js';
import type { CallRecord } from '../contract/call-record.js';
import type { RunState } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { nodeCrypto } from '../kernel/node-module.js';
import { resultText } from '../registry/result-text.js';

/** When a run goes in circles: the same calls with the same results, and nothing new between them. */
export interface LoopGuardOptions {
  /** The model is told at so many repeats; default 3. */
  readonly tellAt?: number;
  /** The run ends at so many; default 6. */
  readonly endAt?: number;
}

/** What the guard says of the calls of one message. */
export interface GuardVerdict {
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
}

/** Calls of one tool with one result. */
interface Outcome {
  /** The only one so far: most results come once. */
  lone: SeenCall | undefined;
  readonly bySignature: Map<string, SeenCall>;
}

/**
 * Counts how often a call came back with the same result. A message with a call that was never seen is
 * progress and starts the count anew, so that A/B/A/B is found and a poll between other work is not. Rejected
 * calls count against retries only.
 */
export class LoopGuard {
  readonly #tellAt: number;
  readonly #endAt: number;
  readonly #outcomes = new Map<string, Outcome>();
  /** From before the run was suspended. */
  readonly #remembered = new Map<string, SeenCall>();
  #stretch = 0;

  constructor({ tellAt = 3, endAt = 6 }: LoopGuardOptions = {}, memory?: RunState['guard']) {
    this.#tellAt = tellAt;
    this.#endAt = endAt;
    const counts = new Map(memory?.counts);
    for (const signature of memory?.seen ?? []) {
      const count = counts.get(signature) ?? 0;
      this.#remembered.set(signature, { record: undefined, signature, count, stretch: 0 });
    }
  }

  /** What the guard has seen so far, for the state of a suspended run. */
  get memory(): NonNullable<RunState['guard']> {
    const outcomes = [...this.#outcomes.values()];
    const calls = [
      ...this.#remembered.values(),
      ...outcomes.flatMap(({ lone, bySignature }) => (lone ? [lone] : [...bySignature.values()])),
    ];
    const told = calls.flatMap((call): readonly [string, number][] => {
      const signature = signatureOf(call);
      return signature === undefined ? [] : [[signature, this.#countOf(call)]];
    });
    return { seen: told.map(([signature]) => signature), counts: told.filter(([, count]) => count > 0) };
  }

  /** Looks at the calls of one assistant message. */
  watch(records: readonly CallRecord[]): GuardVerdict {
    const next = this.#stretch + 1;
    const calls = records.map((record) => this.#find(record, next));
    if (calls.some((call) => call?.stretch === next)) this.#stretch = next;
    let verdict = NOTHING;
    const counted = new Set<SeenCall>();
    for (const [index, call] of calls.entries()) {
      const record = records[index];
      if (call === undefined || record === undefined) continue;
      // Of the same calls in one message, all are told and one is counted.
      call.count = this.#countOf(call) + (counted.has(call) ? 0 : 1);
      call.stretch = this.#stretch;
      counted.add(call);
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
    const key = outcomeOf(record);
    if (key === undefined) return undefined;
    const call: SeenCall = { record, signature: undefined, count: 0, stretch };
    const remembered = this.#remembered.size > 0 && this.#remembered.get(signatureOf(call) ?? '');
    if (remembered) return remembered;
    const outcome = this.#outcomes.get(key);
    if (outcome === undefined) {
      this.#outcomes.set(key, { lone: call, bySignature: new Map() });
      return call;
    }
    return findAmong(outcome, call);
  }

  #judge({ notes, error }: GuardVerdict, { id, name }: CallRecord, count: number): GuardVerdict {
    const note = `[This call gave the same result ${count} times. Do something else.]`;
    return {
      notes: count >= this.#tellAt ? new Map([...notes, [id, note]]) : notes,
      error: error ?? (count >= this.#endAt ? stuck(name, count) : undefined),
    };
  }
}

function findAmong(outcome: Outcome, call: SeenCall): SeenCall | undefined {
  const { lone, bySignature } = outcome;
  outcome.lone = undefined;
  const first = lone && signatureOf(lone);
  if (lone !== undefined && first !== undefined) bySignature.set(first, lone);
  const signature = signatureOf(call);
  if (signature === undefined) return undefined;
  const seen = bySignature.get(signature);
  if (seen === undefined) bySignature.set(signature, call);
  return seen ?? call;
}

/** A run keeps what every call gave; of long texts only the digest. */
const LONG_TEXT = 500;

/** The tool and what it gave; `undefined` for calls that count against retries only. */
function outcomeOf({ name, status, result }: CallRecord): string | undefined {
  if (status === 'rejected' || status === 'not_run') return undefined;
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
    call.signature = shortened(`${args}\n${outcomeOf(call.record)}`);
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
