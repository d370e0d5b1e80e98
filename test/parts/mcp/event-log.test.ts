import { expect, test } from '@jest/globals';
import type { JSONRPCMessage } from '@modelcontextprotocol/server';
import { EventLog } from '../../../src/surfaces/mcp/server/mcp-server.js';

const message = (method: string): JSONRPCMessage => ({ jsonrpc: '2.0', method });

async function replay(log: EventLog, lastId: string): Promise<string[]> {
  const sent: string[] = [];
  await log.replayEventsAfter(lastId, {
    send: async (_id, one) => void sent.push('method' in one ? one.method : ''),
  });
  return sent;
}

test('a client receives the messages of its stream after the last event it saw, and none of other streams', async () => {
  const log = new EventLog(10);
  const first = await log.storeEvent('a_stream', {} as JSONRPCMessage);
  await log.storeEvent('a_stream', message('one'));
  const seen = await log.storeEvent('a_stream', message('two'));
  await log.storeEvent('another', message('foreign'));
  await log.storeEvent('a_stream', message('three'));
  expect(await log.getStreamIdForEventId(seen)).toBe('a_stream');
  expect(await replay(log, seen)).toEqual(['three']);
  expect(await replay(log, first)).toEqual(['one', 'two', 'three']);
});

test('the log stores only the last messages', async () => {
  const log = new EventLog(2);
  const first = await log.storeEvent('s', message('one'));
  for (const name of ['two', 'three', 'four']) await log.storeEvent('s', message(name));
  expect(await replay(log, first)).toEqual(['three', 'four']);
});

test('an unknown event id replays nothing', async () => {
  const log = new EventLog(2);
  await log.storeEvent('s', message('one'));
  expect(await log.getStreamIdForEventId('nonsense')).toBeUndefined();
  expect(await replay(log, 'nonsense')).toEqual([]);
});
