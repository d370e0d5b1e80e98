import type { KeptRun, RunCheckpoint, RunEntry, StoredEnd } from '../../core/contract/run-checkpoint.js';
import {
  NEWEST_STATE_VERSION,
  type RunState,
  type StoredCall,
  type StoredCallRecord,
} from '../../core/contract/run-state.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { canonicalJson, isRecord } from '../../core/kernel/json.js';
import type { OptionRule } from '../../core/kernel/options.js';

type Entry<Type extends RunEntry['type']> = Extract<RunEntry, { readonly type: Type }>;

/** A stored run with all entries since its checkpoint applied. */
export interface FoldedRun extends Omit<RunCheckpoint, 'status' | 'version' | 'open'> {
  readonly open?: RunState['open'] | undefined;
  /** The settled calls of each message since its checkpoint. */
  readonly steps: readonly (readonly StoredCallRecord[])[];
  /** Settled calls by index, since the last count of the spent amounts. */
  readonly uncounted: ReadonlyMap<number, StoredCallRecord>;
  /** How it ended, if it has; `open` then has calls whose outcome is unknown. */
  readonly end?: StoredEnd;
  /** The outcome for its effects by key, if they were compensated. */
  readonly compensated: ReadonlyMap<string, Entry<'compensated'>>;
}

type Growing = { -readonly [Part in keyof FoldedRun]: FoldedRun[Part] } & {
  readonly messages: FoldedRun['messages'][number][];
  readonly toolCalls: StoredCallRecord[];
  readonly steps: (readonly StoredCallRecord[])[];
  readonly uncounted: Map<number, StoredCallRecord>;
  readonly compensated: Map<string, Entry<'compensated'>>;
};

const KEPT_RUN: OptionRule = {
  accepts: (value) =>
    isRecord(value) &&
    isRecord(value.state) &&
    Array.isArray(value.entries) &&
    // A newer version may have another form, and is refused because of its version.
    (Number(value.state.version) > NEWEST_STATE_VERSION ||
      [value.state.messages, value.state.toolCalls].every(Array.isArray)),
  fix: 'the result of `await store.read(runId)`, which is undefined if the store has no such run',
};

/**
 * The current state of a stored run: its checkpoint or its state, with later entries applied. An entry that was
 * written twice, because its first write had seemed to fail, counts once.
 *
 * @throws ToolwrightError `InvalidState` (515) for a run that a newer version of this package stored;
 * InvalidOptionsError (521) for a value that is not a stored run.
 */
export function foldRun(kept: Pick<KeptRun, 'state' | 'entries'>): FoldedRun {
  checkArguments({ of: 'foldRun', given: { run: kept }, rules: { run: KEPT_RUN } });
  const { version, messages, toolCalls, ...others } = kept.state;
  if (version > NEWEST_STATE_VERSION)
    throw new ToolwrightError('InvalidState', `Run '${others.runId}' is stored in version ${version}.`);
  const run: Growing = {
    ...others,
    messages: [...messages],
    toolCalls: [...toolCalls],
    steps: [],
    uncounted: new Map(),
    compensated: new Map(),
  };
  for (const entry of kept.entries) apply(run, entry);
  return run;
}

function apply(run: Growing, entry: RunEntry): void {
  switch (entry.type) {
    case 'step': {
      if (entry.iterations <= run.iterations) return;
      const { type: _, messages, ...step } = entry;
      closeMessage(run);
      run.messages.push(...messages);
      run.uncounted.clear();
      Object.assign(run, step);
      return;
    }
    case 'calls':
      for (const { index, call } of entry.calls) {
        putCall(run, index, () => call);
        if (call.status === 'settled') run.uncounted.set(index, call.record);
      }
      return;
    case 'once':
      putCall(run, entry.index, (call) => {
        if (call.status !== 'begun') return call;
        const { type: _type, index: _index, arguments: args, ...done } = entry;
        const { journal } = call;
        // A value is valid only for its arguments, like a whole journal.
        const isSame = canonicalJson(journal?.arguments) === canonicalJson(args);
        const known = journal !== undefined && isSame ? journal : { arguments: args, answers: [], once: [] };
        const once = [...known.once.filter(({ key }) => key !== done.key), done];
        return { ...call, journal: { ...known, once } };
      });
      return;
    case 'compensated':
      run.compensated.set(entry.idempotencyKey, entry);
      if (!entry.isError) noteCompensation(run, entry);
      return;
    case 'end': {
      if (run.end !== undefined) return;
      const { type: _, messages, ...end } = entry;
      const { iterations, usage, spent } = end;
      closeMessage(run);
      // The last request had no calls, so that no step has counted it.
      if (iterations > run.iterations) Object.assign(run, { iterations, usage, ...(spent && { spent }) });
      run.messages.push(...messages);
      if (run.open?.calls.every((call) => call.status === 'settled' || 'asks' in call)) run.open = undefined;
      run.end = end;
    }
  }
}

/** The calls of the open message are answered, because the next message arrived, or the end. */
function closeMessage(run: Growing): void {
  if (run.open === undefined) return;
  const records = run.open.calls.flatMap((call) => (call.status === 'settled' ? [call.record] : []));
  run.steps.push(records);
  run.toolCalls.push(...records);
}

function putCall(run: Growing, index: number, change: (call: StoredCall) => StoredCall): void {
  if (run.open === undefined) return;
  const calls = run.open.calls.map((call, at) => (at === index ? change(call) : call));
  run.open = { ...run.open, calls };
}

/** Adds to the history that the effect of the call was undone. */
function noteCompensation(
  { messages, toolCalls }: Growing,
  { idempotencyKey, text }: Entry<'compensated'>,
): void {
  const index = toolCalls.findIndex((record) => record.idempotencyKey === idempotencyKey);
  const answers = messages.flatMap(({ role }, at) => (role === 'tool' ? [at] : []));
  // Counted from the end, because earlier turns have answers, too.
  const at = index === -1 ? undefined : answers.at(index - toolCalls.length);
  const message = at === undefined ? undefined : messages[at];
  if (at === undefined || message?.role !== 'tool') return;
  messages[at] = { ...message, content: `${message.content}\n\nThis was undone later: ${text}` };
}
