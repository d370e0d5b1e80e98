import type { TextListener } from '../../loop/request-reply.js';

/**
 * Hands a reply's text on while it is written, unless it may still become a tool request: then `content` will
 * be `''`, and no piece of it must have been shown. What does not begin with `{` can be none.
 */
export class TextGate {
  readonly #show: TextListener;
  #received = '';
  #state: 'blank' | 'held' | 'open' = 'blank';

  constructor(show: TextListener) {
    this.#show = show;
  }

  push(text: string): void | Promise<void> {
    this.#received += text;
    if (this.#state === 'open') return this.#show(text);
    if (this.#state !== 'blank') return;
    // All before it was white space.
    const begun = text.trimStart();
    if (begun === '') return;
    this.#state = begun.startsWith('{') ? 'held' : 'open';
    if (this.#state === 'open') return this.#show(this.#received);
  }

  /** Ends the reply with what it says in the end: shows the rest, where it goes on from what was received. */
  async end(content: string): Promise<void> {
    if (!content.startsWith(this.#received)) return;
    const rest = this.#state === 'open' ? content.slice(this.#received.length) : content;
    if (rest !== '') await this.#show(rest);
  }
}
