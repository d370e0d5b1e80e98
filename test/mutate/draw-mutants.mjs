import { createHash } from 'node:crypto';

/** Changing it draws others. */
const SEED = 'toolwright 1';

/**
 * As many mutants of each room as the limit has place for, the same ones each time: a mutant's rank hangs on
 * its own line only, so that what is drawn stays drawn while other lines change.
 */
export function drawMutants(mutants, { rooms, limit }) {
  return rooms.flatMap((room, index) => {
    const share = Math.floor(limit / rooms.length) + (index < limit % rooms.length ? 1 : 0);
    const ranked = withKeys(mutants.filter((mutant) => mutant.room === room));
    ranked.sort((a, b) => (a.key < b.key ? -1 : 1));
    return ranked.slice(0, share).map((mutant, rank) => ({ ...mutant, rank }));
  });
}

/** The key is the rank; equal changes of equal lines are told apart by their order. */
function withKeys(mutants) {
  const times = new Map();
  return mutants.map((mutant) => {
    const change = [SEED, mutant.room, mutant.kind, mutant.source, mutant.from, mutant.to].join('\n');
    const nth = times.get(change) ?? 0;
    times.set(change, nth + 1);
    return { ...mutant, key: createHash('sha1').update(`${change}\n${nth}`).digest('hex') };
  });
}
