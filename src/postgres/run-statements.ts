import { NOW, NOW_ONCE, namedStatements, pageBehind, type Statement } from './statements.js';

const FREE = `(lease_end IS NULL OR lease_end <= ${NOW})`;
const SUMMARY = 'run_id, status, generation, lease_end, created_at, changed_at';
const FREED = 'claim = NULL, lease_end = NULL, ended_claim = $2';

/** Stand for the tables, whose schema is told later. */
const RUNS = ':runs';
const ENTRIES = ':run_entries';

const DROPPED = `dropped AS (DELETE FROM ${ENTRIES} AS old USING done WHERE old.run_id = done.run_id)`;
const ADDED = `added AS (
  INSERT INTO ${ENTRIES} (run_id, write_id, entries) SELECT run_id, $3, $4 FROM done ON CONFLICT DO NOTHING
)`;

/** The run of the turn that the conversation has open whose id it may have, by its key; an open turn is the last one. */
const OPEN_TURN = `coalesce((
  SELECT conversation_id || '.' || turns FROM :fleet_conversations
  WHERE conversation_id = left(rtrim(run_id, '0123456789'), -1) AND turn IS NOT NULL
), '')`;

const page = (where: string) => pageBehind({ table: RUNS, columns: SUMMARY, id: 'run_id', where });

/** `$1` is the run and `$2` the claim, where a statement has them. */
const TEXTS = {
  // A copy changes nothing: what is kept is what it brings.
  save: `
    WITH done AS (
      INSERT INTO ${RUNS} AS kept (run_id, status, revision, state, created_at, changed_at, expires_at, turn_of)
      SELECT $1, 'suspended', $2::integer, $3, at.now, at.now, $4::bigint, $5 FROM (SELECT ${NOW} AS now) AS at
      ON CONFLICT (run_id) DO UPDATE
      SET revision = excluded.revision, state = excluded.state, changed_at = excluded.changed_at,
        claim = NULL, lease_end = NULL, expires_at = excluded.expires_at, turn_of = excluded.turn_of
      WHERE kept.status = 'suspended' AND kept.revision <= excluded.revision
        AND (kept.lease_end IS NULL OR kept.lease_end <= ${NOW})
        AND (kept.revision < excluded.revision OR kept.state <> excluded.state)
      RETURNING run_id
    )
    SELECT run_id FROM done
    UNION ALL SELECT run_id FROM ${RUNS}
    WHERE run_id = $1 AND status = 'suspended' AND revision = $2::integer AND state = $3 AND ${FREE}`,
  load: `SELECT state FROM ${RUNS} WHERE run_id = $1 AND status = 'suspended'`,
  claimable: `
    SELECT xmin::text AS version, claim, status, NOT ${FREE} AS is_held FROM ${RUNS} WHERE run_id = $1`,
  // As it was read: a copy that comes later finds another version of the row.
  hold: `
    UPDATE ${RUNS} SET claim = $2, lease_end = ${NOW} + $3, generation = generation + 1
    WHERE run_id = $1 AND xmin::text = $4 RETURNING state`,
  renew: `UPDATE ${RUNS} SET lease_end = ${NOW} + $3 WHERE run_id = $1 AND claim = $2 RETURNING run_id`,
  release: `UPDATE ${RUNS} SET ${FREED} WHERE run_id = $1 AND claim = $2 RETURNING run_id`,
  suspend: `
    WITH done AS (
      UPDATE ${RUNS} SET status = 'suspended', revision = $3, state = $4, changed_at = ${NOW}, ${FREED},
        expires_at = $5, turn_of = $6
      WHERE run_id = $1 AND claim = $2 RETURNING run_id
    ), ${DROPPED}
    SELECT run_id FROM done`,
  remove: `DELETE FROM ${RUNS} WHERE run_id = $1 AND claim = $2 RETURNING run_id`,
  begin: `
    INSERT INTO ${RUNS} (run_id, status, revision, state, created_at, changed_at, claim, lease_end, generation)
    SELECT $1, 'running', $3::integer, $4, at.now, at.now, $2, at.now + $5, 1 FROM (SELECT ${NOW} AS now) AS at
    ON CONFLICT DO NOTHING RETURNING run_id`,
  append: `
    WITH done AS (SELECT run_id FROM ${RUNS} WHERE run_id = $1 AND claim = $2 FOR NO KEY UPDATE),
      ${ADDED}
    SELECT run_id FROM done`,
  // Leaves its name, '$5', among the entries, by which a copy knows that it is one.
  keep: `
    WITH held AS (SELECT run_id FROM ${RUNS} WHERE run_id = $1 AND claim = $2 FOR NO KEY UPDATE),
      done AS (
        UPDATE ${RUNS} AS kept
        SET status = 'running', revision = $3, state = $4, changed_at = ${NOW}, expires_at = NULL
        FROM held
        WHERE kept.run_id = held.run_id
          AND NOT EXISTS (SELECT FROM ${ENTRIES} WHERE run_id = $1 AND write_id = $5)
        RETURNING kept.run_id
      ), ${DROPPED}, marked AS (
        INSERT INTO ${ENTRIES} (run_id, write_id, entries) SELECT run_id, $5, '[]' FROM done ON CONFLICT DO NOTHING
      )
    SELECT run_id FROM held`,
  end: `
    WITH done AS (
      UPDATE ${RUNS} SET status = 'ended', changed_at = ${NOW}, expires_at = NULL, ${FREED}
      WHERE run_id = $1 AND claim = $2 RETURNING run_id
    ), ${ADDED}
    SELECT run_id FROM done`,
  hasHeld: `SELECT run_id FROM ${RUNS} WHERE run_id = $1 AND (claim = $2 OR ended_claim = $2)`,
  isKept: `SELECT run_id FROM ${RUNS} WHERE run_id = $1`,
  // One of the '$1' that were lost first: those who look at the same moment take different ones.
  lost: `
    SELECT run_id, version FROM (
      SELECT run_id, xmin::text AS version FROM ${RUNS}
      WHERE status = 'running' AND coalesce(lease_end, 0) <= ${NOW_ONCE} AND run_id <> ${OPEN_TURN}
      ORDER BY coalesce(lease_end, 0) LIMIT $1
    ) AS first ORDER BY random() LIMIT 1`,
  read: `
    SELECT ${SUMMARY}, state, (
      SELECT string_agg(entries, ',' ORDER BY seq) FROM ${ENTRIES} WHERE run_id = $1
    ) AS entries
    FROM ${RUNS} WHERE run_id = $1`,
  list: page('true'),
  listByStatus: page('status = $4'),
  expired: `
    SELECT run_id, turn_of FROM ${RUNS}
    WHERE expires_at <= ${NOW_ONCE} AND (turn_of IS NULL) = $1 AND status = 'suspended' AND ${FREE}
    ORDER BY expires_at LIMIT $2`,
  removeOlderThan: `
    DELETE FROM ${RUNS} WHERE run_id = ANY(ARRAY(
      SELECT run_id FROM ${RUNS}
      WHERE status IN ('ended', $3) AND changed_at <= ${NOW_ONCE} - $1 AND ${FREE} AND run_id <> ${OPEN_TURN}
      ORDER BY changed_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ))`,
};

/** The statements of the runs in a schema. */
export function runStatements(schema: string): Readonly<Record<keyof typeof TEXTS, Statement>> {
  return namedStatements(schema, TEXTS);
}
