import { AsyncLocalStorage } from 'node:async_hooks';
import { nextTurn, unlessAborted } from '../kernel/async.js';

/** Whose turn it is. */
interface TurnOptions {
  readonly shared: object;
  /** Tells the shared object of the call whose turn this is. */
  readonly enter: () => void;
  /** Hears what the shared object throws when it is told again of an outer call. */
  readonly onError: (error: unknown) => void;
}

/** Who waits for an object, or for a turn on it within another. */
interface Line {
  /** Ends when all of its turns have. */
  tail?: Promise<void> | undefined;
  last?: ExclusiveTurn | undefined;
}

/** How the wait for a turn ended; `stuck`: it would never end. */
type TurnBeginning = 'begun' | 'aborted' | 'stuck';

const lines = new WeakMap<object, Line>();

/** The turn in which code runs. Only shared objects have turns, so that no other call pays for this. */
const current = new AsyncLocalStorage<ExclusiveTurn>();

/**
 * A call's turn on a shared object. `setContext` and `setCallback` store on it, so that calls of such an object
 * must not overlap. A call that is made within a turn on the same object does not wait for that turn, which waits
 * for it: such calls have a line of their own, and when they end, the object is told of the outer call again.
 */
export class ExclusiveTurn {
  readonly #options: TurnOptions;
  readonly #outer: ExclusiveTurn | undefined;
  readonly #line: Line = {};
  #release: () => void = () => {};
  /** The turn on the same object that this one is a part of. */
  #within: ExclusiveTurn | undefined;
  #isOver = false;
  /** Where it stands, and behind whom. */
  #place: Line | undefined;
  #previous: ExclusiveTurn | undefined;
  /** Turns on other objects that calls made within this one wait for. */
  #awaited: Set<ExclusiveTurn> | undefined;

  constructor(options: TurnOptions) {
    this.#options = options;
    let outer = current.getStore();
    // What is over is let go: work that starts work would make a chain without an end.
    while (outer?.isOver) outer = outer.#outer;
    this.#outer = outer;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The turn in which the code that runs now was started, whether it is over or not. */
  static on(shared: object): ExclusiveTurn | undefined {
    let turn = current.getStore();
    while (turn !== undefined && turn.#options.shared !== shared) turn = turn.#outer;
    return turn;
  }

  /** Waits until all earlier turns have ended, and begins; an abort ends the wait. */
  async begin(signal: AbortSignal | undefined): Promise<TurnBeginning> {
    this.#within = this.#openTurnAround();
    const line = this.#within === undefined ? lineOf(this.#options.shared) : this.#within.#line;
    const { tail: before, last } = line;
    const turn = new Promise<void>((resolve) => {
      this.#release = resolve;
    });
    line.tail = before ? before.then(() => turn) : turn;
    line.last = this;
    this.#place = line;
    this.#previous = last;
    // Turns only end, they never fail: what rejects here is the abort, which ends the wait like a turn's end.
    const wait = before && signal ? unlessAborted(before, signal).catch(() => {}) : before;
    if (wait !== undefined && (await this.#waitOrStick(wait))) return 'stuck';
    if (signal?.aborted) return 'aborted';
    this.#previous = undefined;
    return 'begun';
  }

  /** Waits; `true` where that would never end. Only what is called within another turn can close a ring. */
  async #waitOrStick(wait: Promise<void>): Promise<boolean> {
    const holding = this.#held();
    if (holding.size === 0) {
      await wait;
      return false;
    }
    for (const turn of holding) {
      turn.#awaited ??= new Set();
      turn.#awaited.add(this);
    }
    try {
      // A body that does not wait for what it calls may end by then.
      const isOver = await Promise.race([wait.then(() => true), nextTurn().then(() => false)]);
      if (!isOver && this.#isInRing(holding)) return true;
      await wait;
      return false;
    } finally {
      for (const turn of holding) turn.#awaited?.delete(this);
    }
  }

  /** The turns that cannot end before this one does. */
  #held(): ReadonlySet<ExclusiveTurn> {
    const held = new Set<ExclusiveTurn>();
    for (let turn = this.#outer; turn !== undefined; turn = turn.#outer) {
      if (turn.#isOver) continue;
      for (let kept: ExclusiveTurn | undefined = turn; kept !== undefined; kept = kept.#within)
        held.add(kept);
    }
    return held;
  }

  /** Whether a turn that this one waits for, directly or not, waits for one of those. */
  #isInRing(held: ReadonlySet<ExclusiveTurn>): boolean {
    const seen = new Set<ExclusiveTurn>();
    const open = [this.#previous];
    for (const turn of open) {
      if (turn === undefined || seen.has(turn)) continue;
      if (held.has(turn)) return true;
      seen.add(turn);
      open.push(turn.#previous);
      for (const awaited of turn.#awaited ?? []) open.push(awaited.#previous);
    }
    return false;
  }

  /** Does the work of the turn, and ends it when that is done. */
  async run<Value>(work: () => Value | Promise<Value>): Promise<Value> {
    try {
      return await current.run(this, () => {
        this.#options.enter();
        return work();
      });
    } finally {
      this.end();
    }
  }

  /** Ends the turn, once those within it have ended too. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { tail } = this.#line;
    if (tail === undefined) this.#leave();
    else void tail.then(() => this.#leave());
  }

  #leave(): void {
    const outer = this.#within;
    if (outer !== undefined && !outer.isOver) outer.#enterAgain();
    this.#release();
    const line = this.#place;
    // Nobody is left to wait for; one whose wait was cut short may have others before it.
    if (line?.last !== this || this.#previous !== undefined) return;
    line.tail = undefined;
    line.last = undefined;
  }

  #enterAgain(): void {
    try {
      this.#options.enter();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #openTurnAround(): ExclusiveTurn | undefined {
    let turn = this.#outer;
    while (turn !== undefined && (turn.isOver || turn.#options.shared !== this.#options.shared))
      turn = turn.#outer;
    return turn;
  }
}

function lineOf(shared: object): Line {
  const known = lines.get(shared);
  if (known !== undefined) return known;
  const line: Line = {};
  lines.set(shared, line);
  return line;
}
