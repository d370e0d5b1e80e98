import type { DraftCall } from '../draft-call.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './marked-call.js';
import type { TextCallFormat } from './text-call-format.js';

const NAME = /[\w.-]{1,200}/y;
// The tokens have full-width bars; some servers decode them to plain ones.
const BARS = ['\uff5c', '|'];

/** DeepSeek V3 and R1 (`function<sep>name`, arguments fenced) and V3.1 (`name<sep>{…}`). */
export const deepseekTokens: TextCallFormat = {
  openers: BARS.flatMap((bar) => ['calls▁begin', 'calls', 'call▁begin'].map((word) => token(word, bar))),
  read(cursor, { opener }) {
    const bar = opener[1] ?? '';
    cursor.space();
    cursor.take(token('call▁begin', bar));
    const call = readCall(cursor, token('sep', bar));
    if (call === undefined) return undefined;
    cursor.closers(['```', token('call▁end', bar), token('calls▁end', bar)]);
    return [call];
  },
};

function readCall(cursor: TextCursor, separator: string): DraftCall | undefined {
  const first = cursor.match(NAME);
  if (first === undefined || !cursor.take(separator)) return undefined;
  cursor.space();
  if (cursor.peek() === '{') return markedCall(cursor, first);
  const name = cursor.match(NAME);
  if (name === undefined) return undefined;
  cursor.space();
  cursor.take('```json');
  return markedCall(cursor, name);
}

function token(word: string, bar: string): string {
  return `<${bar}tool▁${word}${bar}>`;
}
