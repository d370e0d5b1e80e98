// 100,000 calls in runs that are aborted, abandoned, timed out, failed and repaired at random.
// Exits with code 1 if memory grows or a call is not answered.
// npm run soak -- [calls] [seed]
import { megabytes, settledHeap } from './heap.mjs';
import { createRandom } from './random.mjs';
import { historyFaults, runRandomly } from './soak-run.mjs';
import { soakTools } from './soak-tools.mjs';

const CALLS = Number(process.argv[2] ?? 100_000);
const SEED = Number(process.argv[3] ?? 20_241_117);
/** High, because a run spends most of its time waiting. */
const CONCURRENCY = 40;
const MAX_SECONDS = 240;
/** Maximum ratio of the heap at the end to the heap after a fifth of the calls. */
const MAX_GROWTH = 1.15;
/** Memory that the garbage collector and the compiler may retain, independent of the size of the heap. */
const SLACK_BYTES = 2 * 2 ** 20;

if (globalThis.gc === undefined) {
  console.error('The soak measures memory: run it with node --expose-gc.');
  process.exit(1);
}

const counts = { runs: {}, calls: {}, repaired: 0, trimmed: 0, completions: 0 };
const faults = [];
process.on('unhandledRejection', (reason) => faults.push(`unhandled rejection: ${reason?.stack ?? reason}`));

const random = createRandom(SEED);
const tools = soakTools();
const startedAt = performance.now();
let calls = 0;

function count(group, key) {
  group[key] = (group[key] ?? 0) + 1;
}

function record(result) {
  faults.push(...historyFaults(result));
  count(counts.runs, result.status);
  calls += result.toolCalls.length;
  for (const { status, repairs, removed } of result.toolCalls) {
    count(counts.calls, status);
    if (repairs.length > 0) counts.repaired += 1;
    if (removed.length > 0) counts.trimmed += 1;
  }
}

const onAsyncResult = () => {
  counts.completions += 1;
};

/** Starts runs until `limit` calls were made in total. */
async function runUntil(limit) {
  const isOver = () => calls >= limit || faults.length > 20 || elapsedSeconds() > MAX_SECONDS;
  const startRuns = async () => {
    while (!isOver()) {
      try {
        record(await runRandomly(random, tools, onAsyncResult));
      } catch (error) {
        faults.push(`a run threw: ${error?.stack ?? error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, startRuns));
}

function elapsedSeconds() {
  return (performance.now() - startedAt) / 1000;
}

await runUntil(CALLS / 5);
const early = await settledHeap();
await runUntil(CALLS);
const late = await settledHeap();

console.log(`seed ${SEED}: ${calls} calls in ${elapsedSeconds().toFixed(1)} s`);
console.log('runs ', JSON.stringify(counts.runs));
console.log('calls', JSON.stringify(counts.calls));
console.log(`${counts.repaired} repaired, ${counts.trimmed} trimmed, ${counts.completions} completed later`);
console.log(`heap ${megabytes(early)} after a fifth, ${megabytes(late)} at the end`);
if (counts.completions !== counts.calls.started)
  faults.push(`${counts.calls.started} calls were started and ${counts.completions} completed`);
if (calls < CALLS) faults.push(`only ${calls} of ${CALLS} calls in ${MAX_SECONDS} s`);
if (late > early * MAX_GROWTH + SLACK_BYTES) faults.push('the heap has grown');
for (const fault of faults.slice(0, 20)) console.error(`fault: ${fault}`);
console.log(faults.length === 0 ? 'every call answered, no memory growth' : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
