import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './json-formats.js';
import { type DraftCall, plainName, type TextCallFormat } from './text-call-format.js';

const DEEPSEEK_NAME = /[\w.-]{1,200}/y;
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
  const first = cursor.match(DEEPSEEK_NAME);
  if (first === undefined || !cursor.take(separator)) return undefined;
  cursor.space();
  if (cursor.peek() === '{') return markedCall(cursor, first);
  const name = cursor.match(DEEPSEEK_NAME);
  if (name === undefined) return undefined;
  cursor.space();
  cursor.take('```json');
  return markedCall(cursor, name);
}

function token(word: string, bar: string): string {
  return `<${bar}tool▁${word}${bar}>`;
}

const NUMBERED_NAME = /[\w.:-]{1,200}/y;

/** Kimi K2: `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`. */
export const kimiTokens: TextCallFormat = {
  openers: ['<|tool_calls_section_begin|>', '<|tool_call_begin|>'],
  read(cursor, { opener, tools }) {
    cursor.space();
    if (opener === '<|tool_calls_section_begin|>' && !cursor.take('<|tool_call_begin|>')) return undefined;
    cursor.space();
    const numbered = cursor.match(NUMBERED_NAME);
    cursor.space();
    if (numbered === undefined || !cursor.take('<|tool_call_argument_begin|>')) return undefined;
    const call = markedCall(cursor, plainName(numbered.replace(/:\d+$/, ''), tools));
    if (call === undefined) return undefined;
    cursor.closers(['<|tool_call_end|>', '<|tool_calls_section_end|>']);
    return [call];
  },
};

const CHANNEL_NAME = /[\w.-]{1,200}/y;
const WORDS = /[\s\w]{0,40}/y;

/** gpt-oss: `to=functions.name<|channel|>commentary json<|message|>{…}<|call|>`, in either order. */
export const harmonyChannel: TextCallFormat = {
  // What comes before it in the header of the message is no text for people.
  openers: [
    '',
    '<|channel|>commentary ',
    '<|channel|>analysis ',
    '<|start|>assistant ',
    '<|start|>assistant<|channel|>commentary ',
  ].map((header) => `${header}to=functions.`),
  read(cursor) {
    const name = cursor.match(CHANNEL_NAME);
    if (name === undefined) return undefined;
    do {
      if (cursor.match(WORDS) === undefined) return undefined;
    } while (cursor.take('<|channel|>') || cursor.take('<|constrain|>'));
    if (!cursor.take('<|message|>')) return undefined;
    const call = markedCall(cursor, name);
    if (call === undefined) return undefined;
    cursor.closers(['<|call|>']);
    return [call];
  },
};
