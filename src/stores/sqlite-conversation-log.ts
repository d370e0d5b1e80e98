import type { DatabaseSync } from 'node:sqlite';
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
  InboxEntry,
  KeptConversation,
  KeptMessage,
  LoggedEvent,
  NewInboxEntry,
  OpenTurn,
} from '../contract/conversation-log.js';
import type { JsonObject } from '../contract/json-schema.js';
import { checkAge, hiddenId, turnMark } from '../errors/store-checks.js';
import { ownerText } from '../kernel/json.js';
import { inTransaction, type Prepared, preparedIn } from './open-database.js';

/** How often the file is asked whether another process has changed it; SQLite tells nobody. */
const WATCH_EVERY_MS = 50;

const HELD = 'conversation_id = $id AND claim = $claim';
const FREE = '(claim IS NULL OR lease_end <= $now)';

/** Ids that turns of a conversation have; whether a run is one, its state says. */
const ofTurns = (id: string) =>
  `${id} > $id || '.' AND ${id} < $id || '/' AND substr(${id}, length($id) + 2) NOT GLOB '*[^0-9]*'`;
const OF_TURNS = ofTurns('run_id');
const TURNS = `${OF_TURNS} AND instr(state, $mark) > 0`;

const SQL = {
  create: `
    INSERT INTO toolwright_conversations (conversation_id, owner, changed_at) VALUES ($id, $owner, $now) ON CONFLICT DO NOTHING`,
  owner: 'SELECT owner FROM toolwright_conversations WHERE conversation_id = $id',
  position: 'SELECT position FROM toolwright_inbox WHERE conversation_id = $id AND key = $key',
  enter: `
    INSERT INTO toolwright_inbox (conversation_id, position, key, content)
    SELECT $id, entered + 1, $key, $content FROM toolwright_conversations WHERE conversation_id = $id
    RETURNING position`,
  entered: 'UPDATE toolwright_conversations SET entered = entered + 1 WHERE conversation_id = $id',
  change: `
    UPDATE toolwright_conversations
    SET revision = revision + 1, is_due = 1, changed_at = $now WHERE conversation_id = $id`,
  hold: `
    UPDATE toolwright_conversations SET claim = $claim, lease_end = $leaseEnd, is_due = 1
    WHERE conversation_id = $id AND ${FREE}`,
  renew: `
    UPDATE toolwright_conversations SET lease_end = $leaseEnd WHERE ${HELD} RETURNING abort_asked`,
  held: `SELECT last_event FROM toolwright_conversations WHERE ${HELD}`,
  setTurn: `
    UPDATE toolwright_conversations
    SET turn = $turn, turns = max(turns, $number), abort_asked = 0 WHERE conversation_id = $id`,
  cutHistory: 'DELETE FROM toolwright_messages WHERE conversation_id = $id AND position >= $keep',
  addMessage: `
    INSERT INTO toolwright_messages (conversation_id, position, message) VALUES ($id, $position, $message)`,
  done: 'UPDATE toolwright_inbox SET done_at = $now WHERE conversation_id = $id AND position = $position',
  addEvent: `
    INSERT INTO toolwright_events (conversation_id, number, event, kept_at) VALUES ($id, $number, $event, $now)`,
  setLastEvent: 'UPDATE toolwright_conversations SET last_event = $number WHERE conversation_id = $id',
  letGo: `
    UPDATE toolwright_conversations
    SET claim = NULL, lease_end = NULL, is_due = (revision <> $seen) WHERE ${HELD}`,
  conversation: 'SELECT * FROM toolwright_conversations WHERE conversation_id = $id',
  messages: 'SELECT message FROM toolwright_messages WHERE conversation_id = $id ORDER BY position',
  inbox: `
    SELECT position, key, content FROM toolwright_inbox
    WHERE conversation_id = $id AND done_at IS NULL ORDER BY position`,
  events: `
    SELECT number, event FROM toolwright_events
    WHERE conversation_id = $id AND number > $after ORDER BY number LIMIT $limit`,
  askAbort: `
    UPDATE toolwright_conversations SET abort_asked = 1 WHERE conversation_id = $id AND turn IS NOT NULL`,
  due: `
    SELECT conversation_id FROM toolwright_conversations
    WHERE is_due = 1 AND ${FREE} ORDER BY changed_at LIMIT $limit`,
  changedSince:
    'SELECT conversation_id, told_at FROM toolwright_conversations WHERE told_at > $since ORDER BY told_at',
  told: 'UPDATE toolwright_conversations SET told_at = $told WHERE conversation_id = $id',
  lastTold: 'SELECT coalesce(max(told_at), 0) AS told FROM toolwright_conversations',
  dataVersion: 'PRAGMA data_version',
  removeEvents: 'DELETE FROM toolwright_events WHERE kept_at <= $limit',
  removeEntries: 'DELETE FROM toolwright_inbox WHERE done_at <= $limit',
  idle: `
    SELECT conversation_id FROM toolwright_conversations AS c
    WHERE turn IS NULL AND changed_at <= $before AND ${FREE}
      AND NOT EXISTS (SELECT 1 FROM toolwright_inbox AS i WHERE i.conversation_id = c.conversation_id AND done_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM toolwright_events AS e WHERE e.conversation_id = c.conversation_id AND kept_at > $before)
      AND NOT EXISTS (SELECT 1 FROM toolwright_schedules AS s WHERE s.conversation_id = c.conversation_id)
      AND conversation_id NOT IN (
        SELECT job ->> '$.scope.conversationId' FROM toolwright_jobs
        WHERE status <> 'completed' AND job ->> '$.scope.conversationId' IS NOT NULL
      )
    ORDER BY changed_at LIMIT $limit`,
  heldAtRest: `SELECT owner FROM toolwright_conversations WHERE ${HELD} AND turn IS NULL`,
  eraseResults: `
    DELETE FROM toolwright_kept_results
    WHERE ${OF_TURNS} AND (owner IS $owner OR run_id IN (SELECT run_id FROM toolwright_runs WHERE ${TURNS}))`,
  eraseRunEntries: `
    DELETE FROM toolwright_run_entries WHERE run_id IN (SELECT run_id FROM toolwright_runs WHERE ${TURNS})`,
  eraseRuns: `DELETE FROM toolwright_runs WHERE ${TURNS}`,
  eraseSchedules: 'DELETE FROM toolwright_schedules WHERE conversation_id = $id',
  eraseJobs: "DELETE FROM toolwright_jobs WHERE job ->> '$.scope.conversationId' = $id",
  eraseApprovals: `
    DELETE FROM toolwright_approvals
    WHERE approval ->> '$.scope' = 'conversation' AND approval ->> '$.subject' = $id
      OR approval ->> '$.scope' = 'run' AND ${ofTurns("approval ->> '$.subject'")}`,
  eraseMessages: 'DELETE FROM toolwright_messages WHERE conversation_id = $id',
  eraseInbox: 'DELETE FROM toolwright_inbox WHERE conversation_id = $id',
  eraseEvents: 'DELETE FROM toolwright_events WHERE conversation_id = $id',
  erase: 'DELETE FROM toolwright_conversations WHERE conversation_id = $id',
  hideMessages: 'UPDATE toolwright_messages SET conversation_id = $hidden WHERE conversation_id = $id',
  hideInbox: `
    UPDATE toolwright_inbox SET conversation_id = $hidden, done_at = coalesce(done_at, $now)
    WHERE conversation_id = $id`,
  hideEvents: 'UPDATE toolwright_events SET conversation_id = $hidden WHERE conversation_id = $id',
  hide: `
    UPDATE toolwright_conversations SET conversation_id = $hidden, is_due = 0, claim = NULL, lease_end = NULL
    WHERE conversation_id = $id`,
} as const;

