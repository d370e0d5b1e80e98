import { describe, expect, test } from '@jest/globals';
import { defineTool, runToolLoop } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { completion, json, LoopbackServer } from './loopback-server.js';

const PIXEL = 'iVBORw0KGgo=';
const draw = defineTool({
  name: 'draw',
  description: 'Draws a pixel',
  execute: () => ({
    content: [
      { type: 'text', content: 'One red pixel' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'file', data: 'YQ==', mimeType: 'text/plain', filename: 'a.txt' },
    ],
    details: { secret: 'for the application' },
  }),
});
const say = defineTool({ name: 'say', description: 'Says something', execute: () => 'plain' });

describe('images and files of tool results in Chat Completions', () => {
  test('are sent in a user message after all text results', async () => {
    const calls = ['draw', 'say'].map((name) => ({
      id: name,
      type: 'function',
      function: { name, arguments: '{}' },
    }));
    const replies = [
      json(completion({ content: null, tool_calls: calls }, { finish_reason: 'tool_calls' })),
      json(completion({ content: 'A red pixel.' })),
    ];
    await using server = await LoopbackServer.start((response, request) =>
      replies.shift()?.(response, request),
    );
    const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k', maxRetries: 0 });
    const run = await runToolLoop({ provider, model: 'm', tools: [draw, say] }, [
      { role: 'user', content: 'Draw' },
    ]);
    expect(run).toMatchObject({ status: 'completed', content: 'A red pixel.' });
    const messages = server.requests.at(-1)?.body.messages as unknown[];
    expect(messages.slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'draw', content: 'One red pixel' },
      { role: 'tool', tool_call_id: 'say', content: 'plain' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Attached to the result of draw:' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
          { type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,YQ==' } },
        ],
      },
    ]);
    expect(JSON.stringify(messages)).not.toContain('for the application');
  });
});
