import type { Message } from '../contract/message.js';

/** A part of an array that only grows; copied when somebody asks for it, and at most once. */
export class HistoryView {
  readonly #source: readonly Message[];
  readonly #from: number;
  readonly #to: number;
  #copy: readonly Message[] | undefined;

  constructor(source: readonly Message[], from = 0) {
    this.#source = source;
    this.#from = from;
    this.#to = source.length;
  }

  get messages(): readonly Message[] {
    this.#copy ??= Object.freeze(this.#source.slice(this.#from, this.#to));
    return this.#copy;
  }
}
