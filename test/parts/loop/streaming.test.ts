import { describe, expect, test } from '@jest/globals';
import { type LLMProvider, runToolLoop, streamToolLoop, type ToolContext } from 'toolwright';
import { hello, numberTool } from './run-script.js';
import { eventsOf, streaming, streamScript, told, wholeReply } from './stream-script.js';

const turn = () => new Promise(setImmediate);
const call = (n: number, name = 'a') => ({ id: `c${n}`, name, arguments: { n } });

test('streaming a reply without pauses does not block other work of the process', async () => {
  let isOther = false;
  const provider: LLMProvider = {
    chat: () => Promise.reject(new Error('it streams')),
    async *stream() {
      setImmediate(() => {
        isOther = true;
      });
      for (const end = performance.now() + 5_000; !isOther && performance.now() < end; )
        yield { type: 'text-delta', text: 'x' };
      const content = isOther ? 'other work went on' : 'nothing else ran';
      yield { type: 'response', response: { content, toolCalls: [], finishReason: 'stop' } };
    },
  };
  const { content } = await streamToolLoop({ provider, model: 'm' }, hello).result;
  expect(content).toBe('other work went on');
});

describe('the event stream', () => {
  test('follows the run: requests, text, calls, the end of each step, the end of the run', async () => {
    const run = streamScript([{ content: 'Let me see.', toolCalls: [call(1)] }, { content: 'One it is.' }], {
      tools: [numberTool('a')],
    });
    const events = await eventsOf(run);
    expect(told(events)).toEqual([
      'run-start',
      'step-start 1',
      'text Let',
      'text  me',
      'text  see.',
      'reply-end 1',
      'start c1',
      'end c1 1',
      'step-end 1',
      'step-start 2',
      'text One',
      'text  it',
      'text  is.',
      'reply-end 2',
      'step-end 2',
      'run-end',
    ]);
    expect(events.at(-1)).toEqual({ type: 'run-end', result: await run.result });
  });

  test('contains arguments as sent, results with their records, usage and finish reason', async () => {
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 };
    const sent = { id: 'c1', name: 'a', arguments: '{"n":"7"}' };
    const events = await eventsOf(
      streamScript([{ toolCalls: [sent], usage }, { content: 'Done.' }], { tools: [numberTool('a')] }),
    );
    expect(events.find(({ type }) => type === 'call-start')).toEqual({
      type: 'call-start',
      callId: 'c1',
      tool: 'a',
      arguments: '{"n":"7"}',
    });
    expect(events.find(({ type }) => type === 'call-end')).toMatchObject({
      callId: 'c1',
      tool: 'a',
      result: { forLLM: '7', isError: false },
      record: { rawArguments: '{"n":"7"}', arguments: { n: 7 }, repairs: ['coerced n'], status: 'success' },
    });
    expect(events.find(({ type }) => type === 'step-end')).toEqual({
      type: 'step-end',
      iteration: 1,
      finishReason: 'tool_calls',
      usage,
    });
  });

  test('contains the whole text in one event if the provider cannot stream', async () => {
    const provider: LLMProvider = {
      chat: async () => ({ content: 'One it is.', toolCalls: [], finishReason: 'stop' }),
    };
    const events = await eventsOf(streamToolLoop({ provider, model: 'm' }, hello));
    expect(told(events)).toEqual([
      'run-start',
      'step-start 1',
      'text One it is.',
      'reply-end 1',
      'step-end 1',
      'run-end',
    ]);
  });

  test.each([null, 7, ['x'], ''])('contains no text event for content that is %j', async (content) => {
    const provider = { chat: async () => ({ content }) as never };
    const events = await eventsOf(streamToolLoop({ provider, model: 'm' }, hello));
    const steps = ['step-start 1', 'reply-end 1', 'step-end 1', 'step-start 2', 'reply-end 2', 'step-end 2'];
    expect(told(events)).toEqual(['run-start', ...steps, 'run-end']);
  });

  test('interleaves the events of parallel calls as they happen', async () => {
    const gates = new Map([1, 2].map((n) => [n, Promise.withResolvers<void>()]));
    const a = numberTool('a', {
      execute: async ({ n }: { n: number }, context: ToolContext) => {
        context.progress('begun');
        await gates.get(n)?.promise;
        context.progress('nearly');
        return n;
      },
    });
    const run = streamScript([{ toolCalls: [call(1), call(2)] }, { content: 'Done.' }], { tools: [a] });
    const seen: string[] = [];
    for await (const event of run) {
      seen.push(...told([event]));
      if (seen.includes('progress c1 begun') && seen.includes('progress c2 begun')) gates.get(2)?.resolve();
      if (seen.includes('end c2 2')) gates.get(1)?.resolve();
    }
    expect(seen.slice(3, -6)).toEqual([
      'start c1',
      'start c2',
      'progress c1 begun',
      'progress c2 begun',
      'progress c2 nearly',
      'end c2 2',
      'progress c1 nearly',
      'end c1 1',
    ]);
    const { messages } = await run.result;
    expect(messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []))).toEqual([
      '1',
      '2',
    ]);
  });

  test('has one start and one end per call, including unknown, refused and truncated calls', async () => {
    const script = [
      { toolCalls: [call(1), call(2, 'no_such_tool'), { id: 'c3', name: 'a', arguments: { n: 'x' } }] },
      { toolCalls: [call(4)], finishReason: 'length' as const },
      {},
    ];
    const policy = () => false;
    const run = streamScript(script, { tools: [numberTool('a')], policy });
    const events = await eventsOf(run);
    const ids = (type: string) =>
      events.flatMap((event) => ('callId' in event && event.type === type ? [event.callId] : []));
    const records = (await run.result).toolCalls;
    expect(records.map(({ status }) => status)).toEqual(['refused', 'rejected', 'rejected', 'not_run']);
    expect(ids('call-start').sort()).toEqual(['c1', 'c2', 'c3', 'c4']);
    expect(ids('call-end').sort()).toEqual(['c1', 'c2', 'c3', 'c4']);
  });

  test('contains the progress that is passed to onUpdate of the scope', async () => {
    const heard: unknown[] = [];
    const a = numberTool('a', {
      execute: async function* ({ n }: { n: number }) {
        yield 'half';
        return n;
      },
    });
    const onUpdate = (update: unknown, of: unknown) => void heard.push([update, of]);
    const events = await eventsOf(
      streamScript([{ toolCalls: [call(1)] }, { content: 'Done.' }], { tools: [a] }, { onUpdate }),
    );
    expect(heard).toEqual([['half', { callId: 'c1', tool: 'a' }]]);
    expect(events.find(({ type }) => type === 'call-progress')).toEqual({
      type: 'call-progress',
      callId: 'c1',
      tool: 'a',
      arguments: { n: 1 },
      update: 'half',
    });
  });

  test('contains a regular step for the answer at the limit', async () => {
    const script = [{ toolCalls: [call(1)] }, { content: 'Enough.' }];
    const config = { tools: [numberTool('a')], maxIterations: 1, onLimit: 'answer' } as const;
    expect(told(await eventsOf(streamScript(script, config))).slice(-5)).toEqual([
      'step-start 2',
      'text Enough.',
      'reply-end 2',
      'step-end 2',
      'run-end',
    ]);
  });
});