/** The conversations of a `SqliteRunStore`, in the same file. */
export class SqliteConversationLog implements ConversationLog {
  readonly #database: DatabaseSync;
  readonly #now: () => number;
  readonly #sql: Prepared<keyof typeof SQL>;
  readonly #watchers = new Set<{ readonly tell: (news: ConversationNews) => void }>();
  #timer: NodeJS.Timeout | undefined;
  #seen = { version: 0, told: 0 };

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database;
    this.#now = now;
    database.exec(TABLES);
    this.#sql = preparedIn(database, SQL);
  }

  enter(entry: NewInboxEntry): EnteredEntry | undefined {
    const news = { conversationId: entry.conversationId, about: 'inbox' } as const;
    return this.#change(news, () => this.#enter(entry));
  }

  /** Keeps an entry together with another change of the file, if that takes place. */
  enterWith(entry: NewInboxEntry, change: () => boolean): boolean {
    return this.#change({ conversationId: entry.conversationId, about: 'inbox' }, () => {
      const isChanged = change();
      if (isChanged) this.#enter(entry);
      return isChanged;
    });
  }

  #enter({
    conversationId: id,
    key,
    content,
    onlyOwner,
    onlyKnown,
  }: NewInboxEntry): EnteredEntry | undefined {
    const owner = ownerText(content.owner) ?? null;
    const now = this.#now();
    if (!onlyKnown) this.#sql.create.run({ id, owner, now });
    const conversation = this.#sql.owner.get({ id });
    if (conversation === undefined || (onlyOwner && conversation.owner !== owner)) return undefined;
    const known = this.#sql.position.get({ id, key });
    if (known !== undefined) return { position: Number(known.position), isNew: false };
    const row = this.#sql.enter.get({ id, key, content: JSON.stringify(content) });
    this.#sql.entered.run({ id });
    this.#sql.change.run({ id, now });
    return { position: Number(row?.position), isNew: true };
  }

  hold({ conversationId: id, claim, leaseMs }: ConversationLease): HoldOutcome {
    return inTransaction(this.#database, (): HoldOutcome => {
      const now = this.#now();
      const { changes } = this.#sql.hold.run({ id, claim, now, leaseEnd: now + leaseMs });
      const conversation = this.#kept(id);
      if (conversation === undefined) return { status: 'missing' };
      return changes === 0 ? { status: 'taken' } : { status: 'held', conversation };
    });
  }

  renew({ conversationId: id, claim, leaseMs }: ConversationLease): HoldRenewal {
    const row = this.#sql.renew.get({ id, claim, leaseEnd: this.#now() + leaseMs });
    return row === undefined ? { holds: false } : { holds: true, isAbortAsked: row.abort_asked === 1 };
  }

  commit({ conversationId: id, claim }: ConversationHold, commit: ConversationCommit): boolean {
    return this.#change({ conversationId: id, about: 'events' }, () => {
      const held = this.#sql.held.get({ id, claim });
      if (held === undefined) return false;
      const { turn, history, done = [], events = [] } = commit;
      if (history !== undefined) {
        this.#sql.cutHistory.run({ id, keep: history.keep });
        for (const [index, message] of history.messages.entries())
          this.#sql.addMessage.run({ id, position: history.keep + index, message: JSON.stringify(message) });
      }
      for (const position of done) this.#sql.done.run({ id, position, now: this.#now() });
      if (turn !== undefined)
        this.#sql.setTurn.run({ id, turn: turn && JSON.stringify(turn), number: turn?.number ?? 0 });
      this.#addEvents(id, Number(held.last_event), events);
      return true;
    });
  }

  tell({ conversationId: id, claim }: ConversationHold, events: readonly JsonObject[]): number | undefined {
    return this.#change({ conversationId: id, about: 'events' }, () => {
      const row = this.#sql.held.get({ id, claim });
      if (row === undefined) return undefined;
      return this.#addEvents(id, Number(row.last_event), events);
    });
  }

  #addEvents(id: string, last: number, events: readonly JsonObject[]): number {
    const now = this.#now();
    for (const [index, event] of events.entries())
      this.#sql.addEvent.run({ id, number: last + 1 + index, event: JSON.stringify(event), now });
    this.#sql.setLastEvent.run({ id, number: last + events.length });
    return last + events.length;
  }

  letGo({ conversationId: id, claim }: ConversationHold, seen: number): boolean {
    return this.#change(
      { conversationId: id, about: 'events' },
      () => this.#sql.letGo.run({ id, claim, seen }).changes !== 0,
    );
  }

  read(id: string): KeptConversation | undefined {
    return inTransaction(this.#database, () => this.#kept(id));
  }

  #kept(id: string): KeptConversation | undefined {
    const row = this.#sql.conversation.get({ id });
    if (row === undefined) return undefined;
    return {
      conversationId: id,
      ...(row.owner === null ? {} : { owner: JSON.parse(String(row.owner)) }),
      messages: this.#sql.messages
        .all({ id })
        .map(({ message }) => JSON.parse(String(message)) as KeptMessage),
      turns: Number(row.turns),
      ...(row.turn === null ? {} : { turn: JSON.parse(String(row.turn)) as OpenTurn }),
      inbox: this.#sql.inbox.all({ id }).map(entryOf),
      isAbortAsked: row.abort_asked === 1,
      revision: Number(row.revision),
      lastEvent: Number(row.last_event),
      isHeld: row.claim !== null && Number(row.lease_end) > this.#now(),
    };
  }

  events({ conversationId: id, after, limit }: EventQuery): readonly LoggedEvent[] {
    return this.#sql.events
      .all({ id, after, limit })
      .map(({ number, event }) => ({ number: Number(number), event: JSON.parse(String(event)) }));
  }

  askAbort(id: string): boolean {
    return this.#change({ conversationId: id, about: 'inbox' }, () => {
      if (this.#sql.askAbort.run({ id }).changes === 0) return false;
      this.#sql.change.run({ id, now: this.#now() });
      return true;
    });
  }

  due(limit: number): readonly string[] {
    return this.#sql.due.all({ now: this.#now(), limit }).map((row) => String(row.conversation_id));
  }

  watch(listener: (news: ConversationNews) => void): () => void {
    const watcher = { tell: listener };
    this.#watchers.add(watcher);
    if (this.#timer === undefined) this.#beginToWatch();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.stopWatching();
    };
  }

  /** Nobody is told any more, because the file is about to be closed. */
  stopWatching(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  remove({ conversationId: id, claim }: ConversationHold, how: 'hide' | 'erase'): boolean {
    return this.#change({ conversationId: id, about: 'events' }, () => {
      const row = this.#sql.heldAtRest.get({ id, claim });
      if (row === undefined) return false;
      const mark = turnMark(id);
      this.#sql.eraseResults.run({ id, mark, owner: row.owner as string | null });
      this.#sql.eraseRunEntries.run({ id, mark });
      this.#sql.eraseRuns.run({ id, mark });
      this.#sql.eraseSchedules.run({ id });
      this.#sql.eraseApprovals.run({ id });
      if (how === 'hide') this.#hide({ id, hidden: hiddenId(id) });
      else
        for (const part of ['eraseJobs', 'eraseMessages', 'eraseInbox', 'eraseEvents', 'erase'] as const)
          this.#sql[part].run({ id });
      return true;
    });
  }

  #hide(names: { readonly id: string; readonly hidden: string }): void {
    this.#sql.hideInbox.run({ ...names, now: this.#now() });
    for (const part of ['hideMessages', 'hideEvents', 'hide'] as const) this.#sql[part].run(names);
  }

  /** Conversations in which nothing is open or waits, and nothing has happened for so long. */
  idle(ageMs: number, limit: number): readonly string[] {
    const now = this.#now();
    return this.#sql.idle.all({ before: now - ageMs, now, limit }).map((row) => String(row.conversation_id));
  }

  removeEventsOlderThan(ageMs: number): number {
    checkAge(ageMs);
    const limit = this.#now() - ageMs;
    return inTransaction(this.#database, () => {
      this.#sql.removeEntries.run({ limit });
      return Number(this.#sql.removeEvents.run({ limit }).changes);
    });
  }

  /** Changes a conversation, and tells those who watch: here at once, elsewhere when they next look. */
  #change<Outcome>(news: ConversationNews & { conversationId: string }, work: () => Outcome): Outcome {
    const outcome = inTransaction(this.#database, () => {
      const changed = work();
      const told = Number(this.#sql.lastTold.get()?.told) + 1;
      this.#sql.told.run({ id: news.conversationId, told });
      return changed;
    });
    this.#tellAll(news);
    return outcome;
  }

  #tellAll(news: ConversationNews): void {
    for (const { tell } of [...this.#watchers]) tell(news);
  }

  #beginToWatch(): void {
    this.#seen = { version: this.#version(), told: Number(this.#sql.lastTold.get()?.told) };
    // The process stays: it may have nothing else to do than to wait for what others write.
    this.#timer = setInterval(() => this.#look(), WATCH_EVERY_MS);
  }

  /** What other processes have changed since the last look; of a file that cannot be read now, the next one tells. */
  #look(): void {
    for (const news of this.#readNews()) this.#tellAll(news);
  }

  #readNews(): readonly ConversationNews[] {
    try {
      const version = this.#version();
      if (version === this.#seen.version) return [];
      const changed = this.#sql.changedSince.all({ since: this.#seen.told });
      // As far as these rows go: what is written meanwhile is for the next look.
      this.#seen = { version, told: Number(changed.at(-1)?.told_at ?? this.#seen.told) };
      // Which of both it was, the file does not say.
      return changed.flatMap(({ conversation_id: id }) =>
        (['inbox', 'events'] as const).map((about) => ({ conversationId: String(id), about })),
      );
    } catch {
      return [];
    }
  }

  /** Changes whenever another connection has written to the file. */
  #version(): number {
    return Number(this.#sql.dataVersion.get()?.data_version);
  }
}

