/**
 * The log that the turns of one conversation are taken from, and how its runs are driven: `StoredTurns` behind a lease
 * of a store, for several processes; `MemoryTurns` in the memory of one.
 *
 * In memory, a turn opens and ends synchronously and its listeners hear of it at once, in one order: what they read in
 * the conversation, and what they begin from within an event, is what that event says. A store only allows this later.
 */
export interface TurnLog<Entry, Turn, Result> {
  /** The turn that has begun and not ended. */
  readonly openTurn: Turn | undefined;
  /** What has waited longest for a turn. */
  readonly nextEntry: Entry | undefined;
  /** No turn begins or goes on, for now or any more. */
  readonly isStopped: boolean;
  /** Opens the turn of an entry, or refuses it. */
  begin(entry: Entry): void | Promise<void>;
  /** Whether the open turn can run now, waits for answers, or has just been ended here. */
  inspect(turn: Turn): TurnReadiness | Promise<TurnReadiness>;
  /** Runs the turn until it ends or waits for answers; `undefined` if it has to be inspected again. */
  run(turn: Turn): Promise<Result | undefined>;
  /** Ends the turn, or leaves it open while it waits for answers. */
  commit(turn: Turn, result: Result): void | Promise<void>;
  /** Ends the turn with an error, or leaves it open if its answers were refused; throws if it should be tried again. */
  fail(turn: Turn, error: unknown): void | Promise<void>;
}

export type TurnReadiness = 'ready' | 'waiting' | 'over';

/** Takes turns, one at a time and in order of arrival, until nothing is left to do for now. */
export async function processInbox<Entry, Turn, Result>(log: TurnLog<Entry, Turn, Result>): Promise<void> {
  while (!log.isStopped && (await processNext(log)));
}

/** Processes the next entry; false if the inbox has nothing to process. */
async function processNext<Entry, Turn, Result>(log: TurnLog<Entry, Turn, Result>): Promise<boolean> {
  const { openTurn, nextEntry } = log;
  if (openTurn === undefined) {
    if (nextEntry !== undefined) await log.begin(nextEntry);
    return nextEntry !== undefined;
  }
  const standing = await log.inspect(openTurn);
  if (standing !== 'ready') return standing === 'over';
  try {
    const result = await log.run(openTurn);
    if (result !== undefined) await log.commit(openTurn, result);
  } catch (error) {
    await log.fail(openTurn, error);
  }
  return true;
}
