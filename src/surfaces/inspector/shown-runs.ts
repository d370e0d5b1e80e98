import type { CallRecord } from '../../core/contract/call.js';
import type { Message, Usage } from '../../core/contract/llm-provider.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type RunSummary,
} from '../../core/contract/run-checkpoint.js';
import type { RunStore, StoredCall, StoredCallRecord } from '../../core/contract/run-state.js';
import { type Fields, mapFields } from '../../core/kernel/json.js';
import { foldRun } from '../../run/loop/fold-run.js';
import { costOf, inUnits, PRICES, priceOf } from '../../run/loop/prices.js';
import { lastPrompt, recordedReplies } from './recording.js';
import type { SeenCall, SeenRun, WatchedCalls } from './watched.js';

/** A run of this process, in the list. */
export function runLine({ runId, status, begin, model, given, spans, result }: SeenRun) {
  const calls = new Set(spans.flatMap((span) => (span.kind === 'call' ? [span.callId] : []))).size;
  const end = status === 'running' ? undefined : spans.at(-1)?.end;
  const counts = { calls, tokens: result?.usage.totalTokens, ms: end && end - begin };
  return { runId, status, begin, place: 'process', model, title: titleOf(given), ...counts };
}

export function storedLine({ runId, status, createdAt }: RunSummary) {
  return { runId, status, begin: createdAt, place: 'store', title: '', calls: 0 };
}

const LONGEST_TITLE = 200;

function titleOf(messages: readonly Message[]): string {
  return lastPrompt(messages)?.slice(0, LONGEST_TITLE) ?? '';
}

export function runDetail(seen: SeenRun, calls: WatchedCalls): unknown {
  const { runId, status, begin, model, owner, given, spans, result, run } = seen;
  const { content, usage, iterations, pending, error, providerRetries, output, spent } = result ?? {};
  const messages = result?.messages ?? run.messages;
  const made = recordedReplies(messages.slice(given.length)).map((reply) => reply.content);
  // Texts by request, for runs that are not streamed.
  const replies = [...made, result?.state?.open?.content];
  const shownSpans = spans.map((span) => {
    if (span.kind === 'request') {
      const text = span.text || (replies[span.iteration - 1] ?? '');
      return shownValue({ ...span, text, ...estimatedCost(model, span.usage) });
    }
    if (span.kind === 'wait') return shownValue(span);
    const { record, ...call } = span;
    const key = calls.find(span.callId, runId)?.key;
    return { ...shownFields({ ...call, key }), ...(record && shownRecordOf(record)) };
  });
  return {
    runId,
    status,
    begin,
    model,
    iterations,
    usage,
    providerRetries,
    isStored: false,
    ...(spent?.cost === undefined ? estimatedCost(model, usage) : { cost: spent.cost }),
    given: given.length,
    title: titleOf(given),
    spans: shownSpans,
    ...shownFields({ owner, messages, content, output, pending, error }),
  };
}

/** The result of a call. */
export function shownRecordOf({ status, durationMs: ms, ...record }: CallRecord | StoredCallRecord): object {
  const { arguments: checked, repairs, removed, attempts, edited, answeredBy } = record;
  const { forLLM, forUser, details } = record.result;
  const error = 'error' in record.result ? record.result.error : undefined;
  return {
    status,
    ms,
    attempts,
    ...shownFields({ checked, repairs, removed, edited, answeredBy, forLLM, forUser, details, error }),
  };
}

export function callLine({ key, callId, tool, at, runId, isTrial, invocation }: SeenCall) {
  const { record } = invocation ?? {};
  const status = record?.status ?? 'running';
  return { key, callId, tool, at, runId, isTrial, status, ms: record?.durationMs };
}

/**
 * The cost in dollars by list prices, for runs without prices of their own. Empty for models without a known
 * price.
 */
function estimatedCost(model: string | undefined, usage: Usage | undefined): object {
  if (model === undefined || !usage?.totalTokens) return {};
  try {
    return { cost: inUnits(costOf(priceOf(PRICES, model), usage)), isEstimate: true };
  } catch {
    return {};
  }
}

