import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import type { ConversationNews } from '../../../src/contract/conversation-log.js';
import { describeConversationLog } from './conversation-log-conformance.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-conversations-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newPath(): string {
  files += 1;
  return join(folder, `${files}.sqlite`);
}

describeConversationLog('MemoryRunStore', () => {
  const { now, pass } = clock();
  return { log: new MemoryRunStore({ now }).conversations, pass, close: () => {} };
});

describeConversationLog('SqliteRunStore', () => {
  const { now, pass } = clock();
  const store = new SqliteRunStore({ path: newPath(), now });
  return { log: store.conversations, pass, close: () => store.close() };
});

function clock() {
  let time = 1000;
  return {
    now: () => time,
    pass: (ms: number) => {
      time += ms;
    },
  };
}

test('SqliteRunStore: what one process enters, another is told of', async () => {
  const path = newPath();
  using one = new SqliteRunStore({ path });
  using other = new SqliteRunStore({ path });
  const heard = Promise.withResolvers<ConversationNews>();
  const end = other.conversations.watch(heard.resolve);
  one.conversations.enter({ conversationId: 'c1', key: 'a', content: { kind: 'prompt', content: 'Hi' } });
  expect(await heard.promise).toEqual({ conversationId: 'c1', about: 'inbox' });
  end();
});
