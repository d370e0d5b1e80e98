import { conversationKey, grantedKey } from '../../core/contract/budget-ledger.js';
import type {
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  EnteredEntry,
  EventQuery,
  HiddenConversations,
  HoldOutcome,
  HoldRenewal,
  KeptConversation,
  LoggedEvent,
  NewInboxEntry,
} from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { RESULTS_OF_TURNS } from '../../core/contract/result-store.js';
import { checkAge, hiddenId, turnMark } from '../../core/errors/store-checks.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { ownerText } from '../../core/kernel/json.js';
import { KeyQueue } from '../../core/kernel/key-queue.js';
import {
  isDone,
  type Row,
  type RunStatement,
  removeOld,
  type SqlDriver,
  type Statement,
  statements,
  wholeMs,
  writtenRow,
} from './driver.js';

const CONVERSATIONS = ':fleet_conversations';
const HELD = 'conversation_id = $1 AND claim = $2';
const FREE = '(lease_end IS NULL OR lease_end <= {now})';
/** The names of writes increase: a repeated write changes nothing, even if it arrives after later writes. */
const IS_NEW = '(last_write IS NULL OR last_write < $3::uuid)';

/** Numbers the events; the step `done` has increased `last_event` by their count. */
const ADD_EVENTS = `
  INSERT INTO :fleet_events (conversation_id, number, event, kept_at)
  SELECT $1, {done.last_event} - $5::integer + place, value, {now} FROM {each $4} WHERE {done}`;

/** The conversation of a job. */
const JOB_OF = "(job::json -> 'scope' ->> 'conversationId')";
/** Matches run ids of the form that turns of a conversation have. The state (`$3`) shows whether it is one. */
const OF_TURNS = `run_id > $1 || '.' AND run_id < $1 || '/' AND rtrim(substr(run_id, length($1) + 2), '0123456789') = ''`;

/** Removes the conversation's rows in other tables, if the claim holds and no turn is open. */
const BESIDE = {
  done: `SELECT conversation_id, owner FROM ${CONVERSATIONS} WHERE ${HELD} AND turn IS NULL FOR NO KEY UPDATE`,
  results: `
    DELETE FROM :kept_results WHERE {done} AND ${OF_TURNS} AND (
      owner IS NOT DISTINCT FROM {done.owner} OR run_id = $1 || '${RESULTS_OF_TURNS}'
      OR run_id IN (SELECT run_id FROM :runs WHERE ${OF_TURNS} AND strpos(state, $3) > 0)
    )`,
  runs: `DELETE FROM :runs WHERE {done} AND ${OF_TURNS} AND strpos(state, $3) > 0`,
  approvals: 'DELETE FROM :approvals WHERE {done} AND approval ~ $4',
  budgets: 'DELETE FROM :budgets WHERE {done} AND key = $5',
  reservations: 'DELETE FROM :reservations WHERE {done} AND key IN ($5, $6)',
  schedules: 'DELETE FROM :schedules WHERE {done} AND conversation_id = $1',
  // A new conversation with the same id would treat these jobs as its own.
  jobs: `DELETE FROM :jobs WHERE {done} AND ${JOB_OF} = $1`,
};
const OF_IT = 'WHERE {done} AND conversation_id = $1';
/** Hidden conversations of an id (`$1`): their ids begin with "deleted", a UUID and spaces, 45 characters. */
const HIDDEN = `
  SELECT conversation_id FROM ${CONVERSATIONS}
  WHERE conversation_id > 'deleted ' AND conversation_id < 'deleted!' AND substr(conversation_id, 46) = $1
    AND turn IS NULL AND (NOT $2 OR owner IS NOT DISTINCT FROM $3)`;
const OF_HIDDEN = `WHERE {done} AND conversation_id IN (${HIDDEN})`;
const TELLS_EVENTS = { about: 'events', value: 1, once: 'done' } as const;

