import type { Answer, CallScope } from '../../core/contract/call.js';
import type { LLMProvider, Message, UserMessage } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { Telemetry } from '../../core/contract/telemetry.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { Conversation } from '../../run/conversation/conversation.js';
import { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationsStore } from '../../run/conversation/conversations-options.js';
import type { ConversationConfig } from '../../run/conversation/options.js';
import type { ConversationSnapshot } from '../../run/conversation/snapshot.js';
import type { ToolLoopResult } from '../../run/loop/events.js';
import type { ResumeOptions, ToolLoopConfig } from '../../run/loop/options.js';
import { resumeToolLoop, runToolLoop, streamToolLoop } from '../../run/loop/run.js';
import type { ChatHandler, ChatOptions } from '../../surfaces/chat/create-chat-handler.js';
import type { Permissions } from '../permissions/index.js';
import type { AgentOptions } from './agent-options.js';

/** What an agent has been put together from. */
interface AgentParts {
  readonly options: AgentOptions;
  readonly provider: LLMProvider;
  readonly permissions: Permissions;
  readonly registry: ToolRegistry;
  readonly store?: ConversationsStore;
  readonly telemetry?: Telemetry;
  readonly close: () => Promise<void>;
}

/** What a conversation of an agent has of its own. */
export type AgentConversationOptions = Pick<ConversationConfig, 'id' | 'messages' | 'scope'>;

/**
 * A model, its tools, and what surrounds them: `createAgent` puts it together. It makes single runs, conversations in
 * this process, conversations in a store, and chats over HTTP.
 */
export class Agent implements AsyncDisposable {
  /** All its tools, behind its permissions: for an MCP server, an inspector, or a call of your own. */
  readonly registry: ToolRegistry;
  /** What its calls may do, and why: `explain`, `remember`, `revoke`. */
  readonly permissions: Permissions;
  /** What its conversations are made from, for a `Conversation` with more than {@link Agent.conversation} takes. */
  readonly config: ConversationConfig;
  readonly #parts: AgentParts;
  readonly #runConfig: ToolLoopConfig;
  #conversations: Promise<Conversations> | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: AgentParts) {
    const { registry, permissions, provider, store, telemetry, options } = parts;
    const { systemPrompt, checkpoint, ...runOptions } = runOptionsOf(options);
    const { engine } = options;
    this.registry = registry;
    this.permissions = permissions;
    this.#parts = parts;
    const kept = { ...(store && { store }), ...(engine && { engine }) };
    this.#runConfig = { ...runOptions, ...kept, ...(telemetry && { telemetry }), provider, tools: registry };
    this.config = { ...this.#runConfig, ...(systemPrompt === undefined ? {} : { systemPrompt }) };
  }

  /** One run over a prompt: what `runToolLoop` gives. One that waits for answers goes on with {@link Agent.resume}. */
  async run(content: UserMessage['content'], scope: CallScope = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    return runToolLoop(this.#runConfig, this.#messages(content), scope);
  }

  /** One run over a prompt, as it happens: what `streamToolLoop` gives. */
  stream(content: UserMessage['content'], scope: CallScope = {}): ReturnType<typeof streamToolLoop> {
    this.#checkOpen();
    return streamToolLoop(this.#runConfig, this.#messages(content), scope);
  }

  /** Goes on with a run that waits for answers, by its `state`: what `resumeToolLoop` gives. */
  async resume(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: ResumeOptions | CallScope = {},
  ): Promise<ToolLoopResult> {
    this.#checkOpen();
    return resumeToolLoop(this.#runConfig, state, answers, options);
  }

  /** A conversation in this process, which ends with it. */
  conversation(options: AgentConversationOptions = {}): Conversation {
    this.#checkOpen();
    return new Conversation({ ...this.config, ...options });
  }

  /** Goes on with a conversation from what its `toJSON` or `close` gave. */
  restore(
    snapshot: ConversationSnapshot,
    { scope }: Pick<AgentConversationOptions, 'scope'> = {},
  ): Conversation {
    this.#checkOpen();
    return Conversation.restore({ ...this.config, ...(scope && { scope }) }, snapshot);
  }

  /** The conversations in its store, which any process goes on with; without a store they are kept in memory. */
  async conversations(): Promise<Conversations> {
    this.#checkOpen();
    this.#conversations ??= this.#openConversations();
    return this.#conversations;
  }

  /** A chat over HTTP in front of {@link Agent.conversations}; the options say who asks, and how it is answered. */
  async chatHandler(options: ChatOptions): Promise<ChatHandler> {
    const conversations = await this.conversations();
    const { createChatHandler } = await import('../../surfaces/chat/create-chat-handler.js');
    const { logger } = this.#parts.options;
    return createChatHandler({ ...(logger && { logger }), ...options, conversations });
  }

  /**
   * Ends what it has opened: conversations of the store when their turns here have ended, commands in the background,
   * connections, and a store that it was given by name. What it was given ready stays open.
   */
  close(): Promise<void> {
    const closed = async (): Promise<void> => (await this.#conversations)?.close();
    this.#closing ??= closed().finally(() => this.#parts.close());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #openConversations(): Promise<Conversations> {
    const { options, store, telemetry, provider, registry } = this.#parts;
    const { engine, logger, conversations } = options;
    return new Conversations({
      ...conversations,
      ...(engine && { engine }),
      ...(logger && { logger }),
      store: store ?? new (await import('../../durable/stores/index.js')).MemoryRunStore(),
      config: { ...runOptionsOf(options), ...(telemetry && { telemetry }), provider, tools: registry },
    });
  }

  #messages(content: UserMessage['content']): readonly Message[] {
    const { systemPrompt } = this.config;
    const prompt: Message = { role: 'user', content };
    return systemPrompt === undefined ? [prompt] : [{ role: 'system', content: systemPrompt }, prompt];
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new ToolwrightError('RunAborted', 'The agent was closed.');
  }
}

/** Options about how an agent is put together; hooks are those of its registry. */
const NOT_OF_RUNS = [
  ...(['provider', 'folder', 'toolboxes', 'skills', 'mcp', 'permissions', 'store', 'engine'] as const),
  ...(['telemetry', 'container', 'conversations', 'configFile', 'folderConfigFile', 'hooks'] as const),
];

function runOptionsOf(options: AgentOptions): Omit<AgentOptions, (typeof NOT_OF_RUNS)[number]> {
  const left: ReadonlySet<string> = new Set(NOT_OF_RUNS);
  const entries = Object.entries(options).filter(([name]) => !left.has(name));
  return Object.fromEntries(entries) as unknown as ReturnType<typeof runOptionsOf>;
}
