import { applyPatch, createTwoFilesPatch, formatPatch, parsePatch } from 'diff';
import { escapePattern } from '../../core/kernel/escape-pattern.js';

/** A replacement in a text. */
export interface TextEdit {
  /** The exact text to replace; it must occur exactly once, unless `all`. */
  readonly oldText: string;
  readonly newText: string;
  /** Replace every occurrence. */
  readonly all?: boolean;
}

/** The result: all edits were made, or none, with the reason. */
export type Edited =
  | { readonly ok: true; readonly text: string; readonly replacements: number }
  | { readonly ok: false; readonly problems: readonly string[] };

/** A range of a text and its replacement. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Number of the edit, from 1. */
  readonly edit: number;
}

const MOST_NAMED_LINES = 5;

/**
 * Makes all edits of a text, or none. Each edit refers to the original text, so their order does not matter; edits that
 * overlap are refused. If all lines of a text end in `\r\n`, `\n` in edits is converted.
 */
export function editText(text: string, edits: readonly TextEdit[]): Edited {
  const replacements: Replacement[] = [];
  const problems: string[] = [];
  for (const [index, edit] of edits.entries()) {
    const found = placesOf(text, inLineEndsOf(text, edit));
    if (found.ok) for (const one of found.places) replacements.push({ ...one, edit: index + 1 });
    else problems.push(`edit ${index + 1}: ${found.problem}`);
  }
  replacements.sort((one, other) => one.start - other.start || one.edit - other.edit);
  for (const [index, next] of replacements.entries()) {
    const before = replacements[index - 1];
    if (before !== undefined && next.start < before.end)
      problems.push(
        `edits ${before.edit} and ${next.edit} change the same text in line ${lineAt(text, next.start)}`,
      );
  }
  if (problems.length > 0) return { ok: false, problems };
  const edited = applied(text, replacements);
  if (edited === text) return { ok: false, problems: ['the text would stay as it is'] };
  return { ok: true, text: edited, replacements: replacements.length };
}

function applied(text: string, replacements: readonly Replacement[]): string {
  const parts: string[] = [];
  let end = 0;
  for (const replacement of replacements) {
    parts.push(text.slice(end, replacement.start), replacement.text);
    end = replacement.end;
  }
  return parts.join('') + text.slice(end);
}

/** Models write `\n`; a text with only `\r\n` keeps its line endings. */
function inLineEndsOf(text: string, edit: TextEdit): TextEdit {
  const hasOther = /(?<!\r)\n/.test(text) || !text.includes('\r\n');
  if (hasOther || edit.oldText.includes('\r\n')) return edit;
  const ended = (part: string): string => part.replace(/\r?\n/g, '\r\n');
  return { ...edit, oldText: ended(edit.oldText), newText: ended(edit.newText) };
}

type Places =
  | { readonly ok: true; readonly places: readonly Omit<Replacement, 'edit'>[] }
  | { readonly ok: false; readonly problem: string };

function placesOf(text: string, { oldText, newText, all = false }: TextEdit): Places {
  if (oldText === '')
    return { ok: false, problem: 'oldText is empty; to write a whole file there is another tool' };
  const starts: number[] = [];
  // Overlapping occurrences count, too: they make the edit ambiguous.
  for (let at = text.indexOf(oldText); at >= 0; at = text.indexOf(oldText, at + (all ? oldText.length : 1)))
    starts.push(at);
  if (starts.length === 0) return { ok: false, problem: whyNotFound(text, oldText) };
  if (starts.length > 1 && !all) return { ok: false, problem: whyNotUnique(text, starts) };
  return { ok: true, places: starts.map((start) => ({ start, end: start + oldText.length, text: newText })) };
}

function whyNotUnique(text: string, starts: readonly number[]): string {
  const named = starts.slice(0, MOST_NAMED_LINES).map((start) => lineAt(text, start));
  const rest = starts.length > named.length ? ', …' : '';
  return `oldText is there ${starts.length} times (lines ${named.join(', ')}${rest}); take in more of what is around it, or set all: true`;
}

