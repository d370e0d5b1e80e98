import { posix } from 'node:path';
import { createContext, Script } from 'node:vm';
import ignore from 'ignore';
import { ToolResult, toolResult } from '../../core/contract/tool-result.js';
import { nextTurn } from '../../core/kernel/async.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { patternGrowth } from '../../tools/checking/patterns.js';
import {
  type ByteRange,
  type FileBytes,
  type FileKind,
  type FileSystem,
  FileSystemError,
  type FolderEntry,
  missing,
  type WalkedFolder,
  wrongKind,
} from './file-system.js';

interface LinesWanted {
  readonly path: string;
  readonly fromLine: number;
  readonly lines: number;
  readonly limits: { readonly bytes: number; readonly imageBytes: number; readonly fileBytes: number };
}

const MOST_OF_A_READ_LINE = 2_000;

/** Numbered lines, an image, or a description of other content. */
export async function readByLines(files: FileSystem, wanted: LinesWanted): Promise<ToolResult> {
  const { limits } = wanted;
  const path = files.pathOf(wanted.path);
  const info = await files.info(path);
  if (info === undefined) throw missing(path);
  if (info.kind === 'file' && info.size > limits.fileBytes) return readHuge(files, { ...wanted, path });
  const { bytes } = await files.read(path);
  const content = contentOf(bytes);
  if (content.kind === 'image') {
    const { mimeType } = content;
    const { length } = bytes;
    if (length > limits.imageBytes)
      return toolResult(`${path}: an image of ${length} bytes; the limit is ${limits.imageBytes} bytes.`);
    const text = `${path}: ${mimeType}, ${length} bytes`;
    const image = { type: 'image', data: viewOf(bytes).toString('base64'), mimeType } as const;
    return new ToolResult({ forLLM: text, content: [{ type: 'text', content: text }, image] });
  }
  if (content.kind === 'binary')
    return toolResult(
      `${path}: ${bytes.length} bytes that cannot be shown as lines: ${content.why}. Use fromByte and bytes to read a part of them.`,
    );
  const lines = content.text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  // The ending of the last line starts no further line.
  if (lines.at(-1) === '') lines.pop();
  const shown = numbered(lines.slice(wanted.fromLine - 1), wanted);
  const version = `version ${fileVersion(bytes)}`;
  if (lines.length === 0) return toolResult(`${path}: empty, ${version}`);
  if (wanted.fromLine > lines.length)
    return toolResult(`${path}: ${lines.length} lines, ${version}; there is no line ${wanted.fromLine}`);
  const last = wanted.fromLine + shown.length - 1;
  const ends = content.lineEnd === '\r\n' ? ', lines end in \\r\\n' : '';
  const rest =
    last < lines.length ? `\n(${lines.length - last} more lines; continue with fromLine ${last + 1})` : '';
  return toolResult(
    `${path}: lines ${wanted.fromLine}–${last} of ${lines.length}, ${version}${ends}\n${shown.join('\n')}${rest}`,
  );
}

/** As many of the requested lines as fit; at least one. */
function numbered(
  lines: readonly string[],
  { fromLine, lines: most, limits }: LinesWanted,
): readonly string[] {
  const shown: string[] = [];
  let room = limits.bytes;
  for (const line of lines.slice(0, most)) {
    const text = `${fromLine + shown.length}\t${shownLine(line, MOST_OF_A_READ_LINE)}`;
    room -= Buffer.byteLength(text) + 1;
    if (room < 0 && shown.length > 0) break;
    shown.push(text);
  }
  return shown;
}

const PIECE_BYTES = 1024 * 1024;

