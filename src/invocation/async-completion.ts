import type { ToolResult } from '../contract/tool-result.js';
import type { CallLog } from './call-log.js';

/** What the completion of one call needs. */
export interface CompletionParts {
  readonly log: CallLog;
  /** The first result is there, and was delivered if it could be already. */
  readonly onComplete: () => void;
  readonly deliver: (result: ToolResult) => void;
}

/**
 * Delivers the completion of a call exactly once, and never before the call itself was answered; every
 * further completion is only logged.
 */
export class AsyncCompletion {
  readonly #parts: CompletionParts;
  #state: 'open' | 'completed' | 'delivered' | 'discarded' = 'open';
  #result: ToolResult | undefined;
  #isReleased = false;

  constructor(parts: CompletionParts) {
    this.#parts = parts;
  }

  /** Whether it is decided what the call completes with, or that it does not. */
  get isDecided(): boolean {
    return this.#state !== 'open';
  }

  complete(write: () => ToolResult): void {
    const { log, onComplete } = this.#parts;
    if (this.#state === 'discarded') {
      log.ignored('A completion came for a call that has its answer; it is ignored');
      return;
    }
    if (this.#state !== 'open') {
      log.ignored('A completion came for a call that was completed or aborted before; it is ignored');
      return;
    }
    this.#state = 'completed';
    this.#result = write();
    if (this.#isReleased) this.#deliver();
    onComplete();
  }

  /**
   * The call was answered for good. A tool keeps its callback until it is given another, and must
   * not complete with it what was aborted long ago.
   */
  discard(): void {
    this.#state = 'discarded';
  }

  /** The call has been answered: a completion may follow now. */
  release(): void {
    this.#isReleased = true;
    if (this.#state === 'completed') this.#deliver();
  }

  #deliver(): void {
    this.#state = 'delivered';
    if (this.#result !== undefined) this.#parts.deliver(this.#result);
  }
}
