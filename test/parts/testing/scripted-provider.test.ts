import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LLMRequest, Message } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

function ask(text = 'x', more: Partial<LLMRequest> = {}): LLMRequest {
  return { model: 'test', messages: [{ role: 'user', content: text }], options: {}, ...more };
}

describe('ScriptedProvider', () => {
  test('returns the replies in order, one per request', async () => {
    const provider = new ScriptedProvider([{ content: 'one' }, { content: 'two' }]);
    expect((await provider.chat(ask())).content).toBe('one');
    expect((await provider.chat(ask())).content).toBe('two');
  });

  test('omitted fields of a reply have sensible defaults', async () => {
    const provider = new ScriptedProvider([{}, { toolCalls: [{ name: 'a' }] }]);
    expect(await provider.chat(ask())).toEqual({ content: '', toolCalls: [], finishReason: 'stop' });
    expect(await provider.chat(ask())).toEqual({
      content: '',
      toolCalls: [{ id: '', name: 'a', arguments: {} }],
      finishReason: 'tool_calls',
    });
  });

  test('fields of a reply are returned', async () => {
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
    const toolCalls = [{ id: 'i', name: 'a', arguments: '{"cut' }];
    const provider = new ScriptedProvider([{ content: 'c', toolCalls, finishReason: 'length', usage }]);
    expect(await provider.chat(ask())).toEqual({ content: 'c', toolCalls, finishReason: 'length', usage });
  });

  test('an error in the script is thrown, and the script continues after it', async () => {
    const down = new Error('down');
    const provider = new ScriptedProvider([down, { content: 'up' }]);
    await expect(provider.chat(ask())).rejects.toBe(down);
    expect((await provider.chat(ask())).content).toBe('up');
  });

  test('a function gets the request and returns a reply or an error, also asynchronously', async () => {
    const provider = new ScriptedProvider([
      ({ messages }) => ({ content: `you said ${messages[0]?.content}` }),
      async ({ model }) => ({ content: model }),
      () => new Error('no'),
    ]);
    expect((await provider.chat(ask('hi'))).content).toBe('you said hi');
    expect((await provider.chat(ask())).content).toBe('test');
    await expect(provider.chat(ask())).rejects.toThrow('no');
  });

  test('each request is stored with its messages at that time', async () => {
    const provider = new ScriptedProvider([{ content: 'a' }, { content: 'b' }]);
    const messages: Message[] = [{ role: 'user', content: 'x' }];
    await provider.chat(ask('', { messages, options: { seed: 1 } }));
    messages.push({ role: 'assistant', content: 'a' });
    await provider.chat(ask('', { messages }));
    expect(provider.requests.map((request) => request.messages.length)).toEqual([1, 2]);
    expect(provider.requests[0]).toMatchObject({ model: 'test', options: { seed: 1 } });
  });

  test('a request beyond the script throws an error with the length of the script', async () => {
    const provider = new ScriptedProvider([{ content: 'only' }]);
    await provider.chat(ask());
    await expect(provider.chat(ask())).rejects.toThrow('request 2: the script has 1 scripted reply');
  });

  test('assertUsedUp throws an error with the number of replies that are left', async () => {
    const provider = new ScriptedProvider([{}, {}, {}]);
    await provider.chat(ask());
    expect(() => provider.assertUsedUp()).toThrow('2 of 3 scripted replies were not requested');
    await provider.chat(ask());
    await provider.chat(ask());
    expect(() => provider.assertUsedUp()).not.toThrow();
  });

  test('later changes to the array do not change the script', async () => {
    const script = [{ content: 'a' }];
    const provider = new ScriptedProvider(script);
    script.push({ content: 'b' });
    await provider.chat(ask());
    provider.assertUsedUp();
  });

  test('an aborted request throws the reason and takes no reply', async () => {
    const provider = new ScriptedProvider([{ content: 'kept' }]);
    const reason = new Error('stop');
    await expect(provider.chat(ask('', { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    expect((await provider.chat(ask())).content).toBe('kept');
  });

  test('an abort ends a reply that never arrives', async () => {
    const controller = new AbortController();
    const provider = new ScriptedProvider([() => new Promise(() => controller.abort(new Error('stop')))]);
    await expect(provider.chat(ask('', { signal: controller.signal }))).rejects.toThrow('stop');
  });

  test('a stream sends the content in pieces and then the whole response', async () => {
    const provider = new ScriptedProvider([{ content: 'one two three', toolCalls: [{ name: 'a' }] }]);
    const parts = [];
    for await (const part of provider.stream(ask())) parts.push(part);
    expect(parts.slice(0, -1)).toEqual(
      ['one', ' two', ' three'].map((text) => ({ type: 'text-delta', text })),
    );
    expect(parts.at(-1)).toMatchObject({ type: 'response', response: { content: 'one two three' } });
    provider.assertUsedUp();
  });

  test('the concatenated deltas equal the content', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (content) => {
        let text = '';
        for await (const part of new ScriptedProvider([{ content }]).stream(ask())) {
          if (part.type === 'text-delta') text += part.text;
        }
        expect(text).toBe(content);
      }),
    );
  });

  test('an abort inside a stream throws the reason', async () => {
    const controller = new AbortController();
    const provider = new ScriptedProvider([{ content: 'one two' }]);
    const reading = (async () => {
      for await (const _ of provider.stream(ask('', { signal: controller.signal }))) controller.abort();
    })();
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
  });
});
