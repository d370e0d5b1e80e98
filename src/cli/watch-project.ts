import { watch } from 'node:fs/promises';
import { resolve } from 'node:path';

/** What happens while a project is watched. */
export interface WatchOptions {
  readonly signal?: AbortSignal;
  /** Gives the file that was written, which is no change of the project. */
  onChange(): string | undefined;
}

/** Editors write several files, or one file several times; all of it within this time is one change. */
const SETTLE_MS = 100;

/** Calls back now, and again after each change of a source file below a folder, until the signal. */
export async function watchProject(folder: string, { signal, onChange }: WatchOptions): Promise<void> {
  const events = watch(folder, { recursive: true, signal });
  let written = onChange();
  let pending: NodeJS.Timeout | undefined;
  try {
    for await (const { filename } of events) {
      if (filename === null || !isSource(filename) || resolve(folder, filename) === resolve(written ?? ''))
        continue;
      clearTimeout(pending);
      pending = setTimeout(() => {
        written = onChange() ?? written;
      }, SETTLE_MS);
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    clearTimeout(pending);
  }
}

/** A folder that comes or goes stands for the files in it: not every system tells of each of them. */
function isSource(filename: string): boolean {
  if (/(^|[/\\])(node_modules|\.git)([/\\]|$)/.test(filename)) return false;
  return /(\.[cm]?tsx?|tsconfig[^/\\]*\.json|(^|[/\\])[^./\\]+)$/.test(filename);
}
