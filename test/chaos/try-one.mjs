// Tries one store with one engine: breaks what it can for some seconds, lets all end, and looks what came of it.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Conversations } from '../../dist/src/index.js';
import { createRandom } from '../soak/random.mjs';
import { openBank } from './bank.mjs';
import { checkRun, keptOf, waitsIn } from './checks.mjs';
import { driveConversation, PROMPTS, promptTwice, untilIdle } from './driver.mjs';
import { givenUp, locksLeft } from './locks.mjs';
import { migrateBullmq, openStore } from './open.mjs';
import { startPostgres, startProxy, startRedis } from './services.mjs';
import { startWorkers } from './workers.mjs';

const KILL_EVERY_MS = 300;
const CUT_EVERY_MS = 700;
/** Each renewal in an SQLite file waits for the disk, alone. */
const LEASE_MS = { postgres: 1000, sqlite: 3000 };
const WORK_MS = 20;
const UNLOCKED_LOOKS = 180;
const HOUR_MS = 3_600_000;
const LIBFAKETIME = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((kind) => `/usr/lib/${kind}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

const STEADY_CLOCK = { setting: {}, env: {}, jump() {}, forget() {} };

/** A worker whose clock is an hour ahead and that dies holds its jobs for an hour. */
const CLOCKS_OF_WORKERS = new Map([
  ['bullmq-postgres', 'BullMQ on PostgreSQL ends leases by the clocks of its workers'],
]);

/** What came of it: what is wrong, by check, and figures. Ends all that it has opened, also where it fails. */
export async function tryOne(trial) {
  const endings = [];
  const notes = [];
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-chaos-'));
  endings.push(async () => rmSync(folder, { recursive: true, force: true }));
  try {
    const outcome = await breakAndLook({ ...trial, folder, notes, endLater: (end) => endings.push(end) });
    return { ...trial, ...outcome, notes };
  } finally {
    // What was opened last is ended first.
    for (const end of endings.reverse()) await end().catch((error) => notes.push(String(error)));
  }
}

async function breakAndLook(trial) {
  const { engine, runs, seconds, pace, endLater, signal } = trial;
  const random = createRandom(trial.seed);
  const bank = await openBank();
  endLater(bank.stop);
  const services = await openServices(trial);
  const setting = settingOf({ ...trial, bank, services });
  const straight = settingOf({ ...trial, bank, services, isStraight: true });
  if (engine === 'bullmq-postgres') await migrateBullmq(straight.postgres);
  const store = await openStore(setting, { reconnectMs: 20_000 });
  endLater(async () => store.close?.());
  const front = new Conversations({ store, config: { provider: noModel, model: 'm' }, takesTurns: false });
  endLater(() => front.close());

  const ids = Array.from({ length: Math.ceil(runs / PROMPTS.length) }, (_, index) => `c${index + 1}`);
  const errors = [];
  const counts = { outcomes: 0, cut: 0, cutRounds: 0, restarts: [] };
  const approvals = new Map();
  const clock = clockOf(trial);
  const workers = startWorkers({ count: trial.workers, setting, first: clock });
  endLater(workers.stop);
  const tooLong = AbortSignal.any([AbortSignal.timeout((seconds + trial.grace) * 1000), signal]);
  // Prompts and what they started; work that is started without an engine dies with its process.
  const turnsOf = engine === 'none' ? PROMPTS.length : 2 * PROMPTS.length;
  const driven = { front, turnsOf, errors, signal: tooLong, approvals, random, bank, counts };
  const begun = performance.now();
  const driving = ids.map(async (id, index) => {
    await pause((seconds * 1000 * index) / ids.length);
    await promptTwice(id, driven);
    await driveConversation(id, driven);
  });
  const breaking = breakThings({ workers, services, clock, random, counts, seconds, pace, signal: tooLong });
  const [brokenFor] = await Promise.all([breaking, ...driving]);
  signal.throwIfAborted();
  const took = (performance.now() - begun) / 1000;
  const closing = await closeAll({ workers, store, ids, driven, setting: straight });
  const faults = { processes: [...closing, ...workers.endedThemselves] };
  const dead = await givenUp(straight);
  const checked = await checkRun({ store, ids, bank, approvals, engine, dead });
  Object.assign(faults, checked.faults);
  if (trial.dump !== undefined)
    writeFileSync(trial.dump, JSON.stringify(await keptOf(faults, { store, ids }), undefined, 2));
  faults.claimed.push(...(await locksLeft(straight, straight.postgres)));
  const { killed, killedBeginning, complaints } = workers;
  Object.assign(counts, checked.counts, { killed, killedBeginning });
  const prompts = ids.length * PROMPTS.length;
  return { ids, prompts, took, brokenFor, counts, errors, approvals, faults, complaints };
}

const noModel = {
  chat() {
    throw new Error('The driver takes no turns');
  },
};

async function openServices({ store, engine, folder, endLater }) {
  const services = [];
  const needsPostgres = store === 'postgres' || engine === 'pg-boss' || engine === 'bullmq-postgres';
  if (needsPostgres) services.push(await startPostgres());
  if (engine === 'bullmq') services.push(await startRedis(folder));
  for (const service of services) {
    endLater(service.stop);
    service.proxy = await startProxy(service.port);
    endLater(service.proxy.stop);
  }
  return services;
}

/** What each process is made from: behind the proxies, or straight. A slow machine has longer leases. */
function settingOf({ store, engine, folder, bank, services, pace, isStraight = false }) {
  const portOf = ({ port, proxy }) => (isStraight ? port : proxy.port);
  const postgres = services.find(({ name }) => name === 'PostgreSQL');
  const redis = services.find(({ name }) => name === 'Redis');
  return {
    ...{ store, engine, file: join(folder, 'runs.sqlite'), bank: bank.url },
    ...{ leaseMs: Math.round(LEASE_MS[store] * pace), workMs: WORK_MS },
    postgres: postgres?.urlAt(portOf(postgres)),
    redisPort: redis && portOf(redis),
  };
}

/** The first worker's clock jumps while it works. */
function clockOf({ store, engine, folder, notes }) {
  const why = store === 'sqlite' ? 'SQLite has no clock of its own' : CLOCKS_OF_WORKERS.get(engine);
  if (why !== undefined) {
    notes.push(`clock with ${store} and ${engine}: left out, as ${why}`);
    return STEADY_CLOCK;
  }
  if (LIBFAKETIME === undefined) {
    notes.push('clock: libfaketime is not installed; Date.now of a worker jumps by an hour');
    return { ...STEADY_CLOCK, setting: { clockJumpMs: HOUR_MS, jumpAfterMs: 400 } };
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
  // A process that is killed leaves its shared memory behind.
  const forget = (pid) => {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      rmSync(join('/dev/shm', name), { force: true });
  };
  return { setting: {}, env, jump, forget };
}

/** Breaks what it can until the seconds are over, a worker was killed and each service was restarted. */
async function breakThings({ workers, services, clock, random, counts, seconds, pace, signal }) {
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 1000;
  const restarts = services.map((service, index) => ({
    service,
    at: (seconds * (index + 1)) / (services.length + 1.5),
  }));
  const restarting = [];
  while (!signal.aborted && (elapsed() < seconds || workers.killed === 0)) {
    await pause(KILL_EVERY_MS * pace);
    workers.killOne(random.below);
    clock.jump();
    if (Math.floor((elapsed() * 1000) / CUT_EVERY_MS) > counts.cutRounds) {
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

/** Lets all workers finish what they do; gives what is wrong with that. */
async function closeAll({ workers, store, ids, driven, setting }) {
  for (;;) {
    await unlocked(setting, driven.signal);
    if (!(await workers.close())) return ['a worker did not close in time'];
    // Work that ran without an engine may have ended as its process closed: its turn is still to be taken.
    const waiting = await waitsIn(store, ids);
    if (waiting.length === 0 || driven.signal.aborted) return [];
    workers.open();
    for (const id of waiting) await untilIdle(id, driven);
  }
}

/** What the last worker that was killed has held, the others take over and let go once its lease has ended. */
async function unlocked(setting, signal) {
  for (let looks = 0; looks < UNLOCKED_LOOKS && !signal.aborted; looks += 1) {
    await pause(setting.leaseMs);
    if ((await locksLeft(setting, setting.postgres)).length === 0) return;
  }
}
