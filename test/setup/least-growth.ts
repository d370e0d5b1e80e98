/** The same work in two sizes, whose times are compared. */
export interface Growth {
  readonly small: () => unknown;
  readonly large: () => unknown;
  /** The largest acceptable ratio of the two times. */
  readonly most: number;
  /** Shorter times, in milliseconds, are noise. */
  readonly noiseMs: number;
}

const ATTEMPTS = 15;

/**
 * The smallest ratio of processor times, large to small, over several attempts. The speed of a shared machine changes
 * from second to second, so each attempt measures the small work before and after the large work.
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
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
