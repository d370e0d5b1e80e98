import { randomUUID } from 'node:crypto';
import type { SafeLog } from '../../call/log.js';
import type {
  ConversationStore,
  StoredConversation,
  StoredMessage,
} from '../../contract/conversation-store.js';
import type { LLMResponse, Message } from '../../contract/llm-provider.js';
import type { SentMessages } from '../../loop/messages.js';
import { isSameOwner } from '../../loop/run-owner.js';
import { askRecorded } from '../../loop/trace-run.js';
import { parseToolRequest, type ToolRequest } from '../../text/tool-call-parser.js';
import type { ChatMessage, ChatResponse } from '../chat-protocol.js';
import type { AssistantHandlerOptions } from './assistant-options.js';
import { HttpFault } from './chat-request.js';

type TextListener = (text: string) => void | Promise<void>;

export interface TurnRequest {
  readonly conversationId: string;
  readonly messages: readonly ChatMessage[];
  /** Names the turn; the same one again gets the same reply again. */
  readonly turnId?: string;
  /** Who asks, where the assistant tells its clients apart. */
  readonly owner?: unknown;
  /** The turn that must be the last one so far, where the client says so. */
  readonly after?: string;
  readonly systemPrompt?: string;
  readonly signal: AbortSignal;
  readonly onText?: TextListener;
}

/** A reply, and the turn that it ended; none where nothing was ever said. */
export interface TurnReply {
  readonly turnId?: string;
  readonly response: ChatResponse;
}

interface TurnServices {
  readonly model: Pick<AssistantHandlerOptions, 'provider' | 'model' | 'llmOptions' | 'telemetry'>;
  readonly store: ConversationStore;
  readonly log: SafeLog;
  /** Knows which provider items are whose. */
  readonly sent: SentMessages;
  readonly maxMessages: number;
}

/**
 * One turn: what was sent goes to the model, and its reply is exposed. Nothing is executed, and the
 * model is asked once at most. Everything is stored at the end and at once, so that a failure leaves the
 * conversation as it was, with its pending request.
 *
 * Throws an {@link HttpFault}, or the signal's reason.
 */
export async function takeTurn(request: TurnRequest, services: TurnServices): Promise<TurnReply> {
  const { conversationId: id, turnId = randomUUID() } = request;
  const conversation = ownConversation(await services.store.load(id), request.owner);
  if (conversation?.turnId === turnId) return replayed(request, conversation);
  if (request.after !== undefined && request.after !== conversation?.turnId)
    throw new HttpFault('conversation_changed', 'the conversation has gone on, or has expired');
  const added = honoured(request.messages, conversation);
  if (added.length === 0) {
    // Only results that nobody waits for: the model is not asked, and what it said last still stands.
    if (conversation !== undefined) return replayed(request, conversation);
    const message = { role: 'assistant', content: '' } as const;
    return { response: { conversation_id: id, message, finish_reason: 'stop' } };
  }
  const messages = [...(conversation?.messages ?? []), ...added];
  if (messages.length >= services.maxMessages)
    throw new HttpFault('conversation_full', 'the conversation has too many messages; begin a new one');
  const gate = request.onText && new TextGate(request.onText);
  const reply = await ask({ ...request, gate }, messages, services);
  const { content, finishReason } = reply;
  const turn = {
    id: turnId,
    after: conversation?.turnId,
    ...(request.owner === undefined ? {} : { owner: request.owner }),
    messages: [...added, storedReply(reply)],
    finishReason,
  };
  if (!(await services.store.append(id, turn))) return overtaken(request, services);
  const response = toChatResponse(id, { ...turn, turnId });
  if (response.tool_request === undefined) await gate?.end(content);
  return { turnId, response };
}

/** The conversation, unless it is somebody else's: then nobody is told that there is one. */
export function ownConversation(
  conversation: StoredConversation | undefined,
  owner: unknown,
): StoredConversation | undefined {
  if (conversation === undefined || isSameOwner(conversation.owner, owner)) return conversation;
  throw new HttpFault('conversation_not_found', 'there is no such conversation, or it has expired');
}

/** Items of a reply with calls may speak of them, and nobody will answer those. */
function storedReply({ content, reasoning, providerItems, toolCalls }: LLMResponse): StoredMessage {
  const hasItems = providerItems !== undefined && toolCalls.length === 0;
  return {
    role: 'assistant',
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(hasItems ? { providerItems } : {}),
  };
}

/** Another process was faster: with the same request, sent again, or with another one. */
async function overtaken(request: TurnRequest, { store }: TurnServices): Promise<TurnReply> {
  const conversation = ownConversation(await store.load(request.conversationId), request.owner);
  if (conversation !== undefined && conversation.turnId === request.turnId)
    return replayed({ ...request, onText: undefined }, conversation);
  throw new HttpFault('conflict', 'the conversation was changed by another request meanwhile');
}

