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
    const room = half - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    const rest = room > 0 ? text.slice(room) : text;
    this.#tail += rest;
    // Cut now and then: each time would be a copy for every line.
    if (this.#tail.length > half * 2) this.#tail = this.#tail.slice(-half);
  }

  text(): string {
    const half = Math.floor(this.#most / 2);
    const tail = this.#tail.slice(-half);
    const missing = this.#length - this.#head.length - tail.length;
    const gap = missing > 0 ? `\n… (${missing} characters are left out here)\n` : '';
    return (this.#head + gap + tail).toWellFormed();
  }

  since(place: number): { readonly text: string; readonly place: number } {
    if (place <= 0) return { text: this.text(), place: this.#length };
    const behind =
      this.#head.length + this.#tail.length === this.#length ? this.#head + this.#tail : this.#tail;
    const start = this.#length - behind.length;
    const gap = start > place ? `… (${start - place} characters are left out here)\n` : '';
    return { text: (gap + behind.slice(Math.max(0, place - start))).toWellFormed(), place: this.#length };
  }
}
