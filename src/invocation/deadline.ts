import { MAX_TIMER_MS } from './max-timer-ms.js';

let waiting: Deadline[] = [];
let isScheduled = false;

/**
 * Calls `expire` after so many milliseconds, unless it was met before. The timer is only set at the end of
 * the event loop's turn: most calls have ended by then, and a timer costs as much as all the rest of a call.
 */
export class Deadline {
  readonly #ms: number;
  readonly #expire: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isMet = false;

  constructor(ms: number, expire: () => void) {
    this.#ms = ms;
    this.#expire = expire;
    waiting.push(this);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(armAll);
  }

  /** It need not expire any more. */
  meet(): void {
    this.#isMet = true;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    // Of calls one after the other, none is kept until the turn ends.
    else if (waiting.at(-1) === this) waiting.pop();
  }

  /** Sets the timer, if there is still something to wait for. */
  arm(): void {
    if (!this.#isMet) this.#timer = setTimeout(this.#expire, Math.min(this.#ms, MAX_TIMER_MS));
  }
}

function armAll(): void {
  isScheduled = false;
  const due = waiting;
  waiting = [];
  for (const deadline of due) deadline.arm();
}
