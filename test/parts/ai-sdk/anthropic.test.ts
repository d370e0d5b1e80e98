import { createAnthropic } from '@ai-sdk/anthropic';
import { describe, expect, test } from '@jest/globals';
import { type Message, resumeToolLoop, runToolLoop } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { anthropicEvents, anthropicMessage } from '../providers/anthropic-bodies.js';
import { type Answer, collect, events, json, type LoopbackServer } from '../providers/loopback-server.js';
import {
  ask,
  asMessage,
  CITIES,
  RESULTS as CITY_RESULTS,
  halves,
  METHODS,
  run,
  serve,
  weather,
} from './talk.js';

const MODEL = 'claude-sonnet-4-5';
const THINKING = 'The user wants two cities; I ask for both.';
// Meaningless Base64 with characters that a wrong copy would change.
const SIGNATURE = 'EqQBCkYIBRgCKkDx+/9a0==\u2028"q"\\';
const REDACTED = 'EmwKAhgBEgy3va3pzix/LafPsn4a==';

const usage = {
  input_tokens: 20,
  cache_creation_input_tokens: 7,
  cache_read_input_tokens: 100,
  output_tokens: 42,
};
const THOUGHTS = [
  { type: 'thinking', thinking: THINKING, signature: SIGNATURE },
  { type: 'redacted_thinking', data: REDACTED },
];
const CALLS = CITIES.map((city, at) => ({
  type: 'tool_use',
  id: `toolu_${at}`,
  name: 'weather',
  input: { city },
}));
const FIRST = [...THOUGHTS, { type: 'text', text: 'I look it up.' }, ...CALLS];
const LAST = [{ type: 'text', text: 'Oslo is cold, Rome is warm.' }];

function whole(content: readonly Record<string, unknown>[], stop: string): Answer {
  return json(anthropicMessage(content, { model: MODEL, stop, usage }));
}

function streamed(content: readonly Record<string, unknown>[], stop: string): Answer {
  return events(anthropicEvents(anthropicMessage(content, { model: MODEL, stop, usage }), halves), '');
}

/** A provider whose server returns these replies in turn. */
async function start(...replies: readonly Answer[]) {
  const server = await serve(...replies);
  const anthropic = createAnthropic({ baseURL: server.baseURL, apiKey: 'k' });
  return { server, provider: fromAiSdk(anthropic, { maxRetries: 0 }) };
}

const QUESTION: Message = { role: 'user', content: 'Is it cold in Oslo and in Rome?' };
const THINKS = { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } } };
const ASKED = { model: MODEL, messages: [QUESTION], options: THINKS };

