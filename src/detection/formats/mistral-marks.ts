import { callsInJson } from '../call-shapes.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './marked-call.js';
import type { TextCallFormat } from './text-call-format.js';

const NAME = /[\w.-]{1,200}/y;
const CLOSERS = ['[/TOOL_CALLS]'];

/** Mistral: `[TOOL_CALLS]` with a JSON array, or since v11 with `name[CALL_ID]id[ARGS]{…}` per call. */
export const mistralMarks: TextCallFormat = {
  openers: ['[TOOL_CALLS]'],
  read(cursor) {
    cursor.space();
    const calls = '{['.includes(cursor.peek()) ? readJson(cursor) : readNamed(cursor);
    if (calls !== undefined) cursor.closers(CLOSERS);
    return calls;
  },
};

function readJson(cursor: TextCursor) {
  const json = cursor.json({ relaxed: true });
  return json === undefined ? undefined : callsInJson(json, { text: cursor.text, marked: true });
}

function readNamed(cursor: TextCursor) {
  const name = cursor.match(NAME);
  if (name === undefined) return undefined;
  const id = cursor.take('[CALL_ID]') ? cursor.match(NAME) : undefined;
  cursor.take('[ARGS]');
  const call = markedCall(cursor, name);
  return call === undefined ? undefined : [id === undefined ? call : { ...call, id }];
}