/** `$1` is the conversation and `$2` the claim, in statements that use them. */
const SQL = statements('fleet', {
  enter: {
    steps: {
      done: `
        INSERT INTO ${CONVERSATIONS} AS kept (conversation_id, owner, entered, revision, is_due, changed_at)
        SELECT $1, $4, 1, 1, true, {now}
        WHERE NOT EXISTS (SELECT 1 FROM :fleet_inbox WHERE conversation_id = $1 AND key = $2)
          AND (NOT $6 OR EXISTS (SELECT 1 FROM ${CONVERSATIONS} WHERE conversation_id = $1))
        ON CONFLICT (conversation_id) DO UPDATE
        SET entered = kept.entered + 1, revision = kept.revision + 1, is_due = true, changed_at = {now}
        WHERE NOT $5 OR kept.owner IS NOT DISTINCT FROM excluded.owner
        RETURNING entered AS position`,
      added: `
        INSERT INTO :fleet_inbox (conversation_id, position, key, content)
        SELECT $1, {done.position}, $2, $3 WHERE {done}`,
    },
    tells: { about: 'inbox', value: 1, once: 'done' },
  },
  known: `
    SELECT position FROM :fleet_inbox WHERE conversation_id = $1 AND key = $2 AND (NOT $4 OR EXISTS (
      SELECT 1 FROM ${CONVERSATIONS} WHERE conversation_id = $1 AND owner IS NOT DISTINCT FROM $3
    ))`,
  hold: `
    UPDATE ${CONVERSATIONS} SET claim = $2, lease_end = {now} + $3::bigint, is_due = true,
      last_write = CASE WHEN claim = $2 THEN last_write END
    WHERE conversation_id = $1 AND {version} = $4 AND (${FREE} OR claim = $2) RETURNING conversation_id`,
  renew: `UPDATE ${CONVERSATIONS} SET lease_end = {now} + $3::bigint WHERE ${HELD} RETURNING abort_asked`,
  commit: {
    steps: {
      done: `
        UPDATE ${CONVERSATIONS} SET turn = CASE WHEN $6 THEN $7 ELSE turn END,
          turns = CASE WHEN turns < $8 THEN $8 ELSE turns END, abort_asked = abort_asked AND NOT $6,
          last_event = last_event + $5::integer, last_write = $3::uuid
        WHERE ${HELD} AND ${IS_NEW} RETURNING last_event`,
      events: ADD_EVENTS,
      cut: `DELETE FROM :fleet_messages ${OF_IT} AND position >= $9::integer + $11::integer`,
      said: `
        INSERT INTO :fleet_messages (conversation_id, position, message)
        SELECT $1, $9 + place - 1, value FROM {each $10} WHERE {done}
        ON CONFLICT (conversation_id, position) DO UPDATE SET message = excluded.message`,
      finished: `
        UPDATE :fleet_inbox SET done_at = {now} ${OF_IT} AND position IN (SELECT value::integer FROM {each $12})`,
    },
    tells: TELLS_EVENTS,
  },
  tell: {
    steps: {
      done: `
        UPDATE ${CONVERSATIONS} SET last_event = last_event + $5::integer, last_write = $3::uuid
        WHERE ${HELD} AND ${IS_NEW} RETURNING last_event`,
      events: ADD_EVENTS,
    },
    tells: TELLS_EVENTS,
  },
  held: `SELECT last_event FROM ${CONVERSATIONS} WHERE ${HELD}`,
  let_go: {
    steps: {
      done: `
        UPDATE ${CONVERSATIONS} SET claim = NULL, lease_end = NULL, is_due = (revision <> $3)
        WHERE ${HELD} RETURNING conversation_id`,
    },
    tells: TELLS_EVENTS,
  },
  read: `
    SELECT {version} AS version, claim, owner, turns, turn, abort_asked, revision, last_event, NOT ${FREE} AS is_held,
      (SELECT string_agg(message, ',' ORDER BY position) FROM :fleet_messages WHERE conversation_id = $1) AS messages,
      (
        SELECT string_agg('{"position":' || position || ',"key":' || to_json(key) || ',"content":' || content || '}',
          ',' ORDER BY position)
        FROM :fleet_inbox WHERE conversation_id = $1 AND done_at IS NULL
      ) AS inbox
    FROM ${CONVERSATIONS} WHERE conversation_id = $1`,
  events: `
    SELECT number, event FROM :fleet_events WHERE conversation_id = $1 AND number > $2 ORDER BY number LIMIT $3`,
  open_turn: `SELECT turns FROM ${CONVERSATIONS} WHERE conversation_id = $1 AND turn IS NOT NULL`,
  ask_abort: {
    steps: {
      asked: `
        SELECT abort_asked FROM ${CONVERSATIONS}
        WHERE conversation_id = $1 AND turns = $2 AND turn IS NOT NULL FOR NO KEY UPDATE`,
      done: `
        UPDATE ${CONVERSATIONS} SET abort_asked = true, revision = revision + 1, is_due = true, changed_at = {now}
        WHERE conversation_id = $1 AND {asked} AND NOT {asked.abort_asked} RETURNING conversation_id`,
    },
    tells: { about: 'inbox', value: 1, once: 'done' },
  },
  due: `
    SELECT conversation_id FROM ${CONVERSATIONS} WHERE is_due AND ${FREE} ORDER BY changed_at LIMIT $1`,
  remove_entries: 'DELETE FROM :fleet_inbox WHERE done_at <= {at} - $1::bigint',
  remove_events: `
    DELETE FROM :fleet_events WHERE (conversation_id, number) IN (
      SELECT conversation_id, number FROM :fleet_events WHERE kept_at <= {at} - $1::bigint LIMIT $2
    )`,
  idle: `
    SELECT conversation_id FROM ${CONVERSATIONS} AS c
    WHERE turn IS NULL AND changed_at <= {at} - $1::bigint AND ${FREE}
      AND NOT EXISTS (SELECT 1 FROM :fleet_inbox AS i WHERE i.conversation_id = c.conversation_id AND done_at IS NULL)
      AND NOT EXISTS (
        SELECT 1 FROM :fleet_events AS e WHERE e.conversation_id = c.conversation_id AND kept_at > {at} - $1::bigint
      )
      AND NOT EXISTS (SELECT 1 FROM :schedules AS s WHERE s.conversation_id = c.conversation_id)
      AND conversation_id NOT IN (
        SELECT ${JOB_OF} FROM :jobs WHERE status <> 'completed' AND ${JOB_OF} IS NOT NULL
      )
    ORDER BY changed_at LIMIT $2`,
  erase: {
    steps: {
      ...BESIDE,
      messages: `DELETE FROM :fleet_messages ${OF_IT}`,
      inbox: `DELETE FROM :fleet_inbox ${OF_IT}`,
      events: `DELETE FROM :fleet_events ${OF_IT}`,
      gone: `DELETE FROM ${CONVERSATIONS} ${OF_IT}`,
    },
    tells: TELLS_EVENTS,
  },
  erase_hidden: {
    steps: {
      done: HIDDEN,
      messages: `DELETE FROM :fleet_messages ${OF_HIDDEN}`,
      inbox: `DELETE FROM :fleet_inbox ${OF_HIDDEN}`,
      events: `DELETE FROM :fleet_events ${OF_HIDDEN}`,
      gone: `DELETE FROM ${CONVERSATIONS} ${OF_HIDDEN}`,
    },
  },
  hide: {
    steps: {
      ...BESIDE,
      messages: `UPDATE :fleet_messages SET conversation_id = $7 ${OF_IT}`,
      inbox: `UPDATE :fleet_inbox SET conversation_id = $7, done_at = coalesce(done_at, {now}) ${OF_IT}`,
      events: `UPDATE :fleet_events SET conversation_id = $7 ${OF_IT}`,
      gone: `
        UPDATE ${CONVERSATIONS} SET conversation_id = $7, is_due = false, claim = NULL, lease_end = NULL ${OF_IT}`,
    },
    tells: TELLS_EVENTS,
  },
});

