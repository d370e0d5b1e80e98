import { posix } from 'node:path';
import ignore from 'ignore';
import { nextTurn } from '../../kernel/async.js';
import { visibleLine } from '../../kernel/visible-text.js';
import {
  type FileKind,
  type FileSystem,
  type FolderEntry,
  missing,
  type WalkedFolder,
  wrongKind,
} from './file-system.js';
import type { FoundLine, LineFinder } from './line-search.js';
import { shownLine } from './read-file.js';

/** Which files are gone through. */
interface FileSelection {
  /** A folder, or one file. */
  readonly path: string;
  /** Default: all. */
  readonly fits?: (path: string) => boolean;
  /** Also what `.gitignore` files name. */
  readonly withIgnored: boolean;
  readonly signal?: AbortSignal;
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

/** Lines of one file. */
interface FileLines {
  readonly path: string;
  readonly lines: readonly FoundLine[];
}

/** For how long everything else waits. */
const MOST_MS_AT_ONCE = 8;

/** Of a file, what is searched at most. */
const MOST_BYTES = 16 * 1024 * 1024;

const MOST_OF_A_LINE = 300;
const MOST_CHARACTERS = 60_000;

/** The files of a folder and of those in it whose paths fit, as the model is told them. */
export async function findFiles(files: FileSystem, selection: FileSelection, most: number): Promise<string> {
  const paths: string[] = [];
  await eachFile(files, selection, ({ path }) => {
    paths.push(path);
    return paths.length <= most;
  });
  if (paths.length === 0) return 'No file fits.';
  const shown = paths.slice(0, most).map(visibleLine).join('\n');
  if (paths.length <= most) return shown;
  return `${shown}\n(more than ${most}; look in a folder of them, or by a narrower pattern)`;
}

/** Lines that fit, file by file in order of paths, as the model is told them. */
export async function searchFiles(files: FileSystem, search: FileSearch): Promise<string> {
  const { find, context, most, until } = search;
  let found: readonly FileLines[] = [];
  const tooLarge: string[] = [];
  let [count, searched, isLate] = [0, 0, false];
  await eachFile(files, search, ({ path, read }) => {
    const bytes = read(MOST_BYTES);
    if (bytes === undefined) return true;
    searched += 1;
    if (bytes.length === MOST_BYTES) tooLarge.push(path);
    // One more than is wanted, to know whether there are more.
    const lines = find(bytes, { context, most: most - count + 1 });
    if (lines.length > 0) found = [...found, { path, lines }];
    count += lines.filter(({ isContext }) => !isContext).length;
    isLate = count <= most && performance.now() > until;
    return count <= most && !isLate;
  });
  const isCut = count > most;
  if (isCut) found = withoutLast(found);
  const shown = shownLines(found);
  const about = [`${searched} ${searched === 1 ? 'file' : 'files'} searched`];
  if (isCut) about.push(`there are more than ${most} lines: search for something narrower`);
  if (isLate) about.push('it took too long and was ended; search in a smaller folder');
  const left = found.length - shown.length;
  if (left > 0) about.push(`${left} more files with lines that fit are not shown`);
  if (tooLarge.length > 0)
    about.push(`only the beginning was searched of ${tooLarge.slice(0, 5).join(', ')}`);
  const fits = Math.min(count, most);
  const head = fits === 0 ? 'No line fits' : `${fits} ${fits === 1 ? 'line fits' : 'lines fit'}`;
  return [`${head} (${about.join('; ')}).`, ...shown].join('\n\n');
}

/** As many files as have room: `12:` before a line that fits, `13-` before one beside it, `--` between places apart. */
function shownLines(files: readonly FileLines[]): readonly string[] {
  const parts: string[] = [];
  let room = MOST_CHARACTERS;
  for (const { path, lines } of files) {
    const text: string[] = [visibleLine(path)];
    for (const [index, { line, text: content, isContext }] of lines.entries()) {
      const before = lines[index - 1];
      if (before !== undefined && before.line + 1 < line) text.push('--');
      text.push(`${line}${isContext ? '-' : ':'} ${shownLine(content, MOST_OF_A_LINE)}`);
    }
    const part = text.join('\n');
    room -= part.length;
    if (room < 0 && parts.length > 0) break;
    parts.push(part);
  }
  return parts;
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

/** Goes through files until it is told to stop. */
async function eachFile(
  files: FileSystem,
  { path, fits, withIgnored, signal }: FileSelection,
  visit: (file: { readonly path: string; read(most: number): Uint8Array | undefined }) => boolean,
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
        const at = posix.join(folder.path, name);
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

const KINDS: Readonly<Record<FileKind, string>> = {
  file: '',
  folder: '/',
  link: ' (link)',
  other: ' (device or pipe)',
};

/** Names in a folder, as the model is told them; of a file, what it is. */
export async function describeFolder(files: FileSystem, path: string, most: number): Promise<string> {
  const known = files.pathOf(path);
  const info = await files.info(known);
  if (info === undefined) throw missing(known);
  if (info.kind === 'file')
    return `${known}: a file, ${info.size} bytes, changed ${new Date(info.changedAt).toISOString()}`;
  const entries = await files.list(known);
  if (entries.length === 0) return `${known}: empty`;
  const lines: string[] = [];
  for (const { name, kind } of entries.slice(0, most)) {
    const size = kind === 'file' ? `, ${(await files.info(posix.join(known, name)))?.size ?? 0} bytes` : '';
    lines.push(visibleLine(name) + KINDS[kind] + size);
  }
  const rest = entries.length > most ? `\n(${entries.length - most} more)` : '';
  return `${known}: ${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}\n${lines.join('\n')}${rest}`;
}

/** Its folder, and whether a path is ignored, is meant all the same, or is not spoken of. */
interface RulesOfFolder {
  readonly folder: string;
  readonly rules: ignore.Ignore;
}

const RULES_FILE = '.gitignore';
const MOST_RULE_BYTES = 1024 * 1024;

/** Never of interest, and large. */
const ALWAYS = new Set(['.git']);

/** What `.gitignore` files say of paths, folder by folder, as a walk comes to them. */
class IgnoredPaths {
  readonly #known = new Map<string, readonly RulesOfFolder[]>();

  private constructor() {}

  /** Knows what the folders above the first one say, unless that itself is ignored and meant all the same. */
  static async above(files: FileSystem, start: string): Promise<IgnoredPaths> {
    const paths = new IgnoredPaths();
    const folders: string[] = [];
    for (let at = start; at !== '.'; at = posix.dirname(at)) folders.unshift(posix.dirname(at));
    let rules: readonly RulesOfFolder[] = [];
    for (const folder of folders) {
      const text = await textOf(files, posix.join(folder, RULES_FILE));
      if (text !== undefined) rules = [{ folder, rules: rulesIn(text) }, ...rules];
    }
    const isMeant = folders.concat(start).some((folder) => folder !== '.' && says(rules, folder, 'folder'));
    paths.#known.set(start, isMeant ? [] : rules);
    return paths;
  }

  /** The entries of a folder that are not ignored; the folders among them may be asked for next. */
  kept(folder: WalkedFolder): readonly FolderEntry[] {
    const { path, entries } = folder;
    let rules = this.#known.get(path) ?? [];
    this.#known.delete(path);
    const own = entries.some(({ name, kind }) => name === RULES_FILE && kind === 'file')
      ? folder.read(RULES_FILE, MOST_RULE_BYTES)
      : undefined;
    if (own !== undefined)
      rules = [{ folder: path, rules: rulesIn(new TextDecoder().decode(own)) }, ...rules];
    const kept = entries.filter(
      ({ name, kind }) => !ALWAYS.has(name) && !says(rules, posix.join(path, name), kind),
    );
    for (const { name, kind } of kept) if (kind === 'folder') this.#known.set(posix.join(path, name), rules);
    return kept;
  }
}

function rulesIn(text: string): ignore.Ignore {
  return ignore({ allowRelativePaths: true }).add(text);
}

/** The folder nearest to a path has the last word. */
function says(all: readonly RulesOfFolder[], path: string, kind: FolderEntry['kind']): boolean {
  for (const { folder, rules } of all) {
    const relative = folder === '.' ? path : path.slice(folder.length + 1);
    const { ignored, unignored } = rules.test(kind === 'folder' ? `${relative}/` : relative);
    if (ignored) return true;
    if (unignored) return false;
  }
  return false;
}

async function textOf(files: FileSystem, path: string): Promise<string | undefined> {
  try {
    const { bytes } = await files.read(path, { most: MOST_RULE_BYTES });
    return new TextDecoder().decode(bytes);
  } catch {
    return undefined;
  }
}
