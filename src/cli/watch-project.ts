import { watch } from 'node:fs';
import { resolve } from 'node:path';

/** What happens while a project is watched. */
export interface WatchOptions {
  readonly signal?: AbortSignal;
  onChange(): Watched;
}

/** What a look at the project has shown. */
export interface Watched {
  /** The file that was written, which is no change of the project. */
  readonly outFile?: string;
  /** Other folders that belong to it, absolute. */
  readonly libraries: readonly string[];
}

/** Editors write several files, or one file several times; all of it within this time is one change. */
const SETTLE_MS = 100;

/** Calls back now, and again after each change of a source below the project’s folders, until the signal. */
export async function watchProject(folder: string, { signal, onChange }: WatchOptions): Promise<void> {
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>();
  const followed = new Set<string>();
  let written = '';
  let pending: NodeJS.Timeout | undefined;
  const look = () => {
    const { outFile, libraries } = onChange();
    if (outFile !== undefined) written = resolve(outFile);
    for (const library of libraries) follow(library);
  };
  const follow = (one: string) => {
    if (followed.has(one)) return;
    followed.add(one);
    const watcher = watch(one, { recursive: true, signal }, (_event, filename) => {
      if (filename === null || !isSource(filename) || resolve(one, filename) === written) return;
      clearTimeout(pending);
      pending = setTimeout(look, SETTLE_MS);
    });
    watcher.on('error', fail);
  };
  signal?.addEventListener('abort', () => end(), { once: true });
  if (signal?.aborted) return;
  // Before the first look: what changes meanwhile is seen.
  follow(folder);
  look();
  await ended.finally(() => clearTimeout(pending));
}

/** A folder that comes or goes stands for the files in it: not every system tells of each of them. */
function isSource(filename: string): boolean {
  if (/(^|[/\\])(node_modules|\.git)([/\\]|$)/.test(filename)) return false;
  return /(\.[cm]?tsx?|tsconfig[^/\\]*\.json|(^|[/\\])[^./\\]+)$/.test(filename);
}
