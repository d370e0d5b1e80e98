import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord, parsedJson } from '../../kernel/json.js';
import { nodeCrypto } from '../../kernel/node-module.js';

/** A lock of an unknown process is removed after this time; work under a lock takes milliseconds. */
const EXPIRES_MS = 5_000;
const TIMEOUT_MS = 30_000;

/** Whether the lock is still held, for checks right before a change. */
type IsHeld = () => boolean;

/**
 * Runs work while no other process does the like with this file. The lock is a file beside it that names its process;
 * the lock of a process that has ended is removed.
 *
 * @throws Error if others hold it for half a minute, or nothing can be written beside the file.
 */
export function withFileLock<T>(file: string, work: (isHeld: IsHeld) => T): T {
  return withLock(`${file}.lock`, work);
}

function withLock<T>(lock: string, work: (isHeld: IsHeld) => T): T {
  const own = JSON.stringify({ pid: process.pid, host: hostname(), token: nodeCrypto().randomUUID() });
  const isHeld = (): boolean => textOf(lock) === own;
  const begun = performance.now();
  let seen: string | undefined;
  let since = begun;
  while (!wasCreated(lock, own)) {
    const holder = textOf(lock);
    const now = performance.now();
    if (holder !== seen) since = now;
    seen = holder;
    if (now - begun > TIMEOUT_MS)
      throw new Error(`${lock} is held by other processes. If none of them runs, remove it.`);
    if (holder !== undefined && (hasEnded(holder) || now - since > EXPIRES_MS)) removeLock(lock, holder);
    // The caller waits for the result: nothing else may happen meanwhile.
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1 + Math.random() * 8);
  }
  try {
    return work(isHeld);
  } finally {
    if (isHeld()) rmSync(lock, { force: true });
  }
}

/** Under a lock of its own, so that nobody removes the lock of the next holder. */
function removeLock(lock: string, left: string): void {
  withLock(`${lock}.break`, () => {
    if (textOf(lock) === left) rmSync(lock, { force: true });
  });
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

/** Only for a process of this machine. */
function hasEnded(text: string): boolean {
  const holder = parsedJson(text);
  if (!isRecord(holder) || holder.host !== hostname()) return false;
  const { pid } = holder;
  if (typeof pid !== 'number' || !Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