/** PostgreSQL's `unique_violation`: two inserts of the same key at the same time. */
const UNIQUE_VIOLATION = '23505';

/** Longer than any history: nothing is cut. */
const UNCUT = 2 ** 30;

/** The conversations of a store. Each method executes at most one statement that changes something. */
export class SqlConversationLog implements ConversationLog {
  /** The writes of a conversation have increasing names: one that is not greater than the last is a late repeat. */
  readonly #writes = new KeyQueue();

  readonly #run: RunStatement;
  readonly watch: ConversationLog['watch'];

  constructor(driver: SqlDriver) {
    this.#run = driver.run;
    this.watch = (listener) => driver.watch(listener);
  }

  async enter(entry: NewInboxEntry): Promise<EnteredEntry | undefined> {
    try {
      return await this.#enter(entry);
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
      return this.#enter(entry);
    }
  }

  async #enter(entry: NewInboxEntry): Promise<EnteredEntry | undefined> {
    const { conversationId: id, key, content, onlyOwner = false, onlyKnown = false } = entry;
    const owner = ownerText(content.owner) ?? null;
    const values = [id, key, JSON.stringify(content), owner, onlyOwner, onlyKnown];
    const { rows, isRepeated } = await this.#run(SQL.enter, values);
    if (rows[0] !== undefined) return { position: Number(rows[0].position), isNew: true };
    const [known] = (await this.#run(SQL.known, [id, key, owner, onlyOwner])).rows;
    // A repeated statement finds the entry that its first execution added.
    return known && { position: Number(known.position), isNew: isRepeated };
  }

