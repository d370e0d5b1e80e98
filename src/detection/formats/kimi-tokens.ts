import { markedCall } from './marked-call.js';
import { plainName } from './plain-name.js';
import type { TextCallFormat } from './text-call-format.js';

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
