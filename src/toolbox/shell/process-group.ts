import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** The variable by which everything that a command has started is found again, whatever group it went into. */
export const MARK = 'TOOLWRIGHT_COMMAND';

const GRACE_MS = 1_500;
const STEP_MS = 20;

/**
 * Ends a process, its group and whatever they have started: first asks, then kills, until nothing is left. What has
 * left the group is found by its mark, on Linux.
 */
export async function endGroup(leader: number, mark: string): Promise<void> {
  const signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGKILL'];
  for (const signal of signals) {
    const until = performance.now() + GRACE_MS;
    do {
      const left = [...(signalGroup(leader, signal) ? [leader] : []), ...markedProcesses(mark)];
      if (left.length === 0) return;
      for (const pid of left) signalProcess(pid, signal);
      await wait(STEP_MS);
    } while (performance.now() < until && isAnyLeft(leader, mark));
  }
}

/** Kills at once, where there is no time left to wait: the process itself is ending. */
export function killGroupNow(leader: number, mark: string): void {
  signalGroup(leader, 'SIGKILL');
  for (const pid of markedProcesses(mark)) signalProcess(pid, 'SIGKILL');
}

function isAnyLeft(leader: number, mark: string): boolean {
  return signalGroup(leader, 0) || markedProcesses(mark).length > 0;
}

/** Whether there was a group to be told. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  return signalProcess(-leader, signal);
}

function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Processes of this user that have the mark in their environment and have not ended. */
function markedProcesses(mark: string): readonly number[] {
  if (process.platform !== 'linux') return [];
  const wanted = `${MARK}=${mark}`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && hasMark(name, wanted))
    .map(Number);
}

function hasMark(pid: string, wanted: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(wanted) && !isZombie(pid);
  } catch {
    return false;
  }
}

/** It has ended, and only its parent has not heard of it yet. */
function isZombie(pid: string): boolean {
  return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}
