import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  ConversationNews,
  EnteredEntry,
  EventQuery,
  HoldOutcome,
  HoldRenewal,
  KeptConversation,
  LoggedEvent,
  NewInboxEntry,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import { checkAge, hiddenId, turnMark } from '../errors/store-checks.js';
import { ownerText } from '../kernel/json.js';
import { conversationChannel, conversationStatements } from './conversation-statements.js';
import type { Database, Outcome } from './database.js';
import { Listener } from './listener.js';
import type { Statement } from './statements.js';

/** How many events are forgotten at once. */
const BATCH = 5_000;

/** PostgreSQL's own code for two of the same key at the same moment. */
const UNIQUE_VIOLATION = '23505';

/** The conversations of a `PostgresRunStore`. Each method is one statement that changes something, at most. */
export class PostgresConversationLog implements ConversationLog {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof conversationStatements>;
  readonly #listener: Listener;
  readonly #writes = new OrderedWrites();

  constructor(database: Database) {
    this.#database = database;
    this.#sql = conversationStatements(database.schema);
    this.#listener = new Listener(database, conversationChannel(database.schema));
  }

  async enter({
    conversationId,
    key,
    content,
    onlyOwner = false,
    onlyKnown = false,
  }: NewInboxEntry): Promise<EnteredEntry | undefined> {
    const owner = ownerText(content.owner) ?? null;
    const values = [conversationId, key, JSON.stringify(content), owner, onlyOwner, onlyKnown];
    try {
      return await this.#enter(values);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
      return this.#enter(values);
    }
  }

  async #enter(values: unknown[]): Promise<EnteredEntry | undefined> {
    const { rows, isRepeated } = await this.#database.run(this.#sql.enter, () => values);
    const [row] = rows;
    if (row === undefined) return undefined;
    // Sent again because its answer was lost, it finds its own entry.
    return { position: Number(row.position), isNew: row.is_new === true || isRepeated };
  }

  /** Names the version of the conversation that it has read: a copy that comes later finds another one. */
  async hold(lease: ConversationLease): Promise<HoldOutcome> {
    for (;;) {
      const row = await this.#row(lease.conversationId);
      if (row === undefined) return { status: 'missing' };
      const conversation = keptConversation(lease.conversationId, row);
      if (conversation.isHeld && row.claim !== lease.claim) return { status: 'taken' };
      const { rows } = await this.#send(this.#sql.hold, lease, wholeMs(lease), row.version);
      if (rows.length > 0) return { status: 'held', conversation: { ...conversation, isHeld: true } };
    }
  }

  async renew(lease: ConversationLease): Promise<HoldRenewal> {
    const [row] = (await this.#send(this.#sql.renew, lease, wholeMs(lease))).rows;
    return row === undefined ? { holds: false } : { holds: true, isAbortAsked: row.abort_asked === true };
  }

  async commit(hold: ConversationHold, commit: ConversationCommit): Promise<boolean> {
    const { turn, history, done = [], events = [] } = commit;
    const values = [
      ...[events.map(toJson), turn !== undefined, turn ? toJson(turn) : null, turn?.number ?? 0],
      ...[history?.keep ?? UNCUT, history?.messages.map(toJson) ?? [], [...done]],
    ];
    return (await this.#write(this.#sql.commit, hold, ...values)).rows.length > 0;
  }

  async tell(hold: ConversationHold, events: readonly JsonObject[]): Promise<number | undefined> {
    const [row] = (await this.#write(this.#sql.tell, hold, events.map(toJson))).rows;
    return row && Number(row.last_event);
  }

  async letGo(hold: ConversationHold, seen: number): Promise<boolean> {
    const { rows, isRepeated } = await this.#send(this.#sql.letGo, hold, seen);
    return rows.length > 0 || isRepeated;
  }

  async read(conversationId: string): Promise<KeptConversation | undefined> {
    const row = await this.#row(conversationId);
    return row && keptConversation(conversationId, row);
  }

  async events({ conversationId, after, limit }: EventQuery): Promise<readonly LoggedEvent[]> {
    const { rows } = await this.#database.run(this.#sql.events, () => [conversationId, after, limit]);
    return rows.map(({ number, event }) => ({ number: Number(number), event: JSON.parse(String(event)) }));
  }

  /** Names the turn: a copy that comes later ends no other one. */
  async askAbort(conversationId: string): Promise<boolean> {
    const found = await this.#database.run(this.#sql.openTurn, () => [conversationId]);
    const [open] = found.rows;
    if (open === undefined) return false;
    const values = [conversationId, open.turns];
    const { rows, isRepeated } = await this.#database.run(this.#sql.askAbort, () => values);
    return rows.length > 0 || isRepeated;
  }

  async due(limit: number): Promise<readonly string[]> {
    const { rows } = await this.#database.run(this.#sql.due, () => [limit]);
    return rows.map((row) => String(row.conversation_id));
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    return this.#listener.add({
      hear: (payload) => {
        const space = payload.indexOf(' ');
        const about = payload.slice(0, space) as 'inbox' | 'events';
        listener({ conversationId: payload.slice(space + 1), about });
      },
      miss: () => listener({ about: 'missed' }),
    });
  }

  /** Nobody is told any more, because the connections are about to be closed. */
  stopWatching(): Promise<void> {
    return this.#listener.close();
  }

  async remove(hold: ConversationHold, how: 'hide' | 'erase'): Promise<boolean> {
    const { conversationId: id } = hold;
    const { rows, isRepeated } = await (how === 'hide'
      ? this.#send(this.#sql.hide, hold, turnMark(id), approvalMark(id), hiddenId(id))
      : this.#send(this.#sql.erase, hold, turnMark(id), approvalMark(id)));
    // Sent again because its answer was lost, it finds nothing any more.
    return rows.length > 0 || isRepeated;
  }

  /** Conversations in which nothing is open or waits, and nothing has happened for so long. */
  async idle(ageMs: number, limit: number): Promise<readonly string[]> {
    const age = Math.ceil(Math.min(ageMs, Number.MAX_SAFE_INTEGER));
    const { rows } = await this.#database.run(this.#sql.idle, () => [age, limit]);
    return rows.map((row) => String(row.conversation_id));
  }

  async removeEventsOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    const age = Math.ceil(Math.min(ageMs, Number.MAX_SAFE_INTEGER));
    await this.#database.run(this.#sql.removeEntries, () => [age]);
    let removed = 0;
    for (;;) {
      const { rowCount } = await this.#database.run(this.#sql.removeEvents, () => [age, BATCH]);
      removed += rowCount ?? 0;
      if ((rowCount ?? 0) < BATCH) return removed;
    }
  }

  #write(statement: Statement, hold: ConversationHold, ...values: readonly unknown[]) {
    return this.#writes.add(hold.conversationId, (name) => this.#send(statement, hold, name, ...values));
  }

  #send(
    statement: Statement,
    { conversationId, claim }: ConversationHold,
    ...values: readonly unknown[]
  ): Promise<Outcome> {
    return this.#database.run(statement, () => [conversationId, claim, ...values]);
  }

  async #row(conversationId: string): Promise<Row | undefined> {
    const { rows } = await this.#database.run(this.#sql.read, () => [conversationId]);
    return rows[0];
  }
}

