import {
  accessSync,
  chmodSync,
  constants,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

/** What Linux keeps in memory. */
const MEMORY = '/dev/shm';
const NAME = /^toolwright-tests-(\d+)-/;

const GIB = 2 ** 30;
/** Tests write a tenth of it, and workers and browsers need memory of their own. */
const ROOM = { folder: 2 * GIB, memory: 6 * GIB };

let folder;

/**
 * Keeps temporary files in memory where there is room: databases and copies of the package would wait for the disk. A
 * `TMPDIR` that somebody has set stays.
 */
export function openMemoryFolder() {
  if (process.env.TMPDIR !== undefined || !isRoomy()) return;
  removeAbandoned();
  const made = mkdtempSync(join(MEMORY, `toolwright-tests-${process.pid}-`));
  folder = made;
  // A PostgreSQL that root starts runs as another user, and its folder is within.
  chmodSync(made, 0o711);
  if (!runsPrograms(made)) return closeMemoryFolder();
  process.env.TMPDIR = made;
}

/** Removes it with all that tests have left there. */
export function closeMemoryFolder() {
  if (folder === undefined) return;
  if (process.env.TMPDIR === folder) delete process.env.TMPDIR;
  rmSync(folder, { recursive: true, force: true });
  folder = undefined;
}

function isRoomy() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM.folder && freemem() >= ROOM.memory;
  } catch {
    return false;
  }
}

/** Containers often forbid it there. */
function runsPrograms(place) {
  const program = join(place, 'program');
  writeFileSync(program, '', { mode: 0o700 });
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  } finally {
    unlinkSync(program);
  }
}

/** Those of runs that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = NAME.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch ({ code }) {
    return code === 'EPERM';
  }
}
