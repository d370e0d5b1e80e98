import { parseExactJson } from '../../checking/exact-json.js';
import { callsInJson } from '../call-shapes.js';
import { jsonSpan } from '../json-span.js';
import type { TextCallFormat } from './text-call-format.js';

/** `{"name": …, "arguments": …}` or an array of those, anywhere in the text; strict JSON only. */
export const bareJson: TextCallFormat = {
  openers: ['{', '['],
  read(cursor, { opener, start }) {
    cursor.space();
    // Most brackets in a text begin nothing that could be a call.
    if (cursor.peek() !== (opener === '[' ? '{' : '"')) return undefined;
    const { text } = cursor;
    const span = jsonSpan(text, start);
    if (span.kind === 'open') {
      cursor.ranOut = true;
      return undefined;
    }
    cursor.at = span.kind === 'closed' ? span.end : span.resumeAt;
    if (span.kind === 'broken') return undefined;
    return callsInJson({ value: parseExactJson(text.slice(start, span.end)) }, { text, marked: false });
  },
};
