import { hash } from 'node:crypto';
import type { CallRecord } from '../contract/call-record.js';
import type { RunState } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
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

/**
 * Counts how often a call came back with the same result. A message with a call that was never seen is
 * progress and starts the count anew, so that A/B/A/B is found and a poll between other work is not. Rejected
 * calls count against retries only.
 */
export class LoopGuard {
  readonly #tellAt: number;
  readonly #endAt: number;
  readonly #seen: Set<string>;
  readonly #counts: Map<string, number>;

  constructor({ tellAt = 3, endAt = 6 }: LoopGuardOptions = {}, memory?: RunState['guard']) {
    this.#tellAt = tellAt;
    this.#endAt = endAt;
    this.#seen = new Set(memory?.seen);
    this.#counts = new Map(memory?.counts);
  }

  /** What the guard has seen so far, for the state of a suspended run. */
  get memory(): NonNullable<RunState['guard']> {
    return { seen: [...this.#seen], counts: [...this.#counts] };
  }

  /** Looks at the calls of one assistant message. */
  watch(records: readonly CallRecord[]): GuardVerdict {
    const signatures = records.map(signatureOf);
    if (this.#isProgress(signatures)) this.#counts.clear();
    let verdict = NOTHING;
    const counted = new Set<string>();
    signatures.forEach((signature, index) => {
      const record = records[index];
      if (signature === undefined || record === undefined) return;
      // Of the same calls in one message, all are told and one is counted.
      const count = (this.#counts.get(signature) ?? 0) + (counted.has(signature) ? 0 : 1);
      counted.add(signature);
      this.#counts.set(signature, count);
      if (count >= this.#tellAt || count >= this.#endAt) verdict = this.#judge(verdict, record, count);
    });
    return verdict;
  }

  /** Whether there was a call that was never seen; from now on it was. */
  #isProgress(signatures: readonly (string | undefined)[]): boolean {
    const before = this.#seen.size;
    for (const signature of signatures) if (signature !== undefined) this.#seen.add(signature);
    return this.#seen.size > before;
  }

  #judge({ notes, error }: GuardVerdict, { id, name }: CallRecord, count: number): GuardVerdict {
    const note = `[This call gave the same result ${count} times. Do something else.]`;
    return {
      notes: count >= this.#tellAt ? new Map([...notes, [id, note]]) : notes,
      error: error ?? (count >= this.#endAt ? stuck(name, count) : undefined),
    };
  }
}

/** A run keeps the signature of every call; of long ones only the digest. */
const LONG_SIGNATURE = 500;

/**
 * What makes two calls the same; `undefined` for calls that count against retries only, and where JSON
 * cannot say it, as of big integers and circles.
 */
function signatureOf({ name, status, arguments: args, result }: CallRecord): string | undefined {
  if (status === 'rejected' || status === 'not_run') return undefined;
  try {
    // Two screenshots have the same text, and are not the same result.
    const pictures = result.content?.filter(({ type }) => type !== 'text') ?? [];
    const parts = pictures.length === 0 ? '' : JSON.stringify(pictures);
    const signature = `${name}\n${JSON.stringify(args)}\n${resultText(result)}\n${parts}`;
    return signature.length > LONG_SIGNATURE ? hash('sha256', signature) : signature;
  } catch {
    return undefined;
  }
}

function stuck(name: string, count: number): ToolwrightError {
  return new ToolwrightError(
    'ToolLoopStuck',
    `The model called '${name}' ${count} times with the same arguments and the same result.`,
  );
}
