/** Characters of a text that the page is sent at most. */
const LONGEST_TEXT = 20_000;
const MOST_MEMBERS = 1_000;
const DEEPEST = 40;

/**
 * A value as the page is sent it: plain JSON, with what is too long cut off and told. What JSON has no form for is
 * named.
 */
export function shownValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return shownText(value);
  if (value === undefined || value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object') return `[${typeof value}] ${shownText(String(value))}`;
  if (depth > DEEPEST) return '[deeper than can be shown]';
  if (value instanceof Error) return { name: value.name, message: shownText(value.message) };
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  try {
    return Array.isArray(value) ? shownList(value, depth) : shownRecord(value, depth);
  } catch (error) {
    return `[cannot be read: ${String(error)}]`;
  }
}

function shownText(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${text.slice(0, LONGEST_TEXT)}\n[cut: ${text.length} characters in all]`;
}

function shownList(list: readonly unknown[], depth: number): readonly unknown[] {
  const members = list.slice(0, MOST_MEMBERS).map((member) => shownValue(member, depth + 1));
  return list.length > MOST_MEMBERS ? [...members, `[cut: ${list.length} members in all]`] : members;
}

function shownRecord(record: object, depth: number): unknown {
  const own = 'toJSON' in record && typeof record.toJSON === 'function' ? record.toJSON() : record;
  if (typeof own !== 'object' || own === null) return shownValue(own, depth + 1);
  const entries = Object.entries(own);
  const shown = entries
    .slice(0, MOST_MEMBERS)
    .filter(([, member]) => member !== undefined && typeof member !== 'function')
    .map(([key, member]) => [shownText(key), shownValue(member, depth + 1)] as const);
  const more =
    entries.length > MOST_MEMBERS ? [['…', `[cut: ${entries.length} members in all]`] as const] : [];
  // Own properties, whatever they are called.
  return Object.fromEntries([...shown, ...more]);
}