/** Reads a large file in pieces up to the requested lines. It gets no version, because it cannot be edited. */
async function readHuge(files: FileSystem, wanted: LinesWanted): Promise<ToolResult> {
  const { path, fromLine, lines: most } = wanted;
  const decoder = new TextDecoder();
  const found: string[] = [];
  let [line, left, stamp, size, from] = [1, '', '', Number.POSITIVE_INFINITY, 0];
  for (; from < size && found.length < most; from += PIECE_BYTES) {
    const piece: FileBytes = await files.read(path, { from, most: PIECE_BYTES });
    if (from === 0 && hasZero(piece.bytes)) return toolResult(`${path}: ${piece.size} bytes; it is binary.`);
    if (stamp !== '' && stamp !== piece.stamp)
      throw new FileSystemError('changed', `'${path}' changed while it was read. Read it again.`);
    ({ size, stamp } = piece);
    const parts = (left + decoder.decode(piece.bytes, { stream: true })).split('\n');
    // The start of an unfinished line; of a line without end, only this much is stored.
    left = (parts.pop() ?? '').slice(0, PIECE_BYTES);
    for (const part of parts) {
      if (line >= fromLine && found.length < most) found.push(part.endsWith('\r') ? part.slice(0, -1) : part);
      line += 1;
    }
  }
  const isRead = from >= size;
  if (isRead && left !== '') {
    if (found.length < most && line >= fromLine) found.push(left);
    line += 1;
  }
  const shown = numbered(found, wanted);
  const about = `${path}: ${size} bytes, too large to edit or to read as a whole`;
  if (shown.length === 0) return toolResult(`${about}; there is no line ${fromLine}`);
  const last = fromLine + shown.length - 1;
  const rest = isRead && last === line - 1 ? '' : `\n(continue with fromLine ${last + 1})`;
  return toolResult(`${about}; lines ${fromLine}–${last}\n${shown.join('\n')}${rest}`);
}

const MOST_HEX_BYTES = 2_048;

/** Bytes as whole characters if they are text, otherwise in hexadecimal. */
export async function readByBytes(
  files: FileSystem,
  { path, from, most }: Required<ByteRange> & { readonly path: string },
): Promise<ToolResult> {
  const known = files.pathOf(path);
  const { bytes, size } = await files.read(known, { from, most });
  if (size === 0) return toolResult(`${known}: empty`);
  if (from >= size) return toolResult(`${known}: ${size} bytes; there is no byte ${from}`);
  if (bytes.length === 0) throw wrongKind(known, 'other', 'file');
  const text = wholeCharacters(bytes);
  const shown = text === undefined ? bytes.subarray(0, MOST_HEX_BYTES) : text.bytes;
  const start = from + (text?.skipped ?? 0);
  const end = start + shown.length;
  const rest = end < size ? `\n(${size - end} more bytes; continue with fromByte ${end})` : '';
  const form = text === undefined ? ', in hexadecimal' : '';
  const body = text?.text ?? Buffer.from(shown).toString('hex').match(/../g)?.join(' ');
  return toolResult(`${known}: bytes ${start}–${end - 1} of ${size}${form}\n${body}${rest}`);
}

/** Text without cut characters at both ends; `undefined` if it is not text. */
function wholeCharacters(bytes: Uint8Array) {
  if (hasZero(bytes)) return undefined;
  // A continuation byte of a character.
  const isInside = (byte = 0): boolean => (byte & 0xc0) === 0x80;
  let skipped = 0;
  while (skipped < 3 && isInside(bytes[skipped])) skipped += 1;
  let end = bytes.length;
  while (end > skipped && end > bytes.length - 3 && isInside(bytes[end - 1])) end -= 1;
  for (const part of [bytes.subarray(skipped), bytes.subarray(skipped, Math.max(skipped, end - 1))]) {
    try {
      return { text: new TextDecoder('utf-8', { fatal: true }).decode(part), bytes: part, skipped };
    } catch {
      // Try again without the cut character at the end.
    }
  }
  return undefined;
}

/** The content of a file, as far as the tools can handle it. */
type FileContent =
  | { readonly kind: 'text'; readonly text: string; readonly lineEnd: '\n' | '\r\n' }
  | { readonly kind: 'image'; readonly mimeType: string }
  | { readonly kind: 'binary'; readonly why: string };

/** A zero byte within this range shows that a file is binary. */
const LOOKED_AT_BYTES = 8_192;

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes bytes as UTF-8 text, or reports their kind. */
export function contentOf(bytes: Uint8Array): FileContent {
  // By the first bytes, because the file extension may be wrong.
  const [mimeType] = IMAGES.find(([, start, at]) => startsWith(bytes.subarray(at), start)) ?? [];
  if (mimeType !== undefined) return { kind: 'image', mimeType };
  if (startsWith(bytes, [0xff, 0xfe]) || startsWith(bytes, [0xfe, 0xff]))
    return { kind: 'binary', why: 'it is UTF-16 text; only UTF-8 is supported' };
  if (hasZero(bytes)) return { kind: 'binary', why: 'it is binary' };
  try {
    const text = TEXT.decode(bytes);
    // The first line decides; lines in a mixed file keep their endings.
    return { kind: 'text', text, lineEnd: /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n' };
  } catch {
    return { kind: 'binary', why: 'it is not UTF-8 text' };
  }
}

/** Whether bytes are binary, decided by their start. */
function hasZero(bytes: Uint8Array): boolean {
  return bytes.subarray(0, LOOKED_AT_BYTES).includes(0);
}

const IMAGES: readonly (readonly [string, readonly number[], number])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0],
  ['image/jpeg', [0xff, 0xd8, 0xff], 0],
  ['image/gif', [0x47, 0x49, 0x46, 0x38], 0],
  ['image/webp', [0x57, 0x45, 0x42, 0x50], 8],
];

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return bytes.length >= start.length && start.every((byte, index) => bytes[index] === byte);
}

