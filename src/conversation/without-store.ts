import type { StoredTurn } from './conversation-snapshot.js';

/** The turn as a closing conversation leaves it: its run is aborted, and the end of a run takes it out of the store. */
export function withoutStore(turn: StoredTurn | undefined): StoredTurn | undefined {
  if (turn?.standing.status !== 'answered') return turn;
  return { ...turn, standing: { ...turn.standing, isKept: false } };
}
