import { DatabaseSync } from 'node:sqlite';
import type { Clock } from './clock.js';
import { inTransaction } from './in-transaction.js';
import { MIGRATIONS } from './migrations.js';
import { insertSamples } from './sample-records.js';

/**
 * Opens the database, brings it to the newest version and, when it is new, fills it with samples.
 *
 * @throws Error where the file cannot be written or is not a database, or is of a newer version than this program.
 */
export function openDatabase(file: string, clock: Clock): DatabaseSync {
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON');
    migrate(database, clock);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function migrate(database: DatabaseSync, clock: Clock): void {
  inTransaction(database, () => {
    const version = versionOf(database);
    if (version > MIGRATIONS.length)
      throw new Error(`it was written by a newer assistant (version ${version})`);
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    // A pragma takes no parameters; the number is our own.
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    if (version === 0) insertSamples(database, clock());
  });
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}
