import type { CallJournal, CallRecord, Suspension } from '../../core/contract/call.js';
import type {
  AssistantMessage,
  FinishReason,
  LLMResponse,
  Message,
  MessageToolCall,
  ProviderItems,
  ToolCall,
  ToolMessage,
} from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import type { RunState, StoredCall, StoredInnerRun, WireCall } from '../../core/contract/run-state.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { cached } from '../../core/kernel/cached.js';
import { type ReadArguments, readArguments } from '../../tools/checking/read-arguments.js';
import { TOOL_NAME } from '../../tools/discovery/define-tool.js';
import { type CallPlace, effectKey } from '../call/effect-key.js';
import type { KeepOnce } from '../call/invocation.js';
import { safeLog } from '../call/log.js';
import { attachmentsText, resultText } from '../call/result-text.js';

/** The parts of a reply in its message, except the calls. */
type SpokenReply = Pick<LLMResponse, 'content' | 'reasoning' | 'providerItems'>;

/** A reply as a message of the history. */
export function assistantMessage(reply: SpokenReply, calls: readonly ParsedCall[]): AssistantMessage {
  const { content, reasoning, providerItems } = reply;
  const message: AssistantMessage =
    calls.length === 0
      ? { role: 'assistant', content }
      : { role: 'assistant', content, tool_calls: calls.map(messageCall) };
  return reasoning === undefined && providerItems === undefined
    ? message
    : { ...message, ...extrasOf(reply) };
}

/** The parts of a reply that go back to its provider beside its text. */
function extrasOf({ reasoning, providerItems }: SpokenReply): Omit<SpokenReply, 'content'> {
  return { ...(reasoning && { reasoning }), ...(providerItems && { providerItems }) };
}

function messageCall(call: ParsedCall): MessageToolCall {
  const { id, providerItems, wire } = call;
  const { name, text } = wire ?? call;
  // Strict servers parse the history, and refuse the whole request if one call is broken or has an invalid name. The
  // original text is in the call's record and in its answer.
  const legal = TOOL_NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed';
  const made = { id, type: 'function' as const, function: { name: legal, arguments: text ?? '{}' } };
  return providerItems === undefined ? made : { ...made, providerItems };
}

/** The answer to one call, with further notes about the call. */
export function toolMessage(toolCallId: string, result: ToolResult, notes: readonly string[]): ToolMessage {
  let content = resultText(result) || attachmentsText(result);
  for (const note of notes) content += `\n\n${note}`;
  const answer: ToolMessage = { role: 'tool', content, tool_call_id: toolCallId };
  const message = result.isError ? { ...answer, isError: true } : answer;
  const isMoreThanText = result.content?.some(({ type }) => type !== 'text');
  return isMoreThanText ? { ...message, parts: result.content } : message;
}

/** Whether a reply was cut off, so that its calls and its answer cannot be trusted. */
export function isTruncated(finishReason: FinishReason): boolean {
  return finishReason === 'length' || finishReason === 'content_filter';
}

/**
 * A call with parsed arguments, for the history and for the tool. It gets its `record`, or its `suspension` if it
 * waits; a call with neither has not begun, or was running when its process crashed.
 */
export interface ParsedCall extends ToolCall {
  readonly read: ReadArguments;
  /** The arguments as JSON text of an object; absent if JSON cannot represent them. */
  readonly text: string | undefined;
  /** The journal of a call that was suspended. */
  readonly journal?: CallJournal;
  record?: CallRecord;
  suspension?: Suspension;
  /** The runs that its tool had started when it was suspended. */
  inner?: readonly StoredInnerRun[] | undefined;
  /** It was running when its process crashed, and its outcome is unknown. */
  readonly hasBegun?: true;
  /** Whether it had begun as a job. */
  readonly asJob?: boolean;
  /** Its tool was `readOnly` when it had begun. */
  readonly readOnly?: true;
  readonly place: CallPlace;
  /** The original call, if the model called this tool through another one. */
  readonly wire?: WireCall;
  keepOnce?: KeepOnce;
  /** The form in which a run that saves its steps has stored it, or is storing it. */
  savedAs?: 'begun' | 'settled' | undefined;
}

/** The key of a call's effect, as its tool receives it. */
export function keyOfCall({ place, name, journal, read }: ParsedCall): string {
  const sent = read.ok ? read.value : {};
  return effectKey({
    of: place,
    tool: name,
    arguments: journal?.edited === undefined ? sent : journal.arguments,
  });
}

export interface CallingMessage {
  readonly reply: SpokenReply;
  readonly calls: readonly ParsedCall[];
  readonly finishReason: FinishReason;
}

/** A message with open calls, in the form for stores. */
export function openMessage(
  { reply, calls }: CallingMessage,
  store: (call: ParsedCall) => StoredCall,
): RunState['open'] {
  return { content: reply.content, calls: calls.map(store), ...extrasOf(reply) };
}

