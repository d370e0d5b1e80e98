import { expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';

const chatty = defineTool({
  name: 'chatty',
  description: 'Logs',
  execute(_args, { logger }) {
    logger.info('hello', { shelf: 3 });
    logger.debug('bye');
    return 'done';
  },
});

test('a listener gets exactly the lines that a tool logs, and the logger still gets them', async () => {
  const written: string[] = [];
  const write = (message: string) => void written.push(message);
  const logger = { debug: write, info: write, warn: write, error: write };
  const heard: unknown[] = [];
  await new ToolRegistry({ logger }).register(chatty).executeWithContext(
    'chatty',
    {},
    {
      callId: 'call_7',
      onLog: (entry, call) => heard.push([entry, call]),
    },
  );
  const call = { callId: 'call_7', tool: 'chatty' };
  expect(heard).toEqual([
    [{ level: 'info', message: 'hello', fields: { shelf: 3 } }, call],
    [{ level: 'debug', message: 'bye' }, call],
  ]);
  expect(written).toEqual(expect.arrayContaining(['Tool started', 'hello', 'bye', 'Tool completed']));
});

test('a listener that throws does not affect the call, with or without a logger', async () => {
  const onLog = () => {
    throw new Error('deaf');
  };
  const result = await new ToolRegistry().register(chatty).executeWithContext('chatty', {}, { onLog });
  expect(result.forLLM).toBe('done');
});
