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
import { parseToolRequest, scanText } from '../text/text-tool-calls.js';

/** A reply, or why there is none. */
export type Reply =
  /** `cost`: only with a budget and a trace. */
  | { readonly ok: true; readonly response: LLMResponse; readonly cost?: number }
  /** `streamed` is the text that was streamed so far. */
  | { readonly ok: false; readonly reason: 'aborted'; readonly streamed?: string }
  | {
      readonly ok: false;
      readonly reason: 'failed';
      readonly error: ToolwrightError;
      /** A part of it was already streamed. */
      readonly hasStreamed?: boolean;
      /** Neither a retry nor another provider would help. */
      readonly isFinal?: boolean;
      /** The request was not made. */
      readonly isUnsent?: true;
    };

type ReplyPart = Exclude<LLMStreamPart, { readonly type: 'response' }>;

/** Receives a reply while it is written; the provider waits for the returned promise. */
export type PartListener = (part: ReplyPart) => void | Promise<void>;

export type Failure = Extract<Reply, { readonly reason: 'failed' }>;

/** A request to a provider, and the listener of its reply. */
export interface ModelQuestion {
  readonly provider: LLMProvider;
  readonly request: LLMRequest;
  readonly onPart?: PartListener | undefined;
  readonly trace?: RequestTrace;
}

/**
 * Sends one request to the provider; with a listener, its reply is streamed. An abort does not wait for a provider
 * that ignores its signal.
 */
export async function askModel({ provider, request, onPart }: ModelQuestion): Promise<Reply> {
  const { signal } = request;
  if (signal?.aborted) return { ok: false, reason: 'aborted' };
  let streamed = '';
  let hasStreamed = false;
  const counted: PartListener | undefined =
    onPart &&
    ((part) => {
      hasStreamed = true;
      if (part.type === 'text-delta') streamed += part.text;
      return onPart(part);
    });
  try {
    const asked = counted ? streamReply(provider, request, counted) : provider.chat(request);
    const response = signal === undefined ? await asked : await unlessAborted(asked, signal);
    return { ok: true, response: normalizeResponse(response) };
  } catch (cause) {
    if (signal?.aborted) return { ok: false, reason: 'aborted', streamed };
    return { ...providerFailure(cause), hasStreamed };
  }
}

/** The failure of a method of a provider. */
export function providerFailure(cause: unknown): Failure {
  const message = `LLM call failed: ${errorMessage(cause)}`;
  const error = new ToolwrightError('ProviderFailed', message, { cause });
  return { ok: false, reason: 'failed', error };
}

/** Milliseconds after which a stream pauses for other work of the process: its parts may all have arrived at once. */
const BUSY_MS = 1;

