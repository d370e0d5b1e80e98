import { expect, test } from '@jest/globals';
import { Conversations } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { LosingProxy } from '../parts/postgres/losing-proxy.js';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';
import { killedPrograms } from './killed-programs.js';

const workers = killedPrograms('conversations', 'conversations.sqlite');
const readers = killedPrograms('conversation-reader', 'conversations.sqlite');

const config = { provider: new ScriptedProvider([{ content: 'Hello' }, { content: 'Hello' }]), model: 'm' };

test('Conversations: a process that takes turns waits for what a dead process holds, and ends after `close`', async () => {
  using store = new SqliteRunStore({ path: workers.file() });
  const front = new Conversations({ store, config, takesTurns: false });
  await front.prompt('c1', 'one');
  const died = { conversationId: 'c1', claim: 'of a process that died' };
  store.conversations.hold({ ...died, leaseMs: 600_000 });
  const worker = await workers.start();
  const ended = worker.hear();
  // The process has found nothing to do by then.
  store.conversations.letGo(died, -1);
  const view = front.idle('c1').then((idle) => ({ told: idle?.status }));
  expect(await Promise.race([view, ended])).toEqual({ told: 'idle' });
  worker.askToEnd();
  expect(await ended).toEqual({ told: 'ended: 0' });
});

test('Conversations.events, Conversations.idle: a process ends when it no longer waits for them', async () => {
  using store = new SqliteRunStore({ path: readers.file() });
  const front = new Conversations({ store, config, takesTurns: false });
  await front.prompt('c1', 'one');
  await front.prompt('c2', 'one');
  const held = { conversationId: 'c2', claim: 'of another process' };
  store.conversations.hold({ ...held, leaseMs: 600_000 });
  const reader = await readers.start();
  const worker = new Conversations({ store, config, pollMs: 10 });
  expect(await reader.hear()).toEqual({ told: 'read' });
  store.conversations.letGo(held, -1);
  expect(await reader.hear()).toEqual({ told: 'idle' });
  expect(await reader.hear()).toEqual({ told: 'ended: 0' });
  await worker.close();
});

describePostgres('conversations in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  test('Conversations: a process that takes turns stays alive while PostgreSQL is unreachable', async () => {
    const schema = schemas.newSchema();
    await using proxy = await LosingProxy.before(service.url);
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    const front = new Conversations({ store, config, takesTurns: false });
    const worker = await workers.start(`${proxy.through(service.url)}#${schema}`);
    const ended = worker.hear();
    await front.prompt('c1', 'one');
    await front.idle('c1');
    const isRefused = proxy.refuse();
    expect(await Promise.race([isRefused, ended])).toBeUndefined();
    proxy.accept();
    await front.prompt('c1', 'two');
    const view = front.idle('c1').then((idle) => ({ told: idle?.status }));
    expect(await Promise.race([view, ended])).toEqual({ told: 'idle' });
    worker.askToEnd();
    expect(await ended).toEqual({ told: 'ended: 0' });
  });
});
