import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { InvalidOptionsError } from 'toolwright';
import {
  type ConversationStore,
  MemoryConversationStore,
  SqliteConversationStore,
  type StoreLimits,
} from 'toolwright/satellite';
import { conversationStoreConformance } from 'toolwright/testing';
import { turn } from './said-turn.js';

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'conversations-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

const STORES: readonly (readonly [string, (limits?: StoreLimits) => ConversationStore])[] = [
  ['MemoryConversationStore', (limits) => new MemoryConversationStore(limits)],
  ['SqliteConversationStore', (limits) => new SqliteConversationStore({ path: newFile(), ...limits })],
];

const SUITES = [
  conversationStoreConformance({
    name: 'MemoryConversationStore',
    open: () => ({ store: new MemoryConversationStore() }),
  }),
  conversationStoreConformance({
    name: 'SqliteConversationStore',
    open() {
      const path = newFile();
      const [store, other] = [new SqliteConversationStore({ path }), new SqliteConversationStore({ path })];
      return {
        ...{ store, other },
        close() {
          store.close();
          other.close();
        },
      };
    },
  }),
];
for (const { title, run } of SUITES.flat()) test(title, run);

describe.each(STORES)('%s', (_name, open) => {
  test('deletes a conversation when its time since the last turn has expired', async () => {
    let time = 1_000_000;
    const store = open({ expiresAfterMs: 1000, now: () => time });
    await store.append('c1', turn('t1'));
    time += 999;
    await store.append('c1', turn('t2', 't1'));
    time += 999;
    expect(await store.load('c1')).toBeDefined();
    time += 1;
    expect(await store.load('c1')).toBeUndefined();
    expect(await store.append('c1', turn('t3', 't2'))).toBe(false);
    expect(await store.append('c1', turn('t4'))).toBe(true);
    expect((await store.load('c1'))?.messages).toEqual(turn('t4').messages);
  });

  test('expires conversations from before and after the clock was set back', async () => {
    let time = 1_000_000;
    const store = open({ expiresAfterMs: 1000, now: () => time });
    await store.append('before', turn('t1'));
    time = 500_000;
    await store.append('after', turn('t1'));
    time += 1000;
    expect([await store.load('after'), await store.append('after', turn('t2', 't1'))]).toEqual([
      undefined,
      false,
    ]);
    time = 1_001_000;
    expect(await store.load('before')).toBeUndefined();
  });

  test('never expires conversations if expiresAfterMs is Infinity', async () => {
    let time = 0;
    const store = open({ expiresAfterMs: Number.POSITIVE_INFINITY, now: () => time });
    await store.append('c1', turn('t1'));
    time = Number.MAX_SAFE_INTEGER;
    expect(await store.load('c1')).toBeDefined();
  });

  test('drops the least recently used conversation above the limit', async () => {
    const store = open({ maxConversations: 2, now: () => 5 });
    await store.append('c1', turn('t1'));
    await store.append('c2', turn('t1'));
    await store.append('c1', turn('t2', 't1'));
    await store.append('c3', turn('t1'));
    const kept = await Promise.all(
      ['c1', 'c2', 'c3'].map(async (id) => (await store.load(id)) !== undefined),
    );
    expect(kept).toEqual([true, false, true]);
    expect((await store.load('c1'))?.messages).toHaveLength(4);
  });

  test.each([{ maxConversations: 0 }, { maxConversations: Number.NaN }, { expiresAfterMs: 0 }])(
    'invalid limits throw: %j',
    (limits) => {
      expect(() => open(limits)).toThrow(InvalidOptionsError);
    },
  );
});