/** A short hash of a file's content: 12 characters that a model can repeat. */
export function fileVersion(bytes: Uint8Array): string {
  return nodeCrypto().hash('sha256', bytes).slice(0, 12);
}

/** The same memory with the methods of a buffer. */
function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** A line cut to `most` characters, with the number of those left out. */
function shownLine(line: string, most: number): string {
  if (line.length <= most) return line;
  // Do not cut a surrogate pair.
  const end = line.slice(0, most).isWellFormed() ? most : most - 1;
  return `${line.slice(0, end)} … (${line.length - end} more characters)`;
}

interface FileSelection {
  /** A folder, or one file. */
  readonly path: string;
  /** Default: all files. */
  readonly fits?: (path: string) => boolean;
  /** Includes files that `.gitignore` excludes. */
  readonly withIgnored: boolean;
  readonly signal?: AbortSignal;
}

interface FileSearch extends FileSelection, LineQuery, LineSearch {
  /** When to stop, by `performance.now()`. */
  readonly until: number;
}

interface FileLines {
  readonly path: string;
  readonly lines: readonly FoundLine[];
}

/** How long the search may block the event loop. */
const MOST_MS_AT_ONCE = 8;

/** The most bytes of a file that are searched. */
const MOST_BYTES = 16 * 1024 * 1024;

const MOST_OF_A_LINE = 300;
const MOST_CHARACTERS = 60_000;

/** The matching files of a folder and its subfolders, as text for the model. */
export async function findFiles(files: FileSystem, selection: FileSelection, most: number): Promise<string> {
  const paths: string[] = [];
  await eachFile(files, selection, ({ path }) => {
    paths.push(path);
    return paths.length <= most;
  });
  if (paths.length === 0) return 'No file matches.';
  const shown = paths.slice(0, most).map(visibleLine).join('\n');
  if (paths.length <= most) return shown;
  return `${shown}\n(more than ${most} files; search in a subfolder, or use a narrower pattern)`;
}

/** Matching lines, file by file in order of paths, as text for the model. */
export async function searchFiles(files: FileSystem, search: FileSearch): Promise<string> {
  const { context, most, until } = search;
  const find = lineFinder(search);
  let found: readonly FileLines[] = [];
  const tooLarge: string[] = [];
  const tooSlow: string[] = [];
  let [count, searched, isLate] = [0, 0, false];
  await eachFile(files, search, ({ path, read }) => {
    const bytes = read(MOST_BYTES);
    if (bytes === undefined) return true;
    // One more than requested, to detect whether there are more.
    const lines = find(bytes, { context, most: most - count + 1 });
    if (lines === undefined) return tooSlow.push(visibleLine(path)) < MOST_SLOW;
    searched += 1;
    if (bytes.length === MOST_BYTES) tooLarge.push(path);
    if (lines.length > 0) found = [...found, { path, lines }];
    count += lines.filter(({ isContext }) => !isContext).length;
    isLate = count <= most && performance.now() > until;
    return count <= most && !isLate;
  });
  const isCut = count > most;
  const last = found.at(-1);
  if (isCut && last !== undefined) {
    // Without the one match too many, and its context lines.
    const end = last.lines.findLastIndex(({ isContext }) => !isContext);
    const before = last.lines.slice(0, end).findLastIndex(({ isContext }) => !isContext);
    const lines = last.lines.slice(0, before + 1);
    found = [...found.slice(0, -1), ...(lines.length === 0 ? [] : [{ ...last, lines }])];
  }
  const shown = shownLines(found);
  const about = [`${searched} ${searched === 1 ? 'file' : 'files'} searched`];
  if (isCut) about.push(`there are more than ${most} matching lines: narrow the search`);
  if (isLate) about.push('the search took too long and was stopped; search in a smaller folder');
  if (tooSlow.length > 0)
    about.push(`not searched, because the pattern takes too long there: ${tooSlow.join(', ')}`);
  if (tooSlow.length === MOST_SLOW) about.push('the search was stopped: write a simpler pattern');
  const left = found.length - shown.length;
  if (left > 0) about.push(`${left} more files with matching lines are not shown`);
  if (tooLarge.length > 0)
    about.push(`only the beginning was searched in ${tooLarge.slice(0, 5).join(', ')}`);
  const fits = Math.min(count, most);
  const head = fits === 0 ? 'No line matches' : `${fits} ${fits === 1 ? 'line matches' : 'lines match'}`;
  return [`${head} (${about.join('; ')}).`, ...shown].join('\n\n');
}

