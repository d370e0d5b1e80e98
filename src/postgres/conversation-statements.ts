import { NOW, NOW_ONCE, namedStatements, type Statement } from './statements.js';

const FREE = `(lease_end IS NULL OR lease_end <= ${NOW})`;

/** The channel on which news of the conversations of a schema are told to all processes. */
export function conversationChannel(schema: string): string {
  return `${schema}.fleet_conversations`;
}

const tell = (about: string, from: string) =>
  `told AS (SELECT pg_notify(':fleet_conversations', '${about} ' || $1) FROM ${from})`;
const HELD = 'conversation_id = $1 AND claim = $2';
/** Names of writes rise, so that a copy changes nothing, also when it comes after later writes. */
const IS_NEW = '(held.last_write IS NULL OR held.last_write < $3)';
const CHANGED = `revision = kept.revision + 1, is_due = true, changed_at = ${NOW}`;
const ADD_EVENTS = `
  INSERT INTO :fleet_events (conversation_id, number, event, kept_at)
  SELECT $1, last_event - cardinality($4::text[]) + place, event, ${NOW}
  FROM done, unnest($4::text[]) WITH ORDINALITY AS told (event, place)`;

/** The conversation of a job. */
const JOB_OF = "(job::json #>> '{scope,conversationId}')";
/** Held, and without an open turn. */
const AT_REST = `held AS (
  SELECT owner AS its_owner FROM :fleet_conversations WHERE ${HELD} AND turn IS NULL FOR NO KEY UPDATE
)`;
/** Ids that turns of a conversation have; whether a run is one, its state says (`$3`). */
const OF_TURNS = `run_id > $1 || '.' AND run_id < $1 || '/' AND substr(run_id, length($1) + 2) ~ '^[0-9]+$'`;
const BESIDE = `
  turns AS (SELECT run_id FROM :runs WHERE ${OF_TURNS} AND strpos(state, $3) > 0),
  results AS (
    DELETE FROM :kept_results USING held
    WHERE ${OF_TURNS} AND (owner IS NOT DISTINCT FROM its_owner OR run_id IN (SELECT run_id FROM turns))
  ), runs AS (
    DELETE FROM :runs AS r USING held, turns WHERE r.run_id = turns.run_id
  ), approvals AS (
    DELETE FROM :approvals USING held WHERE approval ~ $4
  ), schedules AS (
    DELETE FROM :schedules USING held WHERE conversation_id = $1
  )`;

