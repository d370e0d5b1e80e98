import type {
  ConversationCommit,
  ConversationHold,
  ConversationLog,
  HoldRenewal,
  KeptConversation,
  ConversationLease as LeaseRequest,
  OpenTurn,
} from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { KeptRun } from '../../core/contract/run-checkpoint.js';
import type { RunState, StoredCall } from '../../core/contract/run-state.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { LeaseRenewal } from '../loop/claimed-run.js';
import type { LoopEvent } from '../loop/events.js';
import { openWaits, restoredRecord } from '../loop/suspend.js';
import { eventJson, type KeptEvent } from './events.js';

/**
 * The events that readers of a turn have missed: its run had stored them, but its process crashed before it wrote
 * them to the log. A process writes them in order, so only the last ones can be missing. `emitted`: the events of the
 * turn that the log still has.
 */
function missedEvents(emitted: readonly JsonObject[], run: KeptRun): readonly KeptEvent[] {
  const isWhole = emitted[0]?.type === 'turn-start';
  const steps = stepsOf(run);
  const begin = emitted.findLastIndex(({ type }) => type === 'step-start');
  // Events that a store has removed were reported long ago.
  const iteration = Number(emitted[begin]?.iteration ?? (isWhole ? 0 : steps[0]?.iteration));
  const current = emitted.slice(Math.max(begin, 0));
  const begun = new Set(idsIn(current, 'call-start', 'call-suspended', 'call-end'));
  const ended = new Set(idsIn(current, 'call-end'));
  const asked = new Set<unknown>();
  for (const { type, pending } of emitted)
    if (type === 'call-suspended') for (const { id } of pending as JsonObject[]) asked.add(id);
  const before = isWhole ? stepsBefore(run.state, idsIn(emitted, 'call-end')) : [];
  const missed: LoopEvent[] = [];
  for (const step of [...before, ...steps.filter((step) => step.iteration >= iteration)]) {
    const isNew = step.iteration > iteration;
    if (isNew) missed.push({ type: 'step-start', iteration: step.iteration });
    // Calls come after the text of their step.
    if (isNew || (isWhole && begun.size === 0)) missed.push(...textOf(step, isNew ? [] : current));
    for (const call of step.calls) {
      const event = lastEventOf(call, step, run);
      if (event === undefined) continue;
      const { callId, tool } = event;
      const hasBegun = !isNew && begun.has(callId);
      const isReported =
        event.type === 'call-end'
          ? !isNew && ended.has(callId)
          : event.pending.every(({ id }) => asked.has(id));
      if (isReported || !(isNew || isWhole || hasBegun)) continue;
      const args = call.status === 'settled' ? call.record.rawArguments : call.arguments;
      if (!hasBegun) missed.push({ type: 'call-start', callId, tool, arguments: args });
      missed.push(event);
    }
  }
  return missed.map(eventJson);
}

/** The ids of the calls in these events. */
function idsIn(events: readonly JsonObject[], ...types: readonly unknown[]): readonly unknown[] {
  return events.flatMap(({ type, callId }) => (types.includes(type) ? [callId] : []));
}

/** The rest of the text of a step, of which these events report the beginning. */
function textOf(
  { content, reasoning = '' }: StoredStep,
  events: readonly JsonObject[],
): readonly LoopEvent[] {
  // After these events, the reply starts again: a run that continues has not stored it.
  const restart = events.findLastIndex(({ type }) => type === 'request-retry' || type === 'run-start');
  const whole = { 'reasoning-delta': reasoning, 'text-delta': content };
  const rest: LoopEvent[] = [];
  for (const type of ['reasoning-delta', 'text-delta'] as const) {
    const pieces = events.slice(restart + 1).filter((event) => event.type === type);
    const said = pieces.map((event) => event.text).join('');
    const text = whole[type].startsWith(said) ? whole[type].slice(said.length) : '';
    if (text !== '') rest.push({ type, text });
  }
  return rest;
}

