import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from '@jest/globals';
import type { Message } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { type Answer, delta, events, json, type LoopbackServer } from '../providers/loopback-server.js';
import { ask, CITIES, halves, METHODS, type Method, RESULTS, run, serve } from './talk.js';

const MODEL = 'gpt-5';
const ENCRYPTED = 'gAAAAABo+/x==\u2028"\\';
const SUMMARIES = ['**Two cities**', 'I ask for both.'];

const REASONING = {
  type: 'reasoning',
  id: 'rs_1',
  summary: SUMMARIES.map((text) => ({ type: 'summary_text', text })),
  encrypted_content: ENCRYPTED,
};
const SAID = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'I look it up.', annotations: [] }],
};
const CALLS = CITIES.map((city, at) => ({
  type: 'function_call',
  id: `fc_${at}`,
  call_id: `call_${at}`,
  name: 'weather',
  arguments: JSON.stringify({ city }),
  status: 'completed',
}));
const FIRST: readonly Item[] = [REASONING, SAID, ...CALLS];
const LAST: readonly Item[] = [{ ...SAID, id: 'msg_2' }];

type Item = { readonly type: string; readonly id: string; readonly [key: string]: unknown };

function answer(method: Method, output: readonly Item[]): Answer {
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: MODEL,
    status: 'completed',
    error: null,
    incomplete_details: null,
    output,
    usage: {
      input_tokens: 50,
      input_tokens_details: { cached_tokens: 30 },
      output_tokens: 40,
      output_tokens_details: { reasoning_tokens: 25 },
      total_tokens: 90,
    },
  };
  if (method === 'chat') return json(response);
  return events(
    [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } },
      ...output.flatMap((item, output_index) => [
        { type: 'response.output_item.added', output_index, item: startOf(item) },
        ...eventsOf(item, output_index),
        { type: 'response.output_item.done', output_index, item },
      ]),
      { type: 'response.completed', response },
    ],
    '',
  );
}

function startOf(item: Item): Item {
  if (item.type === 'reasoning') return { ...item, summary: [], encrypted_content: 'not whole yet' };
  return {
    ...item,
    status: 'in_progress',
    ...(item.type === 'message' ? { content: [] } : { arguments: '' }),
  };
}

function eventsOf({ type, id: item_id, ...item }: Item, output_index: number): unknown[] {
  const at = { item_id, output_index };
  if (type === 'reasoning')
    return SUMMARIES.flatMap((text, summary_index) => [
      {
        type: 'response.reasoning_summary_part.added',
        ...at,
        summary_index,
        part: { type: 'summary_text', text: '' },
      },
      ...halves(text).map((delta) => ({
        type: 'response.reasoning_summary_text.delta',
        ...at,
        summary_index,
        delta,
      })),
      {
        type: 'response.reasoning_summary_part.done',
        ...at,
        summary_index,
        part: { type: 'summary_text', text },
      },
    ]);
  if (type === 'message')
    return halves('I look it up.').map((delta) => ({
      type: 'response.output_text.delta',
      ...at,
      content_index: 0,
      delta,
    }));
  const deltas = halves(String(item.arguments)).map((delta) => ({
    type: 'response.function_call_arguments.delta',
    ...at,
    delta,
  }));
  return [...deltas, { type: 'response.function_call_arguments.done', ...at, arguments: item.arguments }];
}

async function start(method: Method, ...replies: readonly (readonly Item[])[]) {
  const server = await serve(...replies.map((output) => answer(method, output)));
  const openai = createOpenAI({ baseURL: server.baseURL, apiKey: 'k' });
  return { server, provider: fromAiSdk(openai, { maxRetries: 0 }) };
}

const QUESTION: Message = { role: 'user', content: 'Is it cold in Oslo and in Rome?' };
const STATELESS = { openai: { store: false, include: ['reasoning.encrypted_content'] } };
const ASKED = { model: MODEL, messages: [QUESTION], options: { providerOptions: STATELESS } };
describe('fromAiSdk(openai) with a local server', () => {
  test.each(METHODS)(
    'fromAiSdk().%s returns summaries as reasoning and counts reasoning tokens',
    async (method) => {
      const { server, provider } = await start(method, FIRST);
      await using _ = server;
      expect(await ask(provider, method, ASKED)).toMatchObject({
        content: 'I look it up.',
        reasoning: SUMMARIES.join('\n\n'),
        finishReason: 'tool_calls',
        usage: {
          inputTokens: 50,
          outputTokens: 40,
          totalTokens: 90,
          cacheReadTokens: 30,
          reasoningTokens: 25,
        },
        toolCalls: CITIES.map((city, at) => ({ id: `call_${at}`, name: 'weather', arguments: { city } })),
      });
    },
  );

  test.each(METHODS)(
    'fromAiSdk().%s sends encrypted reasoning back unchanged during a run',
    async (method) => {
      const { server, provider } = await start(method, FIRST, LAST);
      await using _ = server;
      const llmOptions = { providerOptions: STATELESS };
      const { status, content } = await run(method, { provider, model: MODEL, llmOptions }, [QUESTION]);
      expect([status, content]).toEqual(['completed', 'I look it up.']);
      const [, reasoning, ...others] = input(server);
      expect(reasoning).toEqual(REASONING);
      expect(others).toMatchObject([
        { role: 'assistant', content: 'I look it up.' },
        ...CALLS.map(({ call_id, name, arguments: args }) => ({
          type: 'function_call',
          call_id,
          name,
          arguments: args,
        })),
        ...RESULTS.map((output, at) => ({ type: 'function_call_output', call_id: `call_${at}`, output })),
      ]);
    },
  );

  test.each(METHODS)('fromAiSdk().%s refers to items that the server stores by their ids', async (method) => {
    const { server, provider } = await start(method, FIRST, LAST);
    await using _ = server;
    await run(method, { provider, model: MODEL }, [QUESTION]);
    expect(input(server).slice(1, 3)).toEqual([
      { type: 'item_reference', id: 'rs_1' },
      { type: 'item_reference', id: 'msg_1' },
    ]);
  });

  test.each([
    ['a text', { content: 'Hel' }],
    ['a call', { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '{}' } }] }],
  ])(
    'fromAiSdk fails with a retryable error when the server closes a stream within %s',
    async (_title, fields) => {
      await using server = await serve(events([delta(fields)], ''));
      const openai = createOpenAI({ baseURL: server.baseURL, apiKey: 'k' });
      await expect(ask(fromAiSdk(openai.chat), 'stream', ASKED)).rejects.toMatchObject({
        name: 'ProviderError',
        message: 'openai.chat/gpt-5: the stream ended before the reply was complete',
        retryable: true,
      });
    },
  );
});

function input(server: LoopbackServer): unknown[] {
  return server.requests.at(-1)?.body.input as unknown[];
}
