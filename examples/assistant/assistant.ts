import {
  Conversation,
  type ConversationListener,
  type LLMProvider,
  type Logger,
  type ToolLoopResult,
  type ToolRegistry,
} from 'toolwright';

/** The dependencies of an {@link Assistant}. */
export interface AssistantOptions {
  readonly provider: LLMProvider;
  readonly model: string;
  readonly tools: ToolRegistry;
  readonly logger: Logger;
  /** The name of the user; the assistant signs with it. */
  readonly author: string;
}

/** The options of one request. */
export interface RequestOptions {
  readonly signal: AbortSignal;
  /** Receives events as they happen, and makes the model stream its text. */
  readonly onEvent?: ConversationListener;
}

/** One conversation: each request sees the earlier ones. */
export class Assistant {
  readonly #conversation: Conversation;

  constructor({ author, ...config }: AssistantOptions) {
    this.#conversation = new Conversation({
      ...config,
      systemPrompt: systemPrompt(new Date()),
      scope: { data: { author } },
    });
  }

  /** Answers one request. Never rejects: an error is in the result, and the next request still works. */
  async ask(request: string, { signal, onEvent }: RequestOptions): Promise<ToolLoopResult> {
    const unsubscribe = onEvent && this.#conversation.subscribe(onEvent);
    try {
      return await this.#conversation.prompt(request, { signal });
    } finally {
      unsubscribe?.();
    }
  }
}

function systemPrompt(today: Date): string {
  return [
    'You are the assistant of somebody who runs a small design studio.',
    'Use the tools for everything about notes, contacts, invoices, reminders, arithmetic and time; do not guess.',
    'Answer briefly, in the language of the question, as plain text for a terminal.',
    `Today is ${today.toISOString().slice(0, 10)}.`,
  ].join('\n');
}
