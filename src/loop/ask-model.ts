import type { ToolRegistry } from '../call/tool-registry.js';
import {
  type FinishReason,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  type Message,
  type ProviderItems,
  type ReplyAttachment,
  type ReplyOrigin,
  type ToolCall,
  USAGE_PARTS,
  type Usage,
} from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { unlessAborted } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { isPlainObject, isRecord, plainJson } from '../kernel/json.js';
import { scanText } from '../text/call-scanner.js';
import { parseToolRequest } from '../text/tool-call-parser.js';

/** A reply, or why there is none. */
export type Reply =
  /** `cost`: what it cost, where there is a budget and somebody records it. */
  | { readonly ok: true; readonly response: LLMResponse; readonly cost?: number }
  /** `streamed` is the text that was told by then. */
  | { readonly ok: false; readonly reason: 'aborted'; readonly streamed?: string }
  | {
      readonly ok: false;
      readonly reason: 'failed';
      readonly error: ToolwrightError;
      /** Somebody was told a part of it by then. */
      readonly isTold?: boolean;
      /** Another try would be no use, nor another provider. */
      readonly isFinal?: boolean;
    };

/** What of a reply is told while it is written. */
type ReplyPart = Exclude<LLMStreamPart, { readonly type: 'response' }>;

/** Hears of a reply while it is written; the provider waits for what it returns. */
export type PartListener = (part: ReplyPart) => void | Promise<void>;

/** A request that no reply came of. */
export type Failure = Extract<Reply, { readonly reason: 'failed' }>;

/** Who hears of a request. */
export interface AskListeners {
  readonly onPart?: PartListener | undefined;
  /** Says what becomes of a failure; default: it is the reply. */
  readonly onFailure?: ((failure: Failure) => Reply | Promise<Reply>) | undefined;
}

/**
 * Asks the provider once; with a listener, its reply is streamed. An abort does not wait for a provider that
 * ignores its signal.
 */
export async function askModel(
  provider: LLMProvider,
  request: LLMRequest,
  { onPart, onFailure }: AskListeners = NOBODY,
): Promise<Reply> {
  const { signal } = request;
  if (signal?.aborted) return { ok: false, reason: 'aborted' };
  const told = onPart === undefined ? undefined : new ToldReply(onPart);
  try {
    const asked = told === undefined ? provider.chat(request) : streamReply(provider, request, told);
    const response = signal === undefined ? await asked : await unlessAborted(asked, signal);
    return { ok: true, response: normalizeResponse(response) };
  } catch (cause) {
    if (signal?.aborted) return { ok: false, reason: 'aborted', streamed: told?.text ?? '' };
    const message = `LLM call failed: ${errorMessage(cause)}`;
    const error = new ToolwrightError('ProviderFailed', message, { cause });
    const failure = { ok: false, reason: 'failed', error, isTold: told?.hasBegun ?? false } as const;
    return onFailure === undefined ? failure : onFailure(failure);
  }
}

const NOBODY: AskListeners = {};

/** What was told of a reply by now. */
class ToldReply {
  text = '';
  hasBegun = false;
  readonly #onPart: PartListener;

  constructor(onPart: PartListener) {
    this.#onPart = onPart;
  }

  /** A promise only where there is something to wait for. */
  tell(part: ReplyPart): void | Promise<void> {
    this.hasBegun = true;
    if (part.type === 'text-delta') this.text += part.text;
    return this.#onPart(part);
  }
}

/** A provider without `stream` gives its text in one piece. */
async function streamReply(
  provider: LLMProvider,
  request: LLMRequest,
  told: ToldReply,
): Promise<LLMResponse> {
  if (provider.stream === undefined) {
    const response = await provider.chat(request);
    await tellWhole(response, (part) => told.tell(part));
    return response;
  }
  let begun: Set<string> | undefined;
  for await (const part of provider.stream(request)) {
    if (part.type === 'response') return part.response;
    // After an abort the run has ended; leaving the iteration lets the provider close its connection.
    if (request.signal?.aborted) break;
    if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
      if (!isFilled(part.text)) continue;
    } else {
      begun ??= new Set();
      if (!isTold(part, begun)) continue;
    }
    const taken = told.tell(part);
    if (taken !== undefined) await taken;
  }
  throw new Error('the stream ended without a response');
}

/** Tells a reply that came in one piece, but for its calls. */
export async function tellWhole(
  response: Partial<LLMResponse> | null | undefined,
  onPart: PartListener,
): Promise<void> {
  const { reasoning, content, attachments } = response ?? {};
  if (isFilled(reasoning)) await onPart({ type: 'reasoning-delta', text: reasoning });
  if (isFilled(content)) await onPart({ type: 'text-delta', text: content });
  for (const attachment of normalizeAttachments(attachments))
    await onPart({ type: 'attachment', attachment });
}

