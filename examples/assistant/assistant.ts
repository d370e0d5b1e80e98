import {
  type LLMProvider,
  type Logger,
  type LoopEvent,
  type Message,
  runToolLoop,
  streamToolLoop,
  type ToolLoopResult,
  type ToolLoopStream,
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
  readonly onEvent?: (event: LoopEvent) => void;
}

/** One conversation: each request sees what was said before. */
export class Assistant {
  readonly #options: AssistantOptions;
  #messages: readonly Message[];

  constructor(options: AssistantOptions) {
    this.#options = options;
    this.#messages = [{ role: 'system', content: systemPrompt(new Date()) }];
  }

  /** Answers one request. Does not reject: what went wrong is in the result, and the next request goes on after it. */
  async ask(request: string, { signal, onEvent }: RequestOptions): Promise<ToolLoopResult> {
    const { author, ...config } = this.#options;
    const messages: readonly Message[] = [...this.#messages, { role: 'user', content: request }];
    const scope = { signal, data: { author } };
    const run = onEvent
      ? await watch(streamToolLoop(config, messages, scope), onEvent)
      : await runToolLoop(config, messages, scope);
    this.#messages = run.messages;
    return run;
  }
}

async function watch(run: ToolLoopStream, onEvent: (event: LoopEvent) => void): Promise<ToolLoopResult> {
  for await (const event of run) onEvent(event);
  return run.result;
}

function systemPrompt(today: Date): string {
  return [
    'You are the assistant of somebody who runs a small design studio.',
    'Use the tools for everything about notes, contacts, invoices, reminders, arithmetic and time; do not guess.',
    'Answer briefly, in the language of the question, as plain text for a terminal.',
    `Today is ${today.toISOString().slice(0, 10)}.`,
  ].join('\n');
}
