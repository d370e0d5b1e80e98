import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isWithin } from '../../toolbox/paths/folder-path.js';
import { UserFault } from './command.js';

/** Options to watch a project. */
interface WatchOptions {
  readonly signal?: AbortSignal;
  /** Whether the change of a file counts. */
  isSource(path: string): boolean;
  /** Whether a folder is ignored, with its contents. */
  isIgnored(path: string): boolean;
  onChange(): Watched;
}

/** What to watch after a generation. */
export interface Watched {
  /** The generated file, whose changes are ignored. */
  readonly outFile?: string;
  /** Folders of the project's libraries, absolute. */
  readonly libraries: readonly string[];
}

/** Editors write several files, or one file several times; writes within this time are one change. */
const SETTLE_MS = 100;

/** Calls back now and after each change of a source in the folders, until the signal is aborted. */
export async function watchProject(folders: readonly string[], options: WatchOptions): Promise<void> {
  const { signal, onChange } = options;
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>();
  let written = '';
  let pending: NodeJS.Timeout | undefined;
  const look = () => {
    const { outFile, libraries } = onChange();
    if (outFile !== undefined) written = resolve(outFile);
    for (const library of libraries) watched.follow(library);
  };
  const lookSoon = (path: string) => {
    if (path === written) return;
    clearTimeout(pending);
    pending = setTimeout(() => attempt(look, fail), SETTLE_MS);
  };
  const watched = new WatchedFolders({ ...options, onChange: lookSoon, onError: fail });
  signal?.addEventListener('abort', () => end(), { once: true });
  if (signal?.aborted) return;
  try {
    // Starts watching before the first generation, so that no change is missed.
    for (const folder of folders) watched.follow(folder);
    look();
    await ended;
  } finally {
    clearTimeout(pending);
    watched.close();
  }
}

function attempt(work: () => void, onError: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    onError(error);
  }
}

/** What to watch, and what to call. */
interface Watching extends Pick<WatchOptions, 'isSource' | 'isIgnored'> {
  onChange(path: string): void;
  onError(error: unknown): void;
}

/** A folder that was removed, or that may not be read, has no sources. */
const NOT_THERE: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM'];

/** Watches each folder on its own: on Linux, Node's recursive watch loses a file that an editor has replaced. */
class WatchedFolders {
  readonly #watching: Watching;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(watching: Watching) {
    this.#watching = watching;
  }

  /** Watches a folder and those in it; returns whether there are sources. */
  follow(folder: string): boolean {
    if (this.#watchers.has(folder)) return false;
    const { isIgnored, isSource, onError } = this.#watching;
    let hasSources = false;
    try {
      const watcher = watch(folder, (event, name) => {
        if (name !== null) attempt(() => this.#see(join(folder, name), event), onError);
      });
      // Windows reports the removal of a folder as an error.
      this.#watchers.set(
        folder,
        watcher.on('error', () => this.#forget(folder)),
      );
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        const counts = entry.isDirectory() ? !isIgnored(path) && this.follow(path) : isSource(path);
        hasSources ||= counts;
      }
    } catch (error) {
      if (error instanceof UserFault) throw error;
      const { code } = error as NodeJS.ErrnoException;
      if (!NOT_THERE.includes(code))
        throw new UserFault(`${folder} cannot be watched: ${errorMessage(error)}`, 1);
    }
    return hasSources;
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
  }

  #see(path: string, event: string): void {
    const { isIgnored, isSource, onChange } = this.#watching;
    if (isSource(path)) onChange(path);
    if (event !== 'rename' || isSource(path) || isIgnored(path)) return;
    // A folder may have been removed and created again.
    const isGone = this.#forget(path);
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    const hasSources = isFolder && this.follow(path);
    if (isGone || hasSources) onChange(path);
  }

  /** Returns whether the folder was watched. */
  #forget(folder: string): boolean {
    const within = [...this.#watchers].filter(([path]) => path === folder || isWithin(path, folder));
    for (const [path, watcher] of within) {
      watcher.close();
      this.#watchers.delete(path);
    }
    return within.length > 0;
  }
}
