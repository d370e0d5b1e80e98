const TIMES = Number(process.env.TOOLWRIGHT_RUNS ?? 1);

/** Whether this is `npm run test:long`, which also uses larger inputs. */
export const isLong = TIMES > 1;

/** The number of cases of a property; `npm run test:long` multiplies it. */
export function runs(usual: number): number {
  return usual * TIMES;
}
