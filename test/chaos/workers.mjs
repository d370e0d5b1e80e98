// Starts the worker processes of a chaos run and replaces each killed process.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const PROGRAM = join(import.meta.dirname, 'worker.mjs');
/** Reached only if a worker hangs. */
const CLOSE_WITHIN_MS = 600_000;
/** Time in which a process loads the package on an idle machine. */
const QUICK_START_MS = 150;

/** Measures how many times slower than an idle machine this one is, at least 1; scales only pauses and leases. */
export async function measureSlowdown() {
  const startedAt = performance.now();
  const child = fork(PROGRAM, []);
  await once(child, 'exit');
  return Math.max(1, (performance.now() - startedAt) / QUICK_START_MS);
}

/** Starts `count` workers and replaces each that exits. `firstWorker` overrides the setting of worker 0. */
export function startWorkers({ count, setting, firstWorker }) {
  const slots = [];
  const workerErrors = [];
  const unexpectedExits = [];
  let isOpen = false;
  let killed = 0;
  let killedStarting = 0;

  const start = (index) => {
    const own = { ...setting, ...(index === 0 ? firstWorker.setting : {}) };
    const env = { ...process.env, ...(index === 0 ? firstWorker.env : {}) };
    const child = fork(PROGRAM, [JSON.stringify(own)], { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    const slot = { child, isReady: false, isDead: false, ended: once(child, 'exit') };
    child.stderr.on('data', (data) => workerErrors.push(String(data)));
    child.once('message', () => {
      slot.isReady = true;
    });
    child.once('exit', (code, signal) => {
      if (index === 0) firstWorker.cleanUp(child.pid);
      if (signal !== 'SIGKILL' && isOpen)
        unexpectedExits.push(`a worker exited unexpectedly: ${code ?? signal}`);
      if (isOpen) start(index);
    });
    slots[index] = slot;
  };
  const open = () => {
    isOpen = true;
    for (let index = 0; index < count; index += 1) start(index);
  };
  open();

  const endAll = async (end) => {
    isOpen = false;
    for (const { child } of slots) end(child);
    await Promise.all(slots.map(({ ended }) => ended));
  };
  return {
    open,
    workerErrors,
    unexpectedExits,
    get killed() {
      return killed;
    },
    get killedStarting() {
      return killedStarting;
    },
    /**
     * Kills a random ready worker or, in one of eight cases, any worker, so that some die while they start.
     * `choose(n)` returns a random number below n.
     */
    killOne: (choose) => {
      const alive = slots.filter(({ isDead }) => !isDead);
      const chosen = choose(8) === 0 ? alive : alive.filter(({ isReady }) => isReady);
      if (chosen.length === 0) return;
      const slot = chosen[choose(chosen.length)];
      if (slot.isReady) killed += 1;
      else killedStarting += 1;
      slot.isDead = true;
      slot.child.kill('SIGKILL');
    },
    /** Lets all workers finish; returns false if they had to be killed. */
    close: async () => {
      let isInTime = true;
      const timer = setTimeout(() => {
        isInTime = false;
        for (const { child } of slots) child.kill('SIGKILL');
      }, CLOSE_WITHIN_MS);
      await endAll((child) => child.connected && child.send('close'));
      clearTimeout(timer);
      return isInTime;
    },
    stop: () => endAll((child) => child.kill('SIGKILL')),
  };
}
