import type { DatabaseSync } from 'node:sqlite';

/** Runs work in a transaction: all of its changes are stored, or none. */
export function inTransaction<Value>(database: DatabaseSync, work: () => Value): Value {
  // `IMMEDIATE` takes the write lock first: a second assistant waits instead of failing in the middle.
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
