import { describe, expect, test } from '@jest/globals';
import { answers, hello, numberTool, runScript } from './run-script.js';

const call = { content: 'thinking', toolCalls: [{ name: 'a', arguments: { n: 1 } }] };
/** So many calls that are all different: a model that goes in circles would be stopped before the limit. */
const calls = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    content: 'thinking',
    toolCalls: [{ name: 'a', arguments: { n } }],
  }));
const tools = [numberTool('a')];

describe('the limit', () => {
  test('by default it is 20 requests', async () => {
    const { run, provider } = await runScript(calls(25), { tools });
    expect(run).toMatchObject({ status: 'limit', iterations: 20, content: '', error: { code: 504 } });
    expect(provider.requests).toHaveLength(20);
    expect(answers(run)).toHaveLength(20);
  });

  test('an answer in the last request is not a limit', async () => {
    const { run } = await runScript([call, { content: 'done' }], { tools, maxIterations: 2 });
    expect(run).toMatchObject({ status: 'completed', content: 'done', iterations: 2 });
    expect(run).not.toHaveProperty('error');
  });

  test("onLimit 'throw' throws the same error", async () => {
    const run = runScript([call, call], { tools, maxIterations: 1, onLimit: 'throw' });
    await expect(run).rejects.toMatchObject({ name: 'ToolLoopLimitReached', code: 504 });
  });

  test("onLimit 'answer' asks once more with tools switched off", async () => {
    const { run, provider } = await runScript([call, { content: 'as far as I got' }], {
      tools,
      maxIterations: 1,
      onLimit: 'answer',
    });
    expect(run).toMatchObject({ status: 'limit', content: 'as far as I got', iterations: 2 });
    expect(run.error).toMatchObject({ code: 504 });
    expect(provider.requests.map((request) => 'tools' in request)).toEqual([true, false]);
    expect(run.messages.at(-1)).toEqual({ role: 'assistant', content: 'as far as I got' });
  });

  test("onLimit 'answer', and a run without tools, send no options about tools", async () => {
    const llmOptions = { temperature: 0, tool_choice: 'auto', parallel_tool_calls: false };
    const { provider } = await runScript([call, { content: 'as far as I got' }], {
      tools,
      llmOptions,
      maxIterations: 1,
      onLimit: 'answer',
    });
    expect(provider.requests.map(({ options }) => options)).toEqual([llmOptions, { temperature: 0 }]);
    for (const aboutTools of [llmOptions, { tool_choice: 'auto' }, { parallel_tool_calls: true }]) {
      const options = { ...aboutTools, temperature: 0 };
      const { provider: toolless } = await runScript([{ content: 'Hello' }], { llmOptions: options });
      expect(toolless.requests[0]?.options).toEqual({ temperature: 0 });
    }
  });

  test("calls in the answer of onLimit 'answer' are left out of the history", async () => {
    const { run } = await runScript([call, call], { tools, maxIterations: 1, onLimit: 'answer' });
    expect(run.messages.at(-1)).toEqual({ role: 'assistant', content: 'thinking' });
    expect(run.toolCalls).toHaveLength(1);
  });

  test("a provider that fails at onLimit 'answer' fails the run", async () => {
    const down = new Error('down');
    const { run } = await runScript([call, down], { tools, maxIterations: 1, onLimit: 'answer' });
    expect(run).toMatchObject({ status: 'failed', error: { cause: down } });
  });

  test.each(['return', 'answer'] as const)(
    'maxIterations 0 with onLimit %j makes no request',
    async (onLimit) => {
      const { run, provider } = await runScript([], { tools, maxIterations: 0, onLimit });
      expect(run).toMatchObject({ status: 'limit', content: '', iterations: 0, messages: hello });
      expect(provider.requests).toEqual([]);
    },
  );
});

describe('truncated replies', () => {
  test.each(['length', 'content_filter'] as const)(
    'calls of a reply that ended by %s are answered and not run',
    async (finishReason) => {
      const fail = () => {
        throw new Error('must not run');
      };
      const { run } = await runScript([{ ...call, finishReason }, { content: 'done' }], {
        tools: [numberTool('a', { execute: fail })],
        maxRetries: 0,
      });
      expect(run.status).toBe('completed');
      expect(run.toolCalls).toMatchObject([
        { status: 'not_run', result: { isError: true, error: { name: 'ReplyTruncated', code: 510 } } },
      ]);
      expect(answers(run)[0]).toContain(`cut off (${finishReason})`);
    },
  );

  test('text that was cut off is the answer', async () => {
    const { run } = await runScript([{ content: 'and then', finishReason: 'length' }]);
    expect(run).toMatchObject({ status: 'completed', content: 'and then' });
  });
});

describe('answers without the model', () => {
  const direct = (name: string, execute: () => unknown) => numberTool(name, { returnDirect: true, execute });
  const ask = (...names: string[]) => ({ toolCalls: names.map((name) => ({ name, arguments: { n: 1 } })) });

  test('a returnDirect tool’s result is the run’s answer, and the model is not asked again', async () => {
    const { run } = await runScript([ask('a', 'b')], {
      tools: [direct('a', () => 'one'), direct('b', () => ({ forLLM: 'internal', forUser: 'two' }))],
    });
    expect(run).toMatchObject({ status: 'completed', content: 'one\ntwo', iterations: 1 });
    expect(answers(run)).toEqual(['one', 'internal']);
  });

  test('what is silent or empty for the user is not the answer', async () => {
    const { run } = await runScript([ask('a', 'b')], {
      tools: [
        direct('a', () => ({ forLLM: 'one', forUser: 'hidden', silent: true })),
        direct('b', () => ({ forLLM: 'two', forUser: '' })),
      ],
    });
    expect(run.content).toBe('one\ntwo');
  });

  test.each([
    ['fails', direct('b', () => new Error('no'))],
    ['is not one of them', numberTool('b')],
  ])('where one of the calls %s, the model goes on', async (_what, b) => {
    const { run } = await runScript([ask('a', 'b'), { content: 'done' }], {
      tools: [direct('a', () => 'one'), b],
    });
    expect(run).toMatchObject({ content: 'done', iterations: 2 });
  });
});
