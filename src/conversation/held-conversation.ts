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
import { MAX_TIMER_MS } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
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
  /** Ends the turn that runs. */
  #turnStop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #renewedAt = performance.now();
  #isOver = false;

  private constructor(log: ConversationLog, lease: ConversationLease, conversation: KeptConversation) {
    this.#log = log;
    this.#lease = lease;
    this.conversation = conversation;
    this.events = new EventWriter({ log, hold: this.#hold }, (error) => this.#lose(error));
    this.#unwatch = log.watch(({ conversationId, about }) => {
      if (about === 'inbox' && conversationId === lease.conversationId) void this.#renew();
    });
    this.#schedule();
  }

  /** `undefined` where somebody else holds it, or where there is none. */
  static async take({ log, conversationId, leaseMs }: HoldRequest): Promise<HeldConversation | undefined> {
    const lease = { conversationId, claim: crypto.randomUUID(), leaseMs };
    const outcome = await log.hold(lease);
    return outcome.status === 'held' ? new HeldConversation(log, lease, outcome.conversation) : undefined;
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

  /** Whether an event that fits was told since the one of that number, that one included. */
  async hasTold(fits: (event: JsonObject) => boolean, since: number): Promise<boolean> {
    const { conversationId } = this.#lease;
    for (let after = since - 1; ; ) {
      const page = await this.#log.events({ conversationId, after, limit: EVENTS });
      if (page.some(({ event }) => fits(event))) return true;
      const last = page.at(-1);
      if (last === undefined || page.length < EVENTS) return false;
      after = last.number;
    }
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
    if (this.#isOver) return;
    const message = `Conversation '${this.#lease.conversationId}' was left to others: no time was left for its turn.`;
    this.#abandon(new ToolwrightError('RunClaimed', message));
  }

  get #hold(): ConversationHold {
    const { conversationId, claim } = this.#lease;
    return { conversationId, claim };
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const pause = Math.min(this.#lease.leaseMs / 3, MAX_TIMER_MS);
    this.#timer = setTimeout(() => void this.#renew(), pause).unref();
  }

  async #renew(): Promise<void> {
    const now = performance.now();
    let renewal: HoldRenewal;
    try {
      renewal = await this.#log.renew(this.#lease);
    } catch (error) {
      // The log may come back in time; once the lease has ended, somebody else may go on with the conversation.
      if (!this.#isOver && now - this.#renewedAt >= this.#lease.leaseMs) this.#lose(error);
      else if (!this.#isOver) this.#schedule();
      return;
    }
    if (this.#isOver) return;
    if (!renewal.holds) {
      this.#lose();
      return;
    }
    this.#renewedAt = now;
    if (renewal.isAbortAsked) this.#turnStop.abort(abortAsked());
    this.#schedule();
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
    this.#isOver = true;
    this.#unwatch();
    clearTimeout(this.#timer);
  }
}

function abortAsked(): DOMException {
  return new DOMException('Somebody asked for the end of the turn.', 'AbortError');
}