/** Nobody hears of empty pieces, nor of calls that cannot be told apart; `begun` has the ids of those that can. */
function isTold(part: ReplyPart, begun: Set<string>): boolean {
  switch (part.type) {
    case 'call-input-start':
      if (!isFilled(part.callId) || begun.has(part.callId)) return false;
      begun.add(part.callId);
      return true;
    case 'call-input-delta':
      return begun.has(part.callId) && isFilled(part.text);
    case 'call-input-end':
      return begun.has(part.callId);
    case 'attachment':
      return isAttachment(part.attachment);
    default:
      return false;
  }
}

function isFilled(text: unknown): text is string {
  return typeof text === 'string' && text !== '';
}

/** Providers are other people's code: what they leave out gets its plain meaning. */
export function normalizeResponse(response: Partial<LLMResponse> | null | undefined): LLMResponse {
  if (typeof response !== 'object' || response === null)
    throw new TypeError('the provider returned no response');
  const { content, usage, finishReason, rawFinishReason, reasoning } = response;
  const toolCalls = response.toolCalls?.map(normalizeCall) ?? [];
  const fallback: FinishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
  const plain: LLMResponse = {
    content: typeof content === 'string' ? content : '',
    toolCalls,
    finishReason: typeof finishReason === 'string' ? finishReason : fallback,
    usage: isRecord(usage) ? normalizeUsage(usage) : undefined,
  };
  // Of most replies this is all, and spreading the rest costs more than all of it.
  const { origin, providerItems, attachments: told } = response;
  const hasMore = rawFinishReason !== undefined || reasoning !== undefined || providerItems !== undefined;
  if (!hasMore && told === undefined && origin === undefined) return plain;
  const attachments = normalizeAttachments(told);
  return {
    ...plain,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(isFilled(rawFinishReason) ? { rawFinishReason } : {}),
    ...(isFilled(reasoning) ? { reasoning } : {}),
    ...normalizeItems(providerItems),
    ...(isRecord(origin) ? { origin: normalizeOrigin(origin) } : {}),
  };
}

function normalizeAttachments(attachments: unknown): readonly ReplyAttachment[] {
  return Array.isArray(attachments) ? attachments.filter(isAttachment) : [];
}

function isAttachment(attachment: unknown): attachment is ReplyAttachment {
  if (!isRecord(attachment)) return false;
  const { type, url, title, mimeType } = attachment;
  if (type === 'document') return isFilled(title);
  return (type === 'page' || (type === 'file' && isFilled(mimeType))) && isFilled(url);
}

function normalizeOrigin({ id, model }: ReplyOrigin): ReplyOrigin {
  return { ...(isFilled(id) ? { id } : {}), ...(isFilled(model) ? { model } : {}) };
}

/** The run's own, as JSON: whatever the provider does with its object later, what goes back is what came. */
function normalizeItems(items: unknown): { readonly providerItems?: ProviderItems } {
  if (items === undefined || items === null) return {};
  const kept = plainJson(items);
  return isRecord(kept) && Object.keys(kept).length > 0 ? { providerItems: kept } : {};
}

/** Counts are whole and not negative, whatever a server says: they are summed, and kept with suspended runs. */
function normalizeUsage(usage: Partial<Usage>): Usage {
  const counts: Usage = {
    inputTokens: normalizeCount(usage.inputTokens),
    outputTokens: normalizeCount(usage.outputTokens),
    totalTokens: normalizeCount(usage.totalTokens),
  };
  if (usage.raw === undefined && !hasUsageParts(usage)) return counts;
  const told: Record<string, unknown> = { ...counts };
  for (const part of USAGE_PARTS) if (Number.isFinite(usage[part])) told[part] = normalizeCount(usage[part]);
  if (usage.raw !== undefined) told.raw = usage.raw;
  return told as unknown as Usage;
}

/** Whether it tells what only some providers do. By name: looking by a list of keys costs more than adding. */
export function hasUsageParts({
  cacheReadTokens,
  cacheWriteTokens,
  reasoningTokens,
}: Pick<Partial<Usage>, (typeof USAGE_PARTS)[number]>): boolean {
  return cacheReadTokens !== undefined || cacheWriteTokens !== undefined || reasoningTokens !== undefined;
}

function normalizeCount(count: unknown): number {
  if (!Number.isFinite(count)) return 0;
  return Math.min(Math.max(0, Math.round(count as number)), Number.MAX_SAFE_INTEGER);
}

/** A call as the loop relies on it, from whoever found it. */
function normalizeCall(call: Partial<ToolCall> | null | undefined): ToolCall {
  const { id, name, arguments: args, providerItems } = call ?? {};
  const normalized = {
    id: typeof id === 'string' ? id : '',
    name: String(name ?? ''),
    arguments: normalizeArguments(args),
  };
  return providerItems === undefined ? normalized : { ...normalized, ...normalizeItems(providerItems) };
}

