-- Partitioned tables of the store, for docs/guides/scaling.md: run it in a new schema, after the store has created its tables.
CREATE TABLE toolwright.hashed_runs (LIKE toolwright.runs INCLUDING ALL) PARTITION BY HASH (run_id);
CREATE TABLE toolwright.hashed_run_entries (LIKE toolwright.run_entries INCLUDING ALL EXCLUDING IDENTITY)
  PARTITION BY HASH (run_id);
CREATE TABLE toolwright.hashed_fleet_messages (LIKE toolwright.fleet_messages INCLUDING ALL)
  PARTITION BY HASH (conversation_id);
CREATE TABLE toolwright.hashed_fleet_inbox (LIKE toolwright.fleet_inbox INCLUDING ALL)
  PARTITION BY HASH (conversation_id);
CREATE TABLE toolwright.daily_fleet_events (
  LIKE toolwright.fleet_events INCLUDING DEFAULTS, PRIMARY KEY (conversation_id, number, kept_at)
) PARTITION BY RANGE (kept_at);

DROP TABLE toolwright.run_entries, toolwright.runs, toolwright.fleet_messages, toolwright.fleet_inbox,
  toolwright.fleet_events;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['runs', 'run_entries', 'fleet_messages', 'fleet_inbox'] LOOP
    EXECUTE format('ALTER TABLE toolwright.hashed_%1$s RENAME TO %1$s', name);
    FOR part IN 0..63 LOOP
      EXECUTE format('CREATE TABLE toolwright.%1$s_%2$s PARTITION OF toolwright.%1$s
        FOR VALUES WITH (MODULUS 64, REMAINDER %2$s)', name, part);
    END LOOP;
  END LOOP;
END $$;
ALTER TABLE toolwright.daily_fleet_events RENAME TO fleet_events;
-- One for each day, made ahead; the default has what came when nobody had made one.
CREATE TABLE toolwright.fleet_events_20261123 PARTITION OF toolwright.fleet_events
  FOR VALUES FROM (1795392000000) TO (1795478400000);
CREATE TABLE toolwright.fleet_events_other PARTITION OF toolwright.fleet_events DEFAULT;

-- Before PostgreSQL 17, partitioned tables have no identity columns.
CREATE SEQUENCE toolwright.run_entries_order OWNED BY toolwright.run_entries.seq;
ALTER TABLE toolwright.run_entries ALTER COLUMN seq SET DEFAULT nextval('toolwright.run_entries_order'),
  ADD FOREIGN KEY (run_id) REFERENCES toolwright.runs ON DELETE CASCADE;
