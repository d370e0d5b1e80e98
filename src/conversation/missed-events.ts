import type { JsonObject } from '../contract/json-schema.js';
import type { KeptRun } from '../contract/run-checkpoint.js';
import type { RunState, StoredCall, StoredCallRecord } from '../contract/run-state.js';
import type { LoopEvent } from '../loop/events.js';
import { openWaits, restoredRecord } from '../loop/suspend.js';
import { eventJson, type KeptEvent } from './event-json.js';

/**
 * The events that readers of a turn have missed: what its run had stored and its process, which crashed, had not written
 * to the log. A process writes them in order, so that only the last can be missing. `told`: the events of the turn, as
 * far as the log still has them.
 */
export function missedEvents(told: readonly JsonObject[], run: KeptRun): readonly KeptEvent[] {
  const steps = stepsOf(run);
  const replay = new EventReplay();
  for (const event of told) replay.apply(event);
  const isWhole = told[0]?.type === 'turn-start';
  if (isWhole) steps.unshift(...stepsBefore(run.state, replay.unreported(run.state.toolCalls, steps[0])));
  // Events that a store has removed were reported long ago.
  else replay.iteration ||= steps[0]?.iteration ?? 0;
  for (const step of steps) {
    const isNew = step.iteration > replay.iteration;
    if (isNew) replay.emit({ type: 'step-start', iteration: step.iteration });
    if (isNew || isWhole) replay.emitText(step);
    for (const call of step.calls) {
      const id = call.status === 'settled' ? call.record.id : call.id;
      if (!isNew && !isWhole && !replay.begun.has(id)) continue;
      if (call.status === 'settled' && !replay.hasEnd(step, call.record)) replay.emitEnd(call.record);
      if (call.status === 'waiting' && run.status !== 'ended') replay.emitWaits(run, step, call);
    }
  }
  return replay.missed;
}

/** A reply that was stored, and its calls as they stand. */
interface StoredStep {
  readonly iteration: number;
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: StoredCall[];
}

/** The steps that a run has stored since it began, or last went on. */
function stepsOf({ state, entries }: KeptRun): StoredStep[] {
  const steps = state.open === undefined ? [] : [stepOf(state.iterations, state.open)];
  for (const entry of entries) {
    const last = steps.at(-1);
    const lastIteration = last?.iteration ?? state.iterations;
    if (entry.type === 'calls') for (const { index, call } of entry.calls) last?.calls.splice(index, 1, call);
    // A step that was written twice counts once.
    if (entry.type === 'step' && entry.iterations > lastIteration)
      steps.push(stepOf(entry.iterations, entry.open));
    if (entry.type !== 'end' || entry.iterations <= lastIteration) continue;
    const said = entry.messages.at(-1);
    if (said?.role === 'assistant' && said.tool_calls === undefined)
      steps.push(stepOf(entry.iterations, { ...said, content: said.content ?? '', calls: [] }));
  }
  return steps;
}

/**
 * The steps before those that have a call whose end was not reported. An empty reply is in no history: what came before
 * it may be reported as part of the step after it.
 */
function stepsBefore(
  { messages, toolCalls, iterations, open }: KeptRun['state'],
  unreported: ReadonlySet<StoredCallRecord>,
): readonly StoredStep[] {
  const records = [...toolCalls];
  const steps: StoredStep[] = [];
  let iteration = open === undefined ? iterations + 1 : iterations;
  for (const message of messages.toReversed()) {
    if (records.length === 0) break;
    if (message.role !== 'assistant') continue;
    const { content, reasoning, tool_calls: { length } = [] } = message;
    iteration -= 1;
    const calls = records
      .splice(-length, length)
      .flatMap((record) => (unreported.has(record) ? [{ status: 'settled' as const, record }] : []));
    if (calls.length > 0) steps.unshift({ iteration, content: content ?? '', reasoning, calls });
  }
  return steps;
}

function stepOf(iteration: number, { content, reasoning, calls }: RunState['open']): StoredStep {
  return { iteration, content, reasoning, calls: [...calls] };
}

