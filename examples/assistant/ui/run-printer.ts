import type { ConversationEvent } from 'toolwright';
import type { Output } from './output.js';
import { printCall } from './print-call.js';

/** Shows one run while it goes on: calls as they end, what tools report, and text as the model writes it. */
export class RunPrinter {
  readonly #output: Output;
  /** Whether the text that may turn out to be the answer has begun. */
  #hasText = false;
  /** First half of a character whose second half comes with the next piece. */
  #half = '';

  constructor(output: Output) {
    this.#output = output;
  }

  /** Shows what is to be seen of an event. */
  print(event: ConversationEvent): void {
    switch (event.type) {
      case 'step-start':
      case 'call-start':
        this.#beginAnew();
        break;
      case 'text-delta':
        this.#write(event.text);
        break;
      case 'call-progress':
        this.#output.murmur(`  ${event.tool}: ${toLine(event.update)}`);
        break;
      case 'call-end':
        printCall(event.record, this.#output);
        break;
      case 'user-message':
        this.#output.say(`  ${event.text}`);
        break;
      case 'run-end':
        this.#finish(event.result.content);
        break;
    }
  }

  #beginAnew(): void {
    this.#hasText = false;
    this.#half = '';
    // Now and not with the next line: a call may take long, and others write to the terminal meanwhile.
    this.#output.endLine();
  }

  #write(piece: string): void {
    const text = this.#half + (this.#hasText ? piece : piece.trimStart());
    // A stream may cut an emoji in two, and neither half can be written alone.
    const whole = text.replace(/[\ud800-\udbff]$/, '');
    this.#half = text.slice(whole.length);
    this.#hasText ||= text !== '';
    this.#output.write(whole);
  }

  /** An answer that is not a reply of the model, as that of a `returnDirect` tool, was not written yet. */
  #finish(content: string): void {
    if (!this.#hasText && content.trim() !== '') this.#output.say(content);
    this.#output.endLine();
  }
}

function toLine(update: unknown): string {
  return typeof update === 'string' ? update : (JSON.stringify(update) ?? '');
}
