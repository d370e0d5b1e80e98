import { createHash } from 'node:crypto';

/** Another seed selects other mutants. */
const SEED = 'toolwright 1';

/**
 * Selects an equal number of mutants of each part, always the same. The rank of a mutant depends only on its own line,
 * so that changes of other lines do not change the sample.
 */
export function sampleMutants(mutants, { parts, limit }) {
  return parts.flatMap((part, index) => {
    const share = Math.floor(limit / parts.length) + (index < limit % parts.length ? 1 : 0);
    const ranked = withKeys(mutants.filter((mutant) => mutant.part === part));
    ranked.sort((a, b) => (a.key < b.key ? -1 : 1));
    return ranked.slice(0, share).map((mutant, rank) => ({ ...mutant, rank }));
  });
}

/** The key is a hash that determines the rank; equal changes of equal lines are distinguished by their order. */
function withKeys(mutants) {
  const times = new Map();
  return mutants.map((mutant) => {
    const change = [SEED, mutant.part, mutant.kind, mutant.source, mutant.from, mutant.to].join('\n');
    const nth = times.get(change) ?? 0;
    times.set(change, nth + 1);
    return { ...mutant, key: createHash('sha1').update(`${change}\n${nth}`).digest('hex') };
  });
}
