import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord, parsedJson } from './json.js';
import { nodeCrypto } from './node-module.js';

/** For how long one and the same lock is respected; what is done under it takes milliseconds. */
const RESPECTED_MS = 5_000;
/** For how long others may be first, one after another. */
const PATIENCE_MS = 30_000;

/**
 * Does something while no other process does the same to this file. The lock is a file beside it that names its
 * holder; the lock of a dead process does not count. `work` calls `isHeld` right before what only the holder may do.
 *
 * @throws Error if others have it for half a minute, or nothing can be written beside the file.
 */
export function withFileLock<T>(file: string, work: (isHeld: () => boolean) => T): T {
  return withLock(`${file}.lock`, work);
}

function withLock<T>(lock: string, work: (isHeld: () => boolean) => T): T {
  // Different each time.
  const own = JSON.stringify({ pid: process.pid, host: hostname(), token: nodeCrypto().randomUUID() });
  takeLock(lock, own);
  const isHeld = (): boolean => textOf(lock) === own;
  try {
    return work(isHeld);
  } finally {
    if (isHeld()) rmSync(lock, { force: true });
  }
}

function takeLock(lock: string, own: string): void {
  const begun = performance.now();
  let seen: string | undefined;
  let since = begun;
  while (!wasCreated(lock, own)) {
    const holder = textOf(lock);
    const now = performance.now();
    if (holder !== seen) since = now;
    seen = holder;
    if (now - begun > PATIENCE_MS)
      throw new Error(`${lock} is held by other processes. Where none of them runs, remove it.`);
    if (holder !== undefined && (isOfDeadProcess(holder) || now - since > RESPECTED_MS))
      // One process at a time removes a lock that was left, and reads it again: it never removes a new one.
      withLock(`${lock}.break`, () => textOf(lock) === holder && rmSync(lock, { force: true }));
    // Synchronous: nothing else may be done with the file meanwhile.
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1 + Math.random() * 8);
  }
}

function wasCreated(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** This is unknown for another machine. */
function isOfDeadProcess(text: string): boolean {
  const holder = parsedJson(text);
  if (!isRecord(holder) || holder.host !== hostname()) return false;
  try {
    process.kill(Number(holder.pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
