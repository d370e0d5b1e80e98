import type {
  ConversationCommit,
  ConversationHold,
  ConversationLog,
  HoldRenewal,
  KeptConversation,
  ConversationLease as LeaseRequest,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { KeptRun } from '../contract/run-checkpoint.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { LeaseRenewal } from '../loop/claimed-run.js';
import type { KeptEvent } from './event-json.js';
import { missedEvents } from './missed-events.js';

/** Events that are read at once. */
const EVENTS = 500;

/** This many events may wait to be written before the run waits for the log. */
const MAX_WAITING = 64;

/** A conversation that belongs to this process while it renews its lease, which it does at every third of it. */
export class ConversationLease {
  /** As it was when it was last read. */
  conversation: KeptConversation;
  readonly #log: ConversationLog;
  readonly #hold: ConversationHold;
  readonly #lost = new AbortController();
  readonly #unwatch: () => void;
  readonly #renewal: LeaseRenewal<HoldRenewal>;
  /** Aborts the turn that runs. */
  #stop = new AbortController();
  #unwritten: JsonObject[] = [];
  #writing: Promise<void> | undefined;
  /** Number of the last event that was written here; 0 before the first. */
  #lastEvent = 0;

  private constructor(log: ConversationLog, request: LeaseRequest, conversation: KeptConversation) {
    const { conversationId, claim, leaseMs } = request;
    this.#log = log;
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
  ): Promise<ConversationLease | undefined> {
    const request = { conversationId, claim: crypto.randomUUID(), leaseMs };
    const since = performance.now();
    const outcome = await log.hold(request);
    if (outcome.status !== 'held') return undefined;
    const lease = new ConversationLease(log, request, outcome.conversation);
    lease.#renewal.begin(since);
    return lease;
  }

  /** Aborted when the conversation no longer belongs to this process; the reason is the error that says why. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Ends the turn that begins to run now when its abort is asked for. A turn of a `lost` lease has not ended. */
  turnSignal(): AbortSignal {
    this.#stop = new AbortController();
    if (this.conversation.isAbortAsked) this.#stop.abort(abortAsked());
    return this.#stop.signal;
  }

  /** Commits, and reads the conversation again. Events that were written before are read before. */
  async commit(commit: ConversationCommit): Promise<void> {
    await this.#flush();
    this.lost.throwIfAborted();
    if (!(await this.#log.commit(this.#hold, commit))) throw this.#lose();
    this.conversation = (await this.#log.read(this.#hold.conversationId)) ?? this.conversation;
  }

  /** Writes an event after those before it; pieces of text are joined. A promise only if too many wait already. */
  write(event: JsonObject): void | Promise<void> {
    if (this.lost.aborted) return;
    const last = this.#unwritten.at(-1);
    if (last && last.type === event.type && (event.type === 'text-delta' || event.type === 'reasoning-delta'))
      this.#unwritten[this.#unwritten.length - 1] = { ...last, text: `${last.text}${event.text}` };
    else this.#unwritten.push(event);
    this.#writing ??= this.#writeAll();
    if (this.#unwritten.length > MAX_WAITING) return this.#writing;
  }

  /** Writes the events that are missing of a run that waits or has ended. */
  async emitMissedEvents(turn: OpenTurn, run: KeptRun): Promise<void> {
    for (const event of missedEvents(await this.eventsSince('turn-start', turn), run)) void this.write(event);
  }

  /** The events that are missing of a run that goes on, to be written right after its `run-start`. */
  async missedBy(turn: OpenTurn, run: KeptRun): Promise<readonly KeptEvent[]> {
    return missedEvents([...(await this.eventsSince('turn-start', turn)), { type: 'run-start' }], run);
  }

  /** The last event of a turn that has this type and all after it; all events of the turn if none has it. */
  async eventsSince(type: string, { firstEvent = 1 }: OpenTurn): Promise<readonly JsonObject[]> {
    const { conversationId } = this.#hold;
    await this.#flush();
    const pages: (readonly JsonObject[])[] = [];
    let last = Math.max(this.conversation.lastEvent, this.#lastEvent);
    // From the end, where it nearly always is.
    for (let limit = 1; last >= firstEvent; limit = EVENTS) {
      const after = Math.max(last - limit, firstEvent - 1);
      const page = await this.#log.events({ conversationId, after, limit: last - after });
      const found = page.findLastIndex(({ event }) => event.type === type);
      pages.unshift(page.slice(Math.max(found, 0)).map(({ event }) => event));
      // Events before may have been removed.
      if (found >= 0 || page[0]?.number !== after + 1) break;
      last = after;
    }
    return pages.flat();
  }

  /** Gives the conversation back. `seen`: its revision up to which nothing is left to do. */
  async release(seen: number): Promise<void> {
    await this.#flush();
    this.#end();
    if (!this.lost.aborted) await this.#log.letGo(this.#hold, seen);
  }

  /** Deletes the conversation; false if the lease was lost. */
  async remove(how: 'hide' | 'erase'): Promise<boolean> {
    await this.#flush();
    this.lost.throwIfAborted();
    if (!(await this.#log.remove?.(this.#hold, how))) return false;
    this.#end();
    return true;
  }

  /** Leaves the conversation and its run as they are; another process takes over when their leases have ended. */
  abandon(): void {
    if (this.#renewal.isOver) return;
    const message = `Conversation '${this.#hold.conversationId}' was left to others: no time was left for its turn.`;
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
        const last = await this.#log.tell(this.#hold, events);
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
        ? new ToolwrightError('RunClaimed', `${what} is held by somebody else.`)
        : new ToolwrightError('RunStoreFailed', `${what} was lost: ${errorMessage(cause)}`, { cause });
    return this.#endLost(error);
  }

  /** Events that were not written by now are written by the next process. */
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
  return new DOMException('Somebody asked for the end of the turn.', 'AbortError');
}