  /** Names the version of the conversation that it has read: a repeated statement finds another version. */
  async hold({ conversationId, claim, leaseMs }: ConversationLease): Promise<HoldOutcome> {
    for (;;) {
      const [row] = (await this.#run(SQL.read, [conversationId])).rows;
      if (row === undefined) return { status: 'missing' };
      const conversation = keptConversation(conversationId, row);
      if (conversation.isHeld && row.claim !== claim) return { status: 'taken' };
      const held = await this.#run(SQL.hold, [conversationId, claim, wholeMs(leaseMs), row.version]);
      if (held.rows.length > 0) return { status: 'held', conversation: { ...conversation, isHeld: true } };
    }
  }

  async renew({ conversationId, claim, leaseMs }: ConversationLease): Promise<HoldRenewal> {
    const { rows } = await this.#run(SQL.renew, [conversationId, claim, wholeMs(leaseMs)]);
    const [row] = rows;
    return row === undefined ? { holds: false } : { holds: true, isAbortAsked: Boolean(row.abort_asked) };
  }

  async commit(hold: ConversationHold, commit: ConversationCommit): Promise<boolean> {
    const { turn, history = { keep: UNCUT, messages: [] }, done = [], events = [] } = commit;
    const row = await this.#write(SQL.commit, hold, [
      ...[events.map(toJson), events.length, turn !== undefined, turn ? toJson(turn) : null],
      ...[turn?.number ?? 0, history.keep, history.messages.map(toJson), history.messages.length, done],
    ]);
    return row !== undefined;
  }

  async tell(hold: ConversationHold, events: readonly JsonObject[]): Promise<number | undefined> {
    const row = await this.#write(SQL.tell, hold, [events.map(toJson), events.length]);
    return row && Number(row.last_event);
  }

  async letGo({ conversationId, claim }: ConversationHold, seen: number): Promise<boolean> {
    return isDone(await this.#run(SQL.let_go, [conversationId, claim, seen]));
  }

  async read(conversationId: string): Promise<KeptConversation | undefined> {
    const { rows } = await this.#run(SQL.read, [conversationId]);
    return rows[0] && keptConversation(conversationId, rows[0]);
  }

  async events({ conversationId, after, limit }: EventQuery): Promise<readonly LoggedEvent[]> {
    const { rows } = await this.#run(SQL.events, [conversationId, after, limit]);
    return rows.map(({ number, event }) => ({ number: Number(number), event: JSON.parse(String(event)) }));
  }

  /** Names the turn, so that a repeated statement does not abort a later turn. */
  async askAbort(conversationId: string): Promise<boolean> {
    const [open] = (await this.#run(SQL.open_turn, [conversationId])).rows;
    if (open === undefined) return false;
    return isDone(await this.#run(SQL.ask_abort, [conversationId, open.turns]));
  }

  async due(limit: number): Promise<readonly string[]> {
    return (await this.#run(SQL.due, [limit])).rows.map(idOf);
  }

  async remove({ conversationId: id, claim }: ConversationHold, how: 'hide' | 'erase'): Promise<boolean> {
    const key = conversationKey(id);
    // A pattern for the conversation of a standing approval, or for one of its turns, in JSON text. PostgreSQL's JSON
    // functions refuse some texts.
    const subject = escapePattern(JSON.stringify(id).slice(1, -1));
    const approval = `"scope":"(?:conversation","subject":"${subject}|run","subject":"${subject}\\.[0-9]+)"`;
    const values = [id, claim, turnMark(id), approval, key, grantedKey(key)];
    return isDone(
      await (how === 'hide' ? this.#run(SQL.hide, [...values, hiddenId(id)]) : this.#run(SQL.erase, values)),
    );
  }

  async eraseHidden({ conversationId, owner, onlyOwner }: HiddenConversations): Promise<boolean> {
    const values = [conversationId, onlyOwner, ownerText(owner) ?? null];
    return isDone(await this.#run(SQL.erase_hidden, values));
  }

  /** Conversations without an open turn, waiting entries, or activity in the last `ageMs`. */
  async idle(ageMs: number, limit: number): Promise<readonly string[]> {
    return (await this.#run(SQL.idle, [wholeMs(ageMs), limit])).rows.map(idOf);
  }

  async removeEventsOlderThan(ageMs: number): Promise<number> {
    checkAge(ageMs);
    await this.#run(SQL.remove_entries, [wholeMs(ageMs)]);
    return removeOld(this.#run, SQL.remove_events, [ageMs]);
  }

  /** The row that a write returned; `undefined` if the lease was lost. After a repeat, checks the lease again. */
  #write(
    statement: Statement,
    { conversationId, claim }: ConversationHold,
    values: readonly unknown[],
  ): Promise<Row | undefined> {
    return this.#writes.run(conversationId, async () => {
      // A name that sorts after all earlier ones of this process, from which all writes of one claim come.
      named += 1;
      const name = `00000000-0000-0000-0000-${named.toString(16).padStart(12, '0')}`;
      const written = await this.#run(statement, [conversationId, claim, name, ...values]);
      return writtenRow(written, () => this.#run(SQL.held, [conversationId, claim]));
    });
  }
}

function idOf(row: Row): string {
  return String(row.conversation_id);
}

function keptConversation(conversationId: string, row: Row): KeptConversation {
  return {
    conversationId,
    ...(row.owner !== null && { owner: JSON.parse(String(row.owner)) }),
    messages: JSON.parse(`[${row.messages ?? ''}]`),
    turns: Number(row.turns),
    ...(row.turn !== null && { turn: JSON.parse(String(row.turn)) }),
    inbox: JSON.parse(`[${row.inbox ?? ''}]`),
    isAbortAsked: Boolean(row.abort_asked),
    revision: Number(row.revision),
    lastEvent: Number(row.last_event),
    isHeld: Boolean(row.is_held),
  };
}

function toJson(value: object): string {
  return JSON.stringify(value);
}

/** The number of writes of this process that have a name. */
let named = 0;
