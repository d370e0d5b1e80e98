/** Two versions of a file. */
interface FileStates {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

const CONTEXT = 3;

type Edit = { readonly kind: ' ' | '-' | '+'; readonly line: string };

/** A diff of two texts in the format of `diff -u`. */
export function unifiedDiff({ path, before, after }: FileStates): string {
  const edits = editsOf(linesOf(before), linesOf(after));
  const hunks = hunksOf(edits).map(printHunk);
  return [`--- ${path}`, `+++ ${path} (generated now)`, ...hunks, ''].join('\n');
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
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

/** Removes the common lines at both ends, and compares the rest line by line. */
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

/** Larger tables would take too long. */
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

/** For each pair of positions, the length of the longest common subsequence of the rests. */
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

/** After the end of a text nothing is common: only removals are left. */
function at(rows: readonly Uint32Array[], i: number, j: number): number {
  return rows[i]?.[j] ?? -1;
}
