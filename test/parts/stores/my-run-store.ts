import {
  type ClaimOutcome,
  type RunClaim,
  type RunLease,
  type RunState,
  type RunStore,
  ToolwrightError,
} from 'toolwright';

interface StoredRun {
  readonly revision: number;
  readonly json: string;
  readonly claim?: string;
  readonly leaseEnd?: number;
}

/** A complete `RunStore` to start from: docs/reference/stores.md links to it. Each method is atomic. */
export class MyRunStore implements RunStore {
  readonly #runs = new Map<string, StoredRun>();
  readonly #now: () => number;

  constructor({ now = Date.now }: { readonly now?: () => number } = {}) {
    this.#now = now;
  }

  save(state: RunState): void {
    const stored = this.#runs.get(state.runId);
    const next = written(state);
    const isOlder = stored && stored.revision < next.revision;
    if (stored && !(this.#isFree(stored) && (isOlder || stored.json === next.json)))
      throw new ToolwrightError(
        'RunClaimed',
        `Run '${state.runId}' is claimed, or a newer state of it is stored, or another of the same revision.`,
      );
    this.#runs.set(state.runId, next);
  }

  load(runId: string): RunState | undefined {
    const stored = this.#runs.get(runId);
    return stored && JSON.parse(stored.json);
  }

  claim({ runId, claim, leaseMs }: RunLease): ClaimOutcome {
    const stored = this.#runs.get(runId);
    if (stored === undefined) return { status: 'missing' };
    if (!this.#isFree(stored)) return { status: 'taken' };
    this.#runs.set(runId, { ...stored, claim, leaseEnd: this.#now() + leaseMs });
    return { status: 'claimed', state: JSON.parse(stored.json) };
  }

  renew({ runId, claim, leaseMs }: RunLease): boolean {
    const stored = this.#claimed({ runId, claim });
    if (stored !== undefined) this.#runs.set(runId, { ...stored, leaseEnd: this.#now() + leaseMs });
    return stored !== undefined;
  }

  release({ runId, claim }: RunClaim, state?: RunState): boolean {
    const stored = this.#claimed({ runId, claim });
    if (stored === undefined) return false;
    const { revision, json } = state === undefined ? stored : written(state);
    this.#runs.set(runId, { revision, json });
    return true;
  }

  remove({ runId, claim }: RunClaim): boolean {
    return this.#claimed({ runId, claim }) !== undefined && this.#runs.delete(runId);
  }

  #isFree({ leaseEnd = 0 }: StoredRun): boolean {
    return leaseEnd <= this.#now();
  }

  // An expired claim is valid until the run is claimed again.
  #claimed({ runId, claim }: RunClaim): StoredRun | undefined {
    const stored = this.#runs.get(runId);
    return stored?.claim === claim ? stored : undefined;
  }
}

function written(state: RunState): StoredRun {
  return { revision: state.revision, json: JSON.stringify(state) };
}