export async function storedRun(store: RunStore | undefined, runId: string): Promise<unknown> {
  const stored = listsRuns(store) ? await store.read(runId) : undefined;
  if (stored === undefined) return undefined;
  const { status, createdAt, changedAt, leaseEnd, state } = stored;
  const run = foldRun(stored);
  const { messages, iterations, usage, owner, model, end } = run;
  const pending = 'pending' in state ? state.pending : [];
  // The requests, by the assistant messages, each with its calls; earlier messages are from the history before the run.
  const all = messages.flatMap((message) => (message.role === 'assistant' ? [message] : []));
  const ended = iterations - (run.open === undefined ? 0 : 1);
  const replies = all.slice(Math.max(0, all.length - ended));
  const left = [...run.toolCalls];
  const request = (content: unknown, index: number) => ({
    kind: 'request',
    iteration: index + 1,
    text: typeof content === 'string' ? shownText(content) : '',
  });
  const spans = replies.flatMap(({ content, tool_calls: made = [] }, index): readonly unknown[] => [
    request(content, index),
    ...left.splice(0, made.length).map(settledSpan),
  ]);
  if (run.open !== undefined)
    spans.push(request(run.open.content, replies.length), ...run.open.calls.map(openSpan));
  spans.push(...left.map(settledSpan));
  return {
    runId,
    status: end?.status ?? status,
    begin: createdAt,
    changedAt,
    model,
    iterations,
    usage,
    isHeld: leaseEnd !== undefined && leaseEnd > Date.now(),
    content: end?.content,
    error: end?.error,
    isStored: true,
    title: titleOf(messages),
    ...estimatedCost(model, usage),
    ...shownFields({ owner, messages, pending }),
    spans,
  };
}

/** Stored calls have durations, but no times. */
function settledSpan(record: StoredCallRecord) {
  const { id: callId, name: tool, rawArguments } = record;
  return {
    kind: 'call',
    callId,
    tool,
    ...shownFields({ arguments: rawArguments }),
    ...shownRecordOf(record),
  };
}

function openSpan(call: StoredCall) {
  if (call.status === 'settled') return settledSpan(call.record);
  const { id: callId, name: tool, status, arguments: args } = call;
  const kind = status === 'waiting' ? 'wait' : 'call';
  return { kind, callId, tool, status, ...shownFields({ arguments: args }) };
}

/** Whether the store can list its runs. */
export function listsRuns(store: RunStore | undefined): store is CheckpointStore {
  return CHECKPOINT_STORE.accepts(store);
}

/** The longest text that is sent to the page. */
const LONGEST_TEXT = 20_000;
const MOST_MEMBERS = 1_000;
const DEEPEST = 40;

/**
 * A value as plain JSON for the page. Long parts are cut, with a note; values that JSON cannot represent are
 * named.
 */
export function shownValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return shownText(value);
  if (value === undefined || value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value !== 'object') return `[${typeof value}] ${shownText(String(value))}`;
  if (depth > DEEPEST) return '[deeper than can be shown]';
  if (value instanceof Error) return { name: value.name, message: shownText(value.message) };
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  try {
    if (Array.isArray(value)) {
      const members = value.slice(0, MOST_MEMBERS).map((member) => shownValue(member, depth + 1));
      return value.length > MOST_MEMBERS ? [...members, `[cut: ${value.length} members in all]`] : members;
    }
    const own = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
    if (typeof own !== 'object' || own === null) return shownValue(own, depth + 1);
    const entries = Object.entries(own);
    const shown = entries
      .slice(0, MOST_MEMBERS)
      .filter(([, member]) => member !== undefined && typeof member !== 'function')
      .map(([key, member]) => [shownText(key), shownValue(member, depth + 1)] as const);
    const more =
      entries.length > MOST_MEMBERS ? [['…', `[cut: ${entries.length} members in all]`] as const] : [];
    // Also correct for `__proto__`.
    return Object.fromEntries([...shown, ...more]);
  } catch (error) {
    return `[cannot be read: ${String(error)}]`;
  }
}

/** Applies `shownValue` to each field. */
export function shownFields(fields: Fields): Fields {
  return mapFields(fields, (value) => shownValue(value));
}

function shownText(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${text.slice(0, LONGEST_TEXT)}\n[cut: ${text.length} characters in all]`;
}
