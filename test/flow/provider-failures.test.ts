import { describe, expect, test } from '@jest/globals';
import {
  Conversations,
  defineTool,
  type LLMProvider,
  type LoopEvent,
  type Message,
  ProviderError,
  runToolLoop,
  streamToolLoop,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Hi' }];
const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const busy = (retryAfterMs = 0) => new ProviderError('busy', { status: 503, retryable: true, retryAfterMs });
const refused = new ProviderError('refused', { status: 400, retryable: false });

function script(...steps: readonly ScriptedStep[]) {
  return new ScriptedProvider(steps);
}

describe('providerRetries', () => {
  test('a request that failed with a retryable error is repeated unchanged and counted', async () => {
    const provider = script(busy(), busy(), { toolCalls: [{ name: 'look' }] }, busy(), { content: 'Done.' });
    const run = await runToolLoop({ provider, model: 'm', tools: [look] }, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'Done.', iterations: 2, providerRetries: 3 });
    expect(provider.requests[1]).toEqual(provider.requests[0]);
    expect(provider.requests[4]).toEqual(provider.requests[3]);
  });

  test('the run fails with a valid history after the last retry', async () => {
    const provider = script(busy(), busy(), busy());
    const run = await runToolLoop({ provider, model: 'm' }, hello);
    expect(run).toMatchObject({ status: 'failed', providerRetries: 2, error: { name: 'ProviderFailed' } });
    expect(run.messages).toEqual(hello);
    provider.assertUsedUp();
  });

  test('nothing is retried with providerRetries 0 or after an error that is not retryable', async () => {
    for (const [error, config] of [
      [busy(), { providerRetries: 0 }],
      [refused, {}],
      [new Error('?'), {}],
      [busy(61_000), {}],
    ] as const) {
      const provider = script(error, { content: 'never' });
      const run = await runToolLoop({ provider, model: 'm', ...config }, hello);
      expect([run.status, provider.requests.length]).toEqual(['failed', 1]);
      expect(run).not.toHaveProperty('providerRetries');
    }
  });

  test('tries that the provider made itself count as retries', async () => {
    const tired = new ProviderError('busy', { retryable: true, retryAfterMs: 0, tries: 3 });
    const provider = script(tired, tired, { content: 'Done.' });
    expect((await runToolLoop({ provider, model: 'm' }, hello)).status).toBe('failed');
    const patient = script(tired, tired, { content: 'Done.' });
    const config = { provider: patient, model: 'm', providerRetries: 6 };
    expect((await runToolLoop(config, hello)).status).toBe('completed');
  });

  test('the delay is at least the retryAfterMs of the error, and an abort ends it', async () => {
    const started = performance.now();
    await runToolLoop({ provider: script(busy(60), { content: 'Done.' }), model: 'm' }, hello);
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
    const controller = new AbortController();
    const { signal } = controller;
    const provider = script(busy(59_000), { content: 'never' });
    const stream = streamToolLoop({ provider, model: 'm', signal }, hello);
    for await (const { type } of stream) if (type === 'request-retry') controller.abort();
    expect((await stream.result).status).toBe('aborted');
    expect(provider.requests).toHaveLength(1);
  });

  test('a request is not retried after a part of its reply was streamed', async () => {
    let asked = 0;
    const provider: LLMProvider = {
      chat: async () => ({ content: '', toolCalls: [], finishReason: 'stop' }),
      async *stream() {
        asked += 1;
        if (asked > 1) yield { type: 'text-delta', text: 'He' };
        throw busy();
      },
    };
    const run = streamToolLoop({ provider, model: 'm', fallback: [script({ content: 'Hello' })] }, hello);
    const types: string[] = [];
    for await (const { type } of run) types.push(type);
    expect(types).toEqual(['run-start', 'step-start', 'request-retry', 'text-delta', 'run-end']);
    expect((await run.result).status).toBe('failed');
    expect(asked).toBe(2);
  });
});

