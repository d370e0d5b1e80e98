import type { JsonObject } from '../../../core/contract/json-schema.js';
import type { DraftCall, KnownTools, TextCallFormat } from '../known-tools.js';
import type { TextCursor } from '../text-cursor.js';

const FUNCTION_NAME = /[\p{L}_][\p{L}\p{N}_.-]{0,199}/uy;
const KEYWORD = /[\p{L}_][\p{L}\p{N}_]{0,199}/uy;
const LINE_BREAK = /[ \t\r]*\n\s*/y;
const CLOSERS: ReadonlyMap<string, readonly string[]> = new Map([
  // Llama 4.
  ['<|python_start|>', ['<|python_end|>']],
  // LFM2.
  ['<|tool_call_start|>', ['<|tool_call_end|>']],
  // Llama 3 built-in tools.
  ['<|python_tag|>', ['<|eom_id|>', '<|eot_id|>']],
  // Gemma 3.
  ['```tool_code', ['```']],
  // OLMo 3, one call per line.
  ['<function_calls>', ['</function_calls>']],
]);

/** Calls in Python between marks: `[f(a=1), g(b='x')]`, or a single `f(a=1)`; keyword arguments only. */
const pythonicCalls: TextCallFormat = {
  openers: [...CLOSERS.keys()],
  read(cursor, { opener, tools }) {
    cursor.space();
    const calls = cursor.take('[') ? readPythonList(cursor, tools) : readLines(cursor, tools);
    if (calls !== undefined && !cursor.tailOpen) cursor.closers(CLOSERS.get(opener) ?? []);
    return calls;
  },
};

/** The list without marks, which Llama 4 also writes. */
const pythonicList: TextCallFormat = {
  openers: ['['],
  looksLike: 'prose',
  read: (cursor, { tools }) => readPythonList(cursor, tools),
};

function readPythonList(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const calls: DraftCall[] = [];
  do {
    const call = readPythonCall(cursor, tools);
    if (call === undefined) return undefined;
    calls.push(call);
    cursor.space();
  } while (cursor.take(','));
  return cursor.take(']') ? calls : undefined;
}

/** A call, and further calls on separate lines. */
function readLines(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const calls = readSingle(cursor, tools)?.slice();
  if (calls === undefined) return undefined;
  for (;;) {
    const before = cursor.at;
    cursor.match(LINE_BREAK);
    const more = cursor.at === before ? undefined : readSingle(cursor, tools);
    if (more === undefined) {
      cursor.at = before;
      cursor.tailOpen = cursor.ranOut;
      return calls;
    }
    calls.push(...more);
  }
}

/** Gemma prints its calls: `print(default_api.f(a=1))`. */
function readSingle(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const isPrinted = cursor.take('print(');
  cursor.take('default_api.');
  const call = readPythonCall(cursor, tools);
  if (isPrinted) cursor.space();
  return call === undefined || (isPrinted && !cursor.take(')')) ? undefined : [call];
}

function readPythonCall(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  cursor.space();
  const written = cursor.match(FUNCTION_NAME);
  if (written === undefined) return undefined;
  const name = tools.has(written) ? written : written.replace(/\.call$/, '');
  if (!tools.mayBe(name) || !cursor.take('(')) return undefined;
  const entries = readEntries(cursor, ')', (): Entry | undefined => {
    const key = cursor.match(KEYWORD);
    cursor.space();
    if (key === undefined || !cursor.take('=')) return undefined;
    const reading = cursor.relaxed();
    return reading && [key, reading.value];
  });
  return entries && { name, arguments: Object.fromEntries(entries) };
}

type Entry = readonly [key: string, value: unknown];

/** The entries up to a closing mark, with commas between them. */
function readEntries<Value>(
  cursor: TextCursor,
  closer: string,
  read: () => Value | undefined,
): readonly Value[] | undefined {
  const entries: Value[] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(closer)) return entries;
    const entry = read();
    if (entry === undefined) return undefined;
    entries.push(entry);
    cursor.space();
    if (!cursor.take(',') && cursor.peek() !== closer) return undefined;
  }
}

const NAME = /[\w.-]{1,200}/y;
const KEY = /[^\s:{}[\],<>"]{1,200}/y;
const MOST_LEVELS = 100;

/** The start and end of a call, and the quotation marks of texts. */
const MARKS: ReadonlyMap<string, { readonly closer: string; readonly quote: string }> = new Map([
  // Gemma 4.
  ['<|tool_call>', { closer: '<tool_call|>', quote: '<|"|>' }],
  // FunctionGemma.
  ['<start_function_call>', { closer: '<end_function_call>', quote: '<escape>' }],
]);

/** `call:f{a:<|"|>text<|"|>,b:1,c:[true]}`, between the marks of Gemma 4 or FunctionGemma. */
const gemmaCalls: TextCallFormat = {
  openers: [...MARKS.keys()],
  read(cursor, { opener, tools }) {
    const marks = MARKS.get(opener);
    if (marks === undefined) return undefined;
    cursor.space();
    return cursor.closed(readGemmaCall(cursor, marks.quote, tools), [marks.closer]);
  },
};

function readGemmaCall(cursor: TextCursor, quote: string, tools: KnownTools): DraftCall | undefined {
  if (!cursor.take('call:')) return undefined;
  const name = cursor.match(NAME);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  const args = readObject(cursor, quote, 0);
  return args && { name, arguments: args };
}

/** The value at the cursor; `undefined` if there is none, because no value is `undefined`. */
function readValue(cursor: TextCursor, quote: string, level: number): unknown {
  cursor.space();
  if (level > MOST_LEVELS) return undefined;
  if (cursor.take(quote)) return cursor.until(quote);
  if (cursor.peek() === '{') return readObject(cursor, quote, level);
  if (cursor.take('[')) return readEntries(cursor, ']', () => readValue(cursor, quote, level + 1));
  return cursor.relaxed()?.value;
}

function readObject(cursor: TextCursor, quote: string, level: number): JsonObject | undefined {
  if (!cursor.take('{')) return undefined;
  const entries = readEntries(cursor, '}', (): Entry | undefined => {
    const key = cursor.take(quote) ? cursor.until(quote) : cursor.match(KEY);
    cursor.space();
    if (key === undefined || !cursor.take(':')) return undefined;
    const value = readValue(cursor, quote, level + 1);
    return value === undefined ? undefined : [key, value];
  });
  return entries && Object.fromEntries(entries);
}

/** Calls in the form of code. */
export const LITERAL_CALLS: readonly TextCallFormat[] = [gemmaCalls, pythonicCalls, pythonicList];
