import {
  close,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  write,
} from 'node:fs';
import { promisify } from 'node:util';
import { nodeCrypto } from '../../kernel/node-module.js';
import {
  alreadyThere,
  changed,
  type FileInfo,
  FileSystemError,
  missing,
  type WriteCondition,
  wrongKind,
} from './file-system.js';
import { type HeldFolder, kindOf } from './held-folder.js';

const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_WRONLY } = constants;

const writeBytes = promisify(write);
const syncFile = promisify(fsync);
const closeFile = promisify(close);

/** A name in a folder that is held, and its path for messages. */
interface HeldPlace {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly path: string;
}

/** What the system says of a name, which is told apart by the time of its last change too. */
interface Stats extends FileInfo {
  readonly mode: number;
  readonly owner: readonly [number, number];
}

/** What lies there; `undefined` where nothing does. */
export function statsAt(path: string): Stats | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  return {
    kind: kindOf(stats),
    size: Number(stats.size),
    changedAt: Number(stats.mtimeMs),
    stamp: [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':'),
    mode: Number(stats.mode & 0o7777n),
    owner: [Number(stats.uid), Number(stats.gid)],
  };
}

/** Makes a folder, unless somebody else has just made it. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Writes beside the place and puts it there in one step: whoever looks sees the old file or the new one, also after
 * a crash. What a killed process leaves behind is a file named `.….tmp` beside it.
 */
export async function writeToDisk(
  place: HeldPlace,
  bytes: Uint8Array,
  condition: WriteCondition,
): Promise<FileInfo> {
  const { folder, name, path } = place;
  const before = statsAt(folder.at(name));
  refuseUnlessFits(place, before, condition);
  const draft = folder.at(`.${nodeCrypto().randomUUID()}.tmp`);
  const file = openSync(
    draft,
    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
    before === undefined ? 0o666 : 0o600,
  );
  let isOpen = true;
  try {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await writeBytes(file, bytes, done, bytes.length - done, null);
      done += bytesWritten;
    }
    if (before !== undefined) keepOwnerAndMode(file, before);
    if (condition.mode !== undefined) fchmodSync(file, condition.mode);
    await syncFile(file);
    isOpen = false;
    await closeFile(file);
    // The bytes took their time: somebody may have been faster.
    refuseUnlessFits(place, statsAt(folder.at(name)), condition);
    putInPlace(draft, place, condition.replaces === 'absent' ? 'new' : 'replacing');
  } catch (error) {
    if (isOpen) closeSync(file);
    removeQuietly(draft);
    throw error;
  }
  folder.sync();
  const after = statsAt(folder.at(name));
  if (after === undefined) throw missing(path);
  return after;
}

function refuseUnlessFits({ path }: HeldPlace, there: Stats | undefined, { replaces }: WriteCondition): void {
  if (there !== undefined && there.kind === 'link')
    throw new FileSystemError('link', `'${path}' is a link; it can be removed, and not written.`);
  if (there !== undefined && there.kind !== 'file') throw wrongKind(path, there.kind, 'file');
  if (replaces === undefined) return;
  if (replaces === 'absent') {
    if (there !== undefined) throw alreadyThere(path);
  } else if (there?.stamp !== replaces.stamp) throw changed(path);
}

function keepOwnerAndMode(file: number, { mode, owner }: Stats): void {
  try {
    fchownSync(file, ...owner);
  } catch {
    // Only an administrator may give files away; the file is then the writer's.
  }
  fchmodSync(file, mode);
}

/** What is new takes the place of nothing: a link to it fails where somebody was faster. */
function putInPlace(draft: string, { folder, name, path }: HeldPlace, how: 'new' | 'replacing'): void {
  if (how === 'new' && linked(draft, { folder, name, path })) unlinkSync(draft);
  else renameSync(draft, folder.at(name));
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It has its place already, or is gone.
  }
}

/** Moves to where nothing is; a file in one step in which nobody can be faster, where the system has hard links. */
export function moveOnDisk(from: HeldPlace, to: HeldPlace): void {
  const there = statsAt(from.folder.at(from.name));
  if (there === undefined) throw missing(from.path);
  if (there.kind === 'link')
    throw new FileSystemError('link', `'${from.path}' is a link; it can be removed, and not moved.`);
  if (statsAt(to.folder.at(to.name)) !== undefined) throw alreadyThere(to.path);
  if (there.kind === 'file' && linked(from.folder.at(from.name), to)) unlinkSync(from.folder.at(from.name));
  else renameSync(from.folder.at(from.name), to.folder.at(to.name));
  from.folder.sync();
  to.folder.sync();
}

/** Whether it has a second name now; not every file system can do that. */
function linked(from: string, to: HeldPlace): boolean {
  try {
    linkSync(from, to.folder.at(to.name));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyThere(to.path);
    return false;
  }
}

/** Removes a file, a link, or a folder; what is in a folder is gone through without following a link. */
export function removeFromDisk({ folder, name, path }: HeldPlace, how: 'with contents' | 'alone'): void {
  const there = statsAt(folder.at(name));
  if (there === undefined) throw missing(path);
  if (there.kind !== 'folder') unlinkSync(folder.at(name));
  else {
    if (how === 'with contents') removeContents(folder, name);
    try {
      rmdirSync(folder.at(name));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
      throw new FileSystemError('not-empty', `'${path}' is a folder with something in it.`);
    }
  }
  folder.sync();
}

function removeContents(folder: HeldFolder, name: string): void {
  const inner = folder.enter(name);
  try {
    for (const entry of readdirSync(inner.self, { withFileTypes: true })) {
      if (entry.isDirectory()) {
        removeContents(inner, entry.name);
        rmdirSync(inner.at(entry.name));
      } else unlinkSync(inner.at(entry.name));
    }
  } finally {
    inner.close();
  }
}
