/*
 * Compares the times of candidates. They alternate in one process, and each round starts with another candidate, so
 * that other load affects all of them. The figure is the median of the rounds.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// Otherwise an explicit collection would also discard the compiled code of candidates that have not run recently.
setFlagsFromString('--no-flush-bytecode');

/** Collects the garbage of a candidate, so that it does not slow the next candidate. */
export const collectGarbage = runInNewContext('gc');

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function quantile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * share)];
}

/** Returns the items in a rotated order that begins at the index `start`. */
export function rotated(items, start) {
  const first = start % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

/**
 * Returns a map from the name of each candidate to `{ time, ratio }`: microseconds per call, and the ratio to the first
 * candidate of the same round. A candidate is `{ name, call, inputs }`.
 */
export async function timeCalls(candidates, { rounds, roundMs, warmUpMs }) {
  const runs = [];
  for (const candidate of candidates) {
    runs.push({ candidate, times: [], batch: await warmUp(candidate, warmUpMs, roundMs) });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const { candidate, batch, times } of rotated(runs, round)) {
      collectGarbage({ type: 'minor' });
      times.push((await timeBatch(candidate, batch)) / batch);
    }
  }
  const [{ times: base }] = runs;
  return new Map(runs.map(({ candidate, times }) => [candidate.name, summary(times, base)]));
}

/* Ratios within a round, because other load affects all candidates of the round. */
function summary(times, base) {
  return {
    time: median(times) * 1_000,
    ratio: median(times.map((time, round) => time / base[round])),
  };
}

/** Warms up a candidate; returns the number of calls for a round. */
async function warmUp(candidate, warmUpMs, roundMs) {
  let batch = 1;
  let spent = 0;
  let calls = 0;
  let last = 0;
  while (spent < warmUpMs) {
    last = await timeBatch(candidate, batch);
    spent += last;
    calls += batch;
    if (last < warmUpMs / 10) batch = Math.min(batch * 2, 65_536);
  }
  const perCall = calls > batch ? last / batch : spent / calls;
  return Math.max(1, Math.round(roundMs / perCall));
}

/** Returns the milliseconds of `batch` sequential calls. */
async function timeBatch({ call, inputs }, batch) {
  const { length } = inputs;
  const startedAt = performance.now();
  for (let index = 0; index < batch; index += 1) await call(inputs[index % length]);
  return performance.now() - startedAt;
}
