import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SqliteRunStore } from 'toolwright/stores';
import { expiredState, runState } from './run-state.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-sqlite-'));
  path = join(folder, 'runs.sqlite');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Does something to the file as another program would. */
function asAnother<Outcome>(work: (database: DatabaseSync) => Outcome): Outcome {
  const database = new DatabaseSync(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

describe('the file', () => {
  test('keeps runs and claims when it is closed and opened again', () => {
    const first = new SqliteRunStore({ path, now: () => 1000 });
    first.save(runState('free', 1));
    first.save(runState('claimed', 1));
    first.claim({ runId: 'claimed', claim: 'a', leaseMs: 50 });
    first.close();
    const second = new SqliteRunStore({ path, now: () => 1049 });
    expect(second.load('free')).toEqual(runState('free', 1));
    expect(second.claim({ runId: 'claimed', claim: 'b', leaseMs: 50 })).toEqual({ status: 'taken' });
    expect(second.release({ runId: 'claimed', claim: 'a' })).toBe(true);
    second.close();
  });

  test('is shared by stores that have it open at the same time', () => {
    const [one, other] = [new SqliteRunStore({ path }), new SqliteRunStore({ path })];
    one.save(runState('r', 1));
    expect(other.claim({ runId: 'r', claim: 'a', leaseMs: 1000 }).status).toBe('claimed');
    expect(one.claim({ runId: 'r', claim: 'b', leaseMs: 1000 })).toEqual({ status: 'taken' });
    expect(other.remove({ runId: 'r', claim: 'a' })).toBe(true);
    expect(one.load('r')).toBeUndefined();
    one.close();
    other.close();
  });

  test('is made for its owner alone, also where it is given as an address', () => {
    const address = (query = '') => `file:${path.replaceAll(' ', '%20')}${query}`;
    for (const given of [path, address(), address('?cache=private'), `file://${path}`, `${address()}#x`]) {
      new SqliteRunStore({ path: given }).close();
      expect([given, statSync(path).mode & 0o777]).toEqual([given, 0o600]);
      rmSync(path);
    }
    new SqliteRunStore({ path: 'file:runs?mode=memory' }).close();
    expect(() => new SqliteRunStore({ path: address('?mode=rw') })).toThrow('unable to open');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('may be the application’s own, whose tables stay as they are', () => {
    asAnother((database) =>
      database.exec('PRAGMA user_version = 7; CREATE TABLE runs (id); INSERT INTO runs VALUES (1)'),
    );
    const store = new SqliteRunStore({ path });
    store.save(runState('r', 1));
    store.close();
    asAnother((database) => {
      expect(database.prepare('SELECT id FROM runs').all()).toEqual([{ id: 1 }]);
      expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 7 });
    });
  });

  test('can be read by others while it is written', () => {
    const store = new SqliteRunStore({ path, busyTimeoutMs: 0 });
    store.save(runState('r', 1));
    asAnother((database) => {
      database.exec('BEGIN IMMEDIATE');
      expect(store.load('r')).toEqual(runState('r', 1));
      // A lock that outlasts the timeout is an error, and the store goes on afterwards.
      expect(() => store.claim({ runId: 'r', claim: 'a', leaseMs: 10 })).toThrow('database is locked');
      expect(() => store.save(runState('r', 2))).toThrow('database is locked');
      database.exec('ROLLBACK');
    });
    expect(store.claim({ runId: 'r', claim: 'a', leaseMs: 10 }).status).toBe('claimed');
    store.close();
  });

  test('leaves a run free whose state somebody broke', () => {
    const store = new SqliteRunStore({ path });
    store.save(runState('r', 1));
    asAnother((database) => database.exec("UPDATE toolwright_runs SET state = '{'"));
    expect(() => store.claim({ runId: 'r', claim: 'a', leaseMs: 1000 })).toThrow(SyntaxError);
    asAnother((database) =>
      database.prepare('UPDATE toolwright_runs SET state = ?').run(JSON.stringify(runState('r', 1))),
    );
    expect(store.claim({ runId: 'r', claim: 'b', leaseMs: 1000 }).status).toBe('claimed');
    store.close();
  });
});

describe('opening', () => {
  test.each([[undefined], [''], [42]])('without a path is an author’s fault: %p', (wrong) => {
    expect(() => new SqliteRunStore({ path: wrong as string })).toThrow("Write instead: path: 'runs.sqlite'");
  });

  test('with a timeout that is none is an author’s fault', () => {
    expect(() => new SqliteRunStore({ path, busyTimeoutMs: Number.NaN })).toThrow('busyTimeoutMs is NaN');
  });

  test('a file that cannot be opened names it', () => {
    const lost = join(folder, 'missing', 'runs.sqlite');
    expect(() => new SqliteRunStore({ path: lost })).toThrow(
      `Cannot open the SQLite file '${lost}': unable to open database file`,
    );
    mkdirSync(path);
    expect(() => new SqliteRunStore({ path })).toThrow(`Cannot open the SQLite file '${path}'`);
  });

  test('a file that is something else leaves it as it is', () => {
    writeFileSync(path, 'Dear diary, '.repeat(100));
    expect(() => new SqliteRunStore({ path })).toThrow('file is not a database');
    expect(statSync(path).size).toBe(1200);
  });

  test('a file of version 1 is taken over with what it holds, and whoever still has it open writes nothing', () => {
    asAnother((database) => {
      database.exec(`
        CREATE TABLE toolwright_schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
        INSERT INTO toolwright_schemas VALUES ('runs', 1);
        CREATE TABLE toolwright_runs (
          run_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL, kept_at REAL NOT NULL,
          claim TEXT, lease_end REAL, CHECK ((claim IS NULL) = (lease_end IS NULL))
        ) STRICT;`);
      const keep = database.prepare('INSERT INTO toolwright_runs VALUES (?, 2, ?, 1000, ?, ?)');
      keep.run('free', JSON.stringify(runState('free', 2)), null, null);
      keep.run('claimed', JSON.stringify(runState('claimed', 2)), 'a', 5000);
      for (const _twice of [1, 2]) {
        using store = new SqliteRunStore({ path, now: () => 2000 });
        expect(store.read('free')).toEqual({
          ...{ runId: 'free', status: 'suspended', generation: 0, createdAt: 1000, changedAt: 1000 },
          ...{ state: runState('free', 2), entries: [] },
        });
        expect(store.claim({ runId: 'claimed', claim: 'b', leaseMs: 10 })).toEqual({ status: 'taken' });
        expect(store.append({ runId: 'claimed', claim: 'a' }, [])).toBe(true);
      }
      expect(() => database.exec('UPDATE toolwright_runs SET kept_at = 1')).toThrow('no such column');
    });
  });

  test('a file of version 2 is looked through for answers that have expired', () => {
    {
      using store = new SqliteRunStore({ path });
      for (const state of [expiredState('r'), expiredState('c.1', 'c'), runState('s', 1)]) store.save(state);
    }
    asAnother((database) =>
      database.exec(`
        DROP INDEX toolwright_runs_expiring;
        ALTER TABLE toolwright_runs DROP COLUMN expires_at;
        ALTER TABLE toolwright_runs DROP COLUMN turn_of;
        INSERT INTO toolwright_runs (run_id, revision, state, changed_at) VALUES ('broken', 1, '{"expiresAt":"2020', 1);
        UPDATE toolwright_schemas SET version = 2 WHERE name = 'runs'`),
    );
    using store = new SqliteRunStore({ path });
    expect(store.expiredRuns({ of: 'others', limit: 9 })).toEqual([{ runId: 'r' }]);
    expect(store.expiredRuns({ of: 'turns', limit: 9 })).toEqual([{ runId: 'c.1', conversationId: 'c' }]);
    const at = Date.parse('2020-01-01T00:00:00.500Z');
    expect(
      asAnother((database) => database.prepare('SELECT min(expires_at) AS at FROM toolwright_runs').get()),
    ).toEqual({ at });
  });

  test('a file that a newer version wrote says so', () => {
    new SqliteRunStore({ path }).close();
    asAnother((database) => database.exec('UPDATE toolwright_schemas SET version = 4'));
    const open = () => new SqliteRunStore({ path });
    expect(open).toThrow(`Cannot keep runs in '${path}': Its runs are kept in version 4 of the schema`);
    expect(open).toThrow('version 4');
  });
});

describe('closing', () => {
  test('can be done twice, and ends the use of the store', () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    store.save(runState('r', 1));
    store.close();
    store.close();
    expect(() => store.load('r')).toThrow();
    expect(() => store.save(runState('r', 1))).toThrow();
    expect(() => store.claim({ runId: 'r', claim: 'a', leaseMs: 1 })).toThrow();
  });

  test('is done by `using`', () => {
    const store = new SqliteRunStore({ path });
    store[Symbol.dispose]();
    expect(() => store.load('r')).toThrow();
  });
});
