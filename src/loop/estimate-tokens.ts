import type { LLMRequest, Message, ToolSchema } from '../contract/llm-provider.js';

/** Characters of one token, at least: of English text a token has four, of JSON and code three. */
const CHARS = 3;
/** What a message and a request have around their texts. */
const FRAME = 8;

/** Of messages and definitions, which every request of a run carries again. */
const known = new WeakMap<object, number>();

/** Tokens of a request, rather too many than too few. */
export function estimateTokens({ messages, tools = [], responseFormat }: LLMRequest): number {
  let tokens = FRAME;
  for (const part of [...messages, ...tools]) tokens += tokensOf(part);
  return responseFormat === undefined ? tokens : tokens + tokensIn(JSON.stringify(responseFormat));
}

function tokensOf(part: Message | ToolSchema): number {
  let tokens = known.get(part);
  if (tokens === undefined) {
    tokens = FRAME + tokensIn(JSON.stringify(part));
    known.set(part, tokens);
  }
  return tokens;
}

/** What is not ASCII may take a token for each character, and a rare one several: its bytes are counted. */
export function tokensIn(text: string): number {
  let others = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) others += code > 0x7ff ? 1.5 : 1;
  }
  return Math.ceil((text.length - others) / CHARS + others);
}
