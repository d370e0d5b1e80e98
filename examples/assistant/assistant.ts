import {
  Conversation,
  type ConversationListener,
  type LLMProvider,
  type Logger,
  type ToolLoopResult,
  type ToolRegistry,
} from 'toolwright';

/** What an {@link Assistant} is made from. */
export interface AssistantOptions {
  readonly provider: LLMProvider;
  readonly model: string;
  readonly tools: ToolRegistry;
  readonly logger: Logger;
  /** Who asks; signs what is written. */
  readonly author: string;
}

/** What one request brings along. */
export interface RequestOptions {
  readonly signal: AbortSignal;
  /** Hears what happens while it happens, and has the model's text streamed. */
  readonly onEvent?: ConversationListener;
}

/** One conversation: each request sees what was said before. */
export class Assistant {
  readonly #conversation: Conversation;

  constructor({ author, ...config }: AssistantOptions) {
    this.#conversation = new Conversation({
      ...config,
      systemPrompt: systemPrompt(new Date()),
      scope: { data: { author } },
    });
  }

  /** Answers one request. Does not reject: what went wrong is in the result, and the next request goes on after it. */
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
