/*
 * Times candidates against each other. They take turns in one process, each round beginning with another
 * one, so that what the machine does meanwhile hits all of them; what counts is the median of the rounds.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// A collection that is asked for would also throw away the compiled code of whoever has not run lately.
setFlagsFromString('--no-flush-bytecode');

/** Clears away what the candidate before has left, which the next would otherwise pay for. */
export const collectGarbage = runInNewContext('gc');

/** The middle of some numbers. */
export function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The number below which such a share of the numbers lies. */
export function quantile(numbers, share) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) * share)];
}

/** The items, beginning with the one at `start`. */
export function rotated(items, start) {
  const first = start % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

/**
 * What a call of each candidate costs, as a map from its name to `{ time, ratio }`: microseconds, and how
 * many times the first candidate of the same round. A candidate is `{ name, call, inputs }`.
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

/* Ratios by round: what slows the machine for a second slows both, and falls out. */
function summary(times, base) {
  return {
    time: median(times) * 1_000,
    ratio: median(times.map((time, round) => time / base[round])),
  };
}

/** Calls until the engine has settled; gives how many calls make up one round. */
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

/** Milliseconds of a number of calls, one after the other. */
async function timeBatch({ call, inputs }, batch) {
  const { length } = inputs;
  const since = performance.now();
  for (let index = 0; index < batch; index += 1) await call(inputs[index % length]);
  return performance.now() - since;
}
