import { MAX_TIMER_MS } from '../kernel/async.js';

/** A lease, and who hears of it. */
interface RenewedLease<Renewal> {
  readonly leaseMs: number;
  /** Asks the store for as much time again. */
  readonly renew: () => Renewal | Promise<Renewal>;
  /** Hears what the store said; false where the lease is somebody else's by now. */
  readonly take: (renewal: Renewal) => boolean;
  /** The store could not be asked for so long that the lease has ended: somebody else may have taken it. */
  readonly fail: (cause: unknown) => void;
}

/** Renews a lease at every third of it, until it is over or lost. */
export class LeaseRenewal<Renewal> {
  readonly #lease: RenewedLease<Renewal>;
  #timer: NodeJS.Timeout | undefined;
  #renewedAt = 0;
  #isOver = false;

  constructor(lease: RenewedLease<Renewal>) {
    this.#lease = lease;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The lease was asked for at this time, by `performance.now()`. */
  begin(since: number): void {
    this.#renewedAt = since;
    this.#schedule();
  }

  /** Renews it now; what the store says is taken only while the lease is not over. */
  async renew(): Promise<void> {
    const { leaseMs, renew, take, fail } = this.#lease;
    const now = performance.now();
    try {
      const renewal = await renew();
      if (this.#isOver || !take(renewal)) return;
      this.#renewedAt = now;
    } catch (cause) {
      if (this.#isOver) return;
      // The store may come back in time.
      if (now - this.#renewedAt >= leaseMs) {
        fail(cause);
        return;
      }
    }
    this.#schedule();
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    const wait = Math.min(this.#lease.leaseMs / 3, MAX_TIMER_MS);
    this.#timer = setTimeout(() => void this.renew(), wait).unref();
  }
}
