import type { Answer, CallScope } from '../../core/contract/call.js';
import type { LLMProvider, Message, UserMessage } from '../../core/contract/llm-provider.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { Telemetry } from '../../core/contract/telemetry.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { Conversation } from '../../run/conversation/conversation.js';
import type { ConversationSnapshot } from '../../run/conversation/conversation-snapshot.js';
import { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationsStore } from '../../run/conversation/conversations-options.js';
import type { ConversationConfig } from '../../run/conversation/options.js';
import type { ToolLoopResult } from '../../run/loop/events.js';
import type { ResumeOptions, ToolLoopConfig } from '../../run/loop/options.js';
import { resumeToolLoop, runToolLoop, streamToolLoop } from '../../run/loop/run.js';
import type { ChatHandler, ChatOptions } from '../../surfaces/chat/create-chat-handler.js';
import type { McpConnector } from '../../surfaces/mcp/client/connect-mcp.js';
import type { McpConnectionStatus } from '../../surfaces/mcp/client/connect-options.js';
import type { Permissions } from '../permissions/index.js';
import type { AgentOptions } from './agent-options.js';

/** The parts of an agent. */
interface AgentParts {
  readonly options: AgentOptions;
  readonly provider: LLMProvider;
  readonly permissions: Permissions;
  readonly registry: ToolRegistry;
  readonly store?: ConversationsStore;
  readonly telemetry?: Telemetry;
  readonly mcp: AgentMcp;
  readonly close: () => Promise<void>;
}

/** The MCP servers of an agent. */
export interface AgentMcp {
  /** Those at which users sign in. */
  readonly signIns: readonly McpConnector[];
  /** By the prefix of their tools. */
  readonly connections: ReadonlyMap<string, { readonly status: McpConnectionStatus }>;
}

/** Options of one conversation of an agent. */
export type AgentConversationOptions = Pick<ConversationConfig, 'id' | 'messages' | 'scope'>;

/**
 * A model with its tools and everything around them, made by `createAgent`. It runs single prompts, conversations in
 * this process, conversations in a store, and chats over HTTP.
 */
export class Agent implements AsyncDisposable {
  /** All tools of the agent, with its permissions: for an MCP server, an inspector, or your own calls. */
  readonly registry: ToolRegistry;
  /** What calls may do, and why: `explain`, `remember`, `revoke`. */
  readonly permissions: Permissions;
  /** Options to create a `Conversation` with, if you need more options than {@link Agent.conversation} has. */
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
    const own = withoutUndefined({ store, engine, telemetry });
    this.#runConfig = { ...runOptions, ...own, provider, tools: registry };
    this.config = { ...this.#runConfig, ...withoutUndefined({ systemPrompt }) };
  }

  /** Runs one prompt and returns the result of `runToolLoop`. To continue a waiting run, use {@link Agent.resume}. */
  async run(content: UserMessage['content'], scope: CallScope = {}): Promise<ToolLoopResult> {
    this.#checkOpen();
    return runToolLoop(this.#runConfig, this.#messages(content), scope);
  }

  /** Runs one prompt and streams its events, as `streamToolLoop` does. */
  stream(content: UserMessage['content'], scope: CallScope = {}): ReturnType<typeof streamToolLoop> {
    this.#checkOpen();
    return streamToolLoop(this.#runConfig, this.#messages(content), scope);
  }

  /** Continues a run that waits for answers, from its `state`; returns the result of `resumeToolLoop`. */
  async resume(
    state: RunState | undefined,
    answers: readonly Answer[],
    options: ResumeOptions | CallScope = {},
  ): Promise<ToolLoopResult> {
    this.#checkOpen();
    return resumeToolLoop(this.#runConfig, state, answers, options);
  }

  /** Starts a conversation in this process, which ends with the process. */
  conversation(options: AgentConversationOptions = {}): Conversation {
    this.#checkOpen();
    return new Conversation({ ...this.config, ...options });
  }

  /** Continues a conversation from the result of its `toJSON` or `close`. */
  restore(
    snapshot: ConversationSnapshot,
    { scope }: Pick<AgentConversationOptions, 'scope'> = {},
  ): Conversation {
    this.#checkOpen();
    return Conversation.restore({ ...this.config, ...(scope && { scope }) }, snapshot);
  }

  /** The conversations in the agent's store, which any process can continue; without a store, they are in memory. */
  async conversations(): Promise<Conversations> {
    this.#checkOpen();
    this.#conversations ??= this.#openConversations();
    return this.#conversations;
  }

  /** A chat over HTTP for {@link Agent.conversations}; the options identify the user and choose the protocol. */
  async chatHandler(options: ChatOptions): Promise<ChatHandler> {
    const conversations = await this.conversations();
    const { createChatHandler } = await import('../../surfaces/chat/create-chat-handler.js');
    const { logger } = this.#parts.options;
    return createChatHandler({ ...(logger && { logger }), ...options, conversations });
  }

  /** How each MCP server can be reached now, by the prefix of its tools; for health checks. */
  get mcp(): Readonly<Record<string, McpConnectionStatus>> {
    const { connections } = this.#parts.mcp;
    return Object.fromEntries(Array.from(connections, ([prefix, { status }]) => [prefix, status]));
  }

  /**
   * Completes the sign-in at an MCP server with the address to which the browser returned (`auth.redirectUrl`). Returns
   * `false` if it belongs to no sign-in of this agent, or is older than an hour.
   */
  async finishSignIn(address: string | URL): Promise<boolean> {
    this.#checkOpen();
    for (const { finishSignIn } of this.#parts.mcp.signIns) if (await finishSignIn(address)) return true;
    return false;
  }

  /**
   * Closes what the agent has opened: conversations of the store after their running turns, background commands,
   * connections, and a store that was given by name. Objects that were passed in stay open.
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
      ...withoutUndefined({ engine, logger }),
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

/** Options of the agent itself, not of its runs; hooks belong to the registry. */
const NOT_OF_RUNS = [
  ...(['provider', 'folder', 'toolboxes', 'skills', 'mcp', 'permissions', 'store', 'engine'] as const),
  ...(['telemetry', 'container', 'conversations', 'configFile', 'folderConfigFile', 'hooks'] as const),
];

function runOptionsOf(options: AgentOptions): Omit<AgentOptions, (typeof NOT_OF_RUNS)[number]> {
  const left: ReadonlySet<string> = new Set(NOT_OF_RUNS);
  const entries = Object.entries(options).filter(([name]) => !left.has(name));
  return Object.fromEntries(entries) as unknown as ReturnType<typeof runOptionsOf>;
}
