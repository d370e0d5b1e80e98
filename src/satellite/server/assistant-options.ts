import type { LLMProvider } from '../../contract/llm-provider.js';
import type { Logger } from '../../contract/logger.js';
import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { checkNumbers } from '../../errors/check-numbers.js';
import type { ConversationStore } from './conversation-store.js';
import type { CorsOptions } from './cors-headers.js';
import type { RateLimit } from './enforce-rate-limit.js';

/** What the model is told before everything else; a function may look at who asks. */
export type SystemPrompt = string | ((request: Request) => string | Promise<string>);

/** Options of `createAssistantHandler`. */
export interface AssistantHandlerOptions {
  readonly provider: LLMProvider;
  readonly model: string;
  /** Goes first in every request to the provider, and is not stored. `toolRequestPrompt` words the tools. */
  readonly systemPrompt?: SystemPrompt;
  /** Passed to the provider as they are. */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** Default: a `MemoryConversationStore`, which a restart empties. */
  readonly store?: ConversationStore;
  /** Hears of failures of the provider and the store, with the reasons that no client is told. */
  readonly logger?: Logger;
  /** What clients send as `Authorization: Bearer …`; without it everybody may ask. */
  readonly token?: string;
  /** Asked before the body of a request is read. */
  readonly rateLimit?: RateLimit;
  /** Which pages of other origins may ask; default: none. */
  readonly cors?: CorsOptions;
  /** Where the handler is mounted, before `/v1/chat`; default: `''`. */
  readonly basePath?: string;
  /** Bytes of a body at most (a mebibyte). */
  readonly maxBodyBytes?: number;
  /** Messages of a conversation at most, replies included (1,000). */
  readonly maxMessages?: number;
  /** Milliseconds between two comments in an event stream, so that nobody takes it for dead (15,000). */
  readonly heartbeatMs?: number;
}

const WHERE = 'createAssistantHandler';

/** @throws ToolDeclarationError (502) naming everything that is wrong. */
export function checkAssistantOptions(options: AssistantHandlerOptions): void {
  const faults: AuthorFault[] = [];
  if (typeof options?.provider?.chat !== 'function')
    faults.push({
      where: WHERE,
      problem: 'its provider has no chat method',
      fix: 'provider: new OpenAIProvider(), …',
    });
  if (typeof options?.model !== 'string' || options.model.trim() === '')
    faults.push({ where: WHERE, problem: 'it has no model', fix: "model: 'gpt-5', …" });
  // A variable that was not set must not open the door to everybody.
  if (options && 'token' in options && !(typeof options.token === 'string' && options.token.trim() !== ''))
    faults.push({
      where: WHERE,
      problem: '`token` is there, but empty',
      fix: 'a token, or no `token` for everybody',
    });
  if (!/^(\/[^/?#]+)*$/.test(options?.basePath ?? ''))
    faults.push({
      where: WHERE,
      problem: `basePath is ${JSON.stringify(options.basePath)}`,
      fix: "basePath: '/assistant'",
    });
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  checkNumbers(WHERE, options, {
    maxBodyBytes: { min: 1, isWhole: true, allowsInfinity: true },
    maxMessages: { min: 2, isWhole: true, allowsInfinity: true },
    heartbeatMs: { min: 1 },
  });
}