/** As many files as fit: `12:` before a matching line, `13-` before a context line, `--` between separate places. */
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

/** Visits files until it is stopped. */
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

/** The entries of a folder, as text for the model; for a file, its kind. */
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

/** The rules of a folder's `.gitignore`. */
interface RulesOfFolder {
  readonly folder: string;
  readonly rules: ignore.Ignore;
}

const RULES_FILE = '.gitignore';
const MOST_RULE_BYTES = 1024 * 1024;

/** Large, and never of interest. */
const ALWAYS = new Set(['.git']);

/** The `.gitignore` rules of folders, read as a walk visits them. */
class IgnoredPaths {
  readonly #known = new Map<string, readonly RulesOfFolder[]>();

  private constructor() {}

  /** Reads the rules of the parent folders; they do not apply if they ignore the start folder, which was requested. */
  static async above(files: FileSystem, start: string): Promise<IgnoredPaths> {
    const paths = new IgnoredPaths();
    const folders: string[] = [];
    for (let at = start; at !== '.'; at = posix.dirname(at)) folders.unshift(posix.dirname(at));
    let rules: readonly RulesOfFolder[] = [];
    for (const folder of folders) {
      const text = await textOf(files, posix.join(folder, RULES_FILE));
      if (text !== undefined) rules = [{ folder, rules: rulesIn(text) }, ...rules];
    }
    const isMeant = folders
      .concat(start)
      .some((folder) => folder !== '.' && isIgnored(rules, folder, 'folder'));
    paths.#known.set(start, isMeant ? [] : rules);
    return paths;
  }

  /** The entries of a folder that are not ignored. The walk may visit their folders next. */
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
      ({ name, kind }) => !ALWAYS.has(name) && !isIgnored(rules, posix.join(path, name), kind),
    );
    for (const { name, kind } of kept) if (kind === 'folder') this.#known.set(posix.join(path, name), rules);
    return kept;
  }
}

function rulesIn(text: string): ignore.Ignore {
  return ignore({ allowRelativePaths: true }).add(text);
}

/** The rules of the nearest folder take precedence. */
function isIgnored(all: readonly RulesOfFolder[], path: string, kind: FolderEntry['kind']): boolean {
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

/** What to search for. */
interface LineQuery {
  readonly text: string;
  /** `text` is a JavaScript regular expression, with the flag `u`. */
  readonly isPattern: boolean;
  readonly ignoresCase: boolean;
}

/** A matching line, or a context line. */
interface FoundLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** It is a context line. */
  readonly isContext: boolean;
}

interface LineSearch {
  /** Context lines around each match. */
  readonly context: number;
  /** The most matching lines to return. */
  readonly most: number;
}

/**
 * Finds matching lines in the bytes of a file; empty if there are none, or if the file is not text, and `undefined` if
 * it takes too long.
 */
type LineFinder = (bytes: Uint8Array, search: LineSearch) => readonly FoundLine[] | undefined;

const MOST_PATTERN = 500;
const MOST_MATCHED_CHARACTERS = 100_000;
/** Time limit per file, for a pattern whose time may grow faster than the length of a line. */
const MOST_MS = 300;
/** After this many files that reach the limit, the search stops. */
const MOST_SLOW = 3;

/**
 * Creates a line finder.
 *
 * @throws Error with a message for the model if the pattern is invalid, too long, or may take exponential time.
 */
