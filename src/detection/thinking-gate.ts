/** Marks between which models think aloud before they answer. */
const MARKS: ReadonlyMap<string, string> = new Map([
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['[THINK]', '[/THINK]'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
]);

// Bounded, so that a stream of white space is not looked through again and again.
const MOST_SPACE = 1000;

/**
 * Tells the thinking at the start of a message from the rest. A call that a model only thinks about is no
 * call, and thinking that never ended holds none.
 */
export class ThinkingGate {
  /** Nothing more of the message is thinking. */
  passed = false;
  #closer: string | undefined;

  /** How many characters at the start of the text are thinking, or white space before it. */
  measure(text: string, isFinal: boolean): number {
    if (this.passed) return 0;
    if (this.#closer !== undefined) return this.#inside(text, isFinal);
    const start = text.length - text.trimStart().length;
    const rest = start > MOST_SPACE ? '?' : text.slice(start, start + 32);
    const opener = [...MARKS.keys()].find((mark) => rest.startsWith(mark));
    if (opener === undefined) {
      this.passed = isFinal || ![...MARKS.keys()].some((mark) => mark.startsWith(rest));
      return 0;
    }
    this.#closer = MARKS.get(opener)!;
    return start + opener.length + this.#inside(text.slice(start + opener.length), isFinal);
  }

  #inside(text: string, isFinal: boolean): number {
    const closer = this.#closer!;
    const end = text.indexOf(closer);
    this.passed = isFinal || end >= 0;
    if (end >= 0) return end + closer.length;
    if (isFinal) return text.length;
    let held = Math.min(closer.length - 1, text.length);
    while (!closer.startsWith(text.slice(text.length - held))) held -= 1;
    return text.length - held;
  }
}
