import { CHECKPOINT_STORE, type CheckpointStore, type RunPage } from '../contract/run-checkpoint.js';
import type { RunStore, StoredCall } from '../contract/run-state.js';
import { foldRun } from '../loop/fold-run.js';
import { shownValue } from './shown-value.js';

/** A bar of a stored run: what a store keeps tells how long calls took, and not when. */
interface StoredSpan {
  readonly kind: 'request' | 'call' | 'wait';
  readonly label: string;
  readonly ms?: number;
  readonly status: string;
  readonly detail: unknown;
}

/** The page of a store's runs, the latest change first; nothing of a store that lists none. */
export async function storedRuns(store: RunStore | undefined, after?: string): Promise<RunPage> {
  if (!lists(store)) return { runs: [] };
  return store.list({ limit: 50, ...(after === undefined ? {} : { after }) });
}

/** A run of the store, as it stands. */
export async function storedRun(store: RunStore | undefined, runId: string): Promise<unknown> {
  const kept = lists(store) ? await store.read(runId) : undefined;
  if (kept === undefined) return undefined;
  const { status, createdAt, changedAt, leaseEnd, state } = kept;
  const { messages, toolCalls, open, iterations, usage, owner, model, end } = foldRun(kept);
  const pending = 'pending' in state ? state.pending : [];
  return {
    ...{ runId, status: end?.status ?? status, begin: createdAt, changedAt, model, iterations, usage },
    isHeld: leaseEnd !== undefined && leaseEnd > Date.now(),
    ...{ content: end?.content, error: end?.error, isStored: true },
    owner: shownValue(owner),
    messages: shownValue(messages),
    pending: shownValue(pending),
    spans: [
      ...toolCalls.map(({ name, durationMs, status: ended, ...record }) => ({
        ...{ kind: 'call' as const, label: name, ms: durationMs, status: ended, detail: shownValue(record) },
      })),
      ...(open?.calls ?? []).map(openSpan),
    ] satisfies readonly StoredSpan[],
  };
}

function openSpan(call: StoredCall): StoredSpan {
  if (call.status === 'settled') {
    const { name, durationMs, status, ...record } = call.record;
    return { kind: 'call', label: name, ms: durationMs, status, detail: shownValue(record) };
  }
  const { name, status, arguments: args } = call;
  const kind = status === 'waiting' ? 'wait' : 'call';
  return { kind, label: name, status, detail: shownValue({ arguments: args }) };
}

function lists(store: RunStore | undefined): store is CheckpointStore {
  return CHECKPOINT_STORE.accepts(store);
}
