import { callsInJson } from '../call-shapes.js';
import type { TextCallFormat } from './text-call-format.js';

const LANGUAGE = /[\w-]*/y;
const MEANS_JSON = /^(?:|json5?c?|tool_calls?|tool|function_call)$/i;

/** A call as the first thing in a code fence; the fence belongs to it. */
export const fencedJson: TextCallFormat = {
  openers: ['```'],
  read(cursor) {
    const language = cursor.match(LANGUAGE);
    if (language === undefined) return undefined;
    cursor.space();
    const json = cursor.json({ relaxed: MEANS_JSON.test(language) });
    if (json === undefined) return undefined;
    const calls = callsInJson(json, { text: cursor.text, marked: false });
    if (calls.length > 0) cursor.closers(['```']);
    return calls;
  },
};
