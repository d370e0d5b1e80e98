import { markedCall } from './marked-call.js';
import type { TextCallFormat } from './text-call-format.js';

const NAME = /[\w.-]{1,200}/y;
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
    const name = cursor.match(NAME);
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
