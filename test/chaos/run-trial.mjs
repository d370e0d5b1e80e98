// Runs one trial of a store and an engine: injects failures, lets all conversations finish, and checks the results.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Conversations } from '../../dist/src/index.js';
import { createRandom } from '../soak/random.mjs';
import { startBank } from './bank.mjs';
import { checkRun, storedRecords, unfinishedConversations } from './checks.mjs';
import { driveConversation, PROMPTS, promptTwice, waitUntilIdle } from './driver.mjs';
import { deadJobErrors, remainingLocks } from './locks.mjs';
import { startPostgres, startProxy, startRedis } from './services.mjs';
import { migrateBullmq, openStore } from './store-and-engine.mjs';
import { startWorkers } from './workers.mjs';

const KILL_EVERY_MS = 300;
const CUT_EVERY_MS = 700;
/** Leases in an SQLite file are longer: renewals wait for the disk and run one after another. */
const LEASE_MS = { postgres: 1000, sqlite: 3000 };
const WORK_MS = 20;
const LOCK_CHECKS = 180;
const HOUR_MS = 3_600_000;
const LIBFAKETIME = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((kind) => `/usr/lib/${kind}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

const STEADY_CLOCK = { setting: {}, env: {}, jump() {}, cleanUp() {} };

/** If a worker whose clock is an hour ahead dies, its jobs would stay leased for an hour. */
const WORKER_CLOCK_ENGINES = new Map([
  ['bullmq-postgres', 'BullMQ on PostgreSQL computes lease ends from the clocks of its workers'],
]);

/** Returns the faults of each check and the figures of the trial; always closes what it opened. */
export async function runTrial(trial) {
  const cleanups = [];
  const notes = [];
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-chaos-'));
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }));
  try {
    const addCleanup = (cleanup) => cleanups.push(cleanup);
    const outcome = await runScenario({ ...trial, folder, notes, addCleanup });
    return { ...trial, ...outcome, notes };
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup().catch((error) => notes.push(String(error)));
  }
}

async function runScenario(trial) {
  const { engine, runs, seconds, slowdown, addCleanup, signal } = trial;
  const random = createRandom(trial.seed);
  const bank = await startBank();
  addCleanup(bank.stop);
  const services = await openServices(trial);
  const setting = settingOf({ ...trial, bank, services });
  const directSetting = settingOf({ ...trial, bank, services, isDirect: true });
  if (engine === 'bullmq-postgres') await migrateBullmq(directSetting.postgres);
  const store = await openStore(setting, { reconnectMs: 20_000 });
  addCleanup(async () => store.close?.());
  const front = new Conversations({
    store,
    config: { provider: unusedProvider, model: 'm' },
    takesTurns: false,
  });
  addCleanup(() => front.close());

  const ids = Array.from({ length: Math.ceil(runs / PROMPTS.length) }, (_, index) => `c${index + 1}`);
  const errors = [];
  const counts = { outcomes: 0, cut: 0, cutRounds: 0, restarts: [] };
  const approvals = new Map();
  const clock = clockOf(trial);
  const workers = startWorkers({ count: trial.workers, setting, firstWorker: clock });
  addCleanup(workers.stop);
  const timeout = AbortSignal.any([AbortSignal.timeout((seconds + trial.grace) * 1000), signal]);
  // Each prompt is one turn and each completion another; without an engine, completions can be lost.
  const minTurns = engine === 'none' ? PROMPTS.length : 2 * PROMPTS.length;
  const driverOptions = { front, minTurns, errors, signal: timeout, approvals, random, bank, counts };
  const startedAt = performance.now();
  const drivers = ids.map(async (id, index) => {
    await pause((seconds * 1000 * index) / ids.length);
    await promptTwice(id, driverOptions);
    await driveConversation(id, driverOptions);
  });
  const failures = injectFailures({
    workers,
    services,
    clock,
    random,
    counts,
    seconds,
    slowdown,
    signal: timeout,
  });
  const [failureSeconds] = await Promise.all([failures, ...drivers]);
  signal.throwIfAborted();
  const duration = (performance.now() - startedAt) / 1000;
  const closeFaults = await closeWorkers({ workers, store, ids, driverOptions, setting: directSetting });
  const faults = { processes: [...closeFaults, ...workers.unexpectedExits] };
  const deadJobs = await deadJobErrors(directSetting);
  const checked = await checkRun({ store, ids, bank, approvals, engine, deadJobs });
  Object.assign(faults, checked.faults);
  if (trial.dump !== undefined)
    writeFileSync(trial.dump, JSON.stringify(await storedRecords(faults, { store, ids }), undefined, 2));
  faults.claimed.push(...(await remainingLocks(directSetting, directSetting.postgres)));
  const { killed, killedStarting, workerErrors } = workers;
  Object.assign(counts, checked.counts, { killed, killedStarting });
  const prompts = ids.length * PROMPTS.length;
  return { ids, prompts, duration, failureSeconds, counts, errors, approvals, faults, workerErrors };
}

const unusedProvider = {
  chat() {
    throw new Error('The driver does not process turns');
  },
};

async function openServices({ store, engine, folder, addCleanup }) {
  const services = [];
  const needsPostgres = store === 'postgres' || engine === 'pg-boss' || engine === 'bullmq-postgres';
  if (needsPostgres) services.push(await startPostgres());
  if (engine === 'bullmq') services.push(await startRedis(folder));
  for (const service of services) {
    addCleanup(service.stop);
    service.proxy = await startProxy(service.port);
    addCleanup(service.proxy.stop);
  }
  return services;
}

/** The setting that each process receives, through the proxies or direct. A slow machine gets longer leases. */
function settingOf({ store, engine, folder, bank, services, slowdown, isDirect = false }) {
  const portOf = ({ port, proxy }) => (isDirect ? port : proxy.port);
  const postgres = services.find(({ name }) => name === 'PostgreSQL');
  const redis = services.find(({ name }) => name === 'Redis');
  return {
    ...{ store, engine, file: join(folder, 'runs.sqlite'), bank: bank.url },
    ...{ leaseMs: Math.round(LEASE_MS[store] * slowdown), workMs: WORK_MS },
    postgres: postgres?.urlAt(portOf(postgres)),
    redisPort: redis && portOf(redis),
  };
}

/** Makes the clock of the first worker jump while it works. */
function clockOf({ store, engine, folder, notes }) {
  const reason = store === 'sqlite' ? 'SQLite has no clock of its own' : WORKER_CLOCK_ENGINES.get(engine);
  if (reason !== undefined) {
    notes.push(`clock with ${store} and ${engine}: skipped because ${reason}`);
    return STEADY_CLOCK;
  }
  if (LIBFAKETIME === undefined) {
    notes.push('clock: libfaketime is not installed, so only Date.now of a worker jumps by an hour');
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
  // libfaketime does not remove the shared memory of a killed process.
  const cleanUp = (pid) => {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      rmSync(join('/dev/shm', name), { force: true });
  };
  return { setting: {}, env, jump, cleanUp };
}

/** Injects failures until the seconds are over, a worker was killed and each service was restarted. */
async function injectFailures({ workers, services, clock, random, counts, seconds, slowdown, signal }) {
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1000;
  const restarts = services.map((service, index) => ({
    service,
    at: (seconds * (index + 1)) / (services.length + 1.5),
  }));
  const restarting = [];
  while (!signal.aborted && (elapsed() < seconds || workers.killed === 0)) {
    await pause(KILL_EVERY_MS * slowdown);
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

/** Lets all workers finish their work; returns faults. */
async function closeWorkers({ workers, store, ids, driverOptions, setting }) {
  for (;;) {
    await waitForUnlock(setting, driverOptions.signal);
    if (!(await workers.close())) return ['a worker did not close in time'];
    // A task without an engine may have completed while its process closed; its turn is still unprocessed.
    const unfinished = await unfinishedConversations(store, ids);
    if (unfinished.length === 0 || driverOptions.signal.aborted) return [];
    workers.open();
    for (const id of unfinished) await waitUntilIdle(id, driverOptions);
  }
}

/** Waits until the other workers have taken over and released what the last killed worker had claimed. */
async function waitForUnlock(setting, signal) {
  for (let checks = 0; checks < LOCK_CHECKS && !signal.aborted; checks += 1) {
    await pause(setting.leaseMs);
    if ((await remainingLocks(setting, setting.postgres)).length === 0) return;
  }
}
