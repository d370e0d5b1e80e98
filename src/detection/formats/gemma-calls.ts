import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import type { TextCursor } from '../text-cursor.js';
import type { TextCallFormat } from './text-call-format.js';

const NAME = /[\w.-]{1,200}/y;
const KEY = /[^\s:{}[\],<>"]{1,200}/y;
const MOST_LEVELS = 100;

/** What begins a call, what ends it, and what stands on either side of each text. */
const MARKS: ReadonlyMap<string, { readonly closer: string; readonly quote: string }> = new Map([
  // Gemma 4.
  ['<|tool_call>', { closer: '<tool_call|>', quote: '<|"|>' }],
  // FunctionGemma.
  ['<start_function_call>', { closer: '<end_function_call>', quote: '<escape>' }],
]);

/** `call:f{a:<|"|>text<|"|>,b:1,c:[true]}`, between the marks of Gemma 4 or FunctionGemma. */
export const gemmaCalls: TextCallFormat = {
  openers: [...MARKS.keys()],
  read(cursor, { opener, tools }) {
    const marks = MARKS.get(opener);
    if (marks === undefined) return undefined;
    cursor.space();
    const call = readCall(cursor, marks.quote, tools);
    if (call === undefined) return undefined;
    cursor.closers([marks.closer]);
    return [call];
  },
};

function readCall(cursor: TextCursor, quote: string, tools: KnownTools): DraftCall | undefined {
  if (!cursor.take('call:')) return undefined;
  const name = cursor.match(NAME);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  const args = readObject(cursor, quote, 0);
  return args && { name, arguments: args };
}

/** The value that stands here; `undefined` where there is none, which no value is. */
function readValue(cursor: TextCursor, quote: string, level: number): unknown {
  cursor.space();
  if (level > MOST_LEVELS) return undefined;
  if (cursor.take(quote)) return cursor.until(quote);
  if (cursor.peek() === '{') return readObject(cursor, quote, level);
  if (cursor.peek() === '[') return readList(cursor, quote, level);
  return cursor.relaxed()?.value;
}

function readObject(
  cursor: TextCursor,
  quote: string,
  level: number,
): (DraftCall['arguments'] & object) | undefined {
  if (!cursor.take('{')) return undefined;
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    if (cursor.take('}')) return Object.fromEntries(entries);
    const key = cursor.take(quote) ? cursor.until(quote) : cursor.match(KEY);
    cursor.space();
    if (key === undefined || !cursor.take(':')) return undefined;
    const value = readValue(cursor, quote, level + 1);
    if (value === undefined) return undefined;
    entries.push([key, value]);
    cursor.space();
    if (!cursor.take(',') && cursor.peek() !== '}') return undefined;
  }
}

function readList(cursor: TextCursor, quote: string, level: number): readonly unknown[] | undefined {
  if (!cursor.take('[')) return undefined;
  const items: unknown[] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(']')) return items;
    const item = readValue(cursor, quote, level + 1);
    if (item === undefined) return undefined;
    items.push(item);
    cursor.space();
    if (!cursor.take(',') && cursor.peek() !== ']') return undefined;
  }
}
