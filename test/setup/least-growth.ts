/** A work of two sizes, whose times are compared. */
export interface Growth {
  readonly small: () => unknown;
  readonly large: () => unknown;
  /** The most times that the large one may take as long as the small one. */
  readonly most: number;
  /** A shorter time is noise, in milliseconds. */
  readonly noiseMs: number;
}

const ATTEMPTS = 10;

/**
 * How many times as long the large work takes as the small one. Each counts with the least processor time of several
 * attempts: other processes and the compilation of the first attempts only make a time longer.
 */
export async function leastGrowth({ small, large, most, noiseMs }: Growth): Promise<number> {
  let largeMs = Number.POSITIVE_INFINITY;
  let smallMs = Number.POSITIVE_INFINITY;
  let growth = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && growth >= most; attempt += 1) {
    largeMs = Math.min(largeMs, await processorMs(large));
    if (largeMs < most * noiseMs) return largeMs / noiseMs;
    smallMs = Math.min(smallMs, await processorMs(small));
    growth = largeMs / Math.max(noiseMs, smallMs);
  }
  return growth;
}

async function processorMs(work: () => unknown): Promise<number> {
  const since = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