/** Parses the arguments of a call once. */
export function parseCall(sent: ToolCall, place: CallPlace): ParsedCall {
  const { id, name, arguments: args, providerItems } = sent;
  const read = readArguments(args);
  let text: string | undefined;
  if (read.ok) {
    const isAsSent =
      typeof args === 'string' && read.repairs.length === 0 && args.trimStart().startsWith('{');
    try {
      text = isAsSent ? args : JSON.stringify(read.value);
    } catch {}
  }
  const call = { id, name, arguments: args, read, text, place };
  return providerItems === undefined ? call : { ...call, providerItems };
}

/**
 * A history in the form for requests: without the reasoning that is for people, and with provider items only of the
 * requested provider and model.
 */
export class SentMessages {
  readonly #history: readonly Message[];
  readonly #logger: Logger | undefined;
  #key: string | undefined;
  /** Absent as long as the history can be sent unchanged. */
  #sent: Message[] | undefined;
  #looked = 0;
  /** The tokens of the first messages to send, and the number of these messages. */
  #tokens = 0;
  #counted = 0;
  /** The list that was read last, so far. */
  #source: readonly Message[];
  #isItemsReported = false;
  #isRepairReported = false;

  /** Shared by runs that append to the same history, so that each run reads only new messages. */
  static of(history: readonly Message[], logger: Logger | undefined): SentMessages {
    return cached(SHARED, history, () => new SentMessages(history, logger));
  }

  /** `history` is append-only. */
  constructor(history: readonly Message[], logger: Logger | undefined) {
    this.#history = history;
    this.#source = history;
    this.#logger = logger;
  }

  /**
   * The messages for the provider whose items have this key; copy them before more are added. `messages` may be another
   * list than the history, such as a part of it: what it has in common with the previous list is not read again.
   */
  for(key: string | undefined, messages = this.#history): readonly Message[] {
    if (key !== this.#key || !this.#isContinuedBy(messages)) {
      this.#key = key;
      this.#sent = undefined;
      this.#looked = 0;
      this.#tokens = 0;
      this.#counted = 0;
    }
    this.#source = messages;
    for (; this.#looked < messages.length; this.#looked += 1) {
      const message = messages[this.#looked] as Message;
      const sent = this.#forRequest(message);
      if (sent !== message) this.#sent ??= messages.slice(0, this.#looked);
      this.#sent?.push(sent);
    }
    return this.#sent ?? messages;
  }

  /** The tokens of the messages that were requested last: only new messages are counted. */
  tokens(tokensOf: (message: Message) => number): number {
    const messages = this.#sent ?? this.#source;
    for (; this.#counted < this.#looked; this.#counted += 1)
      this.#tokens += tokensOf(messages[this.#counted] as Message);
    return this.#tokens;
  }

  #isContinuedBy(messages: readonly Message[]): boolean {
    const source = this.#source;
    if (messages === source) return true;
    if (messages.length < this.#looked) return false;
    for (let index = 0; index < this.#looked; index += 1) if (messages[index] !== source[index]) return false;
    return true;
  }

  /** Repairs of a compacted history are reported once, not before each request. */
  reportRepairs(repairs: readonly string[]): void {
    if (repairs.length === 0 || this.#isRepairReported) return;
    this.#isRepairReported = true;
    safeLog(this.#logger).warn('The history that compactHistory returned was repaired', { repairs });
  }

  #forRequest(message: Message): Message {
    if (message.role !== 'assistant' || !hasExtras(message)) return message;
    const { reasoning: _, providerItems, tool_calls: calls, ...others } = message;
    const sentCalls = calls?.map((call): MessageToolCall => {
      const { providerItems: items, ...known } = call;
      return items === undefined ? call : { ...known, ...this.#itemsForRequest(items) };
    });
    return {
      ...others,
      ...(sentCalls && { tool_calls: sentCalls }),
      ...this.#itemsForRequest(providerItems),
    };
  }

  #itemsForRequest(items: ProviderItems | undefined): { readonly providerItems?: ProviderItems } {
    if (items === undefined) return {};
    const key = this.#key;
    if (key !== undefined && Object.hasOwn(items, key)) return { providerItems: { [key]: items[key] } };
    if (!this.#isItemsReported) {
      this.#isItemsReported = true;
      const what = 'Items of another provider or model were left out of the request';
      safeLog(this.#logger).warn(what, { keys: Object.keys(items), asked: key });
    }
    return {};
  }
}

const SHARED = new WeakMap<readonly Message[], SentMessages>();

function hasExtras({ reasoning, providerItems, tool_calls: calls }: AssistantMessage): boolean {
  if (reasoning !== undefined || providerItems !== undefined) return true;
  for (const call of calls ?? NO_CALLS) if (call.providerItems !== undefined) return true;
  return false;
}

const NO_CALLS: readonly MessageToolCall[] = [];
