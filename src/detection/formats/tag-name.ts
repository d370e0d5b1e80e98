import type { TextCursor } from '../text-cursor.js';

const NAME = /[^\s"<>/{}[\]()=]{1,200}/y;

/** The name in a tag such as `<function=name>`, quotes and white space around it left out. */
export function tagName(cursor: TextCursor): string | undefined {
  cursor.space();
  if (cursor.take('"')) cursor.space();
  const name = cursor.match(NAME);
  cursor.space();
  if (cursor.take('"')) cursor.space();
  return name;
}
