const TIMES = Number(process.env.TOOLWRIGHT_RUNS ?? 1);

/** Whether this is `npm run test:long`, in which work may be larger too. */
export const isLong = TIMES > 1;

/** How many runs a property has: as many as are usual, or a multiple of them in `npm run test:long`. */
export function runs(usual: number): number {
  return usual * TIMES;
}
