import { describe, expect, test } from '@jest/globals';
import type { LLMProvider, LLMRequest, LLMResponse } from 'toolwright';
import { MemoryConversationStore } from 'toolwright/satellite';
import { AssistantServer, requestText, toolResult } from './assistant-server.js';

const SECRET = 'abc==';

/** A model with reasoning and provider items in each reply, which can be told to request a tool. */
function maker(name = 'maker', reply: Partial<LLMResponse> = {}) {
  const requests: LLMRequest[] = [];
  const provider: LLMProvider = {
    chat: async (request) => {
      requests.push(request);
      const asks = request.messages.at(-1)?.content === 'Weather?';
      return {
        content: asks ? requestText('lookup_weather') : 'Sunny.',
        reasoning: 'I should look.',
        toolCalls: [],
        finishReason: 'stop',
        providerItems: { [`${name}/m`]: { signature: SECRET, number: requests.length } },
        ...reply,
      };
    },
    itemKey: (model) => `${name}/${model}`,
  };
  return { provider, model: 'm', requests };
}

describe('createAssistantHandler and provider items', () => {
  test('sends items back unchanged, without reasoning', async () => {
    const { requests, ...model } = maker();
    await using server = await AssistantServer.start([], model);
    await server.say('c1', 'Weather?');
    await server.say('c1', toolResult('20 degrees'));
    await server.say('c1', 'Thanks');
    const replies = requests[2]?.messages.filter(({ role }) => role === 'assistant');
    expect(replies).toEqual([
      {
        role: 'assistant',
        content: requestText('lookup_weather'),
        providerItems: { 'maker/m': { signature: SECRET, number: 1 } },
      },
      {
        role: 'assistant',
        content: 'Sunny.',
        providerItems: { 'maker/m': { signature: SECRET, number: 2 } },
      },
    ]);
  });

  test('never sends items or reasoning to clients, in replies, repeated replies, events or GET', async () => {
    const { requests: _, ...model } = maker();
    await using server = await AssistantServer.start([], model);
    const body = { conversation_id: 'c1', messages: [{ role: 'user', content: 'Hi' }] };
    const answers = [
      await server.post(body, { 'idempotency-key': 'turn-1' }),
      await server.post(body, { 'idempotency-key': 'turn-1' }),
      await server.post(body, { accept: 'text/event-stream' }),
      await server.send('/v1/chat/c1'),
    ];
    for (const { status, body: shown, headers } of answers) {
      expect(status).toBe(200);
      const told = JSON.stringify([shown, [...headers]]);
      expect(told).toContain('Sunny.');
      expect(told).not.toMatch(/providerItems|maker|abc==|reasoning|I should look/);
    }
  });

  test('stores items of another provider without sending them, and logs a warning once', async () => {
    const store = new MemoryConversationStore();
    const { requests: _, ...first } = maker();
    await using one = await AssistantServer.start([], { ...first, store });
    await one.say('c1', 'Hi');
    const lines: unknown[] = [];
    const logger = { debug() {}, info() {}, warn: (line: unknown) => lines.push(line), error() {} };
    const { requests, ...model } = maker('other');
    await using other = await AssistantServer.start([], { ...model, store, logger });
    await other.say('c1', 'And now?');
    await other.say('c1', 'And then?');
    expect(JSON.stringify(requests)).not.toContain('maker/m');
    expect(requests[1]?.messages.filter((message) => 'providerItems' in message)).toHaveLength(1);
    expect(lines).toEqual([expect.stringContaining('left out of the request')]);
    expect(
      (await store.load('c1'))?.messages.map(({ providerItems = {} }) => Object.keys(providerItems)),
    ).toEqual([...[[], ['maker/m'], [], ['other/m'], [], ['other/m']]]);
  });

  test('discards the items of a reply whose native calls it ignores', async () => {
    const toolCalls = [{ id: 'c', name: 'x', arguments: {} }];
    const { requests, ...model } = maker('maker', { toolCalls, finishReason: 'tool_calls' });
    await using server = await AssistantServer.start([], model);
    await server.say('c1', 'Hi');
    await server.say('c1', 'And?');
    expect(JSON.stringify(requests[1])).not.toContain(SECRET);
  });
});
