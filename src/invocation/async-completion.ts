import type { AsyncCallback } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { callListener } from './call-listener.js';
import type { CallLog } from './call-log.js';

/** What the completion of one call needs. */
export interface CompletionParts {
  /** What came of the work, as a result. */
  readonly write: (value: unknown) => ToolResult;
  readonly log: CallLog;
  readonly context: ToolContext;
  readonly listener: AsyncCallback;
  /** When the call began, by `performance.now()`. */
  readonly since: number;
  /** Runs after the completion was delivered. */
  readonly onDelivered: () => void;
}

/**
 * Delivers the completion of a call exactly once, and never before the call itself was answered; every
 * further completion is only logged (seed 1.4).
 */
export class AsyncCompletion {
  readonly #parts: CompletionParts;
  #state: 'open' | 'completed' | 'delivered' | 'discarded' = 'open';
  #value: unknown;
  #isReleased = false;

  constructor(parts: CompletionParts) {
    this.#parts = parts;
  }

  complete(value: unknown): void {
    if (this.#state === 'discarded') {
      this.#parts.log.ignored('A completion came for a call that has its answer; it is ignored');
      return;
    }
    if (this.#state !== 'open') {
      this.#parts.log.ignored('Async tool completed twice; the second completion is ignored');
      return;
    }
    this.#state = 'completed';
    this.#value = value;
    if (this.#isReleased) this.#deliver();
  }

  /**
   * The call was answered for good. A tool keeps its callback until it is given another (seed 1.3), and must
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
    const { write, log, context, listener, since, onDelivered } = this.#parts;
    this.#state = 'delivered';
    const result = write(this.#value);
    log.completedAsync(result, performance.now() - since);
    callListener(
      () => listener(context, result),
      (error) => log.ignored('A listener for async results threw', { error }),
    );
    onDelivered();
  }
}
