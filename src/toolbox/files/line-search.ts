import { createContext, Script } from 'node:vm';
import { patternGrowth } from '../../checking/patterns.js';
import { hasZero } from './read-file.js';

/** What lines are looked for by. */
interface LineQuery {
  readonly text: string;
  /** The text is a regular expression, as JavaScript reads it with the flag `u`. */
  readonly isPattern: boolean;
  readonly ignoresCase: boolean;
}

/** Lines of a file that fit, with those around them. */
export interface FoundLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** It stands beside one that fits. */
  readonly isContext: boolean;
}

/** How to look through a file. */
interface LineSearch {
  /** Lines around each that fits. */
  readonly context: number;
  /** How many lines that fit are wanted at most. */
  readonly most: number;
}

/** Looks for lines that fit in the bytes of a file; nothing where none does, or where they are no text. */
export type LineFinder = (bytes: Uint8Array, search: LineSearch) => readonly FoundLine[];

const MOST_PATTERN = 500;
const MOST_OF_A_LINE = 100_000;
/** For how long a pattern may look at one file, where its time may grow faster than a line is long. */
const MOST_MS = 300;

/**
 * Makes what looks for lines.
 *
 * @throws Error with a message for the model where the pattern is none, is too long, or can be kept busy for ever.
 */
export function lineFinder({ text, isPattern, ignoresCase }: LineQuery): LineFinder {
  if (text === '') throw new Error('There is nothing to look for: the text is empty.');
  if (!isPattern && !ignoresCase) return findText(Buffer.from(text));
  const source = isPattern ? text : escaped(text);
  const flags = ignoresCase ? 'iu' : 'u';
  const pattern = compiled(source, flags);
  const find = isPattern && mayBeSlow(source, flags) ? stopped(findPattern(pattern)) : findPattern(pattern);
  const needed = isPattern ? neededText(source) : text;
  return needed === undefined ? find : whereIs(needed, { ignoresCase }, find);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

/**
 * A text that stands in every line that fits: the longest of plain characters outside of all brackets. Nothing where
 * there is a choice, or something that is not understood.
 */
function neededText(pattern: string): string | undefined {
  if (/[|\\]/.test(pattern)) return undefined;
  const outside = pattern.replace(/\[[^\]]*\]/g, '.').replace(/\([^()]*\)/g, '.');
  if (/[()[\]]/.test(outside)) return undefined;
  // What stands before a quantifier may be missing.
  const runs = outside.replace(/.[*?]|.\{[^}]*\}/gu, '\n').split(/[^\w ,:;=<>"'#%&@!~-]/);
  const longest = runs.reduce((one, other) => (other.length > one.length ? other : one), '');
  return longest.length < 2 ? undefined : longest;
}

/** Most files have nowhere what has to be in a line, which is seen at once. */
function whereIs(
  needed: string,
  { ignoresCase }: Pick<LineQuery, 'ignoresCase'>,
  find: LineFinder,
): LineFinder {
  const bytesOf = Buffer.from(needed);
  const anyCase = new RegExp(escaped(needed), 'iu');
  return (bytes, search) => {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const isThere = ignoresCase ? anyCase.test(view.toString()) : view.indexOf(bytesOf) >= 0;
    return isThere ? find(bytes, search) : [];
  };
}

function compiled(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags);
  } catch {
    // Much of what people escape is a fault only for the flag `u`.
  }
  try {
    return new RegExp(source, flags.replace('u', ''));
  } catch (error) {
    throw new Error(`The pattern cannot be read: ${error instanceof Error ? error.message : source}.`);
  }
}

/** Refuses what would never end; the rest of what is not known to be quick is stopped in time. */
function mayBeSlow(pattern: string, flags: string): boolean {
  if (pattern.length > MOST_PATTERN)
    throw new Error(`The pattern is too long: ${pattern.length} characters, at most ${MOST_PATTERN}.`);
  const growth = patternGrowth(pattern, flags);
  if (growth === 'exponential')
    throw new Error(
      'The pattern may take for ever: something that repeats is within something that repeats. Write it simpler.',
    );
  return growth !== 'linear';
}

/** The engine of regular expressions stops for nothing but the end of its script. */
function stopped(find: LineFinder): LineFinder {
  const script = new Script('work()');
  let work = (): void => {};
  const context = createContext({ work: () => work() });
  return (bytes, search) => {
    let found: readonly FoundLine[] = [];
    work = () => {
      found = find(bytes, search);
    };
    try {
      script.runInContext(context, { timeout: MOST_MS });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      throw new Error('The pattern takes too long: it has too many ways to match a line. Write it simpler.');
    }
    return found;
  };
}

/** The bytes are looked through first: most files have none, and are then never read as text. */
function findText(wanted: Buffer): LineFinder {
  const text = wanted.toString();
  return (bytes, search) => {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (view.indexOf(wanted) < 0 || hasZero(bytes)) return [];
    return linesWhere(view, search, (line) => line.includes(text));
  };
}

function findPattern(pattern: RegExp): LineFinder {
  return (bytes, search) => {
    if (hasZero(bytes)) return [];
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return linesWhere(view, search, (line) =>
      pattern.test(line.length > MOST_OF_A_LINE ? line.slice(0, MOST_OF_A_LINE) : line),
    );
  };
}

function linesWhere(
  view: Buffer,
  { context, most }: LineSearch,
  fits: (line: string) => boolean,
): readonly FoundLine[] {
  const text = view.toString();
  const found: FoundLine[] = [];
  const before: string[] = [];
  let [line, start, after, count] = [0, 0, 0, 0];
  while (start < text.length) {
    const next = text.indexOf('\n', start);
    const end = next < 0 ? text.length : next;
    const content = text.slice(start, end > start && text[end - 1] === '\r' ? end - 1 : end);
    line += 1;
    start = end + 1;
    if (count < most && fits(content)) {
      count += 1;
      for (const [index, kept] of before.entries())
        found.push({ line: line - before.length + index, text: kept, isContext: true });
      before.length = 0;
      found.push({ line, text: content, isContext: false });
      after = context;
    } else if (after > 0) {
      after -= 1;
      found.push({ line, text: content, isContext: true });
    } else {
      if (count >= most) break;
      before.push(content);
      if (before.length > context) before.shift();
    }
  }
  return found;
}
