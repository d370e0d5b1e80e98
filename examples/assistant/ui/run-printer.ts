import type { ConversationEvent } from 'toolwright';
import type { Output } from './output.js';
import { printCall } from './print-call.js';

/** Prints a run while it executes: calls as they end, reports of tools, and the model's text as it is written. */
export class RunPrinter {
  readonly #output: Output;
  /** Whether a text that may be the answer has begun. */
  #hasText = false;
  /** The first half of a surrogate pair whose second half arrives with the next delta. */
  #half = '';

  constructor(output: Output) {
    this.#output = output;
  }

  /** Prints an event, if it is of interest to the user. */
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
    // Ends the line before the call: a call may take long, and others write to the terminal meanwhile.
    this.#output.endLine();
  }

  #write(piece: string): void {
    const text = this.#half + (this.#hasText ? piece : piece.trimStart());
    // A stream may split an emoji, and neither half can be written alone.
    const whole = text.replace(/[\ud800-\udbff]$/, '');
    this.#half = text.slice(whole.length);
    this.#hasText ||= text !== '';
    this.#output.write(whole);
  }

  /** Prints an answer that no model wrote, for example of a `returnDirect` tool. */
  #finish(content: string): void {
    if (!this.#hasText && content.trim() !== '') this.#output.say(content);
    this.#output.endLine();
  }
}

function toLine(update: unknown): string {
  return typeof update === 'string' ? update : (JSON.stringify(update) ?? '');
}
