// Random choices from a seed, so that a failed run can be repeated.

/** The generator is mulberry32: numbers from 0 up to, but not including, 1. */
export function createRandom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count) => Math.floor(next() * count);
  return {
    below,
    chance: (share) => next() < share,
    /** Returns the value of one of the `[weight, value]` pairs. */
    weighted: (pairs) => {
      let left = next() * pairs.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, value] of pairs) {
        left -= weight;
        if (left < 0) return value;
      }
      return pairs.at(-1)[1];
    },
  };
}