/** A provider without `stream` returns its text as one piece. */
async function streamReply(
  provider: LLMProvider,
  request: LLMRequest,
  onPart: PartListener,
): Promise<LLMResponse> {
  if (provider.stream === undefined) {
    const response = await provider.chat(request);
    await streamWhole(response, onPart);
    return response;
  }
  const begun = new Set<string>();
  let since = performance.now();
  for await (const part of provider.stream(request)) {
    if (part.type === 'response') return part.response;
    // After an abort the run has ended; leaving the iteration lets the provider close its connection.
    if (request.signal?.aborted) break;
    const taken = isUsable(part, begun) ? onPart(part) : undefined;
    if (taken !== undefined) await taken;
    if (performance.now() - since < BUSY_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    since = performance.now();
  }
  throw new Error('the stream ended without a response');
}

/** Streams a reply that arrived as one piece, without its calls. */
export async function streamWhole(
  response: Partial<LLMResponse> | null | undefined,
  onPart: PartListener,
): Promise<void> {
  const { reasoning, content, attachments } = response ?? {};
  if (isFilled(reasoning)) await onPart({ type: 'reasoning-delta', text: reasoning });
  if (isFilled(content)) await onPart({ type: 'text-delta', text: content });
  for (const attachment of normalizeAttachments(attachments))
    await onPart({ type: 'attachment', attachment });
}

/** Drops empty pieces, and calls that cannot be distinguished; `begun` has the ids of the others. */
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

/** Providers are third-party code: missing parts get defaults. */
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
  // Most replies have no other parts, and spreading them costs more than everything else.
  const { origin, providerItems, attachments: given } = response;
  const hasMore = rawFinishReason !== undefined || reasoning !== undefined || providerItems !== undefined;
  if (!hasMore && given === undefined && origin === undefined) return plain;
  const attachments = normalizeAttachments(given);
  const { id, model }: ReplyOrigin = isRecord(origin) ? origin : {};
  return {
    ...plain,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(isFilled(rawFinishReason) ? { rawFinishReason } : {}),
    ...(isFilled(reasoning) ? { reasoning } : {}),
    ...normalizeItems(providerItems),
    ...(isRecord(origin)
      ? { origin: { ...(isFilled(id) ? { id } : {}), ...(isFilled(model) ? { model } : {}) } }
      : {}),
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

/** A copy as JSON, so that later changes by the provider do not affect the data to send back. */
function normalizeItems(items: unknown): { readonly providerItems?: ProviderItems } {
  if (items === undefined || items === null) return {};
  const kept = plainJson(items);
  return isRecord(kept) && Object.keys(kept).length > 0 ? { providerItems: kept } : {};
}

/** Counts become whole and not negative, because they are summed and stored with suspended runs. */
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

/**
 * Whether it has counts that only some providers report. Checked by name, because a loop costs more than the
 * addition.
 */
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

/** A call in the form that the loop requires, from a provider or a detector. */
function normalizeCall(call: Partial<ToolCall> | null | undefined): ToolCall {
  const { id, name, arguments: args, providerItems } = call ?? {};
  const normalized = {
    id: typeof id === 'string' ? id : '',
    name: String(name ?? ''),
    arguments: normalizeArguments(args),
  };
  return providerItems === undefined ? normalized : { ...normalized, ...normalizeItems(providerItems) };
}

/** Arguments are text or plain JSON; the tool's schema decides about the JSON form of a `Date` or a `Map`. */
function normalizeArguments(args: unknown): ToolCall['arguments'] {
  if (args === undefined || args === null) return {};
  const isPlain =
    typeof args === 'object'
      ? Array.isArray(args) || (isPlainObject(args) && !('toJSON' in args))
      : typeof args !== 'symbol' && typeof args !== 'function';
  return (isPlain ? args : (plainJson(args) ?? String(args))) as ToolCall['arguments'];
}

/** Calls that were found in a text; the loop numbers calls without an id. */
export interface DetectedCalls {
  readonly toolCalls: readonly (Omit<ToolCall, 'id'> & { readonly id?: string })[];
  /** The text that remains as the message's content; default: none. */
  readonly content?: string;
}

/** Finds calls in the text of a reply without calls; `undefined` if there are none. */
export type CallDetector = (
  content: string,
  offered: { readonly tools: ToolRegistry },
) => DetectedCalls | undefined;

/**
 * Where the loop looks for calls in addition to those of the reply. `native`: nowhere. `tool_request`: in a text that
 * is one strict request. `scan`: in such a text, and anywhere in other texts: for registered names, and between call
 * marks for other names too, which are then reported to the model.
 */
export type Detector = 'native' | 'tool_request' | 'scan' | CallDetector;

/**
 * Adds the calls in the text of a reply. If the reply has its own calls, its text is only text. If a detector throws,
 * the reply cannot be used.
 */
export function detectCalls(
  reply: Reply,
  { detector, tools }: { readonly detector: Detector; readonly tools: ToolRegistry },
): Reply {
  if (detector === 'native' || !reply.ok || reply.response.toolCalls.length > 0) return reply;
  const { response } = reply;
  const detect: CallDetector = (text, offered) => {
    if (typeof detector === 'function') return detector(text, offered);
    const request = parseToolRequest(text);
    if (request !== undefined) return { toolCalls: [request] };
    if (detector === 'tool_request') return undefined;
    const { calls, textBefore } = scanText(text, tools, { unknown: 'call' });
    return { toolCalls: calls, content: textBefore };
  };
  try {
    const { toolCalls = [], content = '' } = detect(response.content, { tools }) ?? {};
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

const FEW_CALLS = 16;

/** A history, and the last number that a call of it received. */
interface NumberedCalls {
  readonly messages: readonly Message[];
  lastNumber?: number | undefined;
}

/**
 * Gives each call of a reply a unique id. The provider's ids stay; a call without an id, or with a repeated id in the
 * same reply, gets `call_1`, `call_2`, …, continuing from the history.
 */
export function numberCalls(calls: readonly ToolCall[], numbered: NumberedCalls): readonly ToolCall[] {
  // A missing id is an empty string here.
  const isNumbered = (call: ToolCall, index: number): boolean =>
    call.id !== '' && (index === 0 || calls.findIndex(({ id }) => id === call.id) === index);
  // Comparing few ids takes half as long as creating a set.
  if (calls.length <= FEW_CALLS && calls.every(isNumbered)) return calls;
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

function highestNumber(history: readonly Message[]): number {
  let highest = 0;
  for (const message of history)
    if (message.role === 'assistant')
      // Nine digits: longer ones are a provider's own ids, and beyond 2^53 counting is not exact.
      for (const { id } of message.tool_calls ?? [])
        highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0));
  return highest;
}
