import { applyPatch, createTwoFilesPatch, formatPatch, parsePatch } from 'diff';

/** What a patch does with one file. */
export interface FilePatch {
  /** Where the file is now; nothing where it is made. */
  readonly from?: string;
  /** Where it is then; nothing where it is removed. */
  readonly to?: string;
  /** Its text then, from its text now; `undefined` where the patch does not fit. */
  apply(text: string): string | undefined;
}

/** A patch as it was read, or what is wrong with it. */
type ReadPatch =
  | { readonly ok: true; readonly files: readonly FilePatch[] }
  | { readonly ok: false; readonly problem: string };

const NOWHERE = '/dev/null';

/** Reads a unified patch of any number of files, as `diff -u` and `git diff` write it. */
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
      // Context that differs is a text that has changed: nothing is put where it might fit.
      apply: (text) => {
        const patched = applyPatch(text, one, { fuzzFactor: 0 });
        return patched === false ? undefined : patched;
      },
    });
  }
  if (files.length === 0) return { ok: false, problem: 'there is nothing in it to be done' };
  return { ok: true, files };
}

/** `a/src/x.ts`, and what `diff -u` adds after a tab. */
function nameOf(written: string, hasPrefix: boolean | undefined): string {
  const name = written.replace(/\t.*$/, '');
  return hasPrefix ? name.replace(/^[ab]\//, '') : name;
}

/** How long a difference is looked for; a rough one, or none, is better than waiting. */
const MOST_MS = 200;
const MOST_CHARACTERS = 2_000_000;

/** What people are shown of a change; nothing where the texts are too large or too different. */
export function differenceOf(path: string, before: string, after: string): string | undefined {
  if (before.length + after.length > MOST_CHARACTERS) return undefined;
  // Nothing has to be looked for, which takes its time also then.
  if (before === '' && after !== '') return wholeText(path, after, '+');
  if (after === '' && before !== '') return wholeText(path, before, '-');
  return createTwoFilesPatch(path, path, before, after, undefined, undefined, {
    context: 3,
    timeout: MOST_MS,
  });
}

/** The difference from, or to, nothing. */
function wholeText(path: string, text: string, sign: '+' | '-'): string {
  const lines = text.replace(/\n$/, '').split('\n');
  const [oldLines, newLines] = sign === '+' ? [0, lines.length] : [lines.length, 0];
  const marked = lines.map((line) => sign + line);
  if (!text.endsWith('\n')) marked.push('\\ No newline at end of file');
  const hunk = { oldStart: 1, oldLines, newStart: 1, newLines, lines: marked };
  const names = { oldFileName: path, newFileName: path, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...names, hunks: [hunk] });
}
