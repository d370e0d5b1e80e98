import type { ToolRegistry } from '../call/tool-registry.js';
import type { CallScope } from '../contract/call.js';
import type { LLMProvider, Message } from '../contract/llm-provider.js';
import { streamToolLoop } from '../loop/run.js';
import type { WatchedRuns } from './watched-runs.js';

/** Who answers a chat of the page. */
export interface ChatModel {
  readonly provider: LLMProvider;
  readonly model: string;
}

/** A chat of the page; its messages are those of the runs that have ended. */
interface TrialChat {
  readonly id: string;
  readonly messages: readonly Message[];
  /** What was said and is not in the messages yet, because its run goes on or waits. */
  readonly asked?: string;
  readonly runId?: string;
  readonly status: string;
  readonly error?: string;
}

/** What somebody says in a chat. */
interface ChatPrompt {
  readonly id: string;
  readonly text: string;
  readonly scope: CallScope;
  readonly model: ChatModel;
}

const MOST_CHATS = 50;

/** Chats with which somebody at the page tries the tools. */
export class TrialChats {
  readonly #registry: ToolRegistry;
  readonly #runs: WatchedRuns;
  readonly #systemPrompt: string | undefined;
  readonly #chats = new Map<string, TrialChat>();
  readonly #running = new Map<string, AbortController>();

  constructor(registry: ToolRegistry, runs: WatchedRuns, systemPrompt: string | undefined) {
    this.#registry = registry;
    this.#runs = runs;
    this.#systemPrompt = systemPrompt;
    // Also where the run was suspended and answered at the page.
    runs.onEnd(({ runId }, { status, messages, error }) => {
      const chat = [...this.#chats.values()].find((known) => known.runId === runId);
      if (chat === undefined) return;
      const { asked, error: _, ...others } = chat;
      const told = error === undefined ? {} : { error: error.message };
      if (status === 'suspended') this.#keep({ ...chat, status });
      else
        this.#keep({
          ...others,
          ...told,
          status,
          messages: messages.filter(({ role }) => role !== 'system'),
        });
    });
  }

  get(id: string): TrialChat {
    return this.#chats.get(id) ?? { id, messages: [], status: 'new' };
  }

  /** Begins a run; what comes of it is seen among the runs. */
  prompt({ id, text, scope, model }: ChatPrompt): TrialChat {
    const chat = this.get(id);
    if (chat.asked !== undefined)
      throw new Error('the chat is busy: its run goes on, or waits for an answer');
    const runId = crypto.randomUUID();
    const aborted = new AbortController();
    const first: readonly Message[] =
      this.#systemPrompt === undefined ? [] : [{ role: 'system', content: this.#systemPrompt }];
    const messages: readonly Message[] = [...first, ...chat.messages, { role: 'user', content: text }];
    const { error: _, ...before } = chat;
    const begun = { ...before, asked: text, runId, status: 'running' };
    this.#keep(begun);
    this.#running.set(id, aborted);
    const config = { ...model, tools: this.#registry, runId, signal: aborted.signal };
    void this.#follow(id, streamToolLoop(config, messages, { ...scope, conversationId: id }));
    return begun;
  }

  /** Aborts what runs, or gives up what waits. */
  abort(id: string): void {
    this.#running.get(id)?.abort(new Error('aborted at the inspector'));
    const { asked, ...chat } = this.get(id);
    if (chat.status !== 'suspended' || chat.runId === undefined) return;
    this.#runs.giveUp(chat.runId);
    this.#keep({ ...chat, status: 'aborted' });
  }

  close(): void {
    for (const id of this.#running.keys()) this.abort(id);
  }

  async #follow(id: string, run: ReturnType<typeof streamToolLoop>): Promise<void> {
    try {
      for await (const _ of run);
    } catch (error) {
      const { asked: _, ...chat } = this.get(id);
      this.#keep({
        ...chat,
        status: 'failed',
        error: error instanceof Error ? error.message : String(error),
      });
    } finally {
      this.#running.delete(id);
    }
  }

  #keep(chat: TrialChat): void {
    this.#chats.set(chat.id, chat);
    for (const oldest of this.#chats.keys()) {
      if (this.#chats.size <= MOST_CHATS) break;
      this.#chats.delete(oldest);
    }
  }
}