describe('a slow reader', () => {
  test('slows the model down: at most one piece of text is ahead of the reader', async () => {
    let written = 0;
    const provider = streaming(async function* () {
      while (written < 50) {
        written += 1;
        yield { type: 'text-delta', text: 'x' };
      }
      yield wholeReply({ content: 'x'.repeat(50) });
    });
    let read = 0;
    let furthest = 0;
    for await (const event of streamToolLoop({ provider, model: 'm' }, hello)) {
      if (event.type !== 'text-delta') continue;
      await turn();
      await turn();
      read += 1;
      furthest = Math.max(furthest, written - read);
    }
    expect([read, furthest]).toEqual([50, 1]);
  });

  test('slows the tools down: the next call starts after the end of the previous one was read', async () => {
    let begun = 0;
    const a = numberTool('a', { execute: () => ++begun, sequential: true });
    const calls = Array.from({ length: 20 }, (_, index) => call(index));
    let ended = 0;
    for await (const event of streamScript([{ toolCalls: calls }, { content: 'Done.' }], { tools: [a] })) {
      if (event.type !== 'call-end') continue;
      await turn();
      ended += 1;
      expect(begun - ended).toBeLessThanOrEqual(1);
    }
    expect([begun, ended]).toEqual([20, 20]);
  });

  test('gets the newest reports of a flood of progress, and then the end of the call', async () => {
    const flood = numberTool('a', {
      execute: async (_args: unknown, context: ToolContext) => {
        for (let number = 0; number < 10_000; number += 1) context.progress(number);
        return 'done';
      },
    });
    const events = told(
      await eventsOf(streamScript([{ toolCalls: [call(1)] }, { content: 'Done.' }], { tools: [flood] })),
    );
    const progress = events.filter((event) => event.startsWith('progress'));
    expect(progress.length).toBeLessThanOrEqual(257);
    expect(progress.at(-1)).toBe('progress c1 9999');
    expect(events.indexOf('end c1 done')).toBe(events.lastIndexOf('progress c1 9999') + 1);
  });
});

