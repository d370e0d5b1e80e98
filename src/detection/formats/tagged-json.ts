import { callsInJson } from '../call-shapes.js';
import type { DraftCall } from '../draft-call.js';
import type { TextCursor } from '../text-cursor.js';
import type { TextCallFormat } from './text-call-format.js';

const SEPARATOR = /\s*[;,]?\s*/y;

/** Marks with JSON behind them, and what may close them. */
const MARKS: ReadonlyMap<string, readonly string[]> = new Map([
  // Hermes, Qwen, Reka, older Granite.
  ['<tool_call>', ['</tool_call>']],
  ['<tool_calls>', ['</tool_calls>']],
  ['<function_call>', ['</function_call>']],
  // Granite 3.
  ['<|tool_call|>', ['<|/tool_call|>']],
  // Llama 3.1 and 3.2.
  ['<|python_tag|>', ['<|eom_id|>', '<|eot_id|>']],
  // Command R7B.
  ['<|START_ACTION|>', ['<|END_ACTION|>']],
]);

/** JSON calls behind a mark: one object, several with `;` or `,` or nothing between them, or an array. */
export const taggedJson: TextCallFormat = {
  openers: [...MARKS.keys()],
  read(cursor, { opener }) {
    cursor.space();
    const first = readCalls(cursor);
    if (first === undefined || first.length === 0) return first;
    const calls = [...first];
    for (;;) {
      const before = cursor.at;
      cursor.match(SEPARATOR);
      const more = readCalls(cursor);
      if (more === undefined || more.length === 0) {
        cursor.at = before;
        break;
      }
      calls.push(...more);
    }
    cursor.tailOpen = cursor.ranOut;
    if (!cursor.tailOpen) cursor.closers(MARKS.get(opener) ?? []);
    return calls;
  },
};

function readCalls(cursor: TextCursor): readonly DraftCall[] | undefined {
  const json = cursor.json({ relaxed: true });
  return json === undefined ? undefined : callsInJson(json, { text: cursor.text, marked: true });
}
