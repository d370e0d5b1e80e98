import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import type { Generated } from '../typegen/generate.js';
import { GENERATED_MARK } from '../typegen/printing/print-file.js';
import { type CommandSurroundings, UserFault } from './command.js';

/** Writes the file; a file that is right already keeps its time, so that watchers stay quiet. */
export function writeGeneratedFile({ outFile, text }: Generated, folder: string): boolean {
  const before = readIfThere(outFile);
  if (before === text) return false;
  const path = shownPath(outFile, folder);
  if (before?.trim() && !before.includes(GENERATED_MARK)) {
    throw new UserFault(`${path} was not generated, and is left alone: --out names another file`);
  }
  if (before === undefined && isLink(outFile))
    throw new UserFault(`${path} is a link that leads nowhere, and is left alone: remove it`);
  try {
    mkdirSync(dirname(outFile), { recursive: true });
    replaceFile(before === undefined ? outFile : realpathSync(outFile), text);
  } catch (error) {
    throw new UserFault(`${path} cannot be written: ${error instanceof Error ? error.message : error}`, 1);
  }
  return true;
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** All or nothing: whoever reads the file at the same time must not find half of it. */
function replaceFile(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** For CI: 1 and the difference where the file is not what would be generated now. */
export function checkGeneratedFile(
  { outFile, text }: Generated,
  { folder, out, error }: CommandSurroundings,
): 0 | 1 {
  const path = shownPath(outFile, folder);
  const before = readIfThere(outFile);
  if (before === text) return 0;
  if (before !== undefined) out(unifiedDiff({ path, before, after: text }));
  error(
    `toolwright: ${path} ${before === undefined ? 'is not there' : 'is out of date'}: npx toolwright generate\n`,
  );
  return 1;
}

/** A path as the user would write it. */
export function shownPath(file: string, folder: string): string {
  return relative(folder, file).replaceAll('\\', '/');
}

/** With the line ends that are generated: git may have changed them on the way. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return undefined;
  }
}

/** Two states of a file. */
interface FileStates {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

const CONTEXT = 3;

type Edit = { readonly kind: ' ' | '-' | '+'; readonly line: string };

/** The difference of two texts as `diff -u` writes it. */
export function unifiedDiff({ path, before, after }: FileStates): string {
  const edits = editsOf(before.split('\n').slice(0, -1), after.split('\n').slice(0, -1));
  const hunks = hunksOf(edits).map(printHunk);
  return [`--- ${path}`, `+++ ${path} (generated now)`, ...hunks, ''].join('\n');
}

interface Hunk {
  readonly edits: readonly Edit[];
  readonly before: number;
  readonly after: number;
}

function hunksOf(edits: readonly Edit[]): readonly Hunk[] {
  const near = new Set<number>();
  for (const [index, { kind }] of edits.entries()) {
    if (kind === ' ') continue;
    for (let at = index - CONTEXT; at <= index + CONTEXT; at++) near.add(at);
  }
  const hunks: { edits: Edit[]; before: number; after: number }[] = [];
  let isOpen = false;
  let before = 1;
  let after = 1;
  for (const [index, edit] of edits.entries()) {
    if (near.has(index)) {
      if (!isOpen) hunks.push({ edits: [], before, after });
      hunks.at(-1)?.edits.push(edit);
    }
    isOpen = near.has(index);
    if (edit.kind !== '+') before += 1;
    if (edit.kind !== '-') after += 1;
  }
  return hunks;
}

function printHunk({ edits, before, after }: Hunk): string {
  const count = (other: string) => edits.filter(({ kind }) => kind !== other).length;
  const head = `@@ -${before},${count('+')} +${after},${count('-')} @@`;
  return [head, ...edits.map(({ kind, line }) => `${kind}${line}`)].join('\n');
}

/** The lines that both share at the ends are set aside; what is left is compared line by line. */
function editsOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const kept = (line: string): Edit => ({ kind: ' ', line });
  return [
    ...before.slice(0, start).map(kept),
    ...middleEdits(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(kept),
  ];
}

/** Tables larger than this would take longer than anybody waits for a difference. */
const MOST_CELLS = 4_000_000;

function middleEdits(before: readonly string[], after: readonly string[]): readonly Edit[] {
  if (before.length * after.length > MOST_CELLS) {
    return [
      ...before.map((line): Edit => ({ kind: '-', line })),
      ...after.map((line): Edit => ({ kind: '+', line })),
    ];
  }
  const common = commonLengths(before, after);
  const edits: Edit[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && before[i] === after[j]) {
      edits.push({ kind: ' ', line: before[i] ?? '' });
      i += 1;
      j += 1;
    } else if (i < before.length && at(common, i + 1, j) >= at(common, i, j + 1)) {
      edits.push({ kind: '-', line: before[i] ?? '' });
      i += 1;
    } else {
      edits.push({ kind: '+', line: after[j] ?? '' });
      j += 1;
    }
  }
  return edits;
}

/** The length of the longest common part of the rests from each pair of lines on. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly Uint32Array[] {
  const rows = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    const row = rows[i];
    if (row === undefined) continue;
    for (let j = after.length - 1; j >= 0; j--) {
      row[j] =
        before[i] === after[j]
          ? at(rows, i + 1, j + 1) + 1
          : Math.max(at(rows, i + 1, j), at(rows, i, j + 1));
    }
  }
  return rows;
}

/** Past the end of i text nothing is common: a removal there is the only way on. */
function at(rows: readonly Uint32Array[], i: number, j: number): number {
  return rows[i]?.[j] ?? -1;
}
