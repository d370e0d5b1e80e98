/** A work of two sizes, whose times are compared. */
export interface Growth {
  readonly small: () => unknown;
  readonly large: () => unknown;
  /** The most times that the large one may take as long as the small one. */
  readonly most: number;
  /** A shorter time is noise, in milliseconds. */
  readonly noiseMs: number;
}

const ATTEMPTS = 15;

/**
 * How many times as long the large work takes as the small one, in processor time: the least of several attempts. The
 * speed of a shared machine changes from second to second, so that each attempt measures the small work before and
 * after the large one.
 */
export async function leastGrowth({ small, large, most, noiseMs }: Growth): Promise<number> {
  let growth = Number.POSITIVE_INFINITY;
  let before = await processorMs(small);
  for (let attempt = 0; attempt < ATTEMPTS && growth >= most; attempt += 1) {
    const largeMs = await processorMs(large);
    if (largeMs < most * noiseMs) return largeMs / noiseMs;
    const after = await processorMs(small);
    growth = Math.min(growth, largeMs / Math.max(noiseMs, Math.min(before, after)));
    before = after;
  }
  return growth;
}

async function processorMs(work: () => unknown): Promise<number> {
  const since = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
