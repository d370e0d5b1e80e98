/** Two states of a file. */
export interface FileStates {
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
  let one = 0;
  let other = 0;
  while (one < before.length || other < after.length) {
    if (one < before.length && before[one] === after[other]) {
      edits.push({ kind: ' ', line: before[one] ?? '' });
      one += 1;
      other += 1;
    } else if (one < before.length && at(common, one + 1, other) >= at(common, one, other + 1)) {
      edits.push({ kind: '-', line: before[one] ?? '' });
      one += 1;
    } else {
      edits.push({ kind: '+', line: after[other] ?? '' });
      other += 1;
    }
  }
  return edits;
}

/** The length of the longest common part of the rests from each pair of lines on. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly Uint32Array[] {
  const rows = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let one = before.length - 1; one >= 0; one--) {
    const row = rows[one];
    if (row === undefined) continue;
    for (let other = after.length - 1; other >= 0; other--) {
      row[other] =
        before[one] === after[other]
          ? at(rows, one + 1, other + 1) + 1
          : Math.max(at(rows, one + 1, other), at(rows, one, other + 1));
    }
  }
  return rows;
}

/** Past the end of one text nothing is common: a removal there is the only way on. */
function at(rows: readonly Uint32Array[], one: number, other: number): number {
  return rows[one]?.[other] ?? -1;
}
