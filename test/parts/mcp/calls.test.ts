import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry, ToolResult } from 'toolwright';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const NUMBERS = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
} as const;
const PIXEL = 'iVBORw0KGgo=';
const base64 = (text: string) => Buffer.from(text).toString('base64');

const registry = new ToolRegistry().register(
  defineTool({
    name: 'add',
    description: 'Adds',
    parameters: NUMBERS,
    execute: ({ a, b }) => (a as number) + (b as number),
  }),
  defineTool({
    name: 'draw',
    description: 'Draws',
    execute: () => ({
      content: [
        { type: 'text', content: 'A dot' },
        { type: 'image', data: PIXEL, mimeType: 'image/png' },
        { type: 'file', data: base64('a,b\n1,2'), mimeType: 'text/csv', filename: 'the table.csv' },
        { type: 'file', data: base64('\u0000'), mimeType: 'application/pdf', filename: 'shop://report/1' },
        { type: 'file', data: base64('ta'), mimeType: 'audio/wav', filename: 'ta.wav' },
      ],
      details: { secret: 1 },
    }),
  }),
  defineTool({
    name: 'find',
    description: 'Finds',
    output: { type: 'object', properties: { hits: { type: 'integer' } }, required: ['hits'] },
    execute: () => ({ hits: 3 }),
  }),
  defineTool({
    name: 'count',
    description: 'Counts',
    output: { type: 'array', items: { type: 'integer' } },
    execute: () => new ToolResult({ forLLM: 'one and two', details: [1, 2] }),
  }),
  defineTool({
    name: 'say',
    description: 'Says a number as text',
    output: { type: 'string' },
    maxResultChars: 2,
    execute: () => '12345',
  }),
  defineTool({
    name: 'quote',
    description: 'Quotes what somebody else has cut',
    output: { type: 'object', properties: { full: { type: 'string' } } },
    execute: () =>
      new ToolResult({ forLLM: '12\n[3 more characters were cut off]', details: { full: '12345' } }),
  }),
  defineTool({
    name: 'state',
    description: 'Says one of a few words',
    output: { enum: ['ok', 'null', 'broken'] },
    parameters: { type: 'object', properties: { word: { type: 'string' } } },
    execute: ({ word }) => word,
  }),
  defineTool({
    name: 'fail',
    description: 'Fails',
    output: { type: 'object' },
    execute() {
      throw new Error('the till is empty');
    },
  }),
  defineTool({
    name: 'fail_unreadably',
    description: 'Throws a value that throws when it is read',
    execute() {
      const unreadable = () => {
        throw new Error('unreadable');
      };
      throw Object.defineProperties({}, { name: { get: unreadable }, message: { get: unreadable } });
    },
  }),
  defineTool({
    name: 'later',
    description: 'Goes on',
    execute: (_args, context) => context.background(() => 'the end', 'begun'),
  }),
  defineTool({
    name: 'later_data',
    description: 'Goes on, and ends with data',
    output: { type: 'object' },
    execute: (_args, context) => context.background(() => ({ n: 1 }), 'begun'),
  }),
);

describe.each(Object.entries(ERAS))('a client of %s', (_era, options) => {
  let listening: Listening;
  let client: Client;
  beforeEach(async () => {
    listening = await listen(registry);
    client = await connectClient(listening.url, { options });
  });
  afterEach(async () => {
    await client.close();
    await listening.close();
  });
  const call = (name: string, args?: Record<string, unknown>) =>
    client.callTool({ name, ...(args ? { arguments: args } : {}) });

  test('gets the result of a tool', async () => {
    expect(await call('add', { a: 1, b: 2 })).toMatchObject({ content: [{ type: 'text', text: '3' }] });
  });

  test('gets every error in its arguments in the result', async () => {
    const { isError, content } = await call('add', { a: 'one' });
    expect(isError).toBe(true);
    const told = expect.stringContaining(
      "Validation failed for tool 'add':\n  - a: must be number\n  - b: is required",
    );
    expect(content).toEqual([{ type: 'text', text: told }]);
  });

  test('gets a result if the tool throws a value that cannot be read', async () => {
    expect(await call('fail_unreadably')).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining('an error that cannot be read was thrown') }],
    });
  });

  test('gets a protocol error for an unknown tool', async () => {
    await expect(call('subtract')).rejects.toMatchObject({
      code: -32602,
      message: /tool not found: subtract/,
    });
    await expect(call('constructor')).rejects.toMatchObject({ code: -32602 });
  });

  test('gets images, audio and files, but not the details', async () => {
    const result = await call('draw');
    expect(result.content).toEqual([
      { type: 'text', text: 'A dot' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'file:///the%20table.csv', mimeType: 'text/csv', text: 'a,b\n1,2' },
      },
      {
        type: 'resource',
        resource: { uri: 'shop://report/1', mimeType: 'application/pdf', blob: base64('\u0000') },
      },
      { type: 'audio', data: base64('ta'), mimeType: 'audio/wav' },
    ]);
    expect(JSON.stringify(result)).not.toContain('secret');
  });

  test('gets data beside the text if the tool declares its output', async () => {
    await client.listTools();
    expect(await call('find')).toMatchObject({
      content: [{ type: 'text', text: '{"hits":3}' }],
      structuredContent: { hits: 3 },
    });
  });

  test('gets data that is not an object in the form of its revision', async () => {
    await client.listTools();
    const isOld = client.getNegotiatedProtocolVersion() === '2025-11-25';
    const { content, structuredContent } = await call('count');
    expect(structuredContent).toEqual(isOld ? { result: [1, 2] } : [1, 2]);
    expect(content).toEqual([{ type: 'text', text: 'one and two' }]);
  });

  test('gets the whole data if the text is cut', async () => {
    await client.listTools();
    const { content, structuredContent } = await call('say');
    expect(content).toEqual([{ type: 'text', text: '12\n[3 more characters were cut off]' }]);
    expect([structuredContent, (structuredContent as { result?: unknown }).result]).toContain('12345');
  });

  test('gets the data beside a text that only looks cut', async () => {
    await client.listTools();
    expect(await call('quote')).toMatchObject({ structuredContent: { full: '12345' } });
  });

  test.each(['ok', 'null', 'broken'])('gets the word %s as data if the output is an enum', async (word) => {
    await client.listTools();
    const { structuredContent } = await client.callTool({ name: 'state', arguments: { word } });
    const isOld = client.getNegotiatedProtocolVersion() === '2025-11-25';
    expect(structuredContent).toEqual(isOld ? { result: word } : word);
  });

  test('gets the message of an error that a tool throws, and no data', async () => {
    await client.listTools();
    const result = await call('fail');
    expect(result).toMatchObject({ isError: true, content: [{ type: 'text', text: 'the till is empty' }] });
    expect(result.structuredContent).toBeUndefined();
  });

  test('gets the result of background work if the server has no onAsyncResult', async () => {
    expect(await call('later')).toMatchObject({ content: [{ type: 'text', text: 'the end' }] });
  });
});

test('a server with onAsyncResult answers background work with the acknowledgement', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const listening = await listen(registry, {
    onAsyncResult: (context, result) => resolve(`${context?.toolName}: ${result.forLLM}`),
  });
  const client = await connectClient(listening.url);
  const { content } = await client.callTool({ name: 'later' });
  expect(content).toEqual([{ type: 'text', text: 'begun' }]);
  expect(await promise).toBe('later: the end');
  // An acknowledgement has no data, but this tool declares an output.
  expect(await client.callTool({ name: 'later_data' })).toMatchObject({ structuredContent: { n: 1 } });
  await client.close();
  await listening.close();
});