/** If the text differs only in white space, which is the most frequent mistake, names the line. */
function whyNotFound(text: string, oldText: string): string {
  const wanted = oldText.trim().split(/\s+/).map(escapePattern).join('\\s+');
  const near = wanted.length > 0 && wanted.length < 20_000 ? new RegExp(wanted).exec(text) : null;
  if (near === null) return 'oldText is not there; it has to be repeated exactly';
  return `oldText is not there, but in line ${lineAt(text, near.index)} is a text that differs in nothing but white space`;
}

function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** The changes of a patch in one file. */
export interface FilePatch {
  /** The current path; absent if the file is created. */
  readonly from?: string;
  /** The new path; absent if the file is removed. */
  readonly to?: string;
  /** The new text; `undefined` if the patch does not fit the current text. */
  apply(text: string): string | undefined;
}

/** A parsed patch, or why it is invalid. */
type ReadPatch =
  | { readonly ok: true; readonly files: readonly FilePatch[] }
  | { readonly ok: false; readonly problem: string };

const NOWHERE = '/dev/null';

/** Parses a unified patch of any number of files, as `diff -u` and `git diff` write it. */
export function readPatch(patch: string): ReadPatch {
  let parsed: ReturnType<typeof parsePatch>;
  try {
    parsed = parsePatch(patch);
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : 'it cannot be read' };
  }
  const files: FilePatch[] = [];
  for (const one of parsed) {
    const { oldFileName, newFileName, hunks, isBinary, isCopy } = one;
    if (oldFileName === undefined || newFileName === undefined) {
      if (hunks.length === 0) continue;
      return { ok: false, problem: 'it does not say of which file: lines with --- and +++ are missing' };
    }
    if (isBinary || isCopy) return { ok: false, problem: 'it has a part that is binary, or a copy' };
    const hasPrefix =
      one.isGit || (/^a\/|^\/dev\/null$/.test(oldFileName) && /^b\/|^\/dev\/null$/.test(newFileName));
    files.push({
      from: oldFileName === NOWHERE || one.isCreate ? undefined : nameOf(oldFileName, hasPrefix),
      to: newFileName === NOWHERE || one.isDelete ? undefined : nameOf(newFileName, hasPrefix),
      // No fuzz: if the context differs, the file has changed, and guessing a place is unsafe.
      apply: (text) => {
        const patched = applyPatch(text, one, { fuzzFactor: 0 });
        return patched === false ? undefined : patched;
      },
    });
  }
  if (files.length === 0) return { ok: false, problem: 'there is nothing in it to be done' };
  return { ok: true, files };
}

/** Removes the prefix of `a/src/x.ts`, and what `diff -u` adds after a tab. */
function nameOf(written: string, hasPrefix: boolean | undefined): string {
  const name = written.replace(/\t.*$/, '');
  return hasPrefix ? name.replace(/^[ab]\//, '') : name;
}

/** Time limit for a diff; a rough diff, or none, is better than waiting. */
const MOST_MS = 200;
const MOST_CHARACTERS = 2_000_000;

/** A diff for people; `undefined` if the texts are too large or too different. */
export function differenceOf(path: string, before: string, after: string): string | undefined {
  if (before.length + after.length > MOST_CHARACTERS) return undefined;
  // A shortcut: the diff algorithm is slow for a text that is completely new or removed.
  if (before === '' && after !== '') return wholeText(path, after, '+');
  if (after === '' && before !== '') return wholeText(path, before, '-');
  return createTwoFilesPatch(path, path, before, after, undefined, undefined, {
    context: 3,
    timeout: MOST_MS,
  });
}

/** The diff of a text that is completely new or removed. */
function wholeText(path: string, text: string, sign: '+' | '-'): string {
  const lines = text.replace(/\n$/, '').split('\n');
  const [oldLines, newLines] = sign === '+' ? [0, lines.length] : [lines.length, 0];
  const marked = lines.map((line) => sign + line);
  if (!text.endsWith('\n')) marked.push('\\ No newline at end of file');
  const hunk = { oldStart: 1, oldLines, newStart: 1, newLines, lines: marked };
  const names = { oldFileName: path, newFileName: path, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...names, hunks: [hunk] });
}
