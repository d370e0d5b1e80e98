import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { PendingCall } from 'toolwright';
import { delta, events, LoopbackServer } from '../parts/providers/loopback-server.js';
import { openShopProcess } from './nestjs-process.js';

// Runs the built examples/nestjs in a process.

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nestjs-example-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function post(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer token-one' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** The data of the chat's last event: id, status and pending calls of the conversation. */
async function outcome(chat: Promise<Response>) {
  const [, data = ''] = /event: done\ndata: (.*)\n/.exec(await (await chat).text()) ?? [];
  return JSON.parse(data) as {
    readonly conversationId: string;
    readonly status: string;
    readonly content: string;
    readonly pending: readonly PendingCall[];
  };
}

/** The quantities ordered of an item, read from the database. */
function ordered(item: string): readonly unknown[] {
  const database = new DatabaseSync(join(folder, 'shop.sqlite'));
  try {
    const orders = database.prepare('SELECT quantity FROM orders WHERE item = ?').all(item);
    return orders.map(({ quantity }) => quantity);
  } finally {
    database.close();
  }
}

test('an approval sent to a new process after the first was killed runs the call once', async () => {
  await using first = await openShopProcess(folder);
  const { conversationId, status, pending } = await outcome(
    post(`${first.url}/chat`, { text: 'Order 50 jam' }),
  );
  expect([status, pending.map(({ tool }) => tool)]).toEqual(['suspended', ['place_order']]);
  await first.process.kill();
  expect(ordered('jam')).toEqual([]);

  await using second = await openShopProcess(folder);
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const approve = () => post(`${second.url}/chat/${conversationId}/answers`, { answers });
  const responses = await Promise.all([approve(), approve()]);
  expect(responses.map((response) => response.status).toSorted()).toEqual([201, 409]);
  const approved = responses.find((response) => response.ok);
  expect(await approved?.json()).toMatchObject({ status: 'completed', pending: [] });
  expect(ordered('jam')).toEqual([50]);
});

test('a chat that is running when the process receives SIGTERM completes first', async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  const order = { name: 'place_order', arguments: '{"item":"jam","quantity":2}' };
  const call = { tool_calls: [{ index: 0, id: 'a', type: 'function', function: order }] };
  await using model = await LoopbackServer.start((response, request) => {
    if (model.requests.length === 1) asked.resolve(response);
    else events([delta({ content: 'Ordered.' }, 'stop')])(response, request);
  });
  await using shop = await openShopProcess(folder, { OPENAI_BASE_URL: model.baseURL, OPENAI_API_KEY: 'k' });
  const chat = outcome(post(`${shop.url}/chat`, { text: 'Two jars of jam' }));
  const response = await asked.promise;
  shop.process.send('SIGTERM');
  // This response arrives after the signal was sent, so the process has received it by then.
  expect((await fetch(`${shop.url}/measurements`)).status).toBe(401);
  expect(ordered('jam')).toEqual([]);
  events([delta(call, 'tool_calls')])(response, model.requests[0]!);
  expect(await chat).toMatchObject({ status: 'completed', content: 'Ordered.' });
  await shop.process.ended();
  expect(shop.process.signal).toBe('SIGTERM');
  expect(ordered('jam')).toEqual([2]);
});
