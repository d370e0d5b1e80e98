import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversations, type ConversationsOptions } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';
import { killedPrograms } from './killed-programs.js';
import { historyFaults } from './strict-history.js';

const { start, effects, file } = killedPrograms('conversations', 'conversations.sqlite');

const CALLS_OF_A_TURN = 3;

test('Conversations runs every prompt once with SQLite, even if processes are killed at any moment', async () => {
  using store = new SqliteRunStore({ path: file() });
  await killAtAnyMoment(store, file());
});

describePostgres('conversations in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  test('Conversations runs every prompt once with PostgreSQL, even if processes are killed at any moment', async () => {
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    await killAtAnyMoment(store, `${service.url}#${schema}`);
  });
});

async function killAtAnyMoment(store: ConversationsOptions['store'], place: string): Promise<void> {
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  const front = new Conversations({ store, config, takesTurns: false });
  const ids = ['c1', 'c2'];
  const prompts = ['one', 'two', 'three'];
  for (const prompt of prompts)
    for (const id of ids) await front.prompt(id, prompt, { key: prompt, owner: { user: id } });
  for (const pauseMs of fc.sample(fc.integer({ min: 0, max: 120 }), { numRuns: 8, seed: 15 })) {
    const worker = await start(place);
    await pause(pauseMs);
    await worker.kill();
  }
  const last = await start(place);
  const ended = last.hear();
  for (const id of ids) {
    const view = await Promise.race([front.idle(id), ended]);
    expect(view).toMatchObject({ status: 'idle', turns: prompts.length, inbox: [] });
    const { messages = [], lastEvent = 0 } = (await front.snapshot(id)) ?? {};
    expect(historyFaults(messages)).toEqual([]);
    const said = messages.flatMap(({ role, content }) => (role === 'tool' || !content ? [] : [content]));
    expect(said).toEqual(prompts.flatMap((prompt) => [prompt, `heard: ${prompt}`]));
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(CALLS_OF_A_TURN * prompts.length);
    const events = await readAll(front, id, lastEvent);
    expect(events.filter((type) => type === 'turn-start')).toHaveLength(prompts.length);
    expect(events.filter((type) => type === 'turn-end')).toHaveLength(prompts.length);
  }
  // A repeated call has the key of the killed one, and no other call has that key.
  expect(new Set(effects()).size).toBe(CALLS_OF_A_TURN * prompts.length * ids.length);
  last.askToEnd();
  expect(await ended).toEqual({ told: 'ended: 0' });
  await front.close();
}

async function readAll(conversations: Conversations, id: string, last: number): Promise<readonly unknown[]> {
  const types: unknown[] = [];
  for await (const { number, event } of conversations.events(id)) {
    expect(number).toBe(types.length + 1);
    types.push(event.type);
    if (number === last) break;
  }
  return types;
}
