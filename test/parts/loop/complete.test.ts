import { describe, expect, test } from '@jest/globals';
import { complete, ProviderError } from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { hello } from './run-script.js';

const search = {
  name: 'search',
  description: 'Searches',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
};

async function ask(step: ScriptedStep, request: object = {}) {
  const provider = new ScriptedProvider([step]);
  return { reply: await complete({ provider, model: 'm' }, { messages: hello, ...request }), provider };
}

describe('complete', () => {
  test('sends plain tool definitions, returns calls as blocks and executes nothing', async () => {
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    const toolCalls = [{ id: 'c1', name: 'search', arguments: '{"query":"x"}' }];
    const { reply, provider } = await ask({ content: 'Let me look.', toolCalls, usage }, { tools: [search] });
    expect(reply).toEqual({
      content: [
        { type: 'text', content: 'Let me look.' },
        { type: 'toolCall', toolCallId: 'c1', name: 'search', arguments: { query: 'x' } },
      ],
      finishReason: 'tool_calls',
      usage,
    });
    expect(provider.requests[0]?.tools).toEqual([{ type: 'function', function: search }]);
  });

  test('returns no text block without text, and numbers calls without an id', async () => {
    const { reply } = await ask({ toolCalls: [{ name: 'search' }, { name: 'search', arguments: '{"q' }] });
    expect(reply.content).toEqual([
      { type: 'toolCall', toolCallId: 'call_1', name: 'search', arguments: {} },
      { type: 'toolCall', toolCallId: 'call_2', name: 'search', arguments: '{"q' },
    ]);
  });

  test('derives a missing finishReason from whether the reply has calls', async () => {
    const replies = [{ content: 'Hi!' }, { toolCalls: [{ id: 'c1', name: 'search', arguments: {} }] }];
    const provider = { chat: async () => replies.shift() as never };
    const ends = [];
    for (let times = 0; times < 2; times += 1)
      ends.push(
        (await complete({ provider, model: 'm' }, { messages: hello, tools: [search] })).finishReason,
      );
    expect(ends).toEqual(['stop', 'tool_calls']);
  });

  test('sends the system prompt before the messages, and no tools if there are none', async () => {
    const { provider } = await ask({ content: 'Hi!' }, { systemPrompt: 'Be brief.' });
    expect(provider.requests[0]?.messages).toEqual([{ role: 'system', content: 'Be brief.' }, ...hello]);
    expect(provider.requests[0]).not.toHaveProperty('tools');
    expect(provider.requests[0]?.options).toEqual({});
    expect(hello).toHaveLength(1);
  });

  test('repeats a request that failed for a moment up to twice, but not after a long pause', async () => {
    const busy = (retryAfterMs: number) => new ProviderError('busy', { retryable: true, retryAfterMs });
    const asked = async (...steps: ScriptedStep[]) => {
      const provider = new ScriptedProvider([...steps, { content: 'Hi!' }]);
      const reply = complete({ provider, model: 'm' }, { messages: hello });
      const content = await reply.then((completion) => completion.content, String);
      return [content, provider.requests.length];
    };
    expect(await asked(busy(0), busy(0))).toEqual([[{ type: 'text', content: 'Hi!' }], 3]);
    expect(await asked(busy(0), busy(0), busy(0))).toEqual([expect.stringContaining('busy'), 3]);
    expect(await asked(busy(61_000))).toEqual([expect.stringContaining('busy'), 1]);
  });

  test('throws ProviderFailed with its cause, and the abort reason if it is aborted', async () => {
    const down = new Error('down');
    await expect(ask(down)).rejects.toMatchObject({ name: 'ProviderFailed', cause: down });
    const provider = new ScriptedProvider([{ content: 'Hi!' }]);
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(complete({ provider, model: 'm', signal }, { messages: hello })).rejects.toThrow('enough');
  });
});
