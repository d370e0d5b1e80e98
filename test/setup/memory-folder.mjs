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

/** The memory file system of Linux. */
const MEMORY = '/dev/shm';
const NAME = /^toolwright-tests-(\d+)-/;

const GIB = 2 ** 30;
/** Tests write a tenth of this, and workers and browsers need memory too. */
const NEEDED = { folder: 2 * GIB, memory: 6 * GIB };

let folder;

/** Stores temporary files in memory if enough is free, because the disk is slow. A configured `TMPDIR` is not changed. */
export function openMemoryFolder() {
  if (process.env.TMPDIR !== undefined || !hasSpace()) return;
  removeAbandoned();
  folder = mkdtempSync(join(MEMORY, `toolwright-tests-${process.pid}-`));
  // A PostgreSQL started by root runs as another user, and its data folder is in here.
  chmodSync(folder, 0o711);
  if (!allowsPrograms(folder)) return closeMemoryFolder();
  process.env.TMPDIR = folder;
}

export function closeMemoryFolder() {
  if (folder === undefined) return;
  if (process.env.TMPDIR === folder) delete process.env.TMPDIR;
  rmSync(folder, { recursive: true, force: true });
  folder = undefined;
}

function hasSpace() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= NEEDED.folder && freemem() >= NEEDED.memory;
  } catch {
    return false;
  }
}

/** Containers often forbid running programs from this file system. */
function allowsPrograms(path) {
  const program = join(path, 'program');
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

/** Removes the folders of killed test runs. */
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
