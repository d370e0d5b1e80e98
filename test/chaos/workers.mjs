// The worker processes of a chaos run: one is killed now and then, and another one takes its place.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const PROGRAM = join(import.meta.dirname, 'worker.mjs');
/** Only a worker that hangs takes so long. */
const CLOSE_WITHIN_MS = 600_000;
/** What it takes on a quiet machine until a process has the package. */
const QUICK_START_MS = 150;

/** How many times slower than a quiet machine this one is; at least 1. Nothing but pauses and leases go by it. */
export async function paceOf() {
  const begun = performance.now();
  const child = fork(PROGRAM, []);
  await once(child, 'exit');
  return Math.max(1, (performance.now() - begun) / QUICK_START_MS);
}

/** Starts so many, and one more for each that is killed. The first of them is told of by `first`. */
export function startWorkers({ count, setting, first }) {
  const slots = [];
  const complaints = [];
  const endedThemselves = [];
  let isOpen = false;
  let killed = 0;
  let killedBeginning = 0;

  const start = (index) => {
    const own = { ...setting, ...(index === 0 ? first.setting : {}) };
    const env = { ...process.env, ...(index === 0 ? first.env : {}) };
    const child = fork(PROGRAM, [JSON.stringify(own)], { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    const slot = { child, isReady: false, isDead: false, ended: once(child, 'exit') };
    child.stderr.on('data', (data) => complaints.push(String(data)));
    child.once('message', () => {
      slot.isReady = true;
    });
    child.once('exit', (code, signal) => {
      if (index === 0) first.forget(child.pid);
      if (signal !== 'SIGKILL' && isOpen) endedThemselves.push(`a worker ended by itself: ${code ?? signal}`);
      if (isOpen) start(index);
    });
    slots[index] = slot;
  };
  const open = () => {
    isOpen = true;
    for (let index = 0; index < count; index += 1) start(index);
  };
  open();

  const end = async (ask) => {
    isOpen = false;
    for (const { child } of slots) ask(child);
    await Promise.all(slots.map(({ ended }) => ended));
  };
  return {
    open,
    complaints,
    endedThemselves,
    get killed() {
      return killed;
    },
    get killedBeginning() {
      return killedBeginning;
    },
    /**
     * Kills one: of those that work, where any does, and every eighth time of all, also of those that only begin.
     * `choose` gives a number below the one that it is given.
     */
    killOne: (choose) => {
      const alive = slots.filter(({ isDead }) => !isDead);
      const chosen = choose(8) === 0 ? alive : alive.filter(({ isReady }) => isReady);
      if (chosen.length === 0) return;
      const slot = chosen[choose(chosen.length)];
      if (slot.isReady) killed += 1;
      else killedBeginning += 1;
      slot.isDead = true;
      slot.child.kill('SIGKILL');
    },
    /** Lets all of them finish what they do; false where one had to be killed. */
    close: async () => {
      let isInTime = true;
      const timer = setTimeout(() => {
        isInTime = false;
        for (const { child } of slots) child.kill('SIGKILL');
      }, CLOSE_WITHIN_MS);
      await end((child) => child.connected && child.send('close'));
      clearTimeout(timer);
      return isInTime;
    },
    stop: () => end((child) => child.kill('SIGKILL')),
  };
}
