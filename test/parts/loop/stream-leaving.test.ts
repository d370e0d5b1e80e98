import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type LLMProvider,
  type LLMRequest,
  type LoopEvent,
  streamToolLoop,
  type ToolContext,
  type ToolDefinition,
  type ToolLoopStream,
} from 'toolwright';
import { historyFaults } from '../../flow/strict-history.js';
import { hello, numberTool } from './run-script.js';
import { streaming, streamScript, wholeReply } from './stream-script.js';

const turn = () => new Promise(setImmediate);
const never = () => new Promise<never>(() => {});
const calls = [1, 2, 3].map((n) => ({ id: `c${n}`, name: 'a', arguments: { n } }));

const unhandled: unknown[] = [];
const keep = (reason: unknown): void => void unhandled.push(reason);
beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', keep);
});
afterEach(async () => {
  await turn();
  process.off('unhandledRejection', keep);
  expect(unhandled).toEqual([]);
});

/** Stops reading at the first event of a type, and returns the result of the run. */
async function leaveAt(run: ToolLoopStream, type: LoopEvent['type']) {
  for await (const event of run) if (event.type === type) break;
  const result = await run.result;
  expect(historyFaults(result.messages)).toEqual([]);
  return result;
}

describe('leaving the iteration aborts the run', () => {
  test.each(['run-start', 'step-start', 'text-delta', 'call-start', 'call-progress', 'call-end'] as const)(
    'at %s, with a valid history in which every call has a result',
    async (type) => {
      const a = numberTool('a', {
        execute: async function* ({ n }: { n: number }) {
          yield 'half';
          await turn();
          return n;
        },
        sequential: true,
      });
      const run = streamScript([{ content: 'Let me see.', toolCalls: calls }, { content: 'x' }], {
        tools: [a],
      });
      const result = await leaveAt(run, type);
      expect(result).toMatchObject({ status: 'aborted', error: { name: 'RunAborted', code: 508 } });
      const answered = result.messages.filter(({ role }) => role === 'tool');
      expect(answered).toHaveLength(type.startsWith('call') ? 3 : 0);
    },
  );

  test('but not at run-end: background work continues and completes', async () => {
    const completions: string[] = [];
    const completed = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<string>();
    const job = numberTool('a', { execute: (_args, context) => context.background(() => finish.promise) });
    const run = streamScript([{ toolCalls: calls.slice(0, 1) }, { content: 'Started.' }], {
      tools: [job],
      onAsyncResult: (_context, { forLLM }) => {
        completions.push(forLLM);
        completed.resolve();
      },
    });
    expect((await leaveAt(run, 'run-end')).status).toBe('completed');
    finish.resolve('done');
    await completed.promise;
    expect(completions).toEqual(['done']);
  });

  test('and return() reports the end each time it is called', async () => {
    const events = streamScript([{ content: 'Hi' }])[Symbol.asyncIterator]();
    await events.next();
    for (let times = 0; times < 2; times += 1)
      expect(await events.return?.()).toEqual({ value: undefined, done: true });
    expect(await events.next()).toEqual({ value: undefined, done: true });
  });

  test('and only requests that were sent are counted', async () => {
    const requests: LLMRequest[] = [];
    const provider: LLMProvider = {
      chat: async (request) => {
        requests.push(request);
        return { content: '', toolCalls: [], finishReason: 'stop' };
      },
    };
    const run = streamToolLoop({ provider, model: 'm' }, hello);
    const events = run[Symbol.asyncIterator]();
    await events.next();
    // The run has written step-start and waits until it is read.
    await turn();
    await events.return?.();
    expect([requests.length, (await run.result).iterations]).toEqual([0, 0]);
  });

  test('at step-end, after the results of the calls and before the next request', async () => {
    const result = await leaveAt(
      streamScript([{ toolCalls: calls }, { content: 'x' }], { tools: [numberTool('a')] }),
      'step-end',
    );
    expect(result).toMatchObject({ status: 'aborted', iterations: 1 });
    expect(result.toolCalls.map(({ status }) => status)).toEqual(['success', 'success', 'success']);
  });

  test('but not at run-end: the run is completed', async () => {
    expect(await leaveAt(streamScript([{ content: 'Hi' }]), 'run-end')).toMatchObject({
      status: 'completed',
      content: 'Hi',
    });
  });

  test.each([
    ['ignores its signal', {}],
    ['takes its signal and ignores it', { observesSignal: true }],
  ] as readonly (readonly [string, Partial<ToolDefinition>])[])(
    'even if a tool %s and never ends',
    async (_what, more) => {
      const a = numberTool('a', { execute: never, ...more });
      const result = await leaveAt(streamScript([{ toolCalls: calls }], { tools: [a] }), 'call-start');
      expect(result.status).toBe('aborted');
      expect(result.toolCalls.map(({ status }) => status)).toEqual(['aborted', 'aborted', 'aborted']);
    },
  );

  test('and the signal of a running tool fires', async () => {
    const heard: unknown[] = [];
    const a = numberTool('a', {
      observesSignal: true,
      execute: (_args: unknown, { signal }: ToolContext) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            heard.push(signal.reason);
            reject(new Error('Download cancelled'));
          });
        }),
    });
    const run = streamScript([{ toolCalls: calls }], { tools: [a], maxConcurrency: 1 });
    const events = run[Symbol.asyncIterator]();
    for (let next = await events.next(); next.value?.type !== 'call-start'; next = await events.next());
    await turn();
    await events.return?.();
    expect(heard).toMatchObject([
      { name: 'AbortError', message: 'The reader of the run’s events has stopped reading.' },
    ]);
    expect((await run.result).toolCalls.map(({ result }) => result.forLLM)).toEqual([
      'Download cancelled',
      "The run was aborted. The tool 'a' was not run.",
      "The run was aborted. The tool 'a' was not run.",
    ]);
  });

  test('even if a policy never decides', async () => {
    const policy = () => new Promise<boolean>(() => {});
    const run = streamScript([{ toolCalls: calls }], { tools: [numberTool('a')], policy });
    const result = await leaveAt(run, 'call-start');
    expect(result.toolCalls.map(({ status }) => status)).toEqual(['aborted', 'aborted', 'aborted']);
  });

  test.each(['chat', 'stream'])('even if %s of the provider never returns', async (method) => {
    const asked = Promise.withResolvers<void>();
    const provider: LLMProvider =
      method === 'chat'
        ? {
            chat: () => {
              asked.resolve();
              return never();
            },
          }
        : streaming(async function* () {
            asked.resolve();
            yield await never();
          });
    const run = streamToolLoop({ provider, model: 'm' }, hello);
    const events = run[Symbol.asyncIterator]();
    await events.next();
    await events.next();
    void events.next();
    await asked.promise;
    await events.return?.();
    expect(await run.result).toMatchObject({ status: 'aborted', messages: hello, iterations: 1 });
    expect(await events.next()).toEqual({ value: undefined, done: true });
  });

  test('in the middle of a text, closes the provider’s stream and stores no partial reply', async () => {
    let isClosed = false;
    const provider = streaming(async function* () {
      try {
        for (;;) yield { type: 'text-delta', text: 'on and on ' };
      } finally {
        isClosed = true;
      }
    });
    const result = await leaveAt(streamToolLoop({ provider, model: 'm' }, hello), 'text-delta');
    expect(result).toMatchObject({ status: 'aborted', messages: hello });
    expect(result.content).toMatch(/^(on and on )+$/);
    await turn();
    expect(isClosed).toBe(true);
  });

  test('and a later failure of the provider is not an unhandled rejection', async () => {
    const failing = Promise.withResolvers<void>();
    const provider = streaming(async function* () {
      yield { type: 'text-delta', text: 'x' };
      await failing.promise;
      throw new Error('connection lost');
    });
    const result = await leaveAt(streamToolLoop({ provider, model: 'm' }, hello), 'text-delta');
    failing.resolve();
    await turn();
    expect(result.status).toBe('aborted');
  });

  test('before the first event, without any request', async () => {
    const run = streamScript([{ content: 'Hi' }]);
    await run[Symbol.asyncIterator]().return?.();
    expect(await run.result).toMatchObject({ status: 'aborted', iterations: 0, messages: hello });
  });

  test('if the body of the for-await loop throws, and the caller gets that error', async () => {
    const run = streamScript([{ toolCalls: calls }], { tools: [numberTool('a', { execute: never })] });
    const reading = async () => {
      for await (const event of run) if (event.type === 'call-start') throw new Error('the page is gone');
    };
    await expect(reading()).rejects.toThrow('the page is gone');
    expect((await run.result).status).toBe('aborted');
  });
});

