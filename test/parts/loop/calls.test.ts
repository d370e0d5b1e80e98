import { describe, expect, test } from '@jest/globals';
import {
  type AssistantMessage,
  type CallRecord,
  defineTool,
  errorResult,
  type Message,
  RetryToolCall,
  runToolLoop,
  streamToolLoop,
  ToolRegistry,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { withoutTimes } from '../../setup/call-records.js';
import { answers, hello, numberTool, runScript } from './run-script.js';

const turn = () => new Promise(setImmediate);

describe('calls of one message', () => {
  async function trace(sequential: readonly boolean[], maxConcurrency: number) {
    const events: string[] = [];
    const tools = sequential.map((alone, index) =>
      numberTool(`t${index}`, {
        sequential: alone,
        execute: async ({ n }: { n: number }) => {
          events.push(`+${index}`);
          await turn();
          events.push(`-${index}`);
          return n * 10;
        },
      }),
    );
    const calls = { toolCalls: tools.map(({ name }, n) => ({ name, arguments: { n } })) };
    const { run } = await runScript([calls, { content: 'Done.' }], { tools, maxConcurrency });
    const outcomes = answers(run).map(Number);
    return { events: events.join(' '), outcomes };
  }

  test('run at the same time', async () => {
    const { events, outcomes } = await trace([false, false, false], Number.POSITIVE_INFINITY);
    expect(events).toBe('+0 +1 +2 -0 -1 -2');
    expect(outcomes).toEqual([0, 10, 20]);
  });

  test('run at most maxConcurrency at a time', async () => {
    expect((await trace([false, false, false], 2)).events).toBe('+0 +1 -0 +2 -1 -2');
    expect((await trace([false, false], 1)).events).toBe('+0 -0 +1 -1');
  });

  test('run alone if they are sequential, after earlier calls and before later ones', async () => {
    const { events, outcomes } = await trace([false, false, true, false, true, true], 9);
    expect(events).toBe('+0 +1 -0 -1 +2 -2 +3 -3 +4 -4 +5 -5');
    expect(outcomes).toEqual([0, 10, 20, 30, 40, 50]);
  });

  test('create one instance per call from a tool factory, also if the loop needs the tool’s options', async () => {
    let made = 0;
    const tools = new ToolRegistry().register(() => {
      made += 1;
      return numberTool('a', { sequential: true, retries: 0, returnDirect: false });
    });
    const calls = { toolCalls: [1, 2].map((n) => ({ name: 'a', arguments: { n } })) };
    await runScript([calls, { content: 'Done.' }], { tools });
    expect(made).toBe(1 + 2);
  });

  test('fail with an error if the tool factory throws during the run', async () => {
    let isBroken = false;
    const tools = new ToolRegistry().register(() => {
      if (isBroken) throw new Error('no database');
      return numberTool('a');
    });
    isBroken = true;
    const call = { toolCalls: [{ name: 'a', arguments: { n: 1 } }] };
    const { run } = await runScript([call, { content: 'done' }], { tools });
    expect(run.status).toBe('completed');
    expect(answers(run)).toEqual(["The tool 'a' cannot be called: no database"]);
  });

  test('see the history up to their message, without the results of that message', async () => {
    const seen: (readonly Message[])[] = [];
    const look = numberTool('look', { execute: (_args, { messages }) => void seen.push(messages) });
    const calls = { toolCalls: [1, 2].map((n) => ({ name: 'look', arguments: { n } })) };
    const { run } = await runScript([calls, calls, { content: 'Done.' }], {
      tools: [look],
      maxConcurrency: 1,
    });
    expect(seen.map(({ length }) => length)).toEqual([2, 2, 5, 5]);
    expect(seen[2]).toEqual(run.messages.slice(0, 5));
    expect(Object.isFrozen(seen[0])).toBe(true);
  });
});

describe('an async body without a context parameter settles its call like a body with one', () => {
  const never = new Promise<never>(() => {});
  const slowly = async function* () {
    yield 'some';
    await never;
  };
  const bodies: Readonly<Record<string, (run: AbortController) => Promise<unknown>>> = {
    'with a value': async () => ({ a: 1 }),
    'with a date': async () => new Date(0),
    'with an error that it returns': async () => errorResult('no'),
    'with an error that it throws': () => Promise.reject(new Error('no')),
    'with a request for another call': () => Promise.reject(new RetryToolCall('other')),
    'with a generator': async () =>
      (function* () {
        yield 1;
        return 2;
      })(),
    'with a generator that takes too long': async () => slowly(),
    'with a timeout': () => never,
    'with an abort of its run': async (run) => {
      run.abort();
      return never;
    },
  };
  const form = { name: 'work', description: 'Works.', parameters: { type: 'object' } } as const;
  const recordOf = async (execute: (run: AbortController) => Parameters<typeof defineTool>[0]['execute']) => {
    const controller = new AbortController();
    const tools = [defineTool({ ...form, execute: execute(controller) })];
    const script = [{ toolCalls: [{ id: '1', name: 'work', arguments: '{}' }] }, { content: 'Done.' }];
    const { run } = await runScript(script, { tools, toolTimeoutMs: 30, signal: controller.signal });
    const { result, ...record } = withoutTimes(run.toolCalls[0] as CallRecord);
    return { ...record, ...result, error: String(result.error), ends: run.status };
  };

  test.each(Object.entries(bodies))('%s', async (_, body) => {
    const short = await recordOf((run) => () => body(run));
    expect(short).toEqual(await recordOf((run) => (_args, _context) => body(run)));
    expect(short).toMatchObject({ id: '1', name: 'work' });
  });
});

test('a tool that reads the history late sees the history at the time of its call', async () => {
  const late = Promise.withResolvers<readonly Message[]>();
  const isOver = Promise.withResolvers<void>();
  const watch = numberTool('watch', {
    execute: (_args, context) =>
      context.background(async () => {
        await isOver.promise;
        late.resolve(context.messages);
        return 'watched';
      }),
  });
  const steps = [
    { toolCalls: [{ id: 'c1', name: 'watch', arguments: { n: 1 } }] },
    { toolCalls: [{ id: 'c2', name: 'a', arguments: { n: 2 } }] },
    { content: 'done' },
  ];
  const { run } = await runScript(steps, { tools: [watch, numberTool('a')], onAsyncResult: () => {} });
  isOver.resolve();
  expect(await late.promise).toEqual(run.messages.slice(0, 2));
  expect(run.messages).toHaveLength(6);
});

describe('call ids', () => {
  const call = (id: unknown) => ({ id: id as string, name: 'a', arguments: { n: 1 } });
  const ids = async (history: readonly Message[], given: readonly unknown[]) => {
    const provider = new ScriptedProvider([{ toolCalls: given.map(call) }, { content: 'Done.' }]);
    const config = { provider, model: 'm', tools: [numberTool('a')] };
    const { toolCalls } = await runToolLoop(config, [...history, ...hello]);
    return toolCalls.map(({ id }) => id);
  };
  const asked = (...given: string[]): AssistantMessage => ({
    role: 'assistant',
    content: '',
    tool_calls: given.map((id) => ({ id, type: 'function', function: { name: 'a', arguments: '{}' } })),
  });

  test('of the provider are preserved', async () => {
    expect(await ids([], ['x', 'y'])).toEqual(['x', 'y']);
  });

  test('are numbered if missing, continuing from the history', async () => {
    expect(await ids([], ['', undefined, null])).toEqual(['call_1', 'call_2', 'call_3']);
    expect(await ids([asked('call_7', 'x'), asked('call_2')], ['', ''])).toEqual(['call_8', 'call_9']);
    expect(await ids([{ role: 'assistant', content: 'Hi' }], [''])).toEqual(['call_1']);
  });

  test('are replaced by numbers if they are duplicated or not strings', async () => {
    expect(await ids([], ['x', 'x', 3])).toEqual(['x', 'call_1', 'call_2']);
  });

  test('are not numbers that the provider itself uses in the same message', async () => {
    expect(await ids([], ['', 'call_1', 'call_2'])).toEqual(['call_3', 'call_1', 'call_2']);
  });

  test('do not continue from very long numbers in the provider’s own ids', async () => {
    const history = [asked('call_99999999999999999999')];
    expect(await ids(history, ['', ''])).toEqual(['call_1', 'call_2']);
  });

  test('are numbered across the messages of a run', async () => {
    const calls = { toolCalls: [{ name: 'a', arguments: { n: 1 } }] };
    const { run } = await runScript([calls, calls, { content: 'Done.' }], { tools: [numberTool('a')] });
    expect(run.toolCalls.map(({ id }) => id)).toEqual(['call_1', 'call_2']);
  });
});

describe('malformed replies', () => {
  const reply = (toolCalls: unknown) => () => ({ content: 'x', toolCalls }) as never;

  test.each([
    ['text that is cut off', '{"n": 1', '{}'],
    ['an array', [1], '{}'],
    ['a number', 7, '{}'],
    ['an object that JSON cannot write', { n: 1n }, '{}'],
    ['an object as text', '{"n": 1}', '{"n": 1}'],
  ])('arguments that are %s appear as a JSON object in the history', async (_what, args, text) => {
    const { run } = await runScript(
      [reply([{ id: '1', name: 'a', arguments: args }]), { content: 'Done.' }],
      {
        tools: [numberTool('a')],
      },
    );
    const [, message] = run.messages as [Message, AssistantMessage];
    expect(message.tool_calls?.[0]?.function.arguments).toBe(text);
    expect(run.toolCalls[0]?.rawArguments).toEqual(args);
    expect(run.status).toBe('completed');
  });

  test('an invalid tool name is sanitized in the history and unchanged in the record', async () => {
    const calls = ['weather.get now', '', 'x'.repeat(80)].map((name) => ({ name, arguments: {} }));
    const { run } = await runScript([{ toolCalls: calls }, { content: 'Done.' }], {
      tools: [numberTool('a')],
    });
    const [, message] = run.messages as [Message, AssistantMessage];
    expect(message.tool_calls?.map((each) => each.function.name)).toEqual([
      'weather_get_now',
      'unnamed',
      'x'.repeat(64),
    ]);
    expect(run.toolCalls[0]).toMatchObject({ name: 'weather.get now', status: 'rejected' });
    expect(answers(run)[0]).toBe('tool not found: weather.get now');
  });

  test('missing names, ids and arguments of calls get default values', async () => {
    const calls = [null, { id: 7, name: 'a', arguments: null }, { name: 'a', arguments: { n: 1 } }];
    const replies = [{ toolCalls: calls }, { content: 'Done.' }];
    const provider = { chat: async () => replies.shift() as never };
    const run = await runToolLoop({ provider, model: 'm', tools: [numberTool('a')] }, hello);
    expect(run.toolCalls).toMatchObject([
      { id: 'call_1', name: '', rawArguments: {}, status: 'rejected' },
      { id: 'call_2', name: 'a', rawArguments: {}, status: 'rejected' },
      { id: 'call_3', name: 'a', rawArguments: { n: 1 }, status: 'success' },
    ]);
  });

  test.each([null, undefined])(
    'call-start has empty arguments if the arguments of a call are %p',
    async (args) => {
      const replies = [{ toolCalls: [{ id: 'c1', name: 'a', arguments: args }] }, { content: 'Done.' }];
      const provider = { chat: async () => replies.shift() as never };
      const told = [];
      for await (const event of streamToolLoop({ provider, model: 'm', tools: [numberTool('a')] }, hello))
        if (event.type === 'call-start') told.push(event.arguments);
      expect(told).toEqual([{}]);
    },
  );

  test('missing fields of a provider’s response get default values', async () => {
    const provider = { chat: async () => ({ content: null }) as never };
    const run = await runToolLoop({ provider, model: 'm' }, hello);
    expect(run).toMatchObject({ status: 'failed', error: { code: 522 }, usage: { totalTokens: 0 } });
  });

  test.each([undefined, null, 'text'])('a provider that returns %p fails the run', async (response) => {
    const provider = { chat: async () => response as never };
    const run = await runToolLoop({ provider, model: 'm' }, hello);
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ProviderFailed', code: 509 } });
  });
});
