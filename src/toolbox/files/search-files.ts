import { nextTurn } from '../../kernel/async.js';
import { joinPath } from '../paths/folder-path.js';
import type { PathMatcher } from '../paths/glob.js';
import { type FileSystem, missing, wrongKind } from './file-system.js';
import { IgnoredPaths } from './ignored-paths.js';
import type { FoundLine, LineFinder } from './line-search.js';

/** Which files are gone through. */
interface FileSelection {
  /** A folder, or one file. */
  readonly path: string;
  /** Default: all. */
  readonly fits?: PathMatcher;
  /** Also what `.gitignore` files name. */
  readonly withIgnored: boolean;
  readonly signal?: AbortSignal;
}

/** Files of a selection, by path. */
export interface FoundFiles {
  readonly paths: readonly string[];
  /** There are more than were wanted. */
  readonly isCut: boolean;
}

/** Lines of one file. */
interface FileLines {
  readonly path: string;
  readonly lines: readonly FoundLine[];
}

/** How to search. */
interface FileSearch extends FileSelection {
  readonly find: LineFinder;
  readonly context: number;
  /** How many lines that fit are wanted at most. */
  readonly most: number;
  /** When to stop, by `performance.now()`. */
  readonly until: number;
}

/** What a search has found, and what it has left out. */
export interface FoundLines {
  readonly files: readonly FileLines[];
  readonly count: number;
  readonly searched: number;
  /** Why it ended before its end. */
  readonly cut?: 'most' | 'time';
  /** Files of which only the beginning was looked at. */
  readonly tooLarge: readonly string[];
}

/** For how long everything else waits. */
const MOST_MS_AT_ONCE = 8;

/** Of a file, what is searched at most. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The files of a folder and of those in it whose paths fit. */
export async function findFiles(
  files: FileSystem,
  selection: FileSelection,
  most: number,
): Promise<FoundFiles> {
  const paths: string[] = [];
  await eachFile(files, selection, ({ path }) => {
    paths.push(path);
    return paths.length <= most;
  });
  return { paths: paths.slice(0, most), isCut: paths.length > most };
}

/** Lines that fit, file by file, in order of paths. */
export async function searchFiles(files: FileSystem, search: FileSearch): Promise<FoundLines> {
  const { find, context, most, until } = search;
  const found: FileLines[] = [];
  const tooLarge: string[] = [];
  let [count, searched] = [0, 0];
  let cut: FoundLines['cut'];
  await eachFile(files, search, ({ path, read }) => {
    const bytes = read(MOST_BYTES);
    if (bytes === undefined) return true;
    searched += 1;
    if (bytes.length === MOST_BYTES) tooLarge.push(path);
    // One more than is wanted, to know whether there are more.
    const lines = find(bytes, { context, most: most - count + 1 });
    if (lines.length > 0) {
      found.push({ path, lines });
      count += lines.filter(({ isContext }) => !isContext).length;
    }
    if (count > most) cut = 'most';
    else if (performance.now() > until) cut = 'time';
    return cut === undefined;
  });
  return {
    files: cut === 'most' ? withoutLast(found) : found,
    count: Math.min(count, most),
    searched,
    cut,
    tooLarge,
  };
}

/** Without the line that is one too many, and what stands before it only for its sake. */
function withoutLast(found: readonly FileLines[]): readonly FileLines[] {
  const last = found.at(-1);
  if (last === undefined) return found;
  const end = last.lines.findLastIndex(({ isContext }) => !isContext);
  const before = last.lines.slice(0, end).findLastIndex(({ isContext }) => !isContext);
  const lines = last.lines.slice(0, before + 1);
  return lines.length === 0 ? found.slice(0, -1) : [...found.slice(0, -1), { ...last, lines }];
}

interface SelectedFile {
  readonly path: string;
  read(most: number): Uint8Array | undefined;
}

/** Goes through files until it is told to stop. */
async function eachFile(
  files: FileSystem,
  { path, fits, withIgnored, signal }: FileSelection,
  visit: (file: SelectedFile) => boolean,
): Promise<void> {
  const start = files.pathOf(path);
  const info = await files.info(start);
  if (info === undefined) throw missing(start);
  if (info.kind === 'file') {
    const { bytes } = await files.read(start, { most: MOST_BYTES });
    visit({ path: start, read: () => bytes });
    return;
  }
  if (info.kind === 'other') throw wrongKind(start, info.kind, 'folder');
  const ignored = withIgnored ? undefined : await IgnoredPaths.above(files, start);
  const prefix = start === '.' ? 0 : start.length + 1;
  let rest = performance.now();
  await files.walk(
    start,
    async (folder) => {
      const entries = ignored === undefined ? folder.entries : ignored.kept(folder);
      for (const { name, kind } of entries) {
        if (kind !== 'file') continue;
        const at = joinPath(folder.path, name);
        if (fits !== undefined && !fits(at.slice(prefix))) continue;
        if (!visit({ path: at, read: (most) => folder.read(name, most) })) return undefined;
        if (performance.now() - rest < MOST_MS_AT_ONCE) continue;
        await nextTurn();
        signal?.throwIfAborted();
        rest = performance.now();
      }
      return entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name);
    },
    { signal },
  );
}
