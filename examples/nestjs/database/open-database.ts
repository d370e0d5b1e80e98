import { DatabaseSync } from 'node:sqlite';

/** Token of the database. */
export const DATABASE = Symbol('database');

const SCHEMA = `
  CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, token TEXT NOT NULL UNIQUE);
  CREATE TABLE orders (
    id INTEGER PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users, item TEXT NOT NULL,
    quantity INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'open');
  CREATE TABLE conversations (
    id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users, messages TEXT NOT NULL, run_id TEXT);
  CREATE TABLE audit (at TEXT NOT NULL, user_id TEXT NOT NULL REFERENCES users, action TEXT NOT NULL);
  INSERT INTO users VALUES
    ('u1', 'Customer One', 'customer', 'token-one'),
    ('u2', 'Customer Two', 'customer', 'token-two'),
    ('u3', 'Clerk', 'clerk', 'token-clerk');
  INSERT INTO orders (user_id, item, quantity, status) VALUES
    ('u1', 'tea', 3, 'open'), ('u1', 'cups', 6, 'shipped'), ('u2', 'coffee', 1, 'open');
`;

/** Opens the database of the shop; a new database gets sample data. */
export function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA foreign_keys = ON');
  const isNew = database.prepare("SELECT name FROM sqlite_master WHERE name = 'users'").get() === undefined;
  if (isNew) database.exec(`BEGIN; ${SCHEMA} COMMIT`);
  return database;
}
