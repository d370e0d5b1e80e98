import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord, parsedJson } from './json.js';
import { nodeCrypto } from './node-module.js';

/** How long a lock is respected; work under it takes milliseconds. */
const RESPECTED_MS = 5_000;
/** How long to wait while other processes take the lock in turn. */
const PATIENCE_MS = 30_000;

/**
 * Runs work while no other process works on the same file. The lock is a file next to it that names its holder; the
 * lock of a dead process is ignored. `work` must call `isHeld` right before changes that only the holder may make.
 *
 * @throws Error if other processes hold the lock for 30 seconds, or if no file can be written there.
 */
export function withFileLock<T>(file: string, work: (isHeld: () => boolean) => T): T {
  return withLock(`${file}.lock`, work);
}

function withLock<T>(lock: string, work: (isHeld: () => boolean) => T): T {
  // Unique, because of its token.
  const own = JSON.stringify({ pid: process.pid, host: hostname(), token: nodeCrypto().randomUUID() });
  const begun = performance.now();
  let seen: string | undefined;
  let since = begun;
  while (!wasCreated(lock, own)) {
    const holder = textOf(lock);
    const now = performance.now();
    if (holder !== seen) since = now;
    seen = holder;
    if (now - begun > PATIENCE_MS)
      throw new Error(`Other processes hold ${lock}. If none of them is running, remove it.`);
    if (holder !== undefined && (isOfDeadProcess(holder) || now - since > RESPECTED_MS))
      // One process at a time breaks an abandoned lock. It reads the lock again, so that it never removes a new one.
      withLock(`${lock}.break`, () => textOf(lock) === holder && rmSync(lock, { force: true }));
    // Blocks the thread: nothing else may use the file meanwhile.
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1 + Math.random() * 8);
  }
  const isHeld = (): boolean => textOf(lock) === own;
  try {
    return work(isHeld);
  } finally {
    if (isHeld()) rmSync(lock, { force: true });
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

/** Unknown for processes of another machine. */
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
