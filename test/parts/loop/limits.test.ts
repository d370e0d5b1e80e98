import { describe, expect, test } from '@jest/globals';
import { answers, hello, numberTool, runScript } from './run-script.js';

const call = { content: 'thinking', toolCalls: [{ name: 'a', arguments: { n: 1 } }] };
/** Calls that all differ, so that the loop guard does not stop the run before the limit. */
const calls = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    content: 'thinking',
    toolCalls: [{ name: 'a', arguments: { n } }],
  }));
const tools = [numberTool('a')];

describe('the request limit', () => {
  test('is 20 by default', async () => {
    const { run, provider } = await runScript(calls(25), { tools });
    expect(run).toMatchObject({ status: 'limit', iterations: 20, content: '', error: { code: 504 } });
    expect(provider.requests).toHaveLength(20);
    expect(answers(run)).toHaveLength(20);
  });

  test('is not reached if the last request returns an answer', async () => {
    const { run } = await runScript([call, { content: 'done' }], { tools, maxIterations: 2 });
    expect(run).toMatchObject({ status: 'completed', content: 'done', iterations: 2 });
    expect(run).not.toHaveProperty('error');
  });

  test("throws the same error with onLimit 'throw'", async () => {
    const run = runScript([call, call], { tools, maxIterations: 1, onLimit: 'throw' });
    await expect(run).rejects.toMatchObject({ name: 'ToolLoopLimitReached', code: 504 });
  });

  test("sends one more request without tools with onLimit 'answer'", async () => {
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

  test("sends no options about tools with onLimit 'answer' or in a run without tools", async () => {
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

  test("leaves calls in the reply of onLimit 'answer' out of the history", async () => {
    const { run } = await runScript([call, call], { tools, maxIterations: 1, onLimit: 'answer' });
    expect(run.messages.at(-1)).toEqual({ role: 'assistant', content: 'thinking' });
    expect(run.toolCalls).toHaveLength(1);
  });

  test("leaves an empty reply of onLimit 'answer' out of the history", async () => {
    const { run } = await runScript([call, { content: ' ' }], { tools, maxIterations: 1, onLimit: 'answer' });
    expect(run).toMatchObject({ status: 'limit', iterations: 2 });
    expect(run.messages.at(-1)).toMatchObject({ role: 'tool' });
  });

  test("fails the run if the provider fails at onLimit 'answer'", async () => {
    const down = new Error('down');
    const { run } = await runScript([call, down], { tools, maxIterations: 1, onLimit: 'answer' });
    expect(run).toMatchObject({ status: 'failed', error: { cause: down } });
  });

  test.each(['return', 'answer'] as const)('of 0 makes no request with onLimit %j', async (onLimit) => {
    const { run, provider } = await runScript([], { tools, maxIterations: 0, onLimit });
    expect(run).toMatchObject({ status: 'limit', content: '', iterations: 0, messages: hello });
    expect(provider.requests).toEqual([]);
  });
});

describe('truncated replies', () => {
  test.each(['length', 'content_filter'] as const)(
    'calls of a reply that ended with %s get results but are not run',
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

  test('truncated text is the answer', async () => {
    const { run } = await runScript([{ content: 'and then', finishReason: 'length' }]);
    expect(run).toMatchObject({ status: 'completed', content: 'and then' });
  });
});

describe('answers without the model', () => {
  const direct = (name: string, execute: () => unknown) => numberTool(name, { returnDirect: true, execute });
  const ask = (...names: string[]) => ({ toolCalls: names.map((name) => ({ name, arguments: { n: 1 } })) });

  test('the results of returnDirect tools are the run’s answer, and the model is not asked again', async () => {
    const { run } = await runScript([ask('a', 'b')], {
      tools: [direct('a', () => 'one'), direct('b', () => ({ forLLM: 'internal', forUser: 'two' }))],
    });
    expect(run).toMatchObject({ status: 'completed', content: 'one\ntwo', iterations: 1 });
    expect(answers(run)).toEqual(['one', 'internal']);
  });

  test('the answer is forLLM if forUser is silent or empty', async () => {
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
    ['is of a tool without returnDirect', numberTool('b')],
  ])('if one of the calls %s, the model is asked again', async (_what, b) => {
    const { run } = await runScript([ask('a', 'b'), { content: 'done' }], {
      tools: [direct('a', () => 'one'), b],
    });
    expect(run).toMatchObject({ content: 'done', iterations: 2 });
  });
});
