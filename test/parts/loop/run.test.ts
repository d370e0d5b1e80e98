import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { type LLMProvider, type LLMRequest, type Message, runToolLoop, toolResult } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { answers, hello, numberTool, runScript } from './run-script.js';

const call = { toolCalls: [{ id: '1', name: 'a', arguments: { n: 1 } }] };
const done = { content: 'done' };

describe('a run', () => {
  test('sums the usage of all replies; a reply without usage adds nothing', async () => {
    const usage = { inputTokens: 10, outputTokens: 2, totalTokens: 12 };
    const script = [{ ...call, usage }, call, { ...done, usage }];
    const { run } = await runScript(script, { tools: [numberTool('a')] });
    expect(run.usage).toEqual({ inputTokens: 20, outputTokens: 4, totalTokens: 24 });
  });

  test('does not change the input array or its messages, even if they are frozen', async () => {
    const input: readonly Message[] = Object.freeze(hello.map((message) => Object.freeze({ ...message })));
    const provider: LLMProvider = {
      chat: async () => ({ content: 'Hi!', toolCalls: [], finishReason: 'stop' }),
    };
    const run = await runToolLoop({ provider, model: 'm' }, input);
    expect(input).toEqual(hello);
    expect(run.messages).toHaveLength(2);
    expect(run.messages).not.toBe(input);
  });

  test.each([1, 5_000])(
    'does not change requests that a provider stored, with a history of %i messages',
    async (length) => {
      const history = Array.from({ length }, (): Message => ({ role: 'user', content: 'Hi' }));
      const kept: LLMRequest[] = [];
      const chat: LLMProvider['chat'] = async (request) => {
        kept.push(request);
        const isFirst = kept.length === 1;
        const toolCalls = isFirst ? [{ id: '1', name: 'a', arguments: { n: 1 } }] : [];
        return { content: isFirst ? '' : 'done', toolCalls, finishReason: 'stop' };
      };
      await runToolLoop({ provider: { chat }, model: 'm', tools: [numberTool('a')] }, history);
      expect(kept.map((request) => request.messages.length)).toEqual([length, length + 2]);
      expect(Object.keys(kept[0] ?? {})).toEqual(['model', 'messages', 'options', 'tools', 'metadata']);
      expect({ ...kept[0], messages: [] }.messages).toEqual([]);
      const [first] = kept as { messages: readonly Message[] }[];
      if (first !== undefined) first.messages = [];
      expect(kept.map((request) => request.messages.length)).toEqual([0, length + 2]);
    },
  );

  test('reads each message of a growing history once, not in every turn', async () => {
    const readsWithin = async (turns: number): Promise<number> => {
      let reads = 0;
      const get = (message: Message, key: string | symbol): unknown => {
        reads += 1;
        return Reflect.get(message, key);
      };
      const history = new Proxy<Message>({ role: 'user', content: 'Hi' }, { get });
      const steps = Array.from({ length: turns }, (_, n) => ({
        toolCalls: [{ id: `${n}`, name: 'a', arguments: { n } }],
      }));
      const provider = new ScriptedProvider([...steps, done]);
      const config = { provider, model: 'm', tools: [numberTool('a')], maxIterations: turns + 1 };
      const run = await runToolLoop(config, [history]);
      expect(run.status).toBe('completed');
      return reads;
    };
    expect(await readsWithin(50)).toBe(await readsWithin(5));
  });

  test('has one record per call in toolCalls, in order, including rejected calls', async () => {
    const calls = {
      toolCalls: [
        { id: '1', name: 'a', arguments: { n: 1 } },
        { id: '2', name: 'b', arguments: '{}' },
        { id: '3', name: 'a', arguments: { n: 'x' } },
      ],
    };
    const { run } = await runScript([calls, done], { tools: [numberTool('a')] });
    expect(run.toolCalls).toEqual([
      {
        id: '1',
        name: 'a',
        rawArguments: { n: 1 },
        arguments: { n: 1 },
        repairs: [],
        removed: [],
        attempts: 1,
        durationMs: expect.any(Number),
        status: 'success',
        result: toolResult('1'),
      },
      expect.objectContaining({ id: '2', name: 'b', rawArguments: '{}', status: 'rejected' }),
      expect.objectContaining({ id: '3', status: 'rejected' }),
    ]);
  });

  test('records the duration of each call', async () => {
    const slow = numberTool('a', { execute: () => wait(30) });
    const began = performance.now();
    const { run } = await runScript([call, done], { tools: [slow] });
    expect(run.toolCalls[0]?.durationMs).toBeGreaterThan(25);
    expect(run.toolCalls[0]?.durationMs).toBeLessThanOrEqual(performance.now() - began);
  });

  test('throws if a tool or the provider is invalid', async () => {
    await expect(runScript([done], { tools: [{ name: '1st' }] as never })).rejects.toMatchObject({
      code: 502,
    });
    await expect(runToolLoop({ provider: {} as never, model: 'm' }, hello)).rejects.toThrow('provider is {}');
  });

  test('uses its logger for its calls', async () => {
    const lines: string[] = [];
    const at = (message: string) => lines.push(message);
    const logger = { debug: at, info: at, warn: at, error: at };
    await runScript([call, done], { tools: [numberTool('a')], logger });
    expect(lines).toContain('Tool completed');
  });

  test('answers a call that times out, and continues', async () => {
    const never = numberTool('a', { execute: () => new Promise(() => {}) });
    const { run } = await runScript([call, done], { tools: [never], toolTimeoutMs: 5 });
    expect(run.status).toBe('completed');
    expect(run.toolCalls[0]?.status).toBe('timed_out');
    expect(answers(run)).toEqual([
      "The tool 'a' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
    ]);
  });
});