/** The same request again: its answer got lost on the way. */
async function replayed(request: TurnRequest, conversation: StoredConversation): Promise<TurnReply> {
  const response = toChatResponse(request.conversationId, conversation);
  if (response.message.content !== '') await request.onText?.(response.message.content);
  return { turnId: conversation.turnId, response };
}

/** Without the results that nobody waits for; the others are marked as results. */
function honoured(
  messages: readonly ChatMessage[],
  conversation: StoredConversation | undefined,
): readonly StoredMessage[] {
  const isPending = pendingRequest(conversation) !== undefined;
  return messages
    .filter(({ role }) => role === 'user' || isPending)
    .map((message) => ({
      role: 'user',
      content:
        message.role === 'user' ? unmarked(message.content) : markResult(message.name, message.content),
    }));
}

async function ask(
  { conversationId, systemPrompt, signal, gate }: TurnRequest & { readonly gate?: TextGate },
  messages: readonly Message[],
  { model: { provider, model, llmOptions, telemetry }, log, sent }: TurnServices,
) {
  const system: readonly Message[] = systemPrompt ? [{ role: 'system', content: systemPrompt }] : [];
  const history = sent.others([...system, ...messages], provider.itemKey?.(model));
  const reply = await askRecorded(telemetry, {
    provider,
    request: { model, messages: history, options: llmOptions ?? {}, signal },
    onPart: gate && ((part) => (part.type === 'text-delta' ? gate.push(part.text) : undefined)),
  });
  if (reply.ok) {
    const { length } = reply.response.toolCalls;
    if (length > 0) log.warn('Native tool calls ignored', { conversationId, count: length });
    return reply.response;
  }
  if (reply.reason === 'aborted') throw signal.reason;
  log.error('Provider failed', { conversationId, error: reply.error.cause });
  throw new HttpFault('provider_failed', 'the model gave no usable reply');
}

/**
 * Hands a reply's text on while it is written, unless it may still become a tool request: then `content` will
 * be `''`, and no piece of it must have been shown. What does not begin with `{` can be none.
 */
export class TextGate {
  readonly #show: TextListener;
  #received = '';
  #state: 'blank' | 'held' | 'open' = 'blank';

  constructor(show: TextListener) {
    this.#show = show;
  }

  push(text: string): void | Promise<void> {
    this.#received += text;
    if (this.#state === 'open') return this.#show(text);
    if (this.#state !== 'blank') return;
    // All before it was white space.
    const begun = text.trimStart();
    if (begun === '') return;
    this.#state = begun.startsWith('{') ? 'held' : 'open';
    if (this.#state === 'open') return this.#show(this.#received);
  }

  /** Ends the reply with what it says in the end: shows the rest, where it goes on from what was received. */
  async end(content: string): Promise<void> {
    if (!content.startsWith(this.#received)) return;
    const rest = this.#state === 'open' ? content.slice(this.#received.length) : content;
    if (rest !== '') await this.#show(rest);
  }
}

/**
 * The request that a conversation waits for: what its last message asks for. So each reply sets or
 * clears it, and a store cannot keep one that was never made. A reply that was cut off asks for nothing.
 */
function pendingRequest(conversation: StoredConversation | undefined): ToolRequest | undefined {
  if (conversation === undefined) return undefined;
  const { messages, finishReason } = conversation;
  if (finishReason === 'length' || finishReason === 'content_filter') return undefined;
  const request = parseToolRequest(messages.at(-1)?.content);
  try {
    JSON.stringify(request);
    return request;
  } catch {
    // What is nested deeper than the stack can be read, but not written: then it is text.
    return undefined;
  }
}

/** The last reply of a conversation, as clients get it. */
export function toChatResponse(id: string, conversation: StoredConversation): ChatResponse {
  const request = pendingRequest(conversation);
  const content = request === undefined ? (conversation.messages.at(-1)?.content ?? '') : '';
  return {
    conversation_id: id,
    message: { role: 'assistant', content },
    finish_reason: conversation.finishReason,
    ...(request === undefined ? {} : { tool_request: request }),
  };
}

const LONGEST_NAME = 64;

/**
 * A tool's result as the model reads it. The protocol has no role for results, so that they stand in user
 * messages; the mark says that this one is none of the user's words. `unmarked` keeps everybody else from
 * writing one, within a result too.
 */
function markResult(name: string, content: string): string {
  const plain = name.replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, LONGEST_NAME);
  return `[tool_result:${plain}]\n${unmarked(content)}`;
}

/** Invisible characters between the letters would hide an imitation from us, and not from the model. */
const hidden = (word: string): string => [...word].join('\\p{Cf}*');

const IMITATION = new RegExp(
  `[[［【〔⟦](?=[\\s\\p{Cf}]*${hidden('tool')}[\\s\\p{Cf}_-]*${hidden('result')})`,
  'giu',
);

/** Text that holds no mark of a result: the bracket of an imitation is replaced, nothing else. */
function unmarked(text: string): string {
  return text.replace(IMITATION, '(');
}
