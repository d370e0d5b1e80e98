import { escapePattern } from '../literal-index.js';
import { REASONING_CLOSERS, REASONING_OPENERS } from '../reasoning-marks.js';
import type { TextCursor } from '../text-cursor.js';

/** What stands around values that are written as they are, between two tags. */
interface RawValueTags {
  /** What ends a value. */
  readonly closer: string;
  /** What begins the next one: models forget to close the one before it. */
  readonly next: RegExp;
  /** What ends the call and stands behind the last value, if that was not closed. */
  readonly outer: RegExp;
}

/** Reads the value at the cursor; `takes` tells whether a name may be the next value's. */
type RawValueReader = (cursor: TextCursor, takes: (name: string) => boolean) => string | undefined;

const CALL = '<[^\\s<>"/]{0,20}(?:tool_call|function|invoke)';

/**
 * A reader of such values. Tags belong to a value only where they cannot be meant as tags: a parameter that the
 * tool has begins the next value. Where reasoning ends within a value and another call follows, the value was
 * only thought about, and is none: the search for calls goes on at that end.
 */
export function rawValueReader(tags: RawValueTags): RawValueReader {
  const { closer } = tags;
  let known: RegExp | undefined;
  return (cursor, takes) => {
    known ??= patternOf(tags);
    const pattern = known;
    const { text, at: start } = cursor;
    let openThoughts = 0;
    let thoughtEnd: number | undefined;
    pattern.lastIndex = start;
    for (let found = pattern.exec(text); found !== null; found = pattern.exec(text)) {
      const [mark] = found;
      const groups = found.groups ?? {};
      const isNext = groups.next !== undefined && takes(found.groups?.name ?? '');
      if (mark === closer || ((isNext || groups.outer !== undefined) && thoughtEnd === undefined)) {
        cursor.at = mark === closer ? pattern.lastIndex : found.index;
        return text.slice(start, found.index);
      }
      if (thoughtEnd !== undefined && (isNext || groups.call !== undefined)) {
        cursor.at = thoughtEnd;
        return undefined;
      }
      if (REASONING_OPENERS.has(mark)) openThoughts += 1;
      else if (REASONING_CLOSERS.has(mark) && openThoughts > 0) openThoughts -= 1;
      else if (REASONING_CLOSERS.has(mark)) thoughtEnd ??= found.index;
    }
    cursor.ranOut = true;
    return undefined;
  };
}

function patternOf({ closer, next, outer }: RawValueTags): RegExp {
  const reasoning = [...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].map(escapePattern);
  const parts = [
    escapePattern(closer),
    `(?<next>${next.source})`,
    `(?<outer>${outer.source})`,
    `(?<call>${CALL})`,
  ];
  return new RegExp([...parts, ...reasoning].join('|'), 'g');
}
