import type { OutputView } from './command-shell.js';

/** Keeps the beginning and the end of a text that may be endless. */
export class KeptOutput implements OutputView {
  readonly #most: number;
  #head = '';
  #tail = '';
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(text: string): void {
    this.#length += text.length;
    const half = Math.floor(this.#most / 2);
    const room = Math.max(0, half - this.#head.length);
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    // Cut now and then: each time would be a copy for every line.
    if (this.#tail.length > half * 2) this.#tail = this.#tail.slice(-half);
  }

  text(): string {
    const tail = this.#tail.slice(-Math.floor(this.#most / 2));
    const missing = this.#length - this.#head.length - tail.length;
    return (this.#head + gapOf(missing, '\n') + tail).toWellFormed();
  }

  since(place: number): { readonly text: string; readonly place: number } {
    if (place <= 0) return { text: this.text(), place: this.#length };
    const isWhole = this.#head.length + this.#tail.length === this.#length;
    const kept = isWhole ? this.#head + this.#tail : this.#tail;
    const start = this.#length - kept.length;
    const text = gapOf(start - place, '') + kept.slice(Math.max(0, place - start));
    return { text: text.toWellFormed(), place: this.#length };
  }
}

function gapOf(missing: number, before: string): string {
  return missing > 0 ? `${before}… (${missing} characters are left out here)\n` : '';
}
