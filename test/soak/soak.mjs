// 100,000 calls through runs that are aborted, left, timed out, thrown out of and repaired at random:
// ends with flat memory and not one unanswered id, or with exit code 1.
// npm run soak -- [calls] [seed]
import { megabytes, settledHeap } from './heap.mjs';
import { createRandom } from './random.mjs';
import { historyFaults, playRun } from './soak-run.mjs';
import { soakTools } from './soak-tools.mjs';

const CALLS = Number(process.argv[2] ?? 100_000);
const SEED = Number(process.argv[3] ?? 20_241_117);
/** Runs that are under way at the same time: most of a run's time is waiting. */
const AT_ONCE = 40;
const MOST_SECONDS = 240;
/** The heap at the end, compared with the heap after a fifth of the calls. */
const MOST_GROWTH = 1.15;
/** What the collector and the compiler may hold back, whatever the size of the heap. */
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
const since = performance.now();
let calls = 0;

function count(group, key) {
  group[key] = (group[key] ?? 0) + 1;
}

function take(result) {
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

/** Plays runs until so many calls were made. */
async function playUntil(limit) {
  const isOver = () => calls >= limit || faults.length > 20 || secondsGone() > MOST_SECONDS;
  const player = async () => {
    while (!isOver()) {
      try {
        take(await playRun(random, tools, onAsyncResult));
      } catch (error) {
        faults.push(`a run threw: ${error?.stack ?? error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, player));
}

function secondsGone() {
  return (performance.now() - since) / 1000;
}

await playUntil(CALLS / 5);
const early = await settledHeap();
await playUntil(CALLS);
const late = await settledHeap();

console.log(`seed ${SEED}: ${calls} calls in ${secondsGone().toFixed(1)} s`);
console.log('runs ', JSON.stringify(counts.runs));
console.log('calls', JSON.stringify(counts.calls));
console.log(`${counts.repaired} repaired, ${counts.trimmed} trimmed, ${counts.completions} completed later`);
console.log(`heap ${megabytes(early)} after a fifth, ${megabytes(late)} at the end`);
if (counts.completions !== counts.calls.started)
  faults.push(`${counts.calls.started} calls were started and ${counts.completions} completed`);
if (calls < CALLS) faults.push(`only ${calls} of ${CALLS} calls in ${MOST_SECONDS} s`);
if (late > early * MOST_GROWTH + SLACK_BYTES) faults.push('the heap has grown');
for (const fault of faults.slice(0, 20)) console.error(`fault: ${fault}`);
console.log(faults.length === 0 ? 'not one unanswered id, and flat memory' : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
