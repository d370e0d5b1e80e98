import type { LLMResponse } from '../../contract/llm-provider.js';
import { CallScanner, type ScannedPiece } from '../call-scanner.js';
import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import { numberDrafts } from '../number-drafts.js';

/**
 * A reply as it comes: splits it into the text for people and the calls. Text around calls is kept; the
 * white space that only set a call apart (before the first, and at the end) is not.
 */
export class TextReply {
  /** The reply as the model wrote it, as far as it came. */
  received = '';
  readonly #scanner: CallScanner;
  readonly #drafts: DraftCall[] = [];
  #content = '';
  #space = '';

  constructor(tools: KnownTools) {
    this.#scanner = new CallScanner(tools);
  }

  /** Takes more of the reply; gives the text that can be shown now, `''` if there is none. */
  push(text: string): string {
    this.received += text;
    return this.#take(this.#scanner.push(text));
  }

  /** Ends the reply; gives the rest of the text. */
  end(): string {
    const text = this.#take(this.#scanner.end());
    if (this.#drafts.length > 0) return text;
    this.#content += this.#space;
    return text + this.#space;
  }

  /** The ended reply as the provider should have given it. Its own native calls, if any, come first. */
  toResponse(response: LLMResponse, takenIds: Iterable<string>): LLMResponse {
    const native = response.toolCalls ?? [];
    const calls = [...native, ...numberDrafts(this.#drafts, [...takenIds, ...native.map(({ id }) => id)])];
    // A reply that was cut off stays cut off: its calls must not run.
    const isCalling = calls.length > 0 && response.finishReason === 'stop';
    return {
      ...response,
      content: this.#content,
      toolCalls: calls,
      finishReason: isCalling ? 'tool_calls' : response.finishReason,
    };
  }

  #take(pieces: readonly ScannedPiece[]): string {
    // Collected apart: to cut it off the content would copy all of that for every piece.
    let shown = '';
    for (const piece of pieces) {
      if (piece.kind === 'calls') this.#addCalls(piece.calls, shown);
      else shown += this.#show(piece.text);
    }
    this.#content += shown;
    return shown;
  }

  #show(text: string): string {
    const trimmed = text.trimEnd();
    if (trimmed === '') {
      this.#space += text;
      return '';
    }
    const shown = this.#space + trimmed;
    this.#space = text.slice(trimmed.length);
    return shown;
  }

  #addCalls(calls: readonly DraftCall[], shown: string): void {
    this.#drafts.push(...calls);
    if (this.#content === '' && shown === '') this.#space = '';
  }
}
