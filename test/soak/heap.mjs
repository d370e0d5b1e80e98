/** Returns the heap size after pending timers have fired and the garbage collector has run. */
export async function settledHeap() {
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (let round = 0; round < 4; round += 1) {
    globalThis.gc();
    await new Promise(setImmediate);
  }
  return process.memoryUsage().heapUsed;
}

export const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
