import type { Usage } from '../../core/contract/llm-provider.js';
import {
  CHECKPOINT_STORE,
  type CheckpointStore,
  type RunSummary,
} from '../../core/contract/run-checkpoint.js';
import type { RunStore, StoredCall, StoredCallRecord } from '../../core/contract/run-state.js';
import { foldRun } from '../../run/loop/fold-run.js';
import { costOf, inUnits, PRICES, priceOf } from '../../run/loop/prices.js';
import type { SeenCall } from './watched-calls.js';
import type { SeenRun } from './watched-runs.js';

/** A run of this process, in the list. */
export function runLine({ runId, status, begin, given, spans, result }: SeenRun) {
  const prompt = given.findLast(({ role }) => role === 'user')?.content;
  const calls = new Set(spans.flatMap((span) => (span.kind === 'call' ? [span.callId] : []))).size;
  const title = typeof prompt === 'string' ? prompt.slice(0, LONGEST_TITLE) : '';
  return { runId, status, begin, place: 'process', title, calls, tokens: result?.usage.totalTokens };
}

const LONGEST_TITLE = 200;

export function storedLine({ runId, status, createdAt }: RunSummary) {
  return { runId, status, begin: createdAt, place: 'store', title: '', calls: 0, tokens: undefined };
}

export function runDetail(seen: SeenRun): unknown {
  const { runId, status, begin, model, owner, given, spans, text, result, run } = seen;
  const { content, usage, iterations, pending, error, providerRetries, output, spent } = result ?? {};
  const messages = result?.messages ?? run.messages;
  return {
    ...{ runId, status, begin, model, iterations, usage, providerRetries, isStored: false },
    ...(spent?.cost === undefined ? estimatedCost(model, usage) : { cost: spent.cost }),
    given: given.length,
    spans: spans.map((span) => shownValue(span)),
    ...shownFields({ text: result === undefined ? text : undefined, owner, messages }),
    ...shownFields({ content, output, pending, error }),
  };
}

export function callLine({ key, callId, tool, at, runId, isTrial, invocation }: SeenCall) {
  const { record } = invocation ?? {};
  const status = record?.status ?? 'running';
  return { key, callId, tool, at, runId, isTrial, status, ms: record?.durationMs };
}

/**
 * In dollars, by the prices that come with the package, for a run without a budget with prices of its own. Empty for a
 * model whose price is not known.
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
  const { messages, toolCalls, open, iterations, usage, owner, model, end } = foldRun(stored);
  const pending = 'pending' in state ? state.pending : [];
  return {
    ...{ runId, status: end?.status ?? status, begin: createdAt, changedAt, model, iterations, usage },
    isHeld: leaseEnd !== undefined && leaseEnd > Date.now(),
    ...{ content: end?.content, error: end?.error, isStored: true },
    ...estimatedCost(model, usage),
    ...shownFields({ owner, messages, pending }),
    spans: [...toolCalls.map(settledSpan), ...(open?.calls ?? []).map(openSpan)],
  };
}

/** The store has recorded how long calls took, but not when they began. */
function settledSpan({ name, durationMs: ms, status, ...record }: StoredCallRecord) {
  return { kind: 'call', label: name, ms, status, detail: shownValue(record) };
}

function openSpan(call: StoredCall) {
  if (call.status === 'settled') return settledSpan(call.record);
  const { name, status, arguments: args } = call;
  const kind = status === 'waiting' ? 'wait' : 'call';
  return { kind, label: name, status, detail: shownValue({ arguments: args }) };
}

/** Whether the runs of a store can be listed, those of other processes too. */
export function listsRuns(store: RunStore | undefined): store is CheckpointStore {
  return CHECKPOINT_STORE.accepts(store);
}

/** Characters of a text that the page is sent at most. */
const LONGEST_TEXT = 20_000;
const MOST_MEMBERS = 1_000;
const DEEPEST = 40;

/**
 * A value as the page is sent it: plain JSON, with what is too long cut off and told. What JSON has no form for is
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
    return Array.isArray(value) ? shownList(value, depth) : shownRecord(value, depth);
  } catch (error) {
    return `[cannot be read: ${String(error)}]`;
  }
}

/** The fields that there are, each as the page is sent it. */
export function shownFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shownValue(value)]));
}

function shownText(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${text.slice(0, LONGEST_TEXT)}\n[cut: ${text.length} characters in all]`;
}

function shownList(list: readonly unknown[], depth: number): readonly unknown[] {
  const members = list.slice(0, MOST_MEMBERS).map((member) => shownValue(member, depth + 1));
  return list.length > MOST_MEMBERS ? [...members, `[cut: ${list.length} members in all]`] : members;
}

function shownRecord(record: object, depth: number): unknown {
  const own = 'toJSON' in record && typeof record.toJSON === 'function' ? record.toJSON() : record;
  if (typeof own !== 'object' || own === null) return shownValue(own, depth + 1);
  const entries = Object.entries(own);
  const shown = entries
    .slice(0, MOST_MEMBERS)
    .filter(([, member]) => member !== undefined && typeof member !== 'function')
    .map(([key, member]) => [shownText(key), shownValue(member, depth + 1)] as const);
  const more =
    entries.length > MOST_MEMBERS ? [['…', `[cut: ${entries.length} members in all]`] as const] : [];
  // Own properties, whatever they are called.
  return Object.fromEntries([...shown, ...more]);
}
