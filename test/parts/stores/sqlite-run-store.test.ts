import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runToolLoop } from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { stepEntry } from './run-checkpoint.js';
import { expiredState, runState } from './run-state.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-sqlite-'));
  path = join(folder, 'runs.sqlite');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The tables of version 3 that differ from the current version, with a row each. */
const VERSION_3 = `
  CREATE TABLE toolwright_schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
  INSERT INTO toolwright_schemas VALUES ('runs', 3);
  CREATE TABLE toolwright_runs (
    run_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL, changed_at REAL NOT NULL, claim TEXT,
    lease_end REAL, status TEXT NOT NULL DEFAULT 'suspended', generation INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL DEFAULT 0, expires_at REAL, turn_of TEXT,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  ) STRICT;
  INSERT INTO toolwright_runs VALUES ('r', 1, '{}', 1000, 'a', 5000, 'running', 1, 1000, NULL, NULL);
  CREATE TABLE toolwright_run_entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, entries TEXT NOT NULL
  ) STRICT;
  INSERT INTO toolwright_run_entries VALUES (1, 'r', '${JSON.stringify([stepEntry('one')])}');
  CREATE TABLE toolwright_conversations (
    conversation_id TEXT PRIMARY KEY, owner TEXT, turns INTEGER NOT NULL DEFAULT 0, turn TEXT,
    entered INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0, abort_asked INTEGER NOT NULL DEFAULT 0,
    is_due INTEGER NOT NULL DEFAULT 0, last_event INTEGER NOT NULL DEFAULT 0, changed_at REAL NOT NULL,
    told_at INTEGER NOT NULL DEFAULT 0, claim TEXT, lease_end REAL,
    CHECK ((claim IS NULL) = (lease_end IS NULL))
  ) STRICT;
  CREATE INDEX toolwright_conversations_due ON toolwright_conversations (changed_at) WHERE is_due = 1;
  INSERT INTO toolwright_conversations VALUES ('c', NULL, 0, NULL, 1, 1, 0, 1, 4, 1000, 1, NULL, NULL);
  CREATE TABLE toolwright_inbox (
    conversation_id TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL, done_at REAL,
    PRIMARY KEY (conversation_id, position), UNIQUE (conversation_id, key)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO toolwright_inbox VALUES ('c', 1, 'k', '{"kind":"prompt","content":"Hi"}', NULL);
  CREATE TABLE toolwright_jobs (
    job_id TEXT PRIMARY KEY, job TEXT NOT NULL, options TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'completed')), is_sent INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0, added_at REAL NOT NULL, changed_at REAL NOT NULL, result TEXT,
    CHECK ((status = 'completed') = (result IS NOT NULL))
  ) STRICT;
  INSERT INTO toolwright_jobs VALUES ('j', '{"id":"j"}', '{}', 'waiting', 0, 0, 1000, 1000, NULL);
  CREATE TABLE toolwright_approvals (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, approval TEXT NOT NULL, expires_at REAL
  ) STRICT;
  INSERT INTO toolwright_approvals VALUES (1, 'old', '{"id":"old"}', NULL), (2, 'new', '{"id":"new"}', NULL);`;

/** Runs a function on the file as another program would. */
async function asAnother<Outcome>(
  work: (database: DatabaseSync) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const database = new DatabaseSync(path);
  try {
    return await work(database);
  } finally {
    database.close();
  }
}

