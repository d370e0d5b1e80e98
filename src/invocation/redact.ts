const SECRET =
  /pass(?:word|phrase|wd)?$|secret|token|api[-_]?key|authorization|cookie|credential|private[-_]?key/i;
const MAX_TEXT = 200;
const MAX_ITEMS = 20;
const MAX_DEPTH = 5;

/** A copy for the log: obvious secrets hidden, long values cut, deep ones flattened. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cut(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  if (depth >= MAX_DEPTH) return '…';
  if (Array.isArray(value)) return redactArray(value, depth);
  const entries = Object.entries(value).map(([key, field]) => [
    key,
    SECRET.test(key) ? '[redacted]' : redact(field, depth + 1),
  ]);
  return Object.fromEntries(entries);
}

function redactArray(values: readonly unknown[], depth: number): readonly unknown[] {
  const shown = values.slice(0, MAX_ITEMS).map((value) => redact(value, depth + 1));
  return values.length > MAX_ITEMS ? [...shown, `… ${values.length - MAX_ITEMS} more`] : shown;
}

function cut(text: string): string {
  return text.length > MAX_TEXT
    ? `${text.slice(0, MAX_TEXT)}… (${text.length - MAX_TEXT} more characters)`
    : text;
}
