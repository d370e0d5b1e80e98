/* Formats results as Markdown tables with aligned columns. */

/** Formats a number with three significant digits and without an exponent. */
export function formatNumber(value) {
  if (value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  const text = value.toFixed(size >= 10 ? 1 : 2);
  return text === '-0.00' ? '0.00' : text;
}

export function formatRatio(value, base) {
  return value === undefined || base === undefined ? '–' : formatNumber(value / base);
}

/** Formats a table `{ title, head, rows, note? }` as Markdown. */
export function toMarkdown({ title, head, rows, note }) {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => String(line[column]).length), 3));
  const write = (line) =>
    `| ${line.map((cell, column) => align(String(cell), widths[column], column)).join(' | ')} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [`### ${title}`, '', write(head), write(rule), ...rows.map(write), ...(note ? ['', note] : [])].join(
    '\n',
  );
}

function align(text, width, column) {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}
