import { DatabaseSync } from 'node:sqlite';
import type { Clock } from './clock.js';
import { inTransaction } from './in-transaction.js';
import { MIGRATIONS } from './migrations.js';
import { insertSamples } from './sample-records.js';

/**
 * Opens the database and migrates it to the newest version. A new database gets sample data.
 *
 * @throws Error if the file cannot be written, is not a database, or was written by a newer version of this program.
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
    // A pragma takes no parameters; the number is a constant of ours.
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    if (version === 0) insertSamples(database, clock());
  });
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}