describe('an abort', () => {
  test('before the run prevents all requests', async () => {
    const signal = AbortSignal.abort();
    const { run, provider } = await runScript([done], { signal });
    expect(run).toMatchObject({ status: 'aborted', iterations: 0, content: '', messages: hello });
    expect(run.error).toMatchObject({ name: 'RunAborted', code: 508 });
    expect(provider.requests).toEqual([]);
  });

  test.each(['config', 'scope'])('through the %s gives every open call a result', async (where) => {
    const controller = new AbortController();
    const tools = [
      numberTool('stop', { execute: () => controller.abort() }),
      numberTool('never', { execute: () => new Promise(() => {}) }),
      numberTool('after', { sequential: true }),
    ];
    const names = ['never', 'stop', 'never', 'after', 'missing'];
    const calls = { toolCalls: names.map((name, id) => ({ id: `${id}`, name, arguments: { n: 1 } })) };
    const { signal } = controller;
    const { run, provider } =
      where === 'config'
        ? await runScript([calls, done], { tools, signal })
        : await runScript([calls, done], { tools }, { signal });
    expect(run.status).toBe('aborted');
    expect(run.toolCalls.map(({ status }) => status)).toEqual([
      'aborted',
      'success',
      'aborted',
      'aborted',
      'aborted',
    ]);
    const ids = run.messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []));
    expect(ids).toEqual(['0', '1', '2', '3', '4']);
    expect(provider.requests).toHaveLength(1);
  });

  test('by either of two signals ends the run', async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const tools = [numberTool('a', { execute: () => other.abort() })];
    const config = { tools, signal: one.signal };
    const { run } = await runScript([call, done], config, { signal: other.signal });
    expect(run.status).toBe('aborted');
  });

  test('does not wait for a provider that ignores it, or that itself triggers the abort', async () => {
    const controller = new AbortController();
    const provider: LLMProvider = {
      chat: () => {
        controller.abort();
        return new Promise(() => {});
      },
    };
    const run = await runToolLoop({ provider, model: 'm', signal: controller.signal }, hello);
    expect(run).toMatchObject({ status: 'aborted', messages: hello });
  });

  test('takes precedence over used-up retries and returnDirect in the same message', async () => {
    const controller = new AbortController();
    const stop = numberTool('a', { returnDirect: true, execute: () => controller.abort() });
    const config = { tools: [stop], maxRetries: 0, signal: controller.signal };
    const direct = await runScript([call, done], config);
    expect(direct.run.status).toBe('aborted');
    const second = new AbortController();
    const both = { toolCalls: [...call.toolCalls, { name: 'missing' }] };
    const tools = [numberTool('a', { execute: () => second.abort() })];
    const spent = await runScript([both, done], { tools, maxRetries: 0, signal: second.signal });
    expect(spent.run).toMatchObject({ status: 'aborted', error: { name: 'RunAborted' } });
  });

  test('during the last request takes precedence over the limit', async () => {
    const controller = new AbortController();
    const tools = [numberTool('a', { execute: () => controller.abort() })];
    const { run } = await runScript([call], {
      tools,
      maxIterations: 1,
      onLimit: 'throw',
      signal: controller.signal,
    });
    expect(run.status).toBe('aborted');
  });
});

describe('a failure of the provider', () => {
  test.each([new Error('down'), 'text', undefined])('thrown as %p ends the run as failed', async (thrown) => {
    const provider: LLMProvider = {
      chat: () => {
        throw thrown;
      },
    };
    const run = await runToolLoop({ provider, model: 'm' }, hello);
    expect(run).toMatchObject({ status: 'failed', iterations: 1, messages: hello });
    expect(run.error).toMatchObject({ name: 'ProviderFailed', code: 509, cause: thrown });
  });
});