describe('fallback', () => {
  test('a provider that still fails is replaced by the next one with its own model for the rest of the run', async () => {
    const first = script(busy(), busy(), busy());
    const second = script(refused);
    const third = script({ toolCalls: [{ name: 'look' }] }, { content: 'Done.' });
    const lines: string[] = [];
    const logger = { debug() {}, info() {}, warn: (line: string) => lines.push(line), error() {} };
    const config = {
      provider: first,
      model: 'm',
      tools: [look],
      fallback: [second, { provider: third, model: 'n' }],
      logger,
    };
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'Done.', iterations: 2, providerRetries: 4 });
    expect([first, second, third].map(({ requests }) => requests.map(({ model }) => model))).toEqual([
      ['m', 'm', 'm'],
      ['m'],
      ['n', 'n'],
    ]);
    expect(lines.filter((line) => line.includes('sent again'))).toHaveLength(4);
  });

  test('items of the first provider are not sent to the next one', async () => {
    const reply = { content: '', toolCalls: [{ id: 'c1', name: 'look', arguments: {} }] };
    let asked = 0;
    const first: LLMProvider = {
      chat: async () => {
        asked += 1;
        if (asked > 1) throw refused;
        return { ...reply, finishReason: 'tool_calls', providerItems: { one: 'signature' } };
      },
      itemKey: () => 'one',
    };
    const second = script({ content: 'Done.' });
    const run = await runToolLoop({ provider: first, model: 'm', tools: [look], fallback: [second] }, hello);
    expect(run.status).toBe('completed');
    expect(JSON.stringify(second.requests)).not.toContain('signature');
    expect(JSON.stringify(run.messages)).toContain('signature');
  });

  test('if all providers fail, the run fails with the last error', async () => {
    const run = await runToolLoop(
      { provider: script(refused), model: 'm', fallback: [script(new Error('the last one'))] },
      hello,
    );
    expect(run).toMatchObject({ status: 'failed', error: { message: 'LLM call failed: the last one' } });
  });

  test('a provider with a method that throws is replaced, and as the last one fails the run', async () => {
    const wrong: LLMProvider = {
      chat: async () => ({ content: 'never', toolCalls: [], finishReason: 'stop' }),
      itemKey: () => {
        throw new Error('no key');
      },
    };
    const config = { model: 'm', tools: [look] };
    const second = script({ content: 'Done.' });
    const run = await runToolLoop({ ...config, provider: wrong, fallback: [second] }, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'Done.', iterations: 1, providerRetries: 1 });

    const first = script({ toolCalls: [{ name: 'look' }] }, refused);
    const failed = await runToolLoop({ ...config, provider: first, fallback: [wrong] }, hello);
    expect(failed).toMatchObject({
      status: 'failed',
      error: { name: 'ProviderFailed', message: 'LLM call failed: no key' },
      toolCalls: [{ name: 'look', status: 'success' }],
    });
  });

  test('streamToolLoop reports each retried request', async () => {
    const stream = streamToolLoop(
      {
        provider: script(busy(), refused),
        model: 'm',
        fallback: [{ provider: script({ content: 'Hi' }), model: 'n' }],
      },
      hello,
    );
    const events: LoopEvent[] = [];
    for await (const event of stream) events.push(event);
    expect(events.filter(({ type }) => type === 'request-retry')).toEqual([
      { type: 'request-retry', iteration: 1, model: 'm', delayMs: 0, error: expect.any(Error) },
      { type: 'request-retry', iteration: 1, model: 'n', delayMs: 0, error: expect.any(Error) },
    ]);
  });
});

describe('an error that throws when it is read', () => {
  const unreadable = () => {
    throw new Error('unreadable');
  };
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const errors = [
    Object.defineProperty({}, 'message', { get: unreadable }),
    Object.defineProperty(new Error('busy'), 'retryable', { get: unreadable }),
    new Proxy({}, { get: unreadable }),
    proxy,
  ];

  test.each(errors.map((_error, index) => [index]))('ends the run as failed (%i)', async (index) => {
    const error = errors[index];
    const provider: LLMProvider = {
      chat: () => Promise.reject(error),
      // biome-ignore lint/correctness/useYield: it fails before its first part
      async *stream() {
        throw error;
      },
    };
    const failed = { status: 'failed', messages: hello, error: { name: 'ProviderFailed' } };
    expect(await runToolLoop({ provider, model: 'm' }, hello)).toMatchObject(failed);
    expect(await streamToolLoop({ provider, model: 'm' }, hello).result).toMatchObject(failed);
    const config = { provider, model: 'm', fallback: [script({ content: 'Done.' })] };
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'completed', content: 'Done.' });
    const conversations = new Conversations({
      store: new MemoryRunStore(),
      config: { provider, model: 'm' },
    });
    await conversations.prompt('c1', 'Hi');
    expect(await conversations.idle('c1')).toMatchObject({ status: 'idle', history: [{ number: 1 }] });
    await conversations.close();
  });
});