describe('the file of SqliteRunStore', () => {
  test('still has runs and claims after it is closed and reopened', async () => {
    const first = new SqliteRunStore({ path, now: () => 1000 });
    await first.save(runState('free', 1));
    await first.save(runState('claimed', 1));
    await first.claim({ runId: 'claimed', claim: 'a', leaseMs: 50 });
    first.close();
    const second = new SqliteRunStore({ path, now: () => 1049 });
    expect(await second.load('free')).toEqual(runState('free', 1));
    expect(await second.claim({ runId: 'claimed', claim: 'b', leaseMs: 50 })).toEqual({ status: 'taken' });
    expect(await second.release({ runId: 'claimed', claim: 'a' })).toBe(true);
    second.close();
  });

  test('is shared by stores that have it open at the same time', async () => {
    const [one, other] = [new SqliteRunStore({ path }), new SqliteRunStore({ path })];
    await one.save(runState('r', 1));
    expect((await other.claim({ runId: 'r', claim: 'a', leaseMs: 1000 })).status).toBe('claimed');
    expect(await one.claim({ runId: 'r', claim: 'b', leaseMs: 1000 })).toEqual({ status: 'taken' });
    expect(await other.remove({ runId: 'r', claim: 'a' })).toBe(true);
    expect(await one.load('r')).toBeUndefined();
    one.close();
    other.close();
  });

  test('is readable only by its owner, even if the path is a URL', () => {
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

  test('can be a database of the application, whose tables are not changed', async () => {
    await asAnother((database) =>
      database.exec('PRAGMA user_version = 7; CREATE TABLE runs (id); INSERT INTO runs VALUES (1)'),
    );
    const store = new SqliteRunStore({ path });
    await store.save(runState('r', 1));
    store.close();
    await asAnother((database) => {
      expect(database.prepare('SELECT id FROM runs').all()).toEqual([{ id: 1 }]);
      expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 7 });
    });
  });

  test('can be read while another process writes', async () => {
    const store = new SqliteRunStore({ path, busyTimeoutMs: 0 });
    await store.save(runState('r', 1));
    await asAnother(async (database) => {
      database.exec('BEGIN IMMEDIATE');
      expect(await store.load('r')).toEqual(runState('r', 1));
      // A lock that lasts longer than the timeout is an error, but the store remains usable.
      await expect(store.claim({ runId: 'r', claim: 'a', leaseMs: 10 })).rejects.toThrow(
        'database is locked',
      );
      await expect(store.save(runState('r', 2))).rejects.toThrow('database is locked');
      database.exec('ROLLBACK');
    });
    expect((await store.claim({ runId: 'r', claim: 'a', leaseMs: 10 })).status).toBe('claimed');
    store.close();
  });

  test('a run with an invalid state stays free', async () => {
    const store = new SqliteRunStore({ path });
    await store.save(runState('r', 1));
    await asAnother((database) => database.exec("UPDATE toolwright_runs SET state = '{'"));
    await expect(store.claim({ runId: 'r', claim: 'a', leaseMs: 1000 })).rejects.toThrow(SyntaxError);
    await asAnother((database) =>
      database.prepare('UPDATE toolwright_runs SET state = ?').run(JSON.stringify(runState('r', 1))),
    );
    expect((await store.claim({ runId: 'r', claim: 'b', leaseMs: 1000 })).status).toBe('claimed');
    store.close();
  });
});

