import {
  type LLMProvider,
  type Logger,
  type Message,
  runToolLoop,
  type ToolLoopResult,
  type ToolRegistry,
  type UpdateListener,
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
  readonly onUpdate: UpdateListener;
}

/** One conversation: each request sees what was said before. */
export class Assistant {
  readonly #options: AssistantOptions;
  #messages: readonly Message[];

  constructor(options: AssistantOptions) {
    this.#options = options;
    this.#messages = [{ role: 'system', content: systemPrompt(new Date()) }];
  }

  async ask(request: string, { signal, onUpdate }: RequestOptions): Promise<ToolLoopResult> {
    const { author, ...config } = this.#options;
    const messages: readonly Message[] = [...this.#messages, { role: 'user', content: request }];
    const run = await runToolLoop(config, messages, { signal, onUpdate, data: { author } });
    this.#messages = run.messages;
    return run;
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
