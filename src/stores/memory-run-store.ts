import type { ClaimOutcome, RunClaim, RunLease, RunState, RunStore } from '../contract/run-state.js';
import { checkOptions } from '../errors/author-fault.js';
import { FUNCTION, optionTable } from '../kernel/options.js';
import { checkAge, refusedSave } from './store-checks.js';

/** How a {@link MemoryRunStore} tells the time. */
export interface MemoryRunStoreOptions {
  /** Milliseconds since any moment; default: `Date.now`. A seam for tests. */
  readonly now?: () => number;
}

const OPTIONS = optionTable<MemoryRunStoreOptions>('MemoryRunStore', { now: FUNCTION });

interface KeptRun {
  readonly revision: number;
  /** As JSON: what is given out must not change what is kept, and any other store keeps no more than this. */
  readonly state: string;
  readonly keptAt: number;
  readonly claimed?: { readonly claim: string; readonly leaseEnd: number };
}

/**
 * Keeps suspended runs in this process, as long as it lives: for tests, and for a single process whose runs
 * need not outlive it. `SqliteRunStore` keeps them for good.
 *
 * @example
 * ```ts
 * const store = new MemoryRunStore();
 * const run = await runToolLoop({ provider, model, tools, store }, messages);
 * if (run.state) await resumeStoredRun({ provider, model, tools }, { store, runId: run.state.runId }, answers);
 * ```
 */
export class MemoryRunStore implements RunStore {
  readonly #runs = new Map<string, KeptRun>();
  readonly #now: () => number;

  constructor(options: MemoryRunStoreOptions = {}) {
    checkOptions(options, OPTIONS);
    this.#now = options.now ?? Date.now;
  }

  /** Throws `RunClaimed` (517) where the run is claimed, or where what is kept is newer. */
  save(state: RunState): void {
    const kept = this.#runs.get(state.runId);
    if (kept !== undefined && (!this.#isFree(kept) || kept.revision > state.revision))
      throw refusedSave(state.runId);
    this.#keep(state.runId, state);
  }

  load(runId: string): RunState | undefined {
    const kept = this.#runs.get(runId);
    return kept && read(kept);
  }

  claim({ runId, claim, leaseMs }: RunLease): ClaimOutcome {
    const kept = this.#runs.get(runId);
    if (kept === undefined) return { status: 'missing' };
    if (!this.#isFree(kept)) return { status: 'taken' };
    this.#runs.set(runId, { ...kept, claimed: { claim, leaseEnd: this.#now() + leaseMs } });
    return { status: 'claimed', state: read(kept) };
  }

  renew({ leaseMs, ...claim }: RunLease): boolean {
    const kept = this.#claimedBy(claim);
    if (kept === undefined) return false;
    this.#runs.set(claim.runId, {
      ...kept,
      claimed: { claim: claim.claim, leaseEnd: this.#now() + leaseMs },
    });
    return true;
  }

  release(claim: RunClaim, state?: RunState): boolean {
    const kept = this.#claimedBy(claim);
    if (kept === undefined) return false;
    if (state === undefined) this.#runs.set(claim.runId, { ...kept, claimed: undefined });
    else this.#keep(claim.runId, state);
    return true;
  }

  remove(claim: RunClaim): boolean {
    return this.#claimedBy(claim) !== undefined && this.#runs.delete(claim.runId);
  }

  /**
   * Forgets the runs that nobody claims and that have been kept for so many milliseconds, because nobody will
   * answer them any more. Gives their number.
   */
  removeOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.#now() - ageMs;
    const old = [...this.#runs].filter(([, kept]) => this.#isFree(kept) && kept.keptAt <= limit);
    for (const [runId] of old) this.#runs.delete(runId);
    return old.length;
  }

  #keep(runId: string, state: RunState): void {
    const { revision } = state;
    this.#runs.set(runId, { revision, state: JSON.stringify(state), keptAt: this.#now() });
  }

  #isFree({ claimed }: KeptRun): boolean {
    return claimed === undefined || claimed.leaseEnd <= this.#now();
  }

  #claimedBy({ runId, claim }: RunClaim): KeptRun | undefined {
    const kept = this.#runs.get(runId);
    return kept?.claimed?.claim === claim ? kept : undefined;
  }
}

function read({ state }: KeptRun): RunState {
  return JSON.parse(state) as RunState;
}
