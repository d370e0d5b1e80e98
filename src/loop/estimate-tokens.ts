import type { LLMRequest, Message, ToolSchema } from '../contract/llm-provider.js';

/** Characters of one token, at least: of English text a token has four, of JSON and code three. */
const CHARS = 3;
/** What a message and a request have around their texts. */
const FRAME = 8;

/** Tokens of messages and definitions, which every request of a run carries again. */
const known = new WeakMap<object, number>();

function tokensOf(part: Message | ToolSchema): number {
  let tokens = known.get(part);
  if (tokens === undefined) {
    tokens = FRAME + tokensIn(JSON.stringify(part));
    known.set(part, tokens);
  }
  return tokens;
}

/** Estimates the tokens of the requests of a run, rather too many than too few. A request mostly continues the last one. */
export class RequestTokens {
  #messages: readonly Message[] = [];
  /** Tokens up to each message, itself included. */
  readonly #sums: number[] = [];

  of({ messages, tools = [], responseFormat }: LLMRequest): number {
    const sums = this.#sums;
    let same = 0;
    while (same < sums.length && messages[same] === this.#messages[same]) same += 1;
    sums.length = Math.min(same, messages.length);
    for (const message of messages.slice(sums.length)) sums.push((sums.at(-1) ?? 0) + tokensOf(message));
    this.#messages = messages;
    let tokens = FRAME + (sums.at(-1) ?? 0);
    for (const tool of tools) tokens += tokensOf(tool);
    return responseFormat === undefined ? tokens : tokens + tokensIn(JSON.stringify(responseFormat));
  }
}

/** Other characters than ASCII may take a token each, and rare ones several: their bytes are counted. */
export function tokensIn(text: string): number {
  let others = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) others += code > 0x7ff ? 1.5 : 1;
  }
  return Math.ceil((text.length - others) / CHARS + others);
}
