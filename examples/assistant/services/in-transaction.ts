import type { DatabaseSync } from 'node:sqlite';

/** Runs work that is either kept as a whole or not at all. */
export function inTransaction<Value>(database: DatabaseSync, work: () => Value): Value {
  // `IMMEDIATE` takes the write lock at once: a second assistant waits instead of failing half-way.
  database.exec('BEGIN IMMEDIATE');
  try {
    const value = work();
    database.exec('COMMIT');
    return value;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}
