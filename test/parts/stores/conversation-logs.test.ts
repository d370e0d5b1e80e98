import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, test } from '@jest/globals';
import type { ConversationNews } from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { conversationLogConformance } from 'toolwright/testing';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-conversations-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newPath(): string {
  files += 1;
  return join(folder, `${files}.sqlite`);
}

const SUITES = [
  conversationLogConformance({
    name: 'MemoryRunStore.conversations',
    open() {
      const { now, advance } = clock();
      return { log: new MemoryRunStore({ now }).conversations, advance };
    },
  }),
  conversationLogConformance({
    name: 'SqliteRunStore.conversations',
    open() {
      const { now, advance } = clock();
      const path = newPath();
      const [store, other] = [new SqliteRunStore({ path, now }), new SqliteRunStore({ path, now })];
      return {
        ...{ log: store.conversations, other: other.conversations, advance },
        close() {
          store.close();
          other.close();
        },
      };
    },
  }),
];
for (const { title, run } of SUITES.flat()) test(title, run);

function clock() {
  let time = 1_700_000_000_000;
  return {
    now: () => time,
    advance: (ms: number) => {
      time += ms;
    },
  };
}

test('SqliteRunStore reports the entries of one process to another', async () => {
  const path = newPath();
  using one = new SqliteRunStore({ path });
  using other = new SqliteRunStore({ path });
  const heard = Promise.withResolvers<ConversationNews>();
  const end = other.conversations.watch(heard.resolve);
  one.conversations.enter({ conversationId: 'c1', key: 'a', content: { kind: 'prompt', content: 'Hi' } });
  expect(await heard.promise).toEqual({ conversationId: 'c1', about: 'inbox' });
  end();
});

test('SqliteRunStore.conversations still reports news after the table was missing for a while', async () => {
  const path = newPath();
  using store = new SqliteRunStore({ path });
  const other = new DatabaseSync(path);
  const heard: ConversationNews[] = [];
  const end = store.conversations.watch((news) => heard.push(news));
  other.exec('ALTER TABLE toolwright_conversations RENAME TO elsewhere');
  // Long enough for some polls.
  await pause(200);
  other.exec('ALTER TABLE elsewhere RENAME TO toolwright_conversations');
  other.exec(
    "INSERT INTO toolwright_conversations (conversation_id, changed_at, told_at) VALUES ('c1', 0, 1)",
  );
  other.close();
  while (heard.length === 0) await pause(10);
  end();
  expect(heard).toContainEqual({ conversationId: 'c1', about: 'inbox' });
});

test('SqliteRunStore.conversations reports everything that another process writes while it polls', async () => {
  const path = newPath();
  using store = new SqliteRunStore({ path });
  const { conversations } = store;
  const ids = Array.from({ length: 10_000 }, (_, index) => `c${index}`);
  const heard = new Set<string | undefined>();
  const unwatch = conversations.watch(({ conversationId }) => heard.add(conversationId));
  const writer = new Worker(WRITER, { eval: true, workerData: { path, ids } });
  await once(writer, 'exit');
  for (let looks = 0; heard.size < ids.length && looks < 20; looks += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  unwatch();
  expect(heard.size).toBe(ids.length);
});

/** Writes to each conversation as another process does, as fast as possible. */
const WRITER = `
  const { workerData: { path, ids } } = require('node:worker_threads');
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = OFF');
  const tell = database.prepare(
    'INSERT INTO toolwright_conversations (conversation_id, changed_at, told_at) SELECT ?, 0, coalesce(max(told_at), 0) + 1 FROM toolwright_conversations',
  );
  for (const id of ids) tell.run(id);
  database.close();
`;