/** Arguments are text or plain JSON; what a `Date` or a `Map` is then, the tool's schema decides. */
function normalizeArguments(args: unknown): ToolCall['arguments'] {
  if (args === undefined || args === null) return {};
  const isPlain =
    typeof args === 'object'
      ? Array.isArray(args) || (isPlainObject(args) && !('toJSON' in args))
      : typeof args !== 'symbol' && typeof args !== 'function';
  return (isPlain ? args : (plainJson(args) ?? String(args))) as ToolCall['arguments'];
}

/** Calls that were found in a text; a call without an id is numbered by the loop. */
export interface DetectedCalls {
  readonly toolCalls: readonly (Omit<ToolCall, 'id'> & { readonly id?: string })[];
  /** What of the text remains as the message's content; default: nothing. */
  readonly content?: string;
}

/** Finds calls in the text of a reply that brought none; `undefined` where there are none. */
export type CallDetector = (
  content: string,
  offered: { readonly tools: ToolRegistry },
) => DetectedCalls | undefined;

/**
 * Where the loop looks for calls beside the reply's own: `native` nowhere else, `tool_request` in a text that
 * is one strict request, `scan` in such a text and otherwise anywhere in it: for registered names, and between the marks
 * of calls for others too, which the model is told.
 */
export type Detector = 'native' | 'tool_request' | 'scan' | CallDetector;

/**
 * The reply with the calls that its text holds. Its own calls come first, and then its text is only text. A
 * detector that throws leaves no reply that could be used.
 */
export function detectCalls(
  reply: Reply,
  { detector, tools }: { readonly detector: Detector; readonly tools: ToolRegistry },
): Reply {
  if (detector === 'native' || !reply.ok || reply.response.toolCalls.length > 0) return reply;
  const { response } = reply;
  try {
    const { toolCalls = [], content = '' } = detectorOf(detector)(response.content, { tools }) ?? {};
    if (toolCalls.length === 0) return reply;
    return {
      ok: true,
      response: { ...response, content: String(content), toolCalls: toolCalls.map(normalizeCall) },
    };
  } catch (cause) {
    const message = `The detector failed: ${errorMessage(cause)}`;
    return { ok: false, reason: 'failed', error: new ToolwrightError('ProviderFailed', message, { cause }) };
  }
}

function detectorOf(detector: Exclude<Detector, 'native'>): CallDetector {
  if (typeof detector === 'function') return detector;
  return detector === 'tool_request' ? findRequest : scan;
}

const findRequest: CallDetector = (content) => {
  const request = parseToolRequest(content);
  return request && { toolCalls: [request] };
};

const scan: CallDetector = (content, { tools }) => {
  const request = findRequest(content, { tools });
  if (request !== undefined) return request;
  const { calls, textBefore } = scanText(content, tools, { unknown: 'call' });
  return { toolCalls: calls, content: textBefore };
};

/** A history, and the last number that was given to a call of it. */
interface NumberedCalls {
  readonly messages: readonly Message[];
  lastNumber?: number | undefined;
}

/**
 * Gives each call of a reply an id of its own. The provider's are kept; a call without one, or with one that stands
 * twice in the same reply, gets `call_1`, `call_2`, …, continuing from the history.
 */
export function numberCalls(calls: readonly ToolCall[], numbered: NumberedCalls): readonly ToolCall[] {
  // A call without an id has an empty one by now.
  if (calls.length === 1 && calls[0]?.id !== '') return calls;
  if (calls.every(({ id }) => id !== '') && areDistinct(calls)) return calls;
  const seen = new Set<string>();
  return calls.map((call) => {
    if (call.id !== '' && !seen.has(call.id)) {
      seen.add(call.id);
      return call;
    }
    let number = (numbered.lastNumber ?? highestNumber(numbered.messages)) + 1;
    while (calls.some(({ id }) => id === `call_${number}`)) number += 1;
    numbered.lastNumber = number;
    return { ...call, id: `call_${number}` };
  });
}

const FEW_CALLS = 16;

/** Few ids are compared one by one, which takes half as long as a set of them. */
function areDistinct(calls: readonly ToolCall[]): boolean {
  if (calls.length > FEW_CALLS) return new Set(calls.map(({ id }) => id)).size === calls.length;
  for (let later = 1; later < calls.length; later += 1)
    for (let before = 0; before < later; before += 1)
      if (calls[before]?.id === calls[later]?.id) return false;
  return true;
}

function highestNumber(history: readonly Message[]): number {
  const ids = history.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
  );
  // Nine digits: longer ones are a provider's own ids, and past 2^53 they could no longer be counted on.
  return ids.reduce((highest, id) => Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0)), 0);
}
