import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  ConversationNews,
  EnteredEntry,
  EventQuery,
  HiddenConversations,
  HoldOutcome,
  HoldRenewal,
  KeptConversation,
  KeptMessage,
  LoggedEvent,
  NewInboxEntry,
  OpenTurn,
} from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { checkAge, hiddenId, idBeforeHiding } from '../../core/errors/store-checks.js';
import { ownerText } from '../../core/kernel/json.js';
import { Listeners } from '../../core/kernel/listeners.js';

/** Stored as JSON, so that callers cannot change it through returned objects. */
interface KeptEntry {
  readonly position: number;
  readonly key: string;
  readonly json: string;
  /** When its turn ended. */
  doneAt?: number;
}

interface KeptEvent {
  readonly number: number;
  readonly json: string;
  readonly keptAt: number;
}

/** A conversation and the holder of its lease. */
interface Row {
  conversationId: string;
  /** Canonical JSON. */
  readonly owner: string | undefined;
  messages: string[];
  turns: number;
  turn: string | undefined;
  readonly inbox: Map<string, KeptEntry>;
  entered: number;
  isAbortAsked: boolean;
  revision: number;
  isDue: boolean;
  changedAt: number;
  events: KeptEvent[];
  lastEvent: number;
  held: { readonly claim: string; leaseEnd: number } | undefined;
}

/** What a store has of a conversation outside this log. */
interface BesideConversations {
  /** Whether background work or a schedule of the conversation is pending. */
  isAwaited(conversationId: string): boolean;
  remove(conversation: Pick<Row, 'conversationId' | 'owner'>): void;
}

/** The conversations of a `MemoryRunStore`. */
export class MemoryConversationLog implements ConversationLog {
  readonly #rows = new Map<string, Row>();
  readonly #watchers = new Listeners<ConversationNews>();

  constructor(
    private readonly now: () => number,
    private readonly beside: BesideConversations,
  ) {}

  enter({ conversationId, key, content, onlyOwner, onlyKnown }: NewInboxEntry): EnteredEntry | undefined {
    if (onlyKnown && !this.#rows.has(conversationId)) return undefined;
    const owner = ownerText(content.owner);
    const row = this.#rows.get(conversationId) ?? {
      conversationId,
      owner,
      messages: [],
      turns: 0,
      turn: undefined,
      inbox: new Map(),
      entered: 0,
      isAbortAsked: false,
      revision: 0,
      isDue: false,
      changedAt: 0,
      events: [],
      lastEvent: 0,
      held: undefined,
    };
    this.#rows.set(conversationId, row);
    if (onlyOwner && row.owner !== owner) return undefined;
    const known = row.inbox.get(key);
    if (known !== undefined) return { position: known.position, isNew: false };
    row.entered += 1;
    row.inbox.set(key, { position: row.entered, key, json: JSON.stringify(content) });
    this.#change(row);
    return { position: row.entered, isNew: true };
  }