/** `$1` is the conversation and `$2` the claim, where a statement has them; for the tables, the schema is told later. */
const TEXTS = {
  enter: `
    WITH known AS (SELECT position FROM :fleet_inbox WHERE conversation_id = $1 AND key = $2),
      changed AS (
        INSERT INTO :fleet_conversations AS kept (conversation_id, owner, entered, revision, is_due, changed_at)
        SELECT $1, $4, 1, 1, true, ${NOW}
        WHERE NOT EXISTS (SELECT FROM known)
          AND (NOT $6 OR EXISTS (SELECT FROM :fleet_conversations WHERE conversation_id = $1))
        ON CONFLICT (conversation_id) DO UPDATE SET entered = kept.entered + 1, ${CHANGED}
        WHERE NOT $5 OR kept.owner IS NOT DISTINCT FROM excluded.owner
        RETURNING entered
      ), added AS (
        INSERT INTO :fleet_inbox (conversation_id, position, key, content) SELECT $1, entered, $2, $3 FROM changed
        RETURNING position
      ), ${tell('inbox', 'added')}
    SELECT position, true AS is_new, (SELECT count(*) FROM told) FROM added
    UNION ALL SELECT position, false, 0 FROM known WHERE NOT $5
      OR EXISTS (SELECT FROM :fleet_conversations WHERE conversation_id = $1 AND owner IS NOT DISTINCT FROM $4)`,
  hold: `
    UPDATE :fleet_conversations
    SET claim = $2, lease_end = ${NOW} + $3, is_due = true, last_write = CASE WHEN claim = $2 THEN last_write END
    WHERE conversation_id = $1 AND xmin::text = $4 AND (${FREE} OR claim = $2) RETURNING conversation_id`,
  renew: `
    UPDATE :fleet_conversations SET lease_end = ${NOW} + $3 WHERE ${HELD} RETURNING abort_asked`,
  commit: `
    WITH held AS (SELECT last_write FROM :fleet_conversations WHERE ${HELD} FOR NO KEY UPDATE),
      done AS (
        UPDATE :fleet_conversations AS kept
        SET turn = CASE WHEN $5 THEN $6 ELSE kept.turn END, turns = greatest(kept.turns, $7),
          abort_asked = kept.abort_asked AND NOT $5, last_event = kept.last_event + cardinality($4::text[]),
          last_write = $3
        FROM held WHERE conversation_id = $1 AND ${IS_NEW}
        RETURNING kept.last_event
      ), told_events AS (${ADD_EVENTS}), cut AS (
        DELETE FROM :fleet_messages USING done
        WHERE conversation_id = $1 AND position >= $8 + cardinality($9::text[])
      ), said AS (
        INSERT INTO :fleet_messages (conversation_id, position, message)
        SELECT $1, $8 + place - 1, message
        FROM done, unnest($9::text[]) WITH ORDINALITY AS said (message, place)
        ON CONFLICT (conversation_id, position) DO UPDATE SET message = excluded.message
      ), finished AS (
        UPDATE :fleet_inbox SET done_at = ${NOW} FROM done
        WHERE conversation_id = $1 AND position = ANY($10::integer[])
      ), ${tell('events', 'done')}
    SELECT last_write, (SELECT count(*) FROM told) FROM held`,
  tell: `
    WITH held AS (SELECT last_write, last_event FROM :fleet_conversations WHERE ${HELD} FOR NO KEY UPDATE),
      done AS (
        UPDATE :fleet_conversations AS kept
        SET last_event = kept.last_event + cardinality($4::text[]), last_write = $3
        FROM held WHERE conversation_id = $1 AND ${IS_NEW}
        RETURNING kept.last_event
      ), told_events AS (${ADD_EVENTS}), ${tell('events', 'done')}
    SELECT coalesce((SELECT last_event FROM done), last_event) AS last_event, (SELECT count(*) FROM told)
    FROM held`,
  letGo: `
    WITH done AS (
      UPDATE :fleet_conversations SET claim = NULL, lease_end = NULL, is_due = (revision <> $3)
      WHERE ${HELD} RETURNING conversation_id
    ), ${tell('events', 'done')}
    SELECT (SELECT count(*) FROM told) FROM done`,
  read: `
    SELECT xmin::text AS version, claim, owner, turns, turn, abort_asked, revision, last_event, NOT ${FREE} AS is_held,
      array(SELECT message FROM :fleet_messages WHERE conversation_id = $1 ORDER BY position) AS messages,
      array(
        SELECT json_build_object('position', position, 'key', key, 'content', content::json)::text FROM :fleet_inbox
        WHERE conversation_id = $1 AND done_at IS NULL ORDER BY position
      ) AS inbox
    FROM :fleet_conversations WHERE conversation_id = $1`,
  events: `
    SELECT number, event FROM :fleet_events WHERE conversation_id = $1 AND number > $2 ORDER BY number LIMIT $3`,
  openTurn: `SELECT turns FROM :fleet_conversations WHERE conversation_id = $1 AND turn IS NOT NULL`,
  askAbort: `
    WITH asked AS (
      SELECT abort_asked FROM :fleet_conversations
      WHERE conversation_id = $1 AND turns = $2 AND turn IS NOT NULL FOR NO KEY UPDATE
    ), done AS (
      UPDATE :fleet_conversations AS kept SET abort_asked = true, ${CHANGED}
      FROM asked WHERE conversation_id = $1 AND NOT asked.abort_asked RETURNING conversation_id
    ), ${tell('inbox', 'done')}
    SELECT (SELECT count(*) FROM told) FROM asked`,
  due: `
    SELECT conversation_id FROM :fleet_conversations WHERE is_due AND ${FREE} ORDER BY changed_at LIMIT $1`,
  removeEvents: `
    DELETE FROM :fleet_events WHERE (conversation_id, number) IN (
      SELECT conversation_id, number FROM :fleet_events WHERE kept_at <= (SELECT ${NOW}) - $1 LIMIT $2
    )`,
  idle: `
    SELECT conversation_id FROM :fleet_conversations AS c
    WHERE turn IS NULL AND changed_at <= ${NOW_ONCE} - $1::bigint AND ${FREE}
      AND NOT EXISTS (SELECT FROM :fleet_inbox AS i WHERE i.conversation_id = c.conversation_id AND done_at IS NULL)
      AND NOT EXISTS (
        SELECT FROM :fleet_events AS e WHERE e.conversation_id = c.conversation_id AND kept_at > ${NOW_ONCE} - $1::bigint
      )
      AND NOT EXISTS (SELECT FROM :schedules AS s WHERE s.conversation_id = c.conversation_id)
      AND conversation_id <> ALL (ARRAY(
        SELECT ${JOB_OF} FROM :jobs WHERE status <> 'completed' AND ${JOB_OF} IS NOT NULL
      ))
    ORDER BY changed_at LIMIT $2`,
  erase: `
    WITH ${AT_REST}, ${BESIDE}, gone AS (
      DELETE FROM :fleet_conversations USING held WHERE conversation_id = $1
    ), messages AS (
      DELETE FROM :fleet_messages USING held WHERE conversation_id = $1
    ), inbox AS (
      DELETE FROM :fleet_inbox USING held WHERE conversation_id = $1
    ), events AS (
      DELETE FROM :fleet_events USING held WHERE conversation_id = $1
    ), jobs AS (
      DELETE FROM :jobs USING held WHERE ${JOB_OF} = $1
    ), ${tell('events', 'held')}
    SELECT (SELECT count(*) FROM told) FROM held`,
  hide: `
    WITH ${AT_REST}, ${BESIDE}, gone AS (
      UPDATE :fleet_conversations AS kept SET conversation_id = $5, is_due = false, claim = NULL, lease_end = NULL
      FROM held WHERE conversation_id = $1
    ), messages AS (
      UPDATE :fleet_messages SET conversation_id = $5 FROM held WHERE conversation_id = $1
    ), inbox AS (
      UPDATE :fleet_inbox SET conversation_id = $5, done_at = coalesce(done_at, ${NOW})
      FROM held WHERE conversation_id = $1
    ), events AS (
      UPDATE :fleet_events SET conversation_id = $5 FROM held WHERE conversation_id = $1
    ), ${tell('events', 'held')}
    SELECT (SELECT count(*) FROM told) FROM held`,
  removeEntries: `DELETE FROM :fleet_inbox WHERE done_at <= (SELECT ${NOW}) - $1`,
};

/** The statements of the conversations in a schema. */
export function conversationStatements(schema: string): Readonly<Record<keyof typeof TEXTS, Statement>> {
  return namedStatements(schema, TEXTS, 'fleet_');
}