type Row = Outcome['rows'][number];

function keptConversation(conversationId: string, row: Row): KeptConversation {
  return {
    conversationId,
    ...(row.owner === null ? {} : { owner: JSON.parse(String(row.owner)) }),
    messages: (row.messages as string[]).map((message) => JSON.parse(message)),
    turns: Number(row.turns),
    ...(row.turn === null ? {} : { turn: JSON.parse(String(row.turn)) as OpenTurn }),
    inbox: (row.inbox as string[]).map((entry) => JSON.parse(entry)),
    isAbortAsked: row.abort_asked === true,
    revision: Number(row.revision),
    lastEvent: Number(row.last_event),
    isHeld: row.is_held === true,
  };
}

/** A length that no history reaches: nothing of it is cut. */
const UNCUT = 2 ** 30;

function toJson(value: object): string {
  return JSON.stringify(value);
}

function wholeMs({ leaseMs }: ConversationLease): number {
  return Math.ceil(Math.min(leaseMs, 2 ** 52));
}

/**
 * Writes of the same conversation one after another, under names that rise: what comes under a name that is not above
 * the last one is a copy, however late, of what was sent before.
 */
class OrderedWrites {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Carries a write out when those before it have ended, well or not. */
  async add<Value>(conversationId: string, write: (name: string) => Promise<Value>): Promise<Value> {
    const before = this.#last.get(conversationId);
    const writing = before === undefined ? write(nextName()) : before.then(() => write(nextName()));
    const ended = writing.catch(() => {});
    this.#last.set(conversationId, ended);
    try {
      return await writing;
    } finally {
      if (this.#last.get(conversationId) === ended) this.#last.delete(conversationId);
    }
  }
}

let named = 0;

/** A name that sorts after all that this process gave before; writes of one claim are of one process. */
function nextName(): string {
  named += 1;
  return `00000000-0000-0000-0000-${named.toString(16).padStart(12, '0')}`;
}

/**
 * How the JSON of a standing approval names the conversation that it is for, or a turn of it, as a pattern of
 * PostgreSQL, whose functions for JSON refuse some texts.
 */
function approvalMark(conversationId: string): string {
  const id = JSON.stringify(conversationId)
    .slice(1, -1)
    .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return `"scope":"(?:conversation","subject":"${id}|run","subject":"${id}\\.[0-9]+)"`;
}
