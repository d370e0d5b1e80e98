/** What stands before calls and may make them an example. */
export interface CallSurroundings {
  /** Nothing but white space stands before them in their line. */
  readonly startsLine: boolean;
  readonly isFenced: boolean;
  /** What closes the quotation or inline code that their line is within. */
  readonly quotation: string | undefined;
  /** What closes the quotation that begins right before them. */
  readonly quote: string | undefined;
}

const CLOSERS: ReadonlyMap<string, string> = new Map([
  ['`', '`'],
  ['"', '"'],
  ["'", "'"],
  ['“', '”'],
  ['«', '»'],
]);
const FENCE = '```';
/** What ends a line or stands around a quotation; `'` is left out, as it is mostly an apostrophe. */
const MARKS = /```|[\n`"“”«»]/g;

/** Follows a text as it is decided, in one pass, and remembers where in it calls would stand. */
export class SurroundingsReader {
  #startsLine = true;
  #isFenced = false;
  #quotation: string | undefined;
  #quote: string | undefined;

  get now(): CallSurroundings {
    return {
      startsLine: this.#startsLine,
      isFenced: this.#isFenced,
      quotation: this.#quotation,
      quote: this.#quote,
    };
  }

  /** Takes text that is not empty, and in which no fence is cut in two. */
  addText(text: string): void {
    for (const [mark] of text.matchAll(MARKS)) this.#addMark(mark);
    const blank = text.slice(text.trimEnd().length);
    this.#startsLine = blank.includes('\n') || (this.#startsLine && blank.length === text.length);
    // Two and more are a fence.
    this.#quote = text.endsWith('``') ? undefined : CLOSERS.get(text.at(-1) ?? '');
  }

  /** Takes calls as they were written. */
  addCalls(written: string): void {
    if (written.startsWith(FENCE)) this.#isFenced = !written.endsWith(FENCE);
    this.#startsLine = false;
    this.#quote = undefined;
  }

  #addMark(mark: string): void {
    if (mark === FENCE) this.#isFenced = !this.#isFenced;
    if (mark === FENCE || mark === '\n' || mark === this.#quotation) this.#quotation = undefined;
    else if (!this.#isFenced) this.#quotation ??= CLOSERS.get(mark);
  }
}