describe('SqliteConversationStore and its file', () => {
  test('appended turns are still there after it is reopened', async () => {
    const file = newFile();
    {
      using store = new SqliteConversationStore({ path: file });
      await store.append('c1', turn('t1'));
    }
    using store = new SqliteConversationStore({ path: file });
    expect(await store.load('c1')).toMatchObject({ turnId: 't1', messages: turn('t1').messages });
  });

  test('a dropped conversation leaves nothing in the file', async () => {
    const file = newFile();
    using store = new SqliteConversationStore({ path: file, maxConversations: 1 });
    await store.append('c1', turn('t1'));
    await store.append('c2', turn('t1'));
    using database = new DatabaseSync(file);
    expect(database.prepare('SELECT DISTINCT conversation_id AS id FROM turns').all()).toEqual([
      { id: 'c2' },
    ]);
  });

  test('a turn that cannot be written completely is not written at all', async () => {
    const file = newFile();
    using store = new SqliteConversationStore({ path: file });
    await store.append('c1', turn('t1'));
    using database = new DatabaseSync(file);
    database.exec("CREATE TRIGGER no BEFORE UPDATE ON conversations BEGIN SELECT RAISE(ABORT, 'disk'); END");
    await expect(store.append('c1', turn('t2', 't1'))).rejects.toThrow('disk');
    await expect(store.append('c2', turn('t1'))).rejects.toThrow('disk');
    database.exec('DROP TRIGGER no');
    expect([(await store.load('c1'))?.turnId, await store.load('c2')]).toEqual(['t1', undefined]);
    expect(await store.append('c1', turn('t2', 't1'))).toBe(true);
  });

  test.each([
    [1, ''],
    [2, ', owner TEXT'],
  ])(
    'a file of version %p is migrated with its content, and later turns store provider items',
    async (version, owner) => {
      const file = newFile();
      using database = new DatabaseSync(file);
      database.exec(`
      CREATE TABLE turns (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        turn_id TEXT NOT NULL, messages TEXT NOT NULL, finish_reason TEXT NOT NULL
      ) STRICT;
      CREATE INDEX turns_of_conversation ON turns (conversation_id, seq);
      CREATE TABLE conversations (
        id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL, used_at REAL NOT NULL ${owner}
      ) STRICT;
      CREATE INDEX conversations_by_use ON conversations (last_seq);
      PRAGMA user_version = ${version};
    `);
      const add = 'INSERT INTO conversations (id, last_seq, used_at) VALUES (?, ?, ?)';
      database.prepare(add).run('c1', 1, Date.now());
      const say = 'INSERT INTO turns (conversation_id, turn_id, messages, finish_reason) VALUES (?, ?, ?, ?)';
      database.prepare(say).run('c1', 't1', JSON.stringify(turn('t1').messages), 'stop');
      for (const next of ['t2', 't3']) {
        using store = new SqliteConversationStore({ path: file });
        const last = (await store.load('c1'))?.turnId;
        const [asked, reply] = turn(next).messages;
        const items = { ...reply, providerItems: { 'maker/m': next } } as const;
        const messages = asked === undefined ? [] : [asked, items as never];
        expect(await store.append('c1', { ...turn(next, last), messages })).toBe(true);
      }
      using store = new SqliteConversationStore({ path: file });
      const kept = (await store.load('c1'))?.messages ?? [];
      expect(kept.slice(0, 2)).toEqual(turn('t1').messages);
      expect(kept.map(({ providerItems }) => providerItems)).toEqual([
        ...[undefined, undefined, undefined, { 'maker/m': 't2' }, undefined, { 'maker/m': 't3' }],
      ]);
      // An older process that still has the file open continues to write.
      database.prepare(say).run('c1', 't4', JSON.stringify(turn('t4').messages), 'stop');
      expect((await store.load('c1'))?.messages).toHaveLength(8);
    },
  );

  test('a file of a newer version and a file that is not a database throw, and do not change', () => {
    const newer = newFile();
    {
      using database = new DatabaseSync(newer);
      database.exec('PRAGMA journal_mode = WAL; CREATE TABLE turns (id TEXT); PRAGMA user_version = 7');
    }
    const other = newFile();
    writeFileSync(other, 'Notes of a user, and no database. '.repeat(100));
    for (const [path, problem] of [
      [newer, 'newer version (7)'],
      [other, 'file is not a database'],
    ] as const) {
      const before = readFileSync(path);
      expect(() => new SqliteConversationStore({ path })).toThrow(problem);
      expect(readFileSync(path).equals(before)).toBe(true);
    }
    expect(() => new SqliteConversationStore({ path: folder })).toThrow('unable to open database file');
  });
});
