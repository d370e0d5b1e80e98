import { connectionOf, type PostgresClient, type PostgresPool } from './pool.js';

/** What makes the tables of each version of those of the version before; times are milliseconds since 1970. */
const MIGRATIONS: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.runs (
      run_id text COLLATE "C" PRIMARY KEY,
      status text NOT NULL CHECK (status IN ('running', 'suspended', 'ended')),
      revision integer NOT NULL,
      generation bigint NOT NULL DEFAULT 0,
      claim text,
      lease_end bigint,
      ended_claim text,
      created_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      state text NOT NULL,
      CHECK ((claim IS NULL) = (lease_end IS NULL))
    );
    CREATE INDEX runs_by_change ON ${schema}.runs (changed_at DESC, run_id);
    CREATE INDEX runs_by_status ON ${schema}.runs (status, changed_at DESC, run_id);
    CREATE INDEX runs_lost ON ${schema}.runs (coalesce(lease_end, 0)) WHERE status = 'running';
    COMMENT ON COLUMN ${schema}.runs.claim IS 'Of who holds the run until lease_end, or held it and was not replaced';
    COMMENT ON COLUMN ${schema}.runs.ended_claim IS 'The last claim that its holder ended';
    CREATE TABLE ${schema}.run_entries (
      run_id text COLLATE "C" NOT NULL REFERENCES ${schema}.runs ON DELETE CASCADE,
      write_id uuid NOT NULL,
      seq bigint GENERATED ALWAYS AS IDENTITY,
      entries text NOT NULL,
      PRIMARY KEY (run_id, write_id)
    );
    COMMENT ON COLUMN ${schema}.run_entries.entries IS 'What was added at once, a JSON array; seq orders the rows'`,
  (schema) => `
    CREATE TABLE ${schema}.jobs (
      job_id text COLLATE "C" PRIMARY KEY,
      job text NOT NULL,
      options text NOT NULL,
      status text NOT NULL CHECK (status IN ('waiting', 'running', 'completed')),
      is_sent boolean NOT NULL DEFAULT false,
      attempt integer NOT NULL DEFAULT 0,
      added_by uuid NOT NULL,
      added_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      result text,
      completed_by uuid,
      CHECK ((status = 'completed') = (result IS NOT NULL))
    );
    CREATE INDEX jobs_open ON ${schema}.jobs (is_sent, changed_at) WHERE status <> 'completed';
    CREATE INDEX jobs_by_change ON ${schema}.jobs (changed_at DESC, job_id);
    CREATE INDEX jobs_by_status ON ${schema}.jobs (status, changed_at DESC, job_id);
    COMMENT ON COLUMN ${schema}.jobs.added_by IS 'Of the write that added it, which may be sent twice; so completed_by'`,
  (schema) => `
    CREATE TABLE ${schema}.fleet_conversations (
      conversation_id text COLLATE "C" PRIMARY KEY,
      turns integer NOT NULL DEFAULT 0,
      turn text,
      entered integer NOT NULL DEFAULT 0,
      revision bigint NOT NULL DEFAULT 0,
      abort_asked boolean NOT NULL DEFAULT false,
      is_due boolean NOT NULL DEFAULT false,
      last_event bigint NOT NULL DEFAULT 0,
      last_write uuid,
      changed_at bigint NOT NULL,
      claim text,
      lease_end bigint,
      CHECK ((claim IS NULL) = (lease_end IS NULL))
    );
    CREATE INDEX fleet_conversations_due ON ${schema}.fleet_conversations (changed_at) WHERE is_due;
    CREATE TABLE ${schema}.fleet_messages (
      conversation_id text COLLATE "C" NOT NULL,
      position integer NOT NULL,
      message text NOT NULL,
      PRIMARY KEY (conversation_id, position)
    );
    CREATE TABLE ${schema}.fleet_inbox (
      conversation_id text COLLATE "C" NOT NULL,
      position integer NOT NULL,
      key text NOT NULL,
      content text NOT NULL,
      done_at bigint,
      PRIMARY KEY (conversation_id, position),
      UNIQUE (conversation_id, key)
    );
    CREATE INDEX fleet_inbox_done ON ${schema}.fleet_inbox (done_at) WHERE done_at IS NOT NULL;
    CREATE TABLE ${schema}.fleet_events (
      conversation_id text COLLATE "C" NOT NULL,
      number bigint NOT NULL,
      event text NOT NULL,
      kept_at bigint NOT NULL,
      PRIMARY KEY (conversation_id, number)
    );
    CREATE INDEX fleet_events_kept ON ${schema}.fleet_events (kept_at);
    COMMENT ON COLUMN ${schema}.fleet_conversations.is_due IS 'Something entered that no holder has seen'`,
  (schema) => `
    CREATE TABLE ${schema}.conversations (
      id text COLLATE "C" PRIMARY KEY,
      turn_id text NOT NULL,
      finish_reason text NOT NULL,
      owner text,
      used_at bigint NOT NULL
    );
    CREATE INDEX conversations_by_use ON ${schema}.conversations (used_at);
    CREATE TABLE ${schema}.conversation_turns (
      conversation_id text COLLATE "C" NOT NULL REFERENCES ${schema}.conversations ON DELETE CASCADE,
      seq bigint GENERATED ALWAYS AS IDENTITY,
      turn_id text NOT NULL,
      messages text NOT NULL,
      PRIMARY KEY (conversation_id, seq)
    );
    COMMENT ON COLUMN ${schema}.conversations.turn_id IS 'Of the last turn: the next one names it';
    COMMENT ON COLUMN ${schema}.conversation_turns.messages IS 'What the turn added, a JSON array'`,
  (schema) => `ALTER TABLE ${schema}.fleet_conversations ADD COLUMN owner text`,
  (schema) => `
    CREATE TABLE ${schema}.budgets (
      key text COLLATE "C" NOT NULL,
      began_at bigint NOT NULL,
      window_ms bigint NOT NULL,
      changed_at bigint NOT NULL,
      tokens bigint NOT NULL,
      cost bigint NOT NULL,
      calls bigint NOT NULL,
      steps bigint NOT NULL,
      time_ms bigint NOT NULL,
      PRIMARY KEY (key, began_at, window_ms)
    );
    CREATE INDEX budgets_by_change ON ${schema}.budgets (changed_at);
    CREATE TABLE ${schema}.reservations (
      id text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      began_at bigint NOT NULL,
      window_ms bigint NOT NULL,
      lease_end bigint NOT NULL,
      tokens bigint NOT NULL,
      cost bigint NOT NULL,
      calls bigint NOT NULL,
      steps bigint NOT NULL,
      time_ms bigint NOT NULL,
      PRIMARY KEY (id, key, began_at, window_ms)
    );
    CREATE INDEX reservations_of ON ${schema}.reservations (key, began_at, window_ms, lease_end);
    CREATE INDEX reservations_by_end ON ${schema}.reservations (lease_end);
    COMMENT ON COLUMN ${schema}.budgets.cost IS 'In billionths of the unit of its currency';
    CREATE TABLE ${schema}.results (
      key text COLLATE "C" PRIMARY KEY,
      result text NOT NULL,
      ends_at bigint NOT NULL
    );
    CREATE INDEX results_by_end ON ${schema}.results (ends_at)`,
  (schema) => `
    CREATE TABLE ${schema}.approvals (
      id text COLLATE "C" PRIMARY KEY,
      seq bigint GENERATED BY DEFAULT AS IDENTITY,
      approval text NOT NULL,
      expires_at bigint
    );
    CREATE INDEX approvals_by_time ON ${schema}.approvals (seq DESC);
    COMMENT ON TABLE ${schema}.approvals IS 'Answers that stand for later calls, too'`,
  (schema) => `
    CREATE TABLE ${schema}.kept_results (
      run_id text COLLATE "C" NOT NULL,
      handle text COLLATE "C" NOT NULL,
      owner text,
      text text NOT NULL,
      end_at bigint NOT NULL,
      PRIMARY KEY (run_id, handle)
    );
    CREATE INDEX kept_results_by_end ON ${schema}.kept_results (end_at);
    COMMENT ON COLUMN ${schema}.kept_results.text IS 'As a JSON string'`,
  (schema) => `
    CREATE TABLE ${schema}.schedules (
      id text COLLATE "C" PRIMARY KEY,
      conversation_id text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      due_at bigint NOT NULL,
      schedule text NOT NULL
    );
    CREATE INDEX schedules_due ON ${schema}.schedules (due_at, id);
    CREATE INDEX schedules_of_subject ON ${schema}.schedules (md5(subject));
    CREATE INDEX schedules_of_conversation ON ${schema}.schedules (conversation_id, due_at);
    COMMENT ON COLUMN ${schema}.schedules.subject IS 'For whom it counts: an owner, or a conversation'`,
  (schema) => `
    ALTER TABLE ${schema}.runs ADD COLUMN IF NOT EXISTS expires_at bigint, ADD COLUMN IF NOT EXISTS turn_of text;
    CREATE INDEX IF NOT EXISTS runs_expiring ON ${schema}.runs ((turn_of IS NULL), expires_at)
      WHERE expires_at IS NOT NULL;
    COMMENT ON COLUMN ${schema}.runs.expires_at IS 'When the first answer of a suspended run comes too late';
    COMMENT ON COLUMN ${schema}.runs.turn_of IS 'The conversation whose turn it is';
    DO $body$
    DECLARE kept record;
    BEGIN
      FOR kept IN SELECT run_id, state FROM ${schema}.runs
        WHERE status = 'suspended' AND state LIKE '%"expiresAt":"%' LOOP
        BEGIN
          UPDATE ${schema}.runs SET turn_of = kept.state::json ->> 'turnOf', expires_at = (
            SELECT min(extract(epoch FROM (waits ->> 'expiresAt')::timestamptz) * 1000)
            FROM json_array_elements(kept.state::json -> 'pending') AS waits
          ) WHERE run_id = kept.run_id;
        EXCEPTION WHEN OTHERS THEN
          -- A state that somebody broke is nothing that the tables of all others wait for.
        END;
      END LOOP;
    END $body$`,
];

const LATEST = MIGRATIONS.length;

/** No limit: an index of a large table takes its time. */
const UNHURRIED = 'SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0';

/**
 * Brings the tables of a schema up to date. Of several processes that do so at the same moment one does the work, and
 * the others wait for it.
 *
 * @throws Error for tables that a newer version of this package made.
 */
export async function migrate(pool: PostgresPool, schema: string): Promise<void> {
  if (isLatest(await keptVersion(pool, schema), schema)) return;
  const client = await connectionOf(pool);
  try {
    await inTransaction(client, async () => {
      await client.query({ text: UNHURRIED });
      const key = `toolwright migrations of ${schema}`;
      await client.query({ text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', values: [key] });
      await migrateAlone(client, schema);
    });
  } catch (error) {
    client.release(true);
    throw error;
  }
  client.release();
}

/**
 * Looks whether the tables of a schema are those of this version.
 *
 * @throws Error that says what to do where they are not.
 */
export async function checkTables(pool: PostgresPool, schema: string): Promise<void> {
  const version = await keptVersion(pool, schema);
  if (isLatest(version, schema)) return;
  if (version > 0)
    throw new Error(
      `The schema '${schema}' is of version ${version}, and this version of toolwright needs ${LATEST}: start a worker or the application with it, which brings the tables up to date, or use the version that made them.`,
    );
  const what = (await hasSchema(pool, schema))
    ? `The schema '${schema}' has no tables of toolwright`
    : `There is no schema '${schema}' in the database`;
  throw new Error(
    `${what}: name the database and the schema of the application (postgres://…?schema=shop), or start a worker or the application first, which makes them.`,
  );
}