describe('fromAiSdk(anthropic) with a local server', () => {
  test('fromAiSdk stores signed and redacted thinking with the message, separate from its content', async () => {
    const { server, provider } = await start(whole(FIRST, 'tool_use'));
    await using _ = server;
    const reply = await provider.chat(ASKED);
    expect(reply).toMatchObject({
      content: 'I look it up.',
      reasoning: THINKING,
      finishReason: 'tool_calls',
      rawFinishReason: 'tool_use',
      toolCalls: CALLS.map(({ id, name, input }) => ({ id, name, arguments: input })),
      usage: {
        inputTokens: 127,
        outputTokens: 42,
        totalTokens: 169,
        cacheReadTokens: 100,
        cacheWriteTokens: 7,
      },
    });
    const key = provider.itemKey(MODEL);
    expect(key).toBe(`ai-sdk.anthropic.messages/${MODEL}`);
    expect(Object.keys(reply.providerItems ?? {})).toEqual([key]);
    expect(JSON.parse(JSON.stringify(reply.providerItems))).toEqual(reply.providerItems);
    expect(reply.usage?.raw).toMatchObject({ cache_read_input_tokens: 100 });
  });

  test('fromAiSdk streams thinking, text and call arguments, and ends with the reply that chat returns', async () => {
    const { server, provider } = await start(streamed(FIRST, 'tool_use'), whole(FIRST, 'tool_use'));
    await using _ = server;
    const parts = await collect(provider.stream(ASKED));
    const told = (type: string) =>
      parts.map((part) => (part.type === type && 'text' in part ? part.text : '')).join('');
    expect(told('reasoning-delta')).toBe(THINKING);
    expect(told('text-delta')).toBe('I look it up.');
    expect(told('call-input-delta')).toBe(CALLS.map(({ input }) => JSON.stringify(input)).join(''));
    expect(parts.filter(({ type }) => /start|end/.test(type))).toEqual(
      CALLS.flatMap(({ id: callId }) => [
        { type: 'call-input-start', callId, tool: 'weather' },
        { type: 'call-input-end', callId },
      ]),
    );
    const last = parts.at(-1);
    const reply = await provider.chat(ASKED);
    expect(last?.type === 'response' && { ...last.response, usage: undefined }).toEqual({
      ...reply,
      usage: undefined,
    });
  });

  test.each(METHODS)('fromAiSdk().%s sends signed parts back unchanged and in order', async (method) => {
    const answer = method === 'chat' ? whole : streamed;
    const { server, provider } = await start(answer(FIRST, 'tool_use'), answer(LAST, 'end_turn'));
    await using _ = server;
    const first = await ask(provider, method, ASKED);
    const messages = [QUESTION, asMessage(first), ...ANSWERS];
    expect((await ask(provider, method, { ...ASKED, messages })).content).toBe(LAST[0]?.text);
    expect(sentMessages(server).slice(1)).toMatchObject([
      { role: 'assistant', content: FIRST },
      { role: 'user', content: RESULTS },
    ]);
  });

  test.each(METHODS)(
    'fromAiSdk().%s sends signed parts back in a run and in the next turn',
    async (method) => {
      const answer = method === 'chat' ? whole : streamed;
      const last = answer(LAST, 'end_turn');
      const { server, provider } = await start(answer(FIRST, 'tool_use'), last, last);
      await using _ = server;
      const config = { provider, model: MODEL, llmOptions: THINKS };
      const { status, messages } = await run(method, config, [QUESTION]);
      expect(status).toBe('completed');
      const kept: Message[] = JSON.parse(JSON.stringify(messages));
      await run(method, config, [...kept, { role: 'user', content: 'And tomorrow?' }]);
      expect(sentMessages(server).slice(1, 3)).toMatchObject([
        { role: 'assistant', content: FIRST },
        {
          role: 'user',
          content: CITY_RESULTS.map((content, at) => ({ tool_use_id: `toolu_${at}`, content })),
        },
      ]);
    },
  );

  test('fromAiSdk sends signed parts back after a suspended run was stored and resumed', async () => {
    const { server, provider } = await start(whole(FIRST, 'tool_use'), whole(LAST, 'end_turn'));
    await using _ = server;
    const config = { provider, model: MODEL, tools: [{ ...weather, approval: true }], llmOptions: THINKS };
    const { pending = [], state } = await runToolLoop(config, [QUESTION]);
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    const { status } = await resumeToolLoop(config, JSON.parse(JSON.stringify(state)), answers);
    expect(status).toBe('completed');
    expect(sentMessages(server)[1]).toMatchObject({ role: 'assistant', content: FIRST });
  });

  test('fromAiSdk does not send items of another model, and sends changed text with the other items', async () => {
    const { server, provider } = await start(
      whole(FIRST, 'tool_use'),
      whole(LAST, 'end_turn'),
      whole(LAST, 'end_turn'),
    );
    await using _ = server;
    const message = asMessage(await provider.chat(ASKED));
    const { providerItems = {}, ...plain } = message;
    const foreign = { ...plain, providerItems: { 'ai-sdk.other/model': Object.values(providerItems)[0] } };
    await provider.chat({ ...ASKED, options: {}, messages: [QUESTION, foreign, ...ANSWERS] });
    expect(sentMessages(server)[1]).toMatchObject({ content: FIRST.slice(2) });
    await provider.chat({ ...ASKED, messages: [QUESTION, { ...message, content: 'Changed.' }, ...ANSWERS] });
    expect(sentMessages(server)[1]).toMatchObject({
      content: [...THOUGHTS, { type: 'text', text: 'Changed.' }, ...CALLS],
    });
  });
});

const ANSWERS: readonly Message[] = [
  { role: 'tool', tool_call_id: 'toolu_0', content: 'Oslo: -3 degrees' },
  {
    role: 'tool',
    tool_call_id: 'toolu_1',
    content: 'Rome: 21 degrees',
    parts: [{ type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }],
  },
];

const RESULTS = [
  { type: 'tool_result', tool_use_id: 'toolu_0', content: 'Oslo: -3 degrees' },
  {
    type: 'tool_result',
    tool_use_id: 'toolu_1',
    content: [
      { type: 'text', text: 'Rome: 21 degrees' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
    ],
  },
];

function sentMessages(server: LoopbackServer): unknown[] {
  return server.requests.at(-1)?.body.messages as unknown[];
}