/** The last event of a stored call, unless it still runs. */
function lastEventOf(
  call: StoredCall,
  { iteration }: StoredStep,
  { runId, status }: KeptRun,
): Extract<LoopEvent, { readonly type: 'call-end' | 'call-suspended' }> | undefined {
  if (call.status === 'settled') {
    const record = restoredRecord(call.record);
    return { type: 'call-end', callId: record.id, tool: record.name, result: record.result, record };
  }
  if (call.status !== 'waiting' || status === 'ended') return undefined;
  const open = { content: '', calls: [call] };
  const pending = openWaits({ runId, iterations: iteration, open }).map((wait) => wait.pending);
  return { type: 'call-suspended', callId: call.id, tool: call.name, pending };
}

/** A stored reply with the current state of its calls. */
interface StoredStep {
  readonly iteration: number;
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: StoredCall[];
}

/** The steps that a run has stored since its start or last resume. */
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
 * The steps of the history with calls whose end was not reported. The history contains no empty replies, so their
 * events may be reported as part of the next step.
 */
function stepsBefore(
  { messages, toolCalls, iterations, open }: KeptRun['state'],
  ended: readonly unknown[],
): readonly StoredStep[] {
  // In the order of their steps, because models reuse ids.
  const reported = [...ended];
  const unreported = new Set<KeptRun['state']['toolCalls'][number]>();
  for (const record of toolCalls) {
    const index = reported.indexOf(record.id);
    if (index < 0) unreported.add(record);
    else reported.splice(index, 1);
  }
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

/** The most events per read. */
const EVENTS = 500;

/** The most unwritten events before the run waits for the log. */
const MAX_WAITING = 64;

/** A conversation that belongs to this process while it renews its lease, at every third of the lease. */
export class ConversationClaim {
  /** Its state at the last read. */
  conversation: KeptConversation;
  readonly #hold: ConversationHold;
  readonly #lost = new AbortController();
  /** Aborted with the error when the conversation no longer belongs to this process. */
  readonly lost: AbortSignal = this.#lost.signal;
  readonly #unwatch: () => void;
  readonly #renewal: LeaseRenewal<HoldRenewal>;
  /** Aborts the turn that runs. */
  #stop = new AbortController();
  #unwritten: JsonObject[] = [];
  #writing: Promise<void> | undefined;
  /** Number of the last event that was written here; 0 before the first. */
  #lastEvent = 0;

  private constructor(
    private readonly log: ConversationLog,
    request: LeaseRequest,
    conversation: KeptConversation,
  ) {
    const { conversationId, claim, leaseMs } = request;
    this.#hold = { conversationId, claim };
    this.conversation = conversation;
    this.#unwatch = log.watch((news) => {
      if (news.about === 'inbox' && news.conversationId === conversationId) void this.#renewal.renew();
    });
    this.#renewal = new LeaseRenewal({
      leaseMs,
      renew: () => log.renew(request),
      take: (renewal: HoldRenewal) => {
        if (!renewal.holds) this.#lose();
        else if (renewal.isAbortAsked) this.#stop.abort(abortAsked());
        return renewal.holds;
      },
      fail: (cause) => this.#lose(cause),
    });
  }

  /** `undefined` if another process holds the conversation, or if it does not exist. */
  static async acquire(
    log: ConversationLog,
    { conversationId, leaseMs }: Pick<LeaseRequest, 'conversationId' | 'leaseMs'>,
  ): Promise<ConversationClaim | undefined> {
    const request = { conversationId, claim: crypto.randomUUID(), leaseMs };
    const since = performance.now();
    const outcome = await log.hold(request);
    if (outcome.status !== 'held') return undefined;
    const lease = new ConversationClaim(log, request, outcome.conversation);
    lease.#renewal.begin(since);
    return lease;
  }

  /** A signal for a new turn, which aborts it on request. A turn whose lease is `lost` has not ended. */
  turnSignal(): AbortSignal {
    this.#stop = new AbortController();
    if (this.conversation.isAbortAsked) this.#stop.abort(abortAsked());
    return this.#stop.signal;
  }

  /** Commits, and reads the conversation again, after all earlier events are written. */
  async commit(commit: ConversationCommit): Promise<void> {
    await this.#flush();
    this.lost.throwIfAborted();
    if (!(await this.log.commit(this.#hold, commit))) throw this.#lose();
    this.conversation = (await this.log.read(this.#hold.conversationId)) ?? this.conversation;
  }

  /**
   * Writes an event after the earlier ones; pieces of text are joined. Returns a promise only if too many events
   * wait.
   */
  write(event: JsonObject): void | Promise<void> {
    if (this.lost.aborted) return;
    const last = this.#unwritten.at(-1);
    if (last && last.type === event.type && (event.type === 'text-delta' || event.type === 'reasoning-delta'))
      this.#unwritten[this.#unwritten.length - 1] = { ...last, text: `${last.text}${event.text}` };
    else this.#unwritten.push(event);
    this.#writing ??= this.#writeAll();
    if (this.#unwritten.length > MAX_WAITING) return this.#writing;
  }

  /** Writes the missing events of a run that waits or has ended. */
  async emitMissedEvents(turn: OpenTurn, run: KeptRun): Promise<void> {
    for (const event of missedEvents(await this.eventsSince('turn-start', turn), run)) void this.write(event);
  }

  /** The missing events of a run that continues, to be written right after its `run-start`. */
  async missedBy(turn: OpenTurn, run: KeptRun): Promise<readonly KeptEvent[]> {
    return missedEvents([...(await this.eventsSince('turn-start', turn)), { type: 'run-start' }], run);
  }

  /** The last event of a turn with this type and all later events; all events of the turn if there is none. */
  async eventsSince(type: string, { firstEvent = 1 }: OpenTurn): Promise<readonly JsonObject[]> {
    const { conversationId } = this.#hold;
    await this.#flush();
    const pages: (readonly JsonObject[])[] = [];
    let last = Math.max(this.conversation.lastEvent, this.#lastEvent);
    // From the end, where it usually is.
    for (let limit = 1; last >= firstEvent; limit = EVENTS) {
      const after = Math.max(last - limit, firstEvent - 1);
      const page = await this.log.events({ conversationId, after, limit: last - after });
      const found = page.findLastIndex(({ event }) => event.type === type);
      pages.unshift(page.slice(Math.max(found, 0)).map(({ event }) => event));
      // Earlier events may have been removed.
      if (found >= 0 || page[0]?.number !== after + 1) break;
      last = after;
    }
    return pages.flat();
  }

  /** Releases the conversation. `seen`: the revision up to which all entries are processed. */
  async release(seen: number): Promise<void> {
    await this.#flush();
    this.#end();
    if (!this.lost.aborted) await this.log.letGo(this.#hold, seen);
  }

  /** Deletes the conversation; false if the lease was lost. */
  async remove(how: 'hide' | 'erase'): Promise<boolean> {
    await this.#flush();
    this.lost.throwIfAborted();
    if (!(await this.log.remove?.(this.#hold, how))) return false;
    this.#end();
    return true;
  }

  /** Leaves the conversation and its run unchanged; another process takes over when their leases have expired. */
  abandon(): void {
    if (this.#renewal.isOver) return;
    const message = `Conversation '${this.#hold.conversationId}' was released for other processes: no time was left for its turn.`;
    this.#endLost(new ToolwrightError('RunClaimed', message));
  }

  async #flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Events of the same turn of the event loop are written together.
    await Promise.resolve();
    try {
      while (this.#unwritten.length > 0) {
        const events = this.#unwritten;
        this.#unwritten = [];
        const last = await this.log.tell(this.#hold, events);
        if (last === undefined) this.#lose();
        else this.#lastEvent = last;
      }
    } catch (error) {
      this.#lose(error);
    } finally {
      this.#writing = undefined;
    }
  }

  #lose(cause?: unknown): ToolwrightError {
    const what = `Conversation '${this.#hold.conversationId}'`;
    const error =
      cause === undefined
        ? new ToolwrightError('RunClaimed', `${what} is held by another process.`)
        : new ToolwrightError('RunStoreFailed', `${what} was lost: ${errorMessage(cause)}`, { cause });
    return this.#endLost(error);
  }

  /** Events that are not written by now are written by the next process. */
  #endLost(error: ToolwrightError): ToolwrightError {
    this.#end();
    this.#unwritten = [];
    this.#lost.abort(error);
    return error;
  }

  #end(): void {
    this.#renewal.end();
    this.#unwatch();
  }
}

function abortAsked(): DOMException {
  return new DOMException('A user aborted the turn.', 'AbortError');
}
