const AMOUNTS = ['tokens', 'cost', 'calls', 'steps', 'time_ms']
  .map((name) => `${name} bigint NOT NULL`)
  .join(', ');

/**
 * The tables of this version, created if they are missing. Times are milliseconds since 1970, costs in billionths.
 * Databases differ in what is in braces: `{id}` is a column that sorts by its bytes, `{sequence}` a column that
 * increases with every row, `{key}` another key of such a table, `{ofRun}` a reference that deletes a row with its run,
 * `{ofWrite}` the uniqueness of a write in a run, `{byKey}` storage in the order of the key, and `{digest}` an
 * indexable digest of the text `subject`, which may be long.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS :runs (
    run_id {id} PRIMARY KEY,
    status text NOT NULL DEFAULT 'suspended' CHECK (status IN ('running', 'suspended', 'ended')),
    revision integer NOT NULL,
    generation bigint NOT NULL DEFAULT 0,
    -- Of who holds the run until lease_end, or held it and was not replaced; and the last that its holder ended.
    claim text,
    lease_end bigint,
    ended_claim text,
    created_at bigint NOT NULL DEFAULT 0,
    changed_at bigint NOT NULL,
    state text NOT NULL,
    -- When the first answer of a suspended run comes too late, and the conversation whose turn it is.
    expires_at bigint,
    turn_of text,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  );
  CREATE INDEX IF NOT EXISTS runs_by_change ON :runs (changed_at DESC, run_id);
  CREATE INDEX IF NOT EXISTS runs_by_status ON :runs (status, changed_at DESC, run_id);
  CREATE INDEX IF NOT EXISTS runs_lost ON :runs (coalesce(lease_end, 0)) WHERE status = 'running';
  CREATE INDEX IF NOT EXISTS runs_expiring ON :runs ((turn_of IS NULL), expires_at) WHERE expires_at IS NOT NULL;
  -- A row is what was added at once, a JSON array; 'seq' orders them.
  CREATE TABLE IF NOT EXISTS :run_entries (
    run_id {id} {ofRun},
    write_id uuid NOT NULL,
    seq {sequence},
    entries text NOT NULL{ofWrite}
  );
  CREATE TABLE IF NOT EXISTS :jobs (
    job_id {id} PRIMARY KEY,
    job text NOT NULL,
    options text NOT NULL,
    status text NOT NULL CHECK (status IN ('waiting', 'running', 'completed')),
    is_sent boolean NOT NULL DEFAULT false,
    attempt integer NOT NULL DEFAULT 0,
    -- Of the write that added it, which may be sent twice; so completed_by.
    added_by uuid NOT NULL,
    added_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    result text,
    completed_by uuid,
    CHECK ((status = 'completed') = (result IS NOT NULL))
  );
  CREATE INDEX IF NOT EXISTS jobs_open ON :jobs (is_sent, changed_at) WHERE status <> 'completed';
  CREATE INDEX IF NOT EXISTS jobs_by_change ON :jobs (changed_at DESC, job_id);
  CREATE INDEX IF NOT EXISTS jobs_by_status ON :jobs (status, changed_at DESC, job_id);
  CREATE TABLE IF NOT EXISTS :fleet_conversations (
    conversation_id {id} PRIMARY KEY,
    owner text,
    turns integer NOT NULL DEFAULT 0,
    turn text,
    entered integer NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    abort_asked boolean NOT NULL DEFAULT false,
    -- Something entered that no holder has seen.
    is_due boolean NOT NULL DEFAULT false,
    last_event bigint NOT NULL DEFAULT 0,
    last_write uuid,
    changed_at bigint NOT NULL,
    claim text,
    lease_end bigint,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  );
  CREATE INDEX IF NOT EXISTS fleet_conversations_due ON :fleet_conversations (changed_at) WHERE is_due;
  CREATE TABLE IF NOT EXISTS :fleet_messages (
    conversation_id {id},
    position integer NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (conversation_id, position)
  ){byKey};
  CREATE TABLE IF NOT EXISTS :fleet_inbox (
    conversation_id {id},
    position integer NOT NULL,
    key text NOT NULL,
    content text NOT NULL,
    done_at bigint,
    PRIMARY KEY (conversation_id, position),
    UNIQUE (conversation_id, key)
  ){byKey};
  CREATE INDEX IF NOT EXISTS fleet_inbox_done ON :fleet_inbox (done_at) WHERE done_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS :fleet_events (
    conversation_id {id},
    number bigint NOT NULL,
    event text NOT NULL,
    kept_at bigint NOT NULL,
    PRIMARY KEY (conversation_id, number)
  ){byKey};
  CREATE INDEX IF NOT EXISTS fleet_events_kept ON :fleet_events (kept_at);
  CREATE TABLE IF NOT EXISTS :budgets (
    key {id},
    began_at bigint NOT NULL,
    window_ms bigint NOT NULL,
    changed_at bigint NOT NULL,
    ${AMOUNTS},
    PRIMARY KEY (key, began_at, window_ms)
  );
  CREATE INDEX IF NOT EXISTS budgets_by_change ON :budgets (changed_at);
  CREATE TABLE IF NOT EXISTS :reservations (
    id {id},
    key {id},
    began_at bigint NOT NULL,
    window_ms bigint NOT NULL,
    lease_end bigint NOT NULL,
    ${AMOUNTS},
    PRIMARY KEY (id, key, began_at, window_ms)
  );
  CREATE INDEX IF NOT EXISTS reservations_of ON :reservations (key, began_at, window_ms, lease_end);
  CREATE INDEX IF NOT EXISTS reservations_by_end ON :reservations (lease_end);
  CREATE TABLE IF NOT EXISTS :results (key {id} PRIMARY KEY, result text NOT NULL, ends_at bigint NOT NULL);
  CREATE INDEX IF NOT EXISTS results_by_end ON :results (ends_at);
  CREATE TABLE IF NOT EXISTS :kept_results (
    run_id {id},
    handle {id},
    owner text,
    text text NOT NULL,
    end_at bigint NOT NULL,
    PRIMARY KEY (run_id, handle)
  );
  CREATE INDEX IF NOT EXISTS kept_results_by_end ON :kept_results (end_at);
  CREATE TABLE IF NOT EXISTS :approvals (
    id {id} {key},
    seq {sequence},
    approval text NOT NULL,
    expires_at bigint
  );
  CREATE INDEX IF NOT EXISTS approvals_by_time ON :approvals (seq DESC);
  CREATE TABLE IF NOT EXISTS :schedules (
    id {id} PRIMARY KEY,
    conversation_id {id},
    -- For whom it counts: an owner, or a conversation.
    subject {id},
    due_at bigint NOT NULL,
    schedule text NOT NULL
  );
  CREATE INDEX IF NOT EXISTS schedules_due ON :schedules (due_at, id);
  CREATE INDEX IF NOT EXISTS schedules_of_subject ON :schedules ({digest});
  CREATE INDEX IF NOT EXISTS schedules_of_conversation ON :schedules (conversation_id, due_at);`;

/** The SQL of a database for the parts in braces. */
type TableTypes = Readonly<
  Record<'id' | 'sequence' | 'key' | 'ofRun' | 'ofWrite' | 'byKey' | 'digest', string>
>;

/** The tables in the SQL of a database; names are still in the form `:runs`. */
export function tables(types: TableTypes): string {
  return TABLES.replace(/\{(\w+)\}/g, (_, name: keyof TableTypes) => types[name]);
}
