/** A work of two sizes, whose times are compared. */
export interface Growth {
  readonly small: () => unknown;
  readonly large: () => unknown;
  /** The most times that the large one may take as long as the small one. */
  readonly most: number;
  /** A shorter time is noise, in milliseconds. */
  readonly noiseMs: number;
}

const ATTEMPTS = 5;
const TRIES_OF_SMALL = 3;

/**
 * How many times as long the large work takes, in the time of the processor, which no busy machine lengthens; the
 * least of a few attempts if it is too much. The first attempts of a work are slow, because they are compiled.
 */
export async function leastGrowth({ small, large, most, noiseMs }: Growth): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && least >= most; attempt += 1) {
    const time = await processorMs(large);
    // However short the small work is, it counts as this: mostly nobody has to know its time.
    least = Math.min(least, time / noiseMs);
    if (least < most) break;
    const times: number[] = [];
    for (let tried = 0; tried < TRIES_OF_SMALL; tried += 1) times.push(await processorMs(small));
    least = Math.min(least, time / Math.max(noiseMs, Math.min(...times)));
  }
  return least;
}

async function processorMs(work: () => unknown): Promise<number> {
  const since = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}
