import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  HoldRenewal,
  KeptConversation,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { KeptRun } from '../contract/run-checkpoint.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { LeaseRenewal } from '../loop/claimed-run.js';
import type { KeptEvent } from './event-json.js';
import { untoldEvents } from './untold-events.js';

/** Events that are read at once. */
const EVENTS = 500;

/** So many events may wait to be written before the run waits for the log. */
const MAX_WAITING = 64;

/** Which conversation, out of which log, for how long unless it is renewed. */
interface HoldRequest {
  readonly log: ConversationLog;
  readonly conversationId: string;
  readonly leaseMs: number;
}

/** A conversation that is this process's as long as it renews its lease, which it does at every third of it. */
export class HeldConversation {
  /** What happens in it, for those who read. */
  readonly events: EventWriter;
  /** As it stood when it was last read. */
  conversation: KeptConversation;
  readonly #log: ConversationLog;
  readonly #lease: ConversationLease;
  readonly #lost = new AbortController();
  readonly #unwatch: () => void;
  readonly #renewal: LeaseRenewal<HoldRenewal>;
  /** Ends the turn that runs. */
  #turnStop = new AbortController();

  private constructor(log: ConversationLog, lease: ConversationLease, conversation: KeptConversation) {
    this.#log = log;
    this.#lease = lease;
    this.conversation = conversation;
    this.events = new EventWriter({ log, hold: this.#hold }, (error) => this.#lose(error));
    this.#unwatch = log.watch(({ conversationId, about }) => {
      if (about === 'inbox' && conversationId === lease.conversationId) void this.#renewal.renew();
    });
    this.#renewal = new LeaseRenewal({
      leaseMs: lease.leaseMs,
      renew: () => log.renew(lease),
      take: (renewal) => this.#take(renewal),
      fail: (cause) => this.#lose(cause),
    });
  }

  /** `undefined` where somebody else holds it, or where there is none. */
  static async take({ log, conversationId, leaseMs }: HoldRequest): Promise<HeldConversation | undefined> {
    const lease = { conversationId, claim: crypto.randomUUID(), leaseMs };
    const since = performance.now();
    const outcome = await log.hold(lease);
    if (outcome.status !== 'held') return undefined;
    const held = new HeldConversation(log, lease, outcome.conversation);
    held.#renewal.begin(since);
    return held;
  }

  /** Aborted when the conversation is no longer this process's; the reason is the error that says why. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Ends a turn that begins to run now, where somebody asks for that. One that is `lost` has not ended. */
  turnSignal(): AbortSignal {
    this.#turnStop = new AbortController();
    if (this.conversation.isAbortAsked) this.#turnStop.abort(abortAsked());
    return this.#turnStop.signal;
  }

  /** Commits, and reads what became of the conversation. */
  async commit(commit: ConversationCommit): Promise<void> {
    // What was told before is read before.
    await this.events.flush();
    this.#lost.signal.throwIfAborted();
    if (!(await this.#log.commit(this.#hold, commit))) throw this.#lose();
    await this.read();
  }

  /** What the readers of a turn were told since it last paused, that pause first. */
  sincePause(turn: OpenTurn): Promise<readonly JsonObject[]> {
    return this.#toldSince('turn-suspended', turn);
  }

  /** Tells what is missing of a run that waits, or does not go on. */
  async tellUntold(turn: OpenTurn, run: KeptRun | undefined): Promise<void> {
    if (run === undefined) return;
    const told = await this.#toldSince('turn-start', turn);
    for (const event of untoldEvents(told, run)) void this.events.write(event);
  }

  /** What is missing of a run that goes on, to be told right after its `run-start`. */
  async untoldOf(turn: OpenTurn, run: KeptRun): Promise<readonly KeptEvent[]> {
    const told = await this.#toldSince('turn-start', turn);
    return untoldEvents([...told, { type: 'run-start' }], run);
  }

  async read(): Promise<void> {
    this.conversation = (await this.#log.read(this.#lease.conversationId)) ?? this.conversation;
  }

  /** Ends the hold. `seen`: the revision of the conversation up to which nothing is left to be done. */
  async letGo(seen: number): Promise<void> {
    await this.events.flush();
    this.#end();
    if (!this.#lost.signal.aborted) await this.#log.letGo(this.#hold, seen);
  }

  /** Takes the conversation away; false where that is not to be. */
  async remove(how: 'hide' | 'erase'): Promise<boolean> {
    await this.events.flush();
    this.#lost.signal.throwIfAborted();
    if (!(await this.#log.remove?.(this.#hold, how))) return false;
    this.#end();
    return true;
  }

  /** Leaves the conversation, and the run of its turn, as they stand to whoever goes on when their leases have ended. */
  leave(): void {
    if (this.#renewal.isOver) return;
    const message = `Conversation '${this.#lease.conversationId}' was left to others: no time was left for its turn.`;
    this.#abandon(new ToolwrightError('RunClaimed', message));
  }

  /**
   * The last event of a turn that is of this type, and those after it; all of the turn where none is. Looked for from
   * the end, where it stands nearly always.
   */
  async #toldSince(type: string, { firstEvent: since = 1 }: OpenTurn): Promise<readonly JsonObject[]> {
    const { conversationId } = this.#lease;
    await this.events.flush();
    const pages: (readonly JsonObject[])[] = [];
    let last = Math.max(this.conversation.lastEvent, this.events.last);
    for (let limit = 1; last >= since; limit = EVENTS) {
      const after = Math.max(last - limit, since - 1);
      const page = await this.#log.events({ conversationId, after, limit: last - after });
      const found = page.findLastIndex(({ event }) => event.type === type);
      pages.unshift(page.slice(Math.max(found, 0)).map(({ event }) => event));
      // Those before may be forgotten.
      if (found >= 0 || page[0]?.number !== after + 1) break;
      last = after;
    }
    return pages.flat();
  }

  get #hold(): ConversationHold {
    const { conversationId, claim } = this.#lease;
    return { conversationId, claim };
  }

  #take(renewal: HoldRenewal): boolean {
    if (!renewal.holds) this.#lose();
    else if (renewal.isAbortAsked) this.#turnStop.abort(abortAsked());
    return renewal.holds;
  }

  /** The conversation is somebody else's, or will be. */
  #lose(cause?: unknown): ToolwrightError {
    const what = `Conversation '${this.#lease.conversationId}'`;
    const error =
      cause === undefined
        ? new ToolwrightError('RunClaimed', `${what} is held by somebody else.`)
        : new ToolwrightError('RunStoreFailed', `${what} was lost: ${errorMessage(cause)}`, { cause });
    return this.#abandon(error);
  }

  #abandon(error: ToolwrightError): ToolwrightError {
    this.#end();
    this.events.stop();
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

/**
 * Writes the events of a held conversation to its log, in order: what comes while a write is under way goes with
 * the next one, and pieces of text are joined.
 */
class EventWriter {
  readonly #log: ConversationLog;
  readonly #hold: ConversationHold;
  readonly #onFailure: (error: unknown) => void;
  #waiting: JsonObject[] = [];
  #writing: Promise<void> | undefined;
  #isStopped = false;
  #last = 0;

  /** `onFailure` hears of a log that fails, and of a hold that was lost, then with `undefined`. */
  constructor(
    { log, hold }: { readonly log: ConversationLog; readonly hold: ConversationHold },
    onFailure: (error: unknown) => void,
  ) {
    this.#log = log;
    this.#hold = hold;
    this.#onFailure = onFailure;
  }

  /** Number of the last event that it has written; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** A promise only where too much waits already. */
  write(event: JsonObject): void | Promise<void> {
    if (this.#isStopped) return;
    const last = this.#waiting.at(-1);
    if (last !== undefined && isText(event) && last.type === event.type)
      this.#waiting[this.#waiting.length - 1] = { ...last, text: `${last.text}${event.text}` };
    else this.#waiting.push(event);
    this.#writing ??= this.#writeAll();
    if (this.#waiting.length > MAX_WAITING) return this.#writing;
  }

  /** What has not been written by now is another process's to tell. */
  stop(): void {
    this.#isStopped = true;
    this.#waiting = [];
  }

  /** All that was written is kept. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // What is told in the same turn of the event loop goes together.
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0) {
        const events = this.#waiting;
        this.#waiting = [];
        const last = await this.#log.tell(this.#hold, events);
        if (last === undefined) return this.#onFailure(undefined);
        this.#last = last;
      }
    } catch (error) {
      this.#onFailure(error);
    } finally {
      this.#writing = undefined;
    }
  }
}

function isText({ type }: JsonObject): boolean {
  return type === 'text-delta' || type === 'reasoning-delta';
}
