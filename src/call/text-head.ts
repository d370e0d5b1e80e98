import { parsedJson } from '../kernel/json.js';

/** The beginning of a text that is too long. */
interface Head {
  readonly head: string;
  /** How many characters of the text it stands for. */
  readonly shown: number;
  /** The head is JSON, and so was the text. */
  readonly isJson: boolean;
}

/**
 * The beginning of a text, of at most so many characters: of JSON whole values only, closed as they were, of any other
 * text no half of a character.
 */
export function headOf(text: string, limit: number): Head {
  if (/^\s*[[{]/.test(text.slice(0, 100))) {
    const head = jsonHead(text, limit);
    if (head !== undefined && parsedJson(text) !== undefined) return head;
  }
  const head = withoutHalf(text.slice(0, limit));
  return { head, shown: head.length, isJson: false };
}

/** Without half a character at its end: lone surrogates are no valid text for an API. */
export function withoutHalf(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

const CLOSING: Readonly<Record<string, string>> = { '[': ']', '{': '}' };

/** A list or an object that is open at some place of a text. */
interface Open {
  readonly closing: string;
  /** How many of its values have ended. */
  values: number;
}

/** By the text itself, so that no number changes its digits. Nothing where not even an empty list would fit. */
function jsonHead(text: string, limit: number): Head | undefined {
  const open: Open[] = [];
  let best: { readonly shown: number; readonly closing: string } | undefined;
  for (let index = 0; index < text.length && index + open.length <= limit; index += 1) {
    const character = text.charAt(index);
    if (character === '"') {
      index = endOfString(text, index, limit);
      continue;
    }
    const closing = CLOSING[character];
    const inner = open.at(-1);
    if (closing !== undefined) open.push({ closing, values: 0 });
    else if (inner !== undefined && (character === ',' || character === inner.closing)) inner.values += 1;
    else continue;
    const shown = closing === undefined ? index : index + 1;
    if (shown + open.length <= limit && isWhole(open))
      best = {
        shown,
        closing: open
          .map((list) => list.closing)
          .reverse()
          .join(''),
      };
    if (closing === undefined && character !== ',') open.pop();
  }
  return best && { head: text.slice(0, best.shown) + best.closing, shown: best.shown, isJson: true };
}

/** Where a string ends, or behind the limit. */
function endOfString(text: string, start: number, limit: number): number {
  for (let index = start + 1; index <= limit; index += 1) {
    const character = text.charAt(index);
    if (character === '\\') index += 1;
    else if (character === '"') return index;
  }
  return limit + 1;
}

/** Whether no item of a list would be shown in part; the first one may be, where there is nothing else to show. */
function isWhole(open: readonly Open[]): boolean {
  return open.every(
    ({ closing, values }, depth) => closing !== ']' || values === 0 || depth === open.length - 1,
  );
}
