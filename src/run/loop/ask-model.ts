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
} from '../../core/contract/llm-provider.js';
import type { RequestTrace } from '../../core/contract/telemetry.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isPlainObject, isRecord, plainJson } from '../../core/kernel/json.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { scanText } from '../text/call-scanner.js';
import { parseToolRequest } from '../text/tool-call-parser.js';

/** A reply, or why there is none. */
export type Reply =
  /** `cost`: only with a budget and a trace. */
  | { readonly ok: true; readonly response: LLMResponse; readonly cost?: number }
  /** `streamed` is the text that was streamed by then. */
  | { readonly ok: false; readonly reason: 'aborted'; readonly streamed?: string }
  | {
      readonly ok: false;
      readonly reason: 'failed';
      readonly error: ToolwrightError;
      /** A part of it was streamed by then. */
      readonly isTold?: boolean;
      /** Another try would be no use, nor another provider. */
      readonly isFinal?: boolean;
    };

type ReplyPart = Exclude<LLMStreamPart, { readonly type: 'response' }>;

/** Receives a reply while it is written; the provider waits for what it returns. */
export type PartListener = (part: ReplyPart) => void | Promise<void>;

export type Failure = Extract<Reply, { readonly reason: 'failed' }>;

interface AskListeners {
  readonly onPart?: PartListener | undefined;
  /** Decides what becomes of a failure; default: it is the reply. */
  readonly onFailure?: ((failure: Failure) => Reply | Promise<Reply>) | undefined;
}

/** A request to a provider, and who is informed about the reply. */
export interface ModelQuestion extends AskListeners {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  readonly trace?: RequestTrace;
}

const NOBODY: AskListeners = {};

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
  let streamed = '';
  let isTold = false;
  try {
    const asked =
      onPart === undefined
        ? provider.chat(request)
        : streamReply(provider, request, (part) => {
            isTold = true;
            if (part.type === 'text-delta') streamed += part.text;
            return onPart(part);
          });
    const response = signal === undefined ? await asked : await unlessAborted(asked, signal);
    return { ok: true, response: normalizeResponse(response) };
  } catch (cause) {
    if (signal?.aborted) return { ok: false, reason: 'aborted', streamed };
    const message = `LLM call failed: ${errorMessage(cause)}`;
    const error = new ToolwrightError('ProviderFailed', message, { cause });
    const failure = { ok: false, reason: 'failed', error, isTold } as const;
    return onFailure === undefined ? failure : onFailure(failure);
  }
}

/** A provider without `stream` gives its text in one piece. */
async function streamReply(
  provider: LLMProvider,
  request: LLMRequest,
  onPart: PartListener,
): Promise<LLMResponse> {
  if (provider.stream === undefined) {
    const response = await provider.chat(request);
    await tellWhole(response, onPart);
    return response;
  }
  const begun = new Set<string>();
  for await (const part of provider.stream(request)) {
    if (part.type === 'response') return part.response;
    // After an abort the run has ended; leaving the iteration lets the provider close its connection.
    if (request.signal?.aborted) break;
    const taken = isUsable(part, begun) ? onPart(part) : undefined;
    if (taken !== undefined) await taken;
  }
  throw new Error('the stream ended without a response');
}

/** Streams a reply that came in one piece, without its calls. */
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

/** Empty pieces are left out, and calls that cannot be told apart; `begun` has the ids of those that can. */
function isUsable(part: ReplyPart, begun: Set<string>): boolean {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return isFilled(part.text);
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

/** Providers are other people's code: missing parts get their plain meaning. */
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

/** Counts are whole and not negative, whatever a server reports: they are summed, and stored with suspended runs. */
function normalizeUsage(usage: Partial<Usage>): Usage {
  const counts: Record<string, unknown> = {
    inputTokens: normalizeCount(usage.inputTokens),
    outputTokens: normalizeCount(usage.outputTokens),
    totalTokens: normalizeCount(usage.totalTokens),
  };
  if (hasUsageParts(usage))
    for (const part of USAGE_PARTS)
      if (Number.isFinite(usage[part])) counts[part] = normalizeCount(usage[part]);
  if (usage.raw !== undefined) counts.raw = usage.raw;
  return counts as unknown as Usage;
}

/** Whether it has counts that only some providers report. By name: looking by a list of keys costs more than adding. */
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
  return (content, { tools }) => {
    const request = parseToolRequest(content);
    if (request !== undefined) return { toolCalls: [request] };
    if (detector === 'tool_request') return undefined;
    const { calls, textBefore } = scanText(content, tools, { unknown: 'call' });
    return { toolCalls: calls, content: textBefore };
  };
}

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
  return calls.every(({ id }, index) => calls.findIndex((other) => other.id === id) === index);
}

function highestNumber(history: readonly Message[]): number {
  let highest = 0;
  for (const message of history)
    if (message.role === 'assistant')
      // Nine digits: longer ones are a provider's own ids, and past 2^53 they could no longer be counted on.
      for (const { id } of message.tool_calls ?? [])
        highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  return highest;
}