function lineFinder({ text, isPattern, ignoresCase }: LineQuery): LineFinder {
  if (text === '') throw new Error('The text to search for is empty.');
  if (!isPattern && !ignoresCase)
    return whereIs(
      text,
      false,
      findLines((line) => line.includes(text)),
    );
  const source = isPattern ? text : escapePattern(text);
  const flags = ignoresCase ? 'iu' : 'u';
  const pattern = compiled(source, flags);
  const fitting = findLines((line) =>
    pattern.test(line.length > MOST_MATCHED_CHARACTERS ? line.slice(0, MOST_MATCHED_CHARACTERS) : line),
  );
  const find = isPattern && mayBeSlow(source, flags) ? stopped(fitting) : fitting;
  const needed = isPattern ? neededText(source) : text;
  return needed === undefined ? find : whereIs(needed, ignoresCase, find);
}

/**
 * A string that every matching line contains: the longest run of plain characters outside of all brackets. `undefined`
 * if the pattern has alternatives, or syntax that is not handled here.
 */
function neededText(pattern: string): string | undefined {
  if (/[|\\]/.test(pattern)) return undefined;
  const outside = pattern.replace(/\[[^\]]*\]/g, '.').replace(/\([^()]*\)/g, '.');
  if (/[()[\]]/.test(outside)) return undefined;
  // A character before a quantifier may be absent.
  const runs = outside.replace(/.[*?]|.\{[^}]*\}/gu, '\n').split(/[^\w ,:;=<>"'#%&@!~-]/);
  const longest = runs.reduce((one, other) => (other.length > one.length ? other : one), '');
  return longest.length < 2 ? undefined : longest;
}

/** Skips files that do not contain the needed string, which is most files. Their bytes need no decoding. */
function whereIs(needed: string, ignoresCase: boolean, find: LineFinder): LineFinder {
  const bytesOf = Buffer.from(needed);
  const anyCase = new RegExp(escapePattern(needed), 'iu');
  return (bytes, search) => {
    const view = viewOf(bytes);
    const isThere = ignoresCase ? anyCase.test(view.toString()) : view.indexOf(bytesOf) >= 0;
    return isThere ? find(bytes, search) : [];
  };
}

function compiled(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags);
  } catch {
    // Many unnecessary escapes are errors only with the flag `u`.
  }
  try {
    return new RegExp(source, flags.replace('u', ''));
  } catch (error) {
    throw new Error(`The regular expression is invalid: ${error instanceof Error ? error.message : source}.`);
  }
}

/** Refuses exponential patterns; other patterns that may be slow get a time limit. */
function mayBeSlow(pattern: string, flags: string): boolean {
  if (pattern.length > MOST_PATTERN)
    throw new Error(`The pattern is too long: ${pattern.length} characters, at most ${MOST_PATTERN}.`);
  const growth = patternGrowth(pattern, flags);
  if (growth === 'exponential')
    throw new Error(
      'The pattern may take exponential time: it repeats something that already repeats. Write a simpler one.',
    );
  return growth !== 'linear';
}

/** Only the time-out of a script can interrupt a regular expression. */
function stopped(find: LineFinder): LineFinder {
  const script = new Script('work()');
  let work = (): void => {};
  const context = createContext({ work: () => work() });
  return (bytes, search) => {
    let found: ReturnType<LineFinder>;
    work = () => {
      found = find(bytes, search);
    };
    try {
      script.runInContext(context, { timeout: MOST_MS });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      return undefined;
    }
    return found;
  };
}

function findLines(fits: (line: string) => boolean): LineFinder {
  return (bytes, { context, most }) => {
    if (hasZero(bytes)) return [];
    const text = viewOf(bytes).toString();
    const found: FoundLine[] = [];
    const before: string[] = [];
    let [line, start, after, count] = [0, 0, 0, 0];
    while (start < text.length) {
      const next = text.indexOf('\n', start);
      const end = next < 0 ? text.length : next;
      const content = text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end);
      line += 1;
      start = end + 1;
      if (count < most && fits(content)) {
        count += 1;
        for (const [index, kept] of before.entries())
          found.push({ line: line - before.length + index, text: kept, isContext: true });
        before.length = 0;
        found.push({ line, text: content, isContext: false });
        after = context;
      } else if (after > 0) {
        after -= 1;
        found.push({ line, text: content, isContext: true });
      } else {
        if (count >= most) break;
        before.push(content);
        if (before.length > context) before.shift();
      }
    }
    return found;
  };
}