/** Which events of a turn its readers have received, and which are emitted now. */
class EventReplay {
  /** Of the step at which they are. */
  iteration = 0;
  /** Ids of its calls. */
  readonly begun = new Set<unknown>();
  readonly missed: KeptEvent[] = [];
  readonly #text = { 'reasoning-delta': '', 'text-delta': '' };
  readonly #ended: { readonly iteration: number; readonly id: unknown }[] = [];
  /** Ids of what calls wait for. */
  readonly #asked = new Set<unknown>();

  apply(event: JsonObject): void {
    switch (event.type) {
      case 'run-start':
        // A step without calls is forgotten with the reply that was not stored.
        if (this.begun.size === 0) this.#forgetStep();
        return;
      case 'step-start':
        this.iteration = Number(event.iteration);
        this.#forgetStep();
        return;
      case 'request-retry':
        this.#forgetStep();
        return;
      case 'reasoning-delta':
      case 'text-delta':
        this.#text[event.type] += event.text;
        return;
      case 'call-suspended':
        for (const { id } of event.pending as readonly JsonObject[]) this.#asked.add(id);
        break;
      case 'call-end':
        this.#ended.push({ iteration: this.iteration, id: event.callId });
        break;
      case 'call-start':
        break;
      default:
        return;
    }
    this.begun.add(event.callId);
  }

  emit(event: LoopEvent): void {
    const stored = eventJson(event);
    this.apply(stored);
    this.missed.push(stored);
  }

  /** The rest of the text of a step. */
  emitText({ iteration, content, reasoning = '' }: StoredStep): void {
    // Calls come after the text of their step.
    if (iteration !== this.iteration || this.begun.size > 0) return;
    const whole = { 'reasoning-delta': reasoning, 'text-delta': content };
    for (const type of ['reasoning-delta', 'text-delta'] as const) {
      const said = this.#text[type];
      const text = whole[type].startsWith(said) ? whole[type].slice(said.length) : '';
      if (text !== '') this.emit({ type, text });
    }
  }

  emitEnd(stored: StoredCallRecord): void {
    const record = restoredRecord(stored);
    const { id: callId, name: tool, rawArguments, result } = record;
    if (!this.begun.has(callId)) this.emit({ type: 'call-start', callId, tool, arguments: rawArguments });
    this.emit({ type: 'call-end', callId, tool, result, record });
  }

  emitWaits(
    { runId }: Pick<KeptRun, 'runId'>,
    { iteration }: StoredStep,
    call: Extract<StoredCall, { readonly status: 'waiting' }>,
  ): void {
    const open = { content: '', calls: [call] };
    const pending = openWaits({ runId, iterations: iteration, open }).map((wait) => wait.pending);
    if (pending.every(({ id }) => this.#asked.has(id))) return;
    const { id: callId, name: tool, arguments: args } = call;
    if (!this.begun.has(callId)) this.emit({ type: 'call-start', callId, tool, arguments: args });
    this.emit({ type: 'call-suspended', callId, tool, pending });
  }

  hasEnd({ iteration }: StoredStep, { id }: StoredCallRecord): boolean {
    return this.#ended.some((ended) => ended.id === id && ended.iteration === iteration);
  }

  /** Of calls before a step, in the order of their steps, those whose ends were not reported: models use ids again. */
  unreported(
    records: readonly StoredCallRecord[],
    before: StoredStep | undefined,
  ): ReadonlySet<StoredCallRecord> {
    const reported = this.#ended.filter(({ iteration }) => iteration < (before?.iteration ?? Infinity));
    return new Set(
      records.filter(({ id }) => {
        const index = reported.findIndex((ended) => ended.id === id);
        if (index >= 0) reported.splice(index, 1);
        return index < 0;
      }),
    );
  }

  #forgetStep(): void {
    this.#text['reasoning-delta'] = '';
    this.#text['text-delta'] = '';
    this.begun.clear();
  }
}