describe('an abort signal', () => {
  test.each(['config', 'scope'])('in the %s ends the events with the aborted run', async (where) => {
    const { signal, abort } = controllerOf();
    const a = numberTool('a', { execute: never });
    const [config, scope] = where === 'config' ? [{ signal }, {}] : [{}, { signal }];
    const seen: LoopEvent[] = [];
    for await (const event of streamScript([{ toolCalls: calls }], { tools: [a], ...config }, scope)) {
      seen.push(event);
      if (event.type === 'call-start' && event.callId === 'c3') abort();
    }
    expect(seen.filter(({ type }) => type === 'call-end')).toHaveLength(3);
    expect(seen.at(-1)).toMatchObject({ type: 'run-end', result: { status: 'aborted' } });
  });

  test('that was already aborted gives an aborted run at once', async () => {
    const run = streamScript([{ content: 'Hi' }], { signal: AbortSignal.abort() });
    const types: string[] = [];
    for await (const { type } of run) types.push(type);
    expect(types).toEqual(['run-start', 'run-end']);
    expect((await run.result).iterations).toBe(0);
  });
});

describe('a malformed stream', () => {
  const parts = (...nonsense: readonly unknown[]) =>
    streaming(async function* () {
      yield* nonsense as never[];
    });

  async function play(provider: LLMProvider) {
    const texts: unknown[] = [];
    const run = streamToolLoop({ provider, model: 'm' }, hello);
    for await (const event of run) if (event.type === 'text-delta') texts.push(event.text);
    const result = await run.result;
    expect(historyFaults(result.messages)).toEqual([]);
    return { result, texts };
  }

  test.each([
    ['ends without a response', parts({ type: 'text-delta', text: 'x' }), 'ended without a response'],
    ['yields nothing', parts(), 'ended without a response'],
    ['yields null', parts(null), 'LLM call failed'],
    ['yields an invalid response', parts({ type: 'response' }), 'the provider returned no response'],
  ])('that %s fails the run with the original history', async (_what, provider, message) => {
    const { result } = await play(provider);
    expect(result).toMatchObject({ status: 'failed', content: '', messages: hello, error: { code: 509 } });
    expect(result.error?.message).toContain(message);
  });

  test('that throws midway fails the run with the error as its cause', async () => {
    const lost = new Error('connection lost');
    const provider = streaming(async function* () {
      yield { type: 'text-delta', text: 'x' };
      throw lost;
    });
    const { result, texts } = await play(provider);
    expect(texts).toEqual(['x']);
    expect(result).toMatchObject({ status: 'failed', error: { name: 'ProviderFailed', cause: lost } });
  });

  test.each([
    ['is not an iterable', () => 7],
    [
      'throws at once',
      () => {
        throw new Error('no');
      },
    ],
  ])('that %s fails the run', async (_what, stream) => {
    const { result } = await play({ chat: never, stream: stream as never });
    expect(result).toMatchObject({ status: 'failed', error: { name: 'ProviderFailed' } });
  });

  test('that yields unknown parts or deltas without text is read without them', async () => {
    const { result, texts } = await play(
      parts(
        { type: 'reasoning-delta', text: 'hmm' },
        { type: 'text-delta' },
        { type: 'text-delta', text: '' },
        { type: 'text-delta', text: 'Hi' },
        wholeReply({ content: 'Hi' }),
        wholeReply({ content: 'a second one' }),
      ),
    );
    expect(texts).toEqual(['Hi']);
    expect(result).toMatchObject({ status: 'completed', content: 'Hi' });
  });
});

function controllerOf() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error('enough')) };
}
