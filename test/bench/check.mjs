/*
 * Compares ratios with those in test/bench/results.md, because absolute times depend on the machine. In a table without
 * ratios, our row is divided by the next row of another package. A worse figure is measured up to three times; it fails
 * if the best run is worse by more than 10 % and by more than the runs differ.
 */

const RUNS = 3;
const TOLERANCE = 0.1;
const OWN_ROWS = '**toolwright';

/** Returns a line for each figure that is worse than in the results; `measure` measures the section again. */
export function worseFigures(first, results, measure) {
  const runs = [first];
  let worse = findWorse(runs, results);
  while (worse.length > 0 && runs.length < RUNS) {
    runs.push(measure());
    worse = findWorse(runs, results);
  }
  return worse;
}

function findWorse(runs, results) {
  const known = figuresOf(results);
  const measured = runs.map(figuresOf);
  const lines = [];
  for (const [name, { value: documented, isBetterHigher }] of known) {
    const values = measured.flatMap((figures) => figures.get(name)?.value ?? []);
    if (values.length === 0) continue;
    const best = isBetterHigher ? Math.max(...values) : Math.min(...values);
    const excess = isBetterHigher ? documented / best - 1 : best / documented - 1;
    const spread = Math.max(...values) / Math.min(...values) - 1;
    if (excess > Math.max(TOLERANCE, spread))
      lines.push(
        `${name}: ${documented} in results.md, now ${values.map((value) => value.toFixed(2)).join(', ')}`,
      );
  }
  return lines;
}

/** Returns the ratios of our rows by table, row and column. */
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
        const measuredName = ratios.length === 0 ? head[column] : head[column - (isBetterHigher ? 2 : 1)];
        figures.set(`${title}: ${row[0]}: ${measuredName}`, { value, isBetterHigher });
      }
    }
  }
  return figures;
}

/** In some tables, all rows except the baseline are ours. */
function isOurs(title, [name]) {
  if (/^(Cost of options|A DTO class)/.test(title)) return !name.includes('(baseline)');
  return name.startsWith(OWN_ROWS);
}

/** Returns the tables of a Markdown text, each as text. */
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