describe('reading and awaiting a run', () => {
  test('the result is available without reading the events', async () => {
    const script = [{ content: 'Let me see.', toolCalls: [call(1)] }, { content: 'One.' }];
    const streamed = await streamScript(script, { tools: [numberTool('a')] }).result;
    expect(streamed).toMatchObject({ status: 'completed', content: 'One.', iterations: 2 });
    expect(streamed.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  test('the result can be requested before reading, and is always the same promise', async () => {
    const run = streamScript([{ content: 'Hi' }]);
    const early = run.result;
    expect(told(await eventsOf(run))).toContain('text Hi');
    expect(run.result).toBe(early);
    expect(await early).toMatchObject({ status: 'completed', content: 'Hi' });
  });

  test('if the result is awaited first, there are no events to read', async () => {
    const run = streamScript([{ content: 'Hi' }]);
    await run.result;
    expect(await eventsOf(run)).toEqual([]);
  });

  test('the events can be read once; a second reader is refused', async () => {
    const run = streamScript([{ content: 'Hi' }]);
    await eventsOf(run);
    await expect(eventsOf(run)).rejects.toThrow('The events of a run can be read only once.');
  });

  test('a run that is neither read nor awaited makes no request', async () => {
    let asked = 0;
    const provider = { chat: async () => ({ content: String(++asked) }) as never };
    streamToolLoop({ provider, model: 'm' }, hello);
    await turn();
    expect(asked).toBe(0);
  });

  test('several reads can be pending at once', async () => {
    const events = streamScript([{ content: 'Hi' }])[Symbol.asyncIterator]();
    const types = (await Promise.all([1, 2, 3, 4, 5, 6, 7].map(() => events.next()))).map(
      ({ value }) => value?.type,
    );
    expect(types).toEqual([
      'run-start',
      'step-start',
      'text-delta',
      'reply-end',
      'step-end',
      'run-end',
      undefined,
    ]);
  });
});

describe('errors', () => {
  const wrong = { provider: {} as LLMProvider, model: 'm' };

  test('of invalid options reject the events and the result, as in runToolLoop', async () => {
    await expect(runToolLoop(wrong, hello)).rejects.toThrow('provider is {}');
    const run = streamToolLoop(wrong, hello);
    await expect(eventsOf(run)).rejects.toThrow('provider is {}');
    await expect(run.result).rejects.toThrow('provider is {}');
    await expect(streamToolLoop(wrong, hello).result).rejects.toThrow('provider is {}');
  });

  test("of onLimit 'throw' reject after all events were read", async () => {
    const run = streamScript([{ toolCalls: [call(1)] }], {
      tools: [numberTool('a')],
      maxIterations: 1,
      onLimit: 'throw',
    });
    const seen: string[] = [];
    const reading = async () => {
      for await (const event of run) seen.push(event.type);
    };
    await expect(reading()).rejects.toMatchObject({ name: 'ToolLoopLimitReached', code: 504 });
    expect(seen.at(-1)).toBe('step-end');
  });
});
