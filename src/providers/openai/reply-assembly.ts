import { CallAssembly, type WireCall } from './call-assembly.js';
import { jsonList, jsonRecord, jsonText } from './lenient-json.js';

/** What a reply said, put together but not interpreted. */
export interface WireReply {
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly WireCall[];
  /** The server's finish reason; empty where it gave none. */
  readonly reason: string;
  /** The reply came as one message, so it cannot have been cut off on its way. */
  readonly whole: boolean;
  readonly usage: Readonly<Record<string, unknown>>;
}

/**
 * Puts one reply together. It takes stream chunks, and a whole completion just as well: that is a stream of
 * one chunk whose choice has a `message` for a `delta`. Only the first choice counts.
 */
export class ReplyAssembly {
  readonly #calls = new CallAssembly();
  readonly #functionCall = new CallAssembly();
  #text = '';
  #refusal = '';
  #reason = '';
  #whole = false;
  #started = false;
  #usage: Readonly<Record<string, unknown>> = {};

  /** Adds a chunk, or a completion, and returns the text that it brought. */
  add(chunk: unknown): string {
    const { choices, usage } = jsonRecord(chunk);
    const choice = jsonList(choices).find((candidate) => (jsonRecord(candidate).index ?? 0) === 0);
    const { delta, message, finish_reason, usage: choiceUsage } = jsonRecord(choice);
    this.#readUsage(usage ?? choiceUsage);
    if (choice === undefined) return '';
    this.#started = true;
    this.#reason = jsonText(finish_reason) || this.#reason;
    const whole = (delta === undefined || delta === null) && message !== undefined;
    this.#whole ||= whole;
    return this.#readMessage(jsonRecord(whole ? message : delta), whole);
  }

  /** The reply, or `undefined` where no chunk had a choice. */
  reply(): WireReply | undefined {
    if (!this.#started) return undefined;
    return {
      text: this.#text,
      refusal: this.#refusal,
      calls: [...this.#calls.calls(), ...this.#functionCall.calls()],
      reason: this.#reason,
      whole: this.#whole,
      usage: this.#usage,
    };
  }

  #readMessage(message: Readonly<Record<string, unknown>>, whole: boolean): string {
    for (const call of jsonList(message.tool_calls)) {
      if (whole) this.#calls.addWhole(call);
      else this.#calls.addPiece(call);
    }
    // The predecessor of `tool_calls`, which some servers still write: one call, without an id.
    if (message.function_call) this.#functionCall.addPiece({ function: message.function_call });
    const text = contentText(message.content, 'text');
    this.#text += text;
    this.#refusal += jsonText(message.refusal) + contentText(message.content, 'refusal');
    return text;
  }

  #readUsage(usage: unknown): void {
    // Some servers repeat a growing count in every chunk and others send null until the end: the last counts.
    if (typeof usage === 'object' && usage !== null) this.#usage = jsonRecord(usage);
  }
}

/** Content is text, or parts of which only some are text: others are the model's thinking, audio, … */
function contentText(content: unknown, kind: 'text' | 'refusal'): string {
  if (typeof content === 'string') return kind === 'text' ? content : '';
  return jsonList(content)
    .map(jsonRecord)
    .filter((part) => (part.type ?? 'text') === kind)
    .map((part) => jsonText(part[kind]))
    .join('');
}
