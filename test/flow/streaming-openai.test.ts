import { describe, expect, test } from '@jest/globals';
import { defineTool, type LoopEvent, type Message, streamToolLoop } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { collect, delta, events, LoopbackServer } from '../parts/providers/loopback-server.js';
import { historyFaults } from './strict-history.js';

const question: readonly Message[] = [{ role: 'user', content: 'What is 2 + 3?' }];

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  execute: async function* ({ a, b }) {
    yield 'adding';
    return Number(a) + Number(b);
  },
});

const callChunk = (fields: object) => delta({ tool_calls: [{ index: 0, ...fields }] });

const asking = events([
  delta({ role: 'assistant', content: 'Let me ' }),
  delta({ content: 'add.' }),
  callChunk({ id: 'call_x', type: 'function', function: { name: 'add', arguments: '{"a": 2' } }),
  callChunk({ function: { arguments: ', "b": 3}' } }),
  delta({}, 'tool_calls'),
  { choices: [], usage: { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 } },
]);
const answering = events([delta({ content: 'It is ' }), delta({ content: '5.' }), delta({}, 'stop')]);

const provider = (server: LoopbackServer) =>
  new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'test', maxRetries: 0 });

describe('streamToolLoop over a real connection', () => {
  test('yields text as it arrives, the call assembled from its pieces, and the summed usage', async () => {
    let requests = 0;
    await using server = await LoopbackServer.start((response, request) => {
      requests += 1;
      (requests === 1 ? asking : answering)(response, request);
    });
    const run = streamToolLoop({ provider: provider(server), model: 'm', tools: [add] }, question);
    const told = (await collect(run)).map((event: LoopEvent) => {
      if (event.type === 'text-delta') return event.text;
      if (event.type === 'call-start') return event.arguments;
      if (event.type === 'call-progress') return event.update;
      return event.type === 'call-end' ? event.result.forLLM : event.type;
    });
    expect(told).toEqual([
      'run-start',
      'step-start',
      'Let me ',
      'add.',
      'call-input-start',
      'call-input-delta',
      'call-input-delta',
      'call-input-end',
      'reply-end',
      { a: 2, b: 3 },
      'adding',
      '5',
      'step-end',
      'step-start',
      'It is ',
      '5.',
      'reply-end',
      'step-end',
      'run-end',
    ]);
    const result = await run.result;
    expect(result).toMatchObject({ status: 'completed', content: 'It is 5.', usage: { totalTokens: 9 } });
    expect(historyFaults(server.requests[1]?.body.messages as Message[])).toEqual([]);
  });

  test('closes the connection and keeps the history valid if the reader leaves', async () => {
    const closed = Promise.withResolvers<void>();
    await using server = await LoopbackServer.start((response) => {
      response.on('close', closed.resolve);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(delta({ content: 'On and ' }))}\n\n`);
    });
    const run = streamToolLoop({ provider: provider(server), model: 'm', tools: [add] }, question);
    for await (const event of run) if (event.type === 'text-delta') break;
    await closed.promise;
    expect(await run.result).toMatchObject({ status: 'aborted', messages: question, error: { code: 508 } });
  });

  test('fails the run if the connection is lost', async () => {
    await using server = await LoopbackServer.start((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(delta({ content: 'On and ' }))}\n\n`, () => response.destroy());
    });
    const run = streamToolLoop({ provider: provider(server), model: 'm' }, question);
    const texts = (await collect(run)).flatMap((event) => (event.type === 'text-delta' ? [event.text] : []));
    expect(texts).toEqual(['On and ']);
    expect(await run.result).toMatchObject({ status: 'failed', messages: question, error: { code: 509 } });
  });
});
