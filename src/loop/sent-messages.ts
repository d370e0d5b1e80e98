import { SafeLog } from '../call/log.js';
import type { AssistantMessage, Message, MessageToolCall, ProviderItems } from '../contract/llm-provider.js';
import type { Logger } from '../contract/ports.js';

/**
 * A history as requests carry it: without the reasoning that is for people, and of provider items only those of
 * the provider and model that are asked.
 */
export class SentMessages {
  readonly #history: readonly Message[];
  readonly #logger: Logger | undefined;
  #key: string | undefined;
  /** Absent as long as the history can go as it is. */
  #sent: Message[] | undefined;
  #looked = 0;
  #isToldOfItems = false;
  #isToldOfMends = false;

  /** `history` only grows. */
  constructor(history: readonly Message[], logger: Logger | undefined) {
    this.#history = history;
    this.#logger = logger;
  }

  /** The messages as they are now, for whoever keeps its items under `key`; to be copied before more are added. */
  for(key: string | undefined): readonly Message[] {
    if (key !== this.#key) this.#forget(key);
    const history = this.#history;
    for (; this.#looked < history.length; this.#looked += 1) {
      const message = history[this.#looked] as Message;
      const sent = this.#forRequest(message);
      if (sent !== message) this.#sent ??= history.slice(0, this.#looked);
      this.#sent?.push(sent);
    }
    return this.#sent ?? history;
  }

  /** Other messages than those of the history, likewise. */
  others(messages: readonly Message[], key: string | undefined): readonly Message[] {
    this.#forget(key);
    return messages.map((message) => this.#forRequest(message));
  }

  #forget(key: string | undefined): void {
    this.#key = key;
    this.#sent = undefined;
    this.#looked = 0;
  }

  /** A compacted history had to be mended: told once, not before each request. */
  tellMends(mends: readonly string[]): void {
    if (mends.length === 0 || this.#isToldOfMends) return;
    this.#isToldOfMends = true;
    new SafeLog(this.#logger).warn('What compactHistory returned was mended', { mends });
  }

  #forRequest(message: Message): Message {
    if (message.role !== 'assistant' || !hasExtras(message)) return message;
    const { reasoning: _, providerItems, tool_calls: calls, ...others } = message;
    return {
      ...others,
      ...(calls === undefined ? {} : { tool_calls: calls.map((call) => this.#callForRequest(call)) }),
      ...this.#itemsForRequest(providerItems),
    };
  }

  #callForRequest(call: MessageToolCall): MessageToolCall {
    if (call.providerItems === undefined) return call;
    const { providerItems, ...others } = call;
    return { ...others, ...this.#itemsForRequest(providerItems) };
  }

  #itemsForRequest(items: ProviderItems | undefined): { readonly providerItems?: ProviderItems } {
    if (items === undefined) return {};
    const key = this.#key;
    if (key !== undefined && Object.hasOwn(items, key)) return { providerItems: { [key]: items[key] } };
    if (!this.#isToldOfItems) {
      this.#isToldOfItems = true;
      const what = 'Items that another provider or model keeps with the history were left out of the request';
      new SafeLog(this.#logger).warn(what, { keys: Object.keys(items), asked: key });
    }
    return {};
  }
}

function hasExtras({ reasoning, providerItems, tool_calls: calls }: AssistantMessage): boolean {
  if (reasoning !== undefined || providerItems !== undefined) return true;
  for (const call of calls ?? NO_CALLS) if (call.providerItems !== undefined) return true;
  return false;
}

const NO_CALLS: readonly MessageToolCall[] = [];
