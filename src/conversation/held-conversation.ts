import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  HoldRenewal,
  KeptConversation,
} from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { LeaseRenewal } from '../loop/claimed-run.js';
import { EventWriter } from './event-writer.js';

/** Events that are read at once. */
const EVENTS = 500;

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

  /** The last event that fits of those since that number. Looked for from the end, where it stands nearly always. */
  async lastTold(fits: (event: JsonObject) => boolean, since: number): Promise<JsonObject | undefined> {
    const { conversationId } = this.#lease;
    await this.events.flush();
    let last = Math.max(this.conversation.lastEvent, this.events.last);
    for (let limit = 1; last >= since; limit = EVENTS) {
      const after = Math.max(last - limit, since - 1);
      const page = await this.#log.events({ conversationId, after, limit: last - after });
      const found = page.findLast(({ event }) => fits(event));
      // Those before may be forgotten.
      if (found !== undefined || page[0]?.number !== after + 1) return found?.event;
      last = after;
    }
    return undefined;
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

  /** Leaves the conversation, and the run of its turn, as they stand to whoever goes on when their leases have ended. */
  leave(): void {
    if (this.#renewal.isOver) return;
    const message = `Conversation '${this.#lease.conversationId}' was left to others: no time was left for its turn.`;
    this.#abandon(new ToolwrightError('RunClaimed', message));
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
