import { hash } from 'node:crypto';
import type { CallRecord } from '../contract/call-record.js';
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
 * calls count against retries only (design §4, loop guard).
 */
export class LoopGuard {
  readonly #tellAt: number;
  readonly #endAt: number;
  readonly #seen = new Set<string>();
  #counts = new Map<string, number>();

  constructor({ tellAt = 3, endAt = 6 }: LoopGuardOptions = {}) {
    this.#tellAt = tellAt;
    this.#endAt = endAt;
  }

  /** Looks at the calls of one assistant message. */
  watch(records: readonly CallRecord[]): GuardVerdict {
    const calls = new Map<string, CallRecord[]>();
    for (const record of records) {
      if (record.status === 'rejected' || record.status === 'not_run') continue;
      const signature = signatureOf(record);
      if (signature === undefined) continue;
      calls.set(signature, [...(calls.get(signature) ?? []), record]);
    }
    if (!this.#isProgress([...calls.keys()])) return this.#count(calls);
    this.#counts = new Map([...calls.keys()].map((signature) => [signature, 1]));
    return NOTHING;
  }

  #isProgress(signatures: readonly string[]): boolean {
    const isNew = signatures.some((signature) => !this.#seen.has(signature));
    for (const signature of signatures) this.#seen.add(signature);
    return isNew;
  }

  #count(calls: ReadonlyMap<string, readonly CallRecord[]>): GuardVerdict {
    const notes = new Map<string, string>();
    let error: ToolwrightError | undefined;
    for (const [signature, records] of calls) {
      const count = (this.#counts.get(signature) ?? 0) + 1;
      this.#counts.set(signature, count);
      const name = records[0]?.name;
      if (count >= this.#endAt) error ??= stuck(String(name), count);
      if (count < this.#tellAt) continue;
      for (const { id } of records)
        notes.set(id, `[This call gave the same result ${count} times. Do something else.]`);
    }
    return { notes, error };
  }
}

/** A run keeps the signature of every call; of long ones only the digest. */
const LONG_SIGNATURE = 500;

/** What makes two calls the same; `undefined` where JSON cannot say it, as of big integers and circles. */
function signatureOf({ name, arguments: args, result }: CallRecord): string | undefined {
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
