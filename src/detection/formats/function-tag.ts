import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import { readParameterText } from '../parameter-text.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './marked-call.js';
import { rawValueReader } from './raw-value.js';
import { tagName } from './tag-name.js';
import type { TextCallFormat } from './text-call-format.js';

const WRAPPERS = ['<tool_call>', '<seed:tool_call>'];
const OPENERS = ['<function=', '<function name='];
const PARAMETERS = ['<parameter=', '<parameter name='];
const CLOSERS = ['</function>', '</tool_call>', '</seed:tool_call>'];

const readValue = rawValueReader({
  closer: '</parameter>',
  next: /<parameter(?:=| name=)"?(?<name>[^\s"<>/{}[\]()=]{1,200})"?>/,
  outer: /<\/function>\s*(?=<\/tool_call>|<\/seed:tool_call>|<tool_call>|<function=)/,
});

/**
 * `<function=name>` with JSON behind it (Llama 3.1), or with `<parameter=key>value</parameter>` in it
 * (Qwen3-Coder, Nemotron, StepFun, Seed-OSS), with or without `<tool_call>` around it.
 */
export const functionTag: TextCallFormat = {
  openers: [...WRAPPERS, ...OPENERS],
  read(cursor, { opener, tools }) {
    if (WRAPPERS.includes(opener)) {
      cursor.space();
      if (!OPENERS.some((tag) => cursor.take(tag))) return undefined;
    }
    const call = readFunction(cursor, tools);
    if (call === undefined) return undefined;
    cursor.closers(CLOSERS);
    return [call];
  },
};

function readFunction(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  const name = tagName(cursor);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  if (cursor.take('/>')) return { name, arguments: {} };
  if (!cursor.take('>')) return undefined;
  cursor.space();
  if (cursor.peek() === '{') return markedCall(cursor, name);
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    // Models forget the inner closing tag; the outer one closes both.
    const isClosed = CLOSERS.some((tag) => cursor.take(tag));
    if (isClosed) return { name, arguments: Object.fromEntries(entries) };
    if (!PARAMETERS.some((tag) => cursor.take(tag))) return undefined;
    const key = tagName(cursor);
    if (key === undefined || !cursor.take('>')) return undefined;
    const value = readValue(cursor, (next) => tools.takes(name, next));
    if (value === undefined) return undefined;
    // Qwen's template puts each value on lines of its own: one line break on either side is not the value's.
    const text = value.replace(/^\n/, '').replace(/\n$/, '');
    entries.push([key, readParameterText(text, tools.parameter(name, key))]);
  }
}
