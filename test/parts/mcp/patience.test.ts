import { afterEach, expect, jest, test } from '@jest/globals';
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';

const MINUTE = 60_000;

afterEach(() => {
  jest.useRealTimers();
});

test('the user of a 2025-11-25 client has an hour to answer', async () => {
  const mcp = createMcpServer(
    new ToolRegistry().register(
      defineTool({ name: 'pay', description: 'Pays', approval: true, execute: () => 'paid' }),
    ),
  );
  const [near, far] = InMemoryTransport.createLinkedPair();
  mcp.connect(far);
  const client = new Client({ name: 'a-client', version: '1' }, { capabilities: { elicitation: {} } });
  const isAsked = Promise.withResolvers<void>();
  client.setRequestHandler('elicitation/create', () => {
    isAsked.resolve();
    return new Promise(() => {});
  });
  await client.connect(near);
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  let isOver = false;
  const call = client.callTool({ name: 'pay' }, { timeout: 100 * MINUTE }).finally(() => {
    isOver = true;
  });
  await isAsked.promise;
  await jest.advanceTimersByTimeAsync(59 * MINUTE);
  expect(isOver).toBe(false);
  await jest.advanceTimersByTimeAsync(2 * MINUTE);
  expect(await call).toMatchObject({ isError: true });
  await client.close();
  await mcp.close();
});
