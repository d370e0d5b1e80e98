import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversations } from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { killedPrograms } from './killed-programs.js';
import { historyFaults } from './strict-history.js';

const { start, effects, file } = killedPrograms('conversations', 'conversations.sqlite');

const CALLS_OF_A_TURN = 3;

test('Conversations: processes are killed at any moment, and every prompt has one turn with each call answered once', async () => {
  using store = new SqliteRunStore({ path: file() });
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  const front = new Conversations({ store, config, takesTurns: false });
  const ids = ['c1', 'c2'];
  const prompts = ['one', 'two', 'three'];
  for (const prompt of prompts)
    for (const id of ids) await front.prompt(id, prompt, { key: prompt, owner: { user: id } });
  for (const pauseMs of fc.sample(fc.integer({ min: 0, max: 120 }), { numRuns: 8, seed: 15 })) {
    const worker = await start();
    await pause(pauseMs);
    await worker.kill();
  }
  await start();
  for (const id of ids) {
    const view = await front.idle(id);
    const messages = view?.messages ?? [];
    expect(view).toMatchObject({ status: 'idle', turns: prompts.length, inbox: [] });
    expect(historyFaults(messages)).toEqual([]);
    const said = messages.flatMap(({ role, content }) => (role === 'tool' || !content ? [] : [content]));
    expect(said).toEqual(prompts.flatMap((prompt) => [prompt, `heard: ${prompt}`]));
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(CALLS_OF_A_TURN * prompts.length);
    const events = await readAll(front, id, view?.lastEvent ?? 0);
    expect(events.filter((type) => type === 'turn-start')).toHaveLength(prompts.length);
    expect(events.filter((type) => type === 'turn-end')).toHaveLength(prompts.length);
  }
  // A call that was killed is made again under its own key, and no other call has that key.
  expect(new Set(effects()).size).toBe(CALLS_OF_A_TURN * prompts.length * ids.length);
  await front.close();
});

async function readAll(conversations: Conversations, id: string, last: number): Promise<readonly unknown[]> {
  const types: unknown[] = [];
  for await (const { number, event } of conversations.events(id)) {
    expect(number).toBe(types.length + 1);
    types.push(event.type);
    if (number === last) break;
  }
  return types;
}
