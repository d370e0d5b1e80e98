import { CodeReference } from '../types/type-walk.js';

/** Wider values are broken into lines. */
const WIDTH = 100;

/** What a reference is called in the file that is printed. */
type NameOf = (reference: CodeReference) => string;

/** Where a value stands: how far in, and how much of its line is taken. */
interface ValuePlace {
  readonly indent: string;
  readonly taken: number;
  readonly nameOf: NameOf;
}

/** A value as TypeScript: on one line where it fits, otherwise a line for each entry. */
export function printValue(value: unknown, place: ValuePlace): string {
  const flat = flatText(value, { room: WIDTH - place.taken, nameOf: place.nameOf });
  if (flat !== undefined) return flat;
  if (Array.isArray(value)) return printList(value, place);
  if (isRecord(value)) return printRecord(value, place);
  return flatText(value, { room: Number.POSITIVE_INFINITY, nameOf: place.nameOf }) ?? '';
}

function printList(values: readonly unknown[], place: ValuePlace): string {
  const indent = `${place.indent}  `;
  const lines = values.map(
    (value) => `${indent}${printValue(value, { ...place, indent, taken: indent.length + 1 })},\n`,
  );
  return `[\n${lines.join('')}${place.indent}]`;
}

function printRecord(record: Readonly<Record<string, unknown>>, place: ValuePlace): string {
  const indent = `${place.indent}  `;
  const lines = entriesOf(record).map(([key, value]) => {
    const name = printKey(key);
    const taken = indent.length + name.length + 3;
    return `${indent}${name}: ${printValue(value, { ...place, indent, taken })},\n`;
  });
  return `{\n${lines.join('')}${place.indent}}`;
}

interface FlatPlace {
  /** Characters that are left of the line. */
  readonly room: number;
  readonly nameOf: NameOf;
}

/** The value on one line; nothing as soon as it is known not to fit. */
function flatText(value: unknown, place: FlatPlace): string | undefined {
  if (value instanceof CodeReference) return fitting(place.nameOf(value), place);
  if (Array.isArray(value)) {
    return flatParts(
      value.map((item) => ['', item] as const),
      { ...place, open: '[', close: ']' },
    );
  }
  if (typeof value === 'string') return fitting(printText(value), place);
  if (!isRecord(value)) return fitting(String(value), place);
  const entries = entriesOf(value);
  if (entries.length === 0) return fitting('{}', place);
  return flatParts(
    entries.map(([key, item]) => [`${printKey(key)}: `, item] as const),
    { ...place, open: '{ ', close: ' }' },
  );
}

function flatParts(
  parts: readonly (readonly [string, unknown])[],
  { open, close, ...place }: FlatPlace & { readonly open: string; readonly close: string },
): string | undefined {
  let text = open;
  for (const [index, [key, value]] of parts.entries()) {
    text += `${index > 0 ? ', ' : ''}${key}`;
    const flat = flatText(value, { ...place, room: place.room - text.length });
    if (flat === undefined) return undefined;
    text += flat;
  }
  return fitting(`${text}${close}`, place);
}

function fitting(text: string, { room }: FlatPlace): string | undefined {
  return text.length <= room ? text : undefined;
}

function entriesOf(record: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(record).filter(([, value]) => value !== undefined);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof CodeReference)
  );
}

function printKey(key: string): string {
  return isIdentifier(key) ? key : printText(key);
}

/** Whether a name can stand in the source without quotes. */
export function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** Text as a literal, in the quotes that need fewer escapes. */
export function printText(text: string): string {
  const json = JSON.stringify(text);
  if (text.includes("'") && !text.includes('"')) return json;
  return `'${json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}