function entryOf(row: Readonly<Record<string, unknown>>): InboxEntry {
  return { position: Number(row.position), key: String(row.key), content: JSON.parse(String(row.content)) };
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS toolwright_conversations (
    conversation_id TEXT PRIMARY KEY,
    owner TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    turn TEXT,
    entered INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    abort_asked INTEGER NOT NULL DEFAULT 0,
    is_due INTEGER NOT NULL DEFAULT 0,
    last_event INTEGER NOT NULL DEFAULT 0,
    changed_at REAL NOT NULL,
    told_at INTEGER NOT NULL DEFAULT 0,
    claim TEXT,
    lease_end REAL,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  ) STRICT;
  CREATE INDEX IF NOT EXISTS toolwright_conversations_due ON toolwright_conversations (changed_at) WHERE is_due = 1;
  CREATE INDEX IF NOT EXISTS toolwright_conversations_told ON toolwright_conversations (told_at);
  CREATE TABLE IF NOT EXISTS toolwright_messages (
    conversation_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (conversation_id, position)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS toolwright_inbox (
    conversation_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    done_at REAL,
    PRIMARY KEY (conversation_id, position),
    UNIQUE (conversation_id, key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS toolwright_events (
    conversation_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    event TEXT NOT NULL,
    kept_at REAL NOT NULL,
    PRIMARY KEY (conversation_id, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS toolwright_events_kept ON toolwright_events (kept_at);
`;
