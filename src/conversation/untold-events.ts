import type { JsonObject } from '../contract/json-schema.js';
import type { KeptRun } from '../contract/run-checkpoint.js';
import type { RunState, StoredCall, StoredCallRecord } from '../contract/run-state.js';
import type { LoopEvent } from '../loop/events.js';
import { openWaits, restoredRecord } from '../loop/suspend.js';
import { eventJson, type KeptEvent } from './event-json.js';

/**
 * What the run of a turn has kept and its readers were not told, because its process died in between: what its replies
 * say, their calls, what came of these and what they wait for. A process tells everything in order, so that only the
 * last of what it did can be missing. `told`: the events of the turn, as far as the log still has them.
 */
export function untoldEvents(told: readonly JsonObject[], run: KeptRun): readonly KeptEvent[] {
  const steps = stepsOf(run);
  const readers = new Readers();
  for (const event of told) readers.hear(event);
  const isWhole = told[0]?.type === 'turn-start';
  if (isWhole) steps.unshift(...stepsBefore(run.state, readers.unheard(run.state.toolCalls, steps[0])));
  // What a store has removed was told long ago.
  else readers.iteration ||= steps[0]?.iteration ?? 0;
  for (const step of steps) {
    const isNew = step.iteration > readers.iteration;
    if (isNew) readers.tell({ type: 'step-start', iteration: step.iteration });
    if (isNew || isWhole) readers.tellText(step);
    for (const call of step.calls) {
      if (!isNew && !isWhole && !readers.begun.has(idOf(call))) continue;
      if (call.status === 'settled' && !readers.hasEnd(step, call.record)) readers.tellEnd(call.record);
      if (call.status === 'waiting' && run.status !== 'ended') readers.tellWaits(run, step, call);
    }
  }
  return readers.untold;
}

/** A reply that was kept, and its calls as they stand. */
interface KeptStep {
  readonly iteration: number;
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: StoredCall[];
}

/** The steps that a run has kept since it began, or last went on. */
function stepsOf({ state, entries }: KeptRun): KeptStep[] {
  const steps = state.open === undefined ? [] : [stepOf(state.iterations, state.open)];
  for (const entry of entries) {
    const last = steps.at(-1);
    const lastIteration = last?.iteration ?? state.iterations;
    if (entry.type === 'calls') for (const { index, call } of entry.calls) last?.calls.splice(index, 1, call);
    // One that was written twice counts once.
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
 * The steps before those, as far as they have a call whose end nobody heard. An empty reply is in no history: what came
 * before one may be told as of the step behind it.
 */
function stepsBefore(
  { messages, toolCalls, iterations, open }: KeptRun['state'],
  unheard: ReadonlySet<StoredCallRecord>,
): readonly KeptStep[] {
  const records = [...toolCalls];
  const steps: KeptStep[] = [];
  let iteration = open === undefined ? iterations + 1 : iterations;
  for (const message of messages.toReversed()) {
    if (records.length === 0) break;
    if (message.role !== 'assistant') continue;
    const { content, reasoning, tool_calls: { length } = [] } = message;
    iteration -= 1;
    const calls = records
      .splice(-length, length)
      .flatMap((record) => (unheard.has(record) ? [{ status: 'settled' as const, record }] : []));
    if (calls.length > 0) steps.unshift({ iteration, content: content ?? '', reasoning, calls });
  }
  return steps;
}

function stepOf(iteration: number, { content, reasoning, calls }: RunState['open']): KeptStep {
  return { iteration, content, reasoning, calls: [...calls] };
}

function idOf(call: StoredCall): string {
  return call.status === 'settled' ? call.record.id : call.id;
}

type TextKind = 'reasoning-delta' | 'text-delta';

/** What the readers of a turn know of it. */
class Readers {
  /** Of the step at which they are. */
  iteration = 0;
  /** Its calls, by their ids. */
  readonly begun = new Set<unknown>();
  readonly untold: KeptEvent[] = [];
  readonly #said = new Map<TextKind, string>();
  readonly #ended: { readonly iteration: number; readonly id: unknown }[] = [];
  /** Ids of what calls wait for. */
  readonly #asked = new Set<unknown>();

  hear(event: JsonObject): void {
    switch (event.type) {
      case 'run-start':
        // A step without calls is forgotten with the reply that was not kept.
        if (this.begun.size === 0) this.#said.clear();
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
        this.#said.set(event.type, `${this.#said.get(event.type) ?? ''}${event.text}`);
        return;
      case 'call-end':
        this.#ended.push({ iteration: this.iteration, id: event.callId });
    }
    if (event.type === 'call-start' || event.type === 'call-suspended' || event.type === 'call-end')
      this.begun.add(event.callId);
    if (event.type === 'call-suspended')
      for (const { id } of event.pending as readonly JsonObject[]) this.#asked.add(id);
  }

  tell(event: LoopEvent): void {
    const kept = eventJson(event);
    this.hear(kept);
    this.untold.push(kept);
  }

  /** What is left of the text of a step. */
  tellText({ iteration, content, reasoning = '' }: KeptStep): void {
    // Calls come after the text of their step.
    if (iteration !== this.iteration || this.begun.size > 0) return;
    const kept = { 'reasoning-delta': reasoning, 'text-delta': content };
    for (const type of ['reasoning-delta', 'text-delta'] as const) {
      const said = this.#said.get(type) ?? '';
      const text = kept[type].startsWith(said) ? kept[type].slice(said.length) : '';
      if (text !== '') this.tell({ type, text });
    }
  }

  tellEnd(stored: StoredCallRecord): void {
    const record = restoredRecord(stored);
    const { id: callId, name: tool, rawArguments, result } = record;
    if (!this.begun.has(callId)) this.tell({ type: 'call-start', callId, tool, arguments: rawArguments });
    this.tell({ type: 'call-end', callId, tool, result, record });
  }

  tellWaits(
    { runId }: Pick<KeptRun, 'runId'>,
    { iteration }: KeptStep,
    call: Extract<StoredCall, { readonly status: 'waiting' }>,
  ): void {
    const open = { content: '', calls: [call] };
    const pending = openWaits({ runId, iterations: iteration, open }).map((wait) => wait.pending);
    if (pending.every(({ id }) => this.#asked.has(id))) return;
    const { id: callId, name: tool, arguments: args } = call;
    if (!this.begun.has(callId)) this.tell({ type: 'call-start', callId, tool, arguments: args });
    this.tell({ type: 'call-suspended', callId, tool, pending });
  }

  /** Whether readers know what came of a call of a step. */
  hasEnd({ iteration }: KeptStep, { id }: StoredCallRecord): boolean {
    return this.#ended.some((ended) => ended.id === id && ended.iteration === iteration);
  }

  /** Of calls before a step, in the order of their steps, those whose ends nobody heard: models use ids again. */
  unheard(records: readonly StoredCallRecord[], before: KeptStep | undefined): ReadonlySet<StoredCallRecord> {
    const heard = this.#ended.filter(({ iteration }) => iteration < (before?.iteration ?? Infinity));
    const left = records.filter(({ id }) => {
      const index = heard.findIndex((ended) => ended.id === id);
      if (index >= 0) heard.splice(index, 1);
      return index < 0;
    });
    return new Set(left);
  }

  #forgetStep(): void {
    this.#said.clear();
    this.begun.clear();
  }
}
