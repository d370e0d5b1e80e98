import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord } from '../../kernel/json.js';
import { nodeCrypto } from '../../kernel/node-module.js';

/** For how long one and the same lock is respected; what is done under it takes milliseconds. */
const RESPECTED_MS = 5_000;
/** For how long others may be first, one after another. */
const PATIENCE_MS = 30_000;

/** Says whether the lock is still held, right before something is done that only its holder may do. */
type IsHeld = () => boolean;

/**
 * Does something while no other process does the like to this file. The lock is a file beside it that names its
 * holder; that of a process that is gone counts for nothing.
 *
 * @throws Error where others have it for half a minute, or nothing can be written beside the file.
 */
export function withFileLock<T>(file: string, work: (isHeld: IsHeld) => T): T {
  const lock = `${file}.lock`;
  const text = holderText();
  takeLock(lock, text);
  const isHeld = (): boolean => textOf(lock) === text;
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
    const isLeft = holder !== undefined && (isOfTheGone(holder) || now - since > RESPECTED_MS);
    if (!isLeft || !breakLock(lock, holder)) pause(1 + Math.random() * 8);
  }
}

/** Removes a lock that was left. One process at a time does, and looks again: it never removes that of another. */
function breakLock(lock: string, left: string): boolean {
  const breaking = `${lock}.break`;
  if (!wasCreated(breaking, holderText())) {
    const other = textOf(breaking);
    if (other !== undefined && isOfTheGone(other)) rmSync(breaking, { force: true });
    return false;
  }
  try {
    if (textOf(lock) === left) rmSync(lock, { force: true });
    return true;
  } finally {
    rmSync(breaking, { force: true });
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

/** No two are the same. */
function holderText(): string {
  return JSON.stringify({ pid: process.pid, host: hostname(), token: nodeCrypto().randomUUID() });
}

/** Nothing where it is not there. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Of a process of this machine, whether it is gone; of another machine nobody here can know it. */
function isOfTheGone(text: string): boolean {
  const holder = holderIn(text);
  if (holder === undefined || holder.host !== hostname()) return false;
  try {
    process.kill(holder.pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}

function holderIn(text: string): { readonly pid: number; readonly host: unknown } | undefined {
  try {
    const holder: unknown = JSON.parse(text);
    if (!isRecord(holder)) return undefined;
    const { pid, host } = holder;
    return typeof pid === 'number' && Number.isInteger(pid) && pid > 0 ? { pid, host } : undefined;
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

/** Whoever asks for a yes waits for it: nothing else may be done with the file meanwhile. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
