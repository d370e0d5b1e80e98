const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;
/** So far apart many jobs return, as far as the longest delay allows: they must not take the time of the others. */
const APART_MS = 30;
/** For how long other workers may have the tool of a job, as in a rolling deploy. */
const MISSING_TOOL_MS = 600_000;
/** Jobs that are remembered. */
const REMEMBERED = 10_000;

/** The jobs that came to this process, which does not have their tools. */
export class MissingTools {
  readonly #limitMs: number;
  /** When each job came here first, by a clock that cannot be set. */
  readonly #since = new Map<string, number>();
  /** When the latest jobs were returned, for as long as the longest delay. */
  readonly #returned: number[] = [];

  constructor(limitMs = MISSING_TOOL_MS) {
    this.#limitMs = limitMs;
  }

  /**
   * Milliseconds for which a job is returned to its queue: a second at its first beginning, twice that at each further
   * one, and longer if many are returned. `undefined` if no other worker has taken it for too long.
   */
  delayOf(jobId: string, attempt: number): number | undefined {
    const now = performance.now();
    const since = this.#since.get(jobId) ?? now;
    if (now - since >= this.#limitMs) return undefined;
    this.#since.delete(jobId);
    this.#since.set(jobId, since);
    const [oldest] = this.#since.keys();
    if (this.#since.size > REMEMBERED && oldest !== undefined) this.#since.delete(oldest);
    const returned = this.#countReturn(now);
    const growing = FIRST_DELAY_MS * 2 ** (attempt - 1);
    return Math.min(LONGEST_DELAY_MS, Math.max(growing, returned * APART_MS));
  }

  #countReturn(now: number): number {
    const isOver = (at: number | undefined) => at !== undefined && now - at > LONGEST_DELAY_MS;
    while (isOver(this.#returned[0])) this.#returned.shift();
    return this.#returned.push(now);
  }
}
