import { posix } from 'node:path';
import { type ChangeStep, digestOf, type KeptFile } from './change-journal.js';
import { type FileSystem, FileSystemError } from './file-system.js';
import { encodeText } from './read-file.js';

/** What was kept under a digest. */
type ContentOf = (digest: string) => Uint8Array | undefined;

/**
 * Undoes steps, the last first. All of them are looked at before the first is undone; one that is undone already, by an
 * undoing that was cut off, is left as it is.
 */
export async function undoSteps(
  files: FileSystem,
  steps: readonly ChangeStep[],
  contentOf: ContentOf,
): Promise<void> {
  const backwards = steps.toReversed();
  const seen = new Set<string>();
  for (const step of backwards) {
    const paths = step.kind === 'move' ? [step.from, step.to] : [step.path];
    // What a later step has done to the same path is still there now.
    const isAsLeft = !paths.some((path) => seen.has(path));
    for (const path of paths) seen.add(path);
    if (isAsLeft) await planUndo(files, step, contentOf);
  }
  for (const step of backwards) await (await planUndo(files, step, contentOf))();
}

/** What has to be done to undo a step. */
async function planUndo(
  files: FileSystem,
  step: ChangeStep,
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  if (step.lost !== undefined) throw new FileSystemError('failed', `It cannot be undone: ${step.lost}.`);
  if (step.kind === 'write') return planUnwrite(files, step, contentOf);
  return step.kind === 'move' ? planUnmove(files, step) : planUnremove(files, step, contentOf);
}

async function planUnwrite(
  files: FileSystem,
  { path, before, after, made }: ChangeStep & { readonly kind: 'write' },
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  const now = await fileAt(files, path);
  if (now === undefined) {
    if (before === undefined) return () => removeEmpty(files, made);
    throw changedSince(path);
  }
  if (now.digest === before?.content) return async () => {};
  if (now.digest !== after) throw changedSince(path);
  if (before === undefined)
    return async () => {
      await files.remove(path);
      await removeEmpty(files, made);
    };
  const bytes = contentIn(before, contentOf);
  return async () => {
    await files.write(path, bytes, { replaces: { stamp: now.stamp }, ...modeOf(before) });
  };
}

async function planUnmove(
  files: FileSystem,
  { from, to, content, made }: ChangeStep & { readonly kind: 'move' },
): Promise<() => Promise<void>> {
  const isBack = (await files.info(from)) !== undefined;
  const isThere = (await files.info(to)) !== undefined;
  if (isBack && isThere) throw new FileSystemError('exists', `There is a '${from}' again.`);
  if (isBack) return () => removeEmpty(files, made);
  if (!isThere || (content !== undefined && (await fileAt(files, to))?.digest !== content))
    throw changedSince(to);
  return async () => {
    await files.move(to, from);
    await removeEmpty(files, made);
  };
}

async function planUnremove(
  files: FileSystem,
  { files: kept, folders, path }: ChangeStep & { readonly kind: 'remove' },
  contentOf: ContentOf,
): Promise<() => Promise<void>> {
  const missing: (readonly [KeptFile, Uint8Array])[] = [];
  for (const file of kept) {
    const now = await fileAt(files, file.path);
    if (now === undefined) missing.push([file, contentIn(file, contentOf)]);
    else if (now.digest !== file.content)
      throw new FileSystemError('exists', `There is another '${file.path}' now.`);
  }
  const there = await files.info(path);
  if (there !== undefined && folders.includes(path) && there.kind !== 'folder')
    throw new FileSystemError('exists', `There is another '${path}' now.`);
  return async () => {
    for (const [file, bytes] of missing)
      await files.write(file.path, bytes, { replaces: 'absent', ...modeOf(file) });
    for (const folder of folders) await makeFolder(files, folder);
  };
}

/** A file system makes folders for what is written into them. */
async function makeFolder(files: FileSystem, folder: string): Promise<void> {
  if ((await files.info(folder)) !== undefined) return;
  const draft = posix.join(folder, '.undone.tmp');
  await files.write(draft, encodeText(''), { replaces: 'absent' });
  await files.remove(draft);
}

/** Those that have something else in them by now stay. */
async function removeEmpty(files: FileSystem, folders: readonly string[]): Promise<void> {
  for (const folder of folders.toReversed()) {
    try {
      await files.remove(folder);
    } catch (error) {
      const isLeft = error instanceof FileSystemError && ['missing', 'not-empty'].includes(error.problem);
      if (!isLeft) throw error;
    }
  }
}

async function fileAt(
  files: FileSystem,
  path: string,
): Promise<{ readonly digest: string; readonly stamp: string } | undefined> {
  const info = await infoAt(files, path);
  if (info === undefined) return undefined;
  if (info.kind !== 'file') throw changedSince(path);
  const { bytes, stamp } = await files.read(path);
  return { digest: digestOf(bytes), stamp };
}

/** Where a folder on the way has become a file, nothing of it is as it was. */
async function infoAt(files: FileSystem, path: string) {
  try {
    return await files.info(path);
  } catch (error) {
    throw error instanceof FileSystemError && error.problem === 'kind' ? changedSince(path) : error;
  }
}

function contentIn({ path, content }: KeptFile, contentOf: ContentOf): Uint8Array {
  const bytes = contentOf(content);
  if (bytes !== undefined) return bytes;
  throw new FileSystemError('failed', `It cannot be undone: what '${path}' was is not kept any more.`);
}

function modeOf({ mode }: KeptFile): { readonly mode?: number } {
  return mode === undefined ? {} : { mode };
}

function changedSince(path: string): FileSystemError {
  return new FileSystemError('changed', `'${path}' is not as the change has left it; it was not undone.`);
}