describe('opening SqliteRunStore', () => {
  test.each([[undefined], [''], [42]])('without a path throws: %p', (wrong) => {
    expect(() => new SqliteRunStore({ path: wrong as string })).toThrow("Write instead: path: 'runs.sqlite'");
  });

  test('with an invalid timeout throws', () => {
    expect(() => new SqliteRunStore({ path, busyTimeoutMs: Number.NaN })).toThrow('busyTimeoutMs is NaN');
  });

  test('in a missing folder or at the path of a folder throws an error with the path', () => {
    const lost = join(folder, 'missing', 'runs.sqlite');
    mkdirSync(path);
    for (const wrong of [lost, path])
      expect(() => new SqliteRunStore({ path: wrong })).toThrow(
        expect.objectContaining({
          name: 'InvalidOptions',
          code: 521,
          message: expect.stringMatching(/SqliteRunStore: Cannot open .*\n.*path: .*an existing folder/),
          faults: [
            expect.objectContaining({
              option: 'path',
              problem: `Cannot open the SQLite file '${wrong}': unable to open database file`,
            }),
          ],
        }),
      );
  });

  test('a file that is not a database throws and leaves it unchanged', () => {
    writeFileSync(path, 'Dear diary, '.repeat(100));
    expect(() => new SqliteRunStore({ path })).toThrow('file is not a database');
    expect(statSync(path).size).toBe(1200);
  });

  test('a file of version 1 is migrated, and a process that still has it open cannot write', async () => {
    await asAnother(async (database) => {
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
        expect(await store.read('free')).toEqual({
          ...{ runId: 'free', status: 'suspended', generation: 0, createdAt: 1000, changedAt: 1000 },
          ...{ state: runState('free', 2), entries: [] },
        });
        expect(await store.claim({ runId: 'claimed', claim: 'b', leaseMs: 10 })).toEqual({ status: 'taken' });
        expect(await store.append({ runId: 'claimed', claim: 'a' }, [])).toBe(true);
      }
      expect(() => database.exec('UPDATE toolwright_runs SET kept_at = 1')).toThrow('no such column');
    });
  });

  test('a file of version 2 is searched for expired pending calls', async () => {
    {
      using store = new SqliteRunStore({ path });
      for (const state of [expiredState('r'), expiredState('c.1', 'c'), runState('s', 1)])
        await store.save(state);
    }
    await asAnother((database) =>
      database.exec(`
        DROP INDEX toolwright_runs_expiring;
        ALTER TABLE toolwright_runs DROP COLUMN expires_at;
        ALTER TABLE toolwright_runs DROP COLUMN turn_of;
        INSERT INTO toolwright_runs (run_id, revision, state, changed_at) VALUES ('broken', 1, '{"expiresAt":"2020', 1);
        UPDATE toolwright_schemas SET version = 2 WHERE name = 'runs'`),
    );
    using store = new SqliteRunStore({ path });
    expect(await store.expiredRuns({ of: 'others', limit: 9 })).toEqual([{ runId: 'r' }]);
    expect(await store.expiredRuns({ of: 'turns', limit: 9 })).toEqual([
      { runId: 'c.1', conversationId: 'c' },
    ]);
    const at = Date.parse('2020-01-01T00:00:00.500Z');
    expect(
      await asAnother((database) =>
        database.prepare('SELECT min(expires_at) AS at FROM toolwright_runs').get(),
      ),
    ).toEqual({ at });
  });

  test('a file of version 3 is migrated with its content', async () => {
    await asAnother((database) => database.exec(VERSION_3));
    using store = new SqliteRunStore({ path, now: () => 2000 });
    const held = { runId: 'r', claim: 'a' };
    expect((await store.read('r'))?.entries).toEqual([stepEntry('one')]);
    expect(await store.append(held, [stepEntry('two')])).toBe(true);
    expect((await store.read('r'))?.entries).toEqual([stepEntry('one'), stepEntry('two')]);
    expect(await store.remove(held)).toBe(true);
    const entries = 'SELECT count(*) AS count FROM toolwright_run_entries';
    expect(await asAnother((database) => database.prepare(entries).get())).toEqual({ count: 0 });
    expect(await store.jobs.unsentJobs({ olderThanMs: 0, silentForMs: 0, limit: 9 })).toHaveLength(1);
    expect(await store.jobs.completeJob('j', { text: 'done' } as never)).toBe(true);
    expect(await store.conversations.due(9)).toEqual(['c']);
    const hold = { conversationId: 'c', claim: 'x' };
    expect(await store.conversations.hold({ ...hold, leaseMs: 1000 })).toMatchObject({
      conversation: { inbox: [{ position: 1, key: 'k', content: { kind: 'prompt', content: 'Hi' } }] },
    });
    expect(await store.conversations.tell(hold, [{ type: 'x' }])).toBe(5);
    expect((await store.approvals.listApprovals()).map(({ id }) => id)).toEqual(['new', 'old']);
    await store.approvals.addApproval({ id: 'old' } as never);
    expect((await store.approvals.listApprovals()).map(({ id }) => id)).toEqual(['old', 'new']);
  });

  test('a file of a newer version throws an error with that version', async () => {
    new SqliteRunStore({ path }).close();
    await asAnother((database) => database.exec('UPDATE toolwright_schemas SET version = 5'));
    const open = () => new SqliteRunStore({ path });
    expect(open).toThrow(`Cannot store runs in '${path}': Its schema has version 5`);
    expect(open).toThrow('version 5');
  });
});

describe('closing SqliteRunStore', () => {
  test('can be repeated, and the store cannot be used afterwards', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    await store.save(runState('r', 1));
    store.close();
    store.close();
    await expect(store.load('r')).rejects.toThrow();
    await expect(store.save(runState('r', 1))).rejects.toThrow();
    await expect(store.claim({ runId: 'r', claim: 'a', leaseMs: 1 })).rejects.toThrow();
  });

  test('ends a run that saves its steps in it, which is not tried again; so do missing tables', async () => {
    const logged: string[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void logged.push(line) };
    const running = (store: SqliteRunStore) => {
      const provider = new ScriptedProvider([{ content: 'Done.' }]);
      const config = { provider, model: 'm', tools: [], store, checkpoint: 'step', logger } as const;
      return runToolLoop(config, [{ role: 'user', content: 'Hi' }]);
    };
    const store = new SqliteRunStore({ path });
    store.close();
    await expect(running(store)).rejects.toThrow('database is not open');
    using other = new SqliteRunStore({ path });
    const file = new DatabaseSync(path);
    file.exec('DROP TABLE toolwright_run_entries; DROP TABLE toolwright_runs');
    file.close();
    await expect(running(other)).rejects.toThrow('no such table');
    expect(logged).toEqual([]);
  });

  test('is done by `using`', async () => {
    const store = new SqliteRunStore({ path });
    store[Symbol.dispose]();
    await expect(store.load('r')).rejects.toThrow();
  });
});
