import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import type { TextCursor } from '../text-cursor.js';
import type { TextCallFormat } from './text-call-format.js';

const NAME = /[\p{L}_][\p{L}\p{N}_.-]{0,199}/uy;
const KEYWORD = /[\p{L}_][\p{L}\p{N}_]{0,199}/uy;
const LINE_BREAK = /[ \t\r]*\n\s*/y;
const CLOSERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['[', []],
  // Llama 4.
  ['<|python_start|>', ['<|python_end|>']],
  // LFM2.
  ['<|tool_call_start|>', ['<|tool_call_end|>']],
  // Llama 3 built-in tools.
  ['<|python_tag|>', ['<|eom_id|>', '<|eot_id|>']],
  // Gemma 3.
  ['```tool_code', ['```']],
  // OLMo 3, one call a line.
  ['<function_calls>', ['</function_calls>']],
]);

/** Calls in Python: `[f(a=1), g(b='x')]`, or a single `f(a=1)` between marks; keyword arguments only. */
export const pythonicCalls: TextCallFormat = {
  openers: [...CLOSERS.keys()],
  read(cursor, { opener, tools, isFirst }) {
    // Where any name is a tool, a bare list counts only as the beginning of a message: prose has brackets.
    if (opener === '[' && tools.any && !isFirst) return undefined;
    cursor.space();
    const isList = opener === '[' || cursor.take('[');
    const calls = isList ? readList(cursor, tools) : readLines(cursor, tools);
    if (calls !== undefined && !cursor.tailOpen) cursor.closers(CLOSERS.get(opener) ?? []);
    return calls;
  },
};

function readList(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const calls: DraftCall[] = [];
  do {
    const call = readCall(cursor, tools);
    if (call === undefined) return undefined;
    calls.push(call);
    cursor.space();
  } while (cursor.take(','));
  return cursor.take(']') ? calls : undefined;
}

/** A call, and others on lines of their own. */
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

/** Gemma prints what it calls: `print(default_api.f(a=1))`. */
function readSingle(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const isPrinted = cursor.take('print(');
  cursor.take('default_api.');
  const call = readCall(cursor, tools);
  if (isPrinted) cursor.space();
  return call === undefined || (isPrinted && !cursor.take(')')) ? undefined : [call];
}

function readCall(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  cursor.space();
  const written = cursor.match(NAME);
  if (written === undefined) return undefined;
  const name = tools.has(written) ? written : written.replace(/\.call$/, '');
  if (!tools.mayBe(name) || !cursor.take('(')) return undefined;
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(')')) return { name, arguments: Object.fromEntries(entries) };
    const key = cursor.match(KEYWORD);
    cursor.space();
    if (key === undefined || !cursor.take('=')) return undefined;
    const reading = cursor.relaxed();
    if (reading === undefined) return undefined;
    entries.push([key, reading.value]);
    cursor.space();
    if (!cursor.take(',') && cursor.peek() !== ')') return undefined;
  }
}