  hold({ conversationId, claim, leaseMs }: ConversationLease): HoldOutcome {
    const row = this.#rows.get(conversationId);
    if (row === undefined) return { status: 'missing' };
    if (!this.#isFree(row)) return { status: 'taken' };
    row.held = { claim, leaseEnd: this.now() + leaseMs };
    row.isDue = true;
    return { status: 'held', conversation: this.#kept(row) };
  }

  renew({ leaseMs, ...hold }: ConversationLease): HoldRenewal {
    const row = this.#heldBy(hold);
    if (row?.held === undefined) return { holds: false };
    row.held.leaseEnd = this.now() + leaseMs;
    return { holds: true, isAbortAsked: row.isAbortAsked };
  }

  commit(hold: ConversationHold, { turn, history, done = [], events = [] }: ConversationCommit): boolean {
    const row = this.#heldBy(hold);
    if (row === undefined) return false;
    if (history !== undefined)
      row.messages = [
        ...row.messages.slice(0, history.keep),
        ...history.messages.map((message) => JSON.stringify(message)),
      ];
    for (const entry of row.inbox.values()) if (done.includes(entry.position)) entry.doneAt ??= this.now();
    if (turn !== undefined) {
      row.turn = turn === null ? undefined : JSON.stringify(turn);
      row.turns = Math.max(row.turns, turn?.number ?? 0);
      row.isAbortAsked = false;
    }
    this.#addEvents(row, events);
    return true;
  }

  tell(hold: ConversationHold, events: readonly JsonObject[]): number | undefined {
    const row = this.#heldBy(hold);
    if (row === undefined) return undefined;
    this.#addEvents(row, events);
    return row.lastEvent;
  }

  #addEvents(row: Row, events: readonly JsonObject[]): void {
    for (const event of events) {
      row.lastEvent += 1;
      row.events.push({ number: row.lastEvent, json: JSON.stringify(event), keptAt: this.now() });
    }
    this.#tell(row, 'events');
  }

  letGo(hold: ConversationHold, seen: number): boolean {
    const row = this.#heldBy(hold);
    if (row === undefined) return false;
    row.held = undefined;
    row.isDue = row.revision !== seen;
    this.#tell(row, 'events');
    return true;
  }

  read(conversationId: string): KeptConversation | undefined {
    const row = this.#rows.get(conversationId);
    return row && this.#kept(row);
  }

  events({ conversationId, after, limit }: EventQuery): readonly LoggedEvent[] {
    const events = this.#rows.get(conversationId)?.events ?? [];
    // Numbers have no gaps, so the first number gives the positions of the others.
    const from = Math.max(0, after + 1 - (events[0]?.number ?? 1));
    return events.slice(from, from + limit).map(({ number, json }) => ({ number, event: JSON.parse(json) }));
  }

  askAbort(conversationId: string): boolean {
    const row = this.#rows.get(conversationId);
    if (row?.turn === undefined) return false;
    row.isAbortAsked = true;
    this.#change(row);
    return true;
  }

  due(limit: number): readonly string[] {
    return [...this.#rows.values()]
      .filter((row) => row.isDue && this.#isFree(row))
      .sort((row, other) => row.changedAt - other.changedAt)
      .slice(0, limit)
      .map(({ conversationId }) => conversationId);
  }

  /** Whether a run is an open turn, which is always the last turn of its conversation. */
  isOpenTurn(runId: string): boolean {
    const row = this.#rows.get(runId.slice(0, runId.lastIndexOf('.')));
    return row?.turn !== undefined && runId === `${row.conversationId}.${row.turns}`;
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    return this.#watchers.add(listener);
  }

  remove(hold: ConversationHold, how: 'hide' | 'erase'): boolean {
    const row = this.#heldBy(hold);
    if (row === undefined || row.turn !== undefined) return false;
    this.beside.remove(row);
    this.#rows.delete(row.conversationId);
    this.#tell(row, 'events');
    if (how === 'erase') return true;
    const now = this.now();
    for (const entry of row.inbox.values()) entry.doneAt ??= now;
    row.conversationId = hiddenId(row.conversationId);
    row.held = undefined;
    row.isDue = false;
    this.#rows.set(row.conversationId, row);
    return true;
  }

  eraseHidden({ conversationId, owner, onlyOwner }: HiddenConversations): boolean {
    const hidden = [...this.#rows.values()].filter(
      (row) =>
        idBeforeHiding(row.conversationId) === conversationId &&
        row.turn === undefined &&
        (!onlyOwner || row.owner === ownerText(owner)),
    );
    for (const row of hidden) this.#rows.delete(row.conversationId);
    return hidden.length > 0;
  }

  /** Conversations without an open turn, waiting entries, or activity in the last `ageMs`. */
  idle(ageMs: number, limit: number): readonly string[] {
    const before = this.now() - ageMs;
    const isIdle = (row: Row): boolean =>
      row.turn === undefined &&
      row.changedAt <= before &&
      (row.events.at(-1)?.keptAt ?? 0) <= before &&
      this.#isFree(row) &&
      row.inbox.values().every(({ doneAt }) => doneAt !== undefined) &&
      !this.beside.isAwaited(row.conversationId);
    return [...this.#rows.values()]
      .filter(isIdle)
      .slice(0, limit)
      .map(({ conversationId }) => conversationId);
  }

  removeEventsOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.now() - ageMs;
    let removed = 0;
    for (const row of this.#rows.values()) {
      const kept = row.events.filter(({ keptAt }) => keptAt > limit);
      removed += row.events.length - kept.length;
      row.events = kept;
      for (const { key, doneAt } of row.inbox.values())
        if (doneAt !== undefined && doneAt <= limit) row.inbox.delete(key);
    }
    return removed;
  }

  /** Marks a conversation whose holder, or the next one, has something to process. */
  #change(row: Row): void {
    row.revision += 1;
    row.isDue = true;
    row.changedAt = this.now();
    this.#tell(row, 'inbox');
  }

  #tell({ conversationId }: Row, about: 'inbox' | 'events'): void {
    this.#watchers.notify({ conversationId, about });
  }

  #isFree({ held }: Row): boolean {
    return held === undefined || held.leaseEnd <= this.now();
  }

  #heldBy({ conversationId, claim }: ConversationHold): Row | undefined {
    const row = this.#rows.get(conversationId);
    return row?.held?.claim === claim ? row : undefined;
  }

  #kept(row: Row): KeptConversation {
    const { conversationId, owner, turns, turn, isAbortAsked, revision, lastEvent } = row;
    const waiting = [...row.inbox.values()].filter(({ doneAt }) => doneAt === undefined);
    return {
      conversationId,
      ...(owner !== undefined && { owner: JSON.parse(owner) }),
      messages: row.messages.map((message) => JSON.parse(message) as KeptMessage),
      turns,
      ...(turn !== undefined && { turn: JSON.parse(turn) as OpenTurn }),
      inbox: waiting.map(({ position, key, json }) => ({ position, key, content: JSON.parse(json) })),
      isAbortAsked,
      revision,
      lastEvent,
      isHeld: !this.#isFree(row),
    };
  }
}
