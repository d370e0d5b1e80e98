/*
 * Compares figures with those in test/bench/results.md. Only ratios travel: where a table has none, a row of ours is divided
 * by the next one that is not. A figure that is worse is measured again, because machines have bad moments; it
 * counts where the best of three runs is worse by more than those runs differ, and by more than a tenth.
 */

const RUNS = 3;
const LEAST = 0.1;
const OURS = '**toolwright';

/** What is worse than in the docs, a line each; `measure` gives the tables of a section once more. */
export function worseFigures(first, docs, measure) {
  const runs = [first];
  let worse = worseIn(runs, docs);
  while (worse.length > 0 && runs.length < RUNS) {
    runs.push(measure());
    worse = worseIn(runs, docs);
  }
  return worse;
}

function worseIn(runs, docs) {
  const known = figuresOf(docs);
  const measured = runs.map(figuresOf);
  const lines = [];
  for (const [name, { value: told, isBetterHigher }] of known) {
    const values = measured.flatMap((figures) => figures.get(name)?.value ?? []);
    if (values.length === 0) continue;
    const best = isBetterHigher ? Math.max(...values) : Math.min(...values);
    const excess = isBetterHigher ? told / best - 1 : best / told - 1;
    const spread = Math.max(...values) / Math.min(...values) - 1;
    if (excess > Math.max(LEAST, spread))
      lines.push(`${name}: ${told} in the docs, now ${values.map((value) => value.toFixed(2)).join(', ')}`);
  }
  return lines;
}

/** The ratios of our rows by table, row and column. */
function figuresOf(tables) {
  const figures = new Map();
  for (const { title, head, rows } of tables.map(readTable)) {
    const ratios = head.flatMap((name, column) => (name.includes('×') ? [column] : []));
    for (const [index, row] of rows.entries()) {
      const other = rows.slice(index).find((next) => !isOurs(title, next));
      if (!isOurs(title, row) || (ratios.length === 0 && other === undefined)) continue;
      for (const column of ratios.length > 0 ? ratios : row.keys()) {
        const value = numberOf(row[column]) / (ratios.length > 0 ? 1 : numberOf(other[column]));
        if (!(value > 0 && Number.isFinite(value))) continue;
        const isBetterHigher = head[column].includes('faster');
        const of = ratios.length === 0 ? head[column] : head[column - (isBetterHigher ? 2 : 1)];
        figures.set(`${title}: ${row[0]}: ${of}`, { value, isBetterHigher });
      }
    }
  }
  return figures;
}

/** Of some tables all rows are ours, but for the floor. */
function isOurs(title, [name]) {
  if (/^(What is added|A DTO class)/.test(title)) return !name.includes('the floor');
  return name.startsWith(OURS);
}

/** The tables that stand in a Markdown text, as text each. */
export function tablesIn(text) {
  return text
    .split(/^(?=### )/m)
    .slice(1)
    .filter((part) => part.includes('\n|'));
}

function readTable(text) {
  const [title, ...lines] = text.split('\n');
  const [head, , ...rows] = lines
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return { title: title.replace(/^### /, ''), head, rows };
}

function numberOf(cell) {
  return Number(cell.replaceAll(',', ''));
}