async function hasSchema(database: Pick<PostgresPool, 'query'>, schema: string): Promise<boolean> {
  const { rows } = await database.query({ text: 'SELECT to_regnamespace($1) AS found', values: [schema] });
  return rows[0]?.found !== null;
}

async function migrateAlone(client: PostgresClient, schema: string): Promise<void> {
  // Not IF NOT EXISTS: that needs the right to make schemas also where there is nothing to make.
  const isThere = await hasSchema(client, schema);
  if (!isThere) await client.query({ text: `CREATE SCHEMA ${schema}` });
  const version = isThere ? await keptVersion(client, schema) : 0;
  if (isLatest(version, schema)) return;
  if (version === 0)
    await client.query({
      text: `CREATE TABLE ${schema}.migrations (version integer PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())`,
    });
  for (let next = version + 1; next <= LATEST; next += 1) {
    await client.query({ text: MIGRATIONS[next - 1]?.(schema) ?? '' });
    const text = `INSERT INTO ${schema}.migrations (version) VALUES ($1)`;
    await client.query({ text, values: [next] });
  }
}

function isLatest(version: number, schema: string): boolean {
  if (version > LATEST)
    throw new Error(
      `The schema '${schema}' is of version ${version}, and this version of toolwright knows ${LATEST}. Use the one that made it, or a newer one.`,
    );
  return version === LATEST;
}

/** 0 where there are no tables yet. Asks in a way that fails in no transaction. */
async function keptVersion(database: Pick<PostgresPool, 'query'>, schema: string): Promise<number> {
  const table = `${schema}.migrations`;
  const { rows } = await database.query({ text: 'SELECT to_regclass($1) AS found', values: [table] });
  if (rows[0]?.found === null) return 0;
  const { rows: versions } = await database.query({ text: `SELECT max(version) AS version FROM ${table}` });
  return Number(versions[0]?.version ?? 0);
}

async function inTransaction(client: PostgresClient, work: () => Promise<void>): Promise<void> {
  await client.query({ text: 'BEGIN' });
  try {
    await work();
    await client.query({ text: 'COMMIT' });
  } catch (error) {
    // The connection may be lost; what was thrown first is what matters.
    await client.query({ text: 'ROLLBACK' }).catch(() => {});
    throw error;
  }
}
