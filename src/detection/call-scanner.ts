import type { DraftCall } from './draft-call.js';
import { ALL_FORMATS } from './formats/all-formats.js';
import type { KnownTools } from './known-tools.js';
import { createOpenerIndex } from './opener-index.js';
import { readCallAt } from './read-call-at.js';
import { ThinkingGate } from './thinking-gate.js';

/** A stretch of the scanned text: plain text as it stood there, or the calls that stood there. */
export type ScannedPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'calls'; readonly calls: readonly DraftCall[] };

const OPENERS = createOpenerIndex(ALL_FORMATS);
const OFTEN_UP_TO = 4096;
const GROWTH = 1.125;

/**
 * Splits a text that comes in pieces of any size into plain text and calls. The outcome does not depend on
 * where the pieces were cut: what may still become (part of) a call is held back until that is decided.
 */
export class CallScanner {
  readonly #tools: KnownTools;
  readonly #thinking = new ThinkingGate();
  #held = '';
  #half = '';
  #scanFrom = 0;
  #isBlankSoFar = true;

  constructor(tools: KnownTools) {
    this.#tools = tools;
  }

  /** Takes more text; gives what is now decided. */
  push(text: string): readonly ScannedPiece[] {
    const come = this.#half + text;
    // Half of a surrogate pair is no character yet: neither to look at nor to hand on.
    this.#half = /[\ud800-\udbff]$/.test(come) ? come.slice(-1) : '';
    this.#held += come.slice(0, come.length - this.#half.length);
    // A long call is not read again for every piece that comes: that would be quadratic.
    return this.#held.length < this.#scanFrom ? [] : this.#scan(false);
  }

  /** Ends the text; gives the rest. */
  end(): readonly ScannedPiece[] {
    this.#held += this.#half;
    return this.#scan(true);
  }

  #scan(isFinal: boolean): readonly ScannedPiece[] {
    const pieces = this.#takeThinking(isFinal);
    if (!this.#thinking.passed) return pieces;
    const text = this.#held;
    const firstAt = this.#isBlankSoFar ? text.length - text.trimStart().length : -1;
    let decided = 0;
    let at = 0;
    for (;;) {
      const opener = OPENERS.next(text, at);
      if (opener === undefined || (!isFinal && OPENERS.endsInside(text, opener.start))) break;
      const context = { tools: this.#tools, isFirst: opener.start === firstAt, isFinal };
      const reading = readCallAt(text, opener, context);
      if (reading.kind === 'open') return this.#holdBack(pieces, { decided, from: opener.start, isFinal });
      at = reading.end;
      if (reading.kind === 'none') continue;
      pieces.push(...this.#asText(text.slice(decided, opener.start)));
      pieces.push({ kind: 'calls', calls: reading.calls });
      this.#isBlankSoFar = false;
      decided = at;
    }
    const from = isFinal ? text.length : OPENERS.tailStart(text, at);
    return this.#holdBack(pieces, { decided, from, isFinal });
  }

  #takeThinking(isFinal: boolean): ScannedPiece[] {
    const length = this.#thinking.measure(this.#held, isFinal);
    if (length === 0) return [];
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return [{ kind: 'text', text }];
  }

  /** Gives the text up to `from`; keeps the rest, which at the end is only text: no call comes from a part. */
  #holdBack(
    pieces: ScannedPiece[],
    {
      decided,
      from,
      isFinal,
    }: { readonly decided: number; readonly from: number; readonly isFinal: boolean },
  ): readonly ScannedPiece[] {
    const end = isFinal ? this.#held.length : from;
    pieces.push(...this.#asText(this.#held.slice(decided, end)));
    this.#held = this.#held.slice(end);
    this.#scanFrom = this.#held.length < OFTEN_UP_TO ? 0 : this.#held.length * GROWTH;
    return pieces;
  }

  #asText(text: string): readonly ScannedPiece[] {
    if (text === '') return [];
    this.#isBlankSoFar &&= text.trim() === '';
    return [{ kind: 'text', text }];
  }
}
