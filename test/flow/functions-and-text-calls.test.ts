import { describe, expect, test } from '@jest/globals';
import {
  ERROR_TABLE,
  Integer,
  type Message,
  registerFunction,
  runToolLoop,
  ToolCallParser,
  ToolRegistry,
  ToolwrightError,
  withTextTools,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const question: readonly Message[] = [{ role: 'user', content: 'What is 42 + 58?' }];
const toolCalls = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args as never }] });

function add(a: number, b: number): number {
  return a + b;
}

function adding(): ToolRegistry {
  const tools = new ToolRegistry();
  registerFunction(
    tools,
    'add',
    'Add two integers',
    [
      ['a', Integer],
      ['b', Integer],
    ],
    add,
  );
  return tools;
}

describe('registration', () => {
  test('types of parameters become JSON types, and all are required in order', () => {
    const tools = new ToolRegistry();
    registerFunction(
      tools,
      'all',
      'All types',
      [
        ['count', Integer],
        ['ratio', Number],
        ['flag', Boolean],
        ['name', String],
      ],
      (count, ratio, flag, name) => [count, ratio, flag, name],
    );
    expect(JSON.stringify(tools.get('all')?.parameters)).toBe(
      '{"type":"object","properties":{"count":{"type":"integer"},"ratio":{"type":"number"},"flag":{"type":"boolean"},"name":{"type":"string"}},"required":["count","ratio","flag","name"]}',
    );
  });

  test('add is offered with two required integers', () => {
    expect(adding().getDefinitions()).toEqual([
      {
        type: 'function',
        function: {
          name: 'add',
          description: 'Add two integers',
          parameters: {
            type: 'object',
            properties: { a: { type: 'integer' }, b: { type: 'integer' } },
            required: ['a', 'b'],
          },
        },
      },
    ]);
  });

  test('a function without parameters has no properties and no required keys', () => {
    const tools = new ToolRegistry();
    registerFunction(tools, 'get_time', 'Get current time', [], () => '2025-01-01 12:00:00');
    expect(tools.get('get_time')?.parameters).toEqual({ type: 'object', properties: {}, required: [] });
  });

  test('a wrong number of names throws InvalidToolSignature, and registers nothing', () => {
    const tools = new ToolRegistry();
    const wrong = () => registerFunction(tools, 'add', 'Add', [['a', Integer]], add);
    expect(wrong).toThrow('Parameter name count (1) does not match function arity (2)');
    expect(wrong).toThrow(expect.objectContaining({ name: 'InvalidToolSignature', code: 502 }));
    expect(tools.count()).toBe(0);
  });

  test('register accepts a tool with an explicit schema and a handler', async () => {
    const tools = new ToolRegistry();
    const schema = {
      type: 'object',
      properties: { query: { type: 'string' }, limit: { type: 'integer' } },
      required: ['query'],
    };
    tools.register({
      name: 'search',
      description: 'Search documents',
      parameters: schema,
      execute: ({ query }: { query: string }) =>
        query === '' ? new Error('an empty query finds nothing') : { result: 'found items' },
    });
    expect(tools.getDefinitions()[0]?.function.parameters).toBe(schema);
    expect((await tools.execute('search', { query: 'x' })).forLLM).toBe('{"result":"found items"}');
    expect(await tools.execute('search', { query: '' })).toMatchObject({
      forLLM: 'an empty query finds nothing',
      isError: true,
      error: { code: 501 },
    });
  });

  test('registerFunction accepts functions, closures and bound methods', async () => {
    const tools = adding();
    let calls = 0;
    class Greeter {
      constructor(private readonly greeting: string) {}

      greet(name: string): string {
        return `${this.greeting}, ${name}!`;
      }
    }
    const greeter = new Greeter('Hello');
    registerFunction(tools, 'greet', 'Greet a person', [['name', String]], (name) => `Hello, ${name}!`);
    registerFunction(tools, 'count', 'Count calls', [], () => ++calls);
    registerFunction(tools, 'bound', 'Greet', [['name', String]], greeter.greet.bind(greeter));
    registerFunction(tools, 'get_time', 'Get current time', [], () => '2025-01-01 12:00:00');
    expect((await tools.execute('greet', { name: 'Bob' })).forLLM).toBe('Hello, Bob!');
    expect((await tools.execute('bound', { name: 'Bob' })).forLLM).toBe('Hello, Bob!');
    expect((await tools.execute('get_time', {})).forLLM).toBe('2025-01-01 12:00:00');
    await tools.execute('count', {});
    expect((await tools.execute('count', {})).forLLM).toBe('2');
    expect((await tools.execute('add', { a: 42, b: 58 })).forLLM).toBe('100');
  });

  test('a handler can have a default for an optional property', async () => {
    const limits: number[] = [];
    const tools = new ToolRegistry().register({
      name: 'search',
      description: 'Search documents',
      parameters: {
        type: 'object',
        properties: { query: { type: 'string' }, limit: { type: 'integer' } },
        required: ['query'],
      },
      execute: ({ limit = 10 }: { limit?: number }) => {
        limits.push(limit);
        return { result: 'found items' };
      },
    });
    expect((await tools.execute('search', { query: 'x' })).forLLM).toBe('{"result":"found items"}');
    await tools.execute('search', { query: 'x', limit: 3 });
    await tools.execute('search', { query: 'x', limit: null });
    expect(limits).toEqual([10, 3, 10]);
  });
});

describe('retries', () => {
  const wrong = toolCalls('add', { a: 'x', b: 58 });

  test('a validation error is reported to the model, which can retry', async () => {
    const provider = new ScriptedProvider([
      wrong,
      wrong,
      toolCalls('add', { a: 42, b: 58 }),
      { content: '100' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: adding() }, question);
    expect(run).toMatchObject({ status: 'completed', content: '100' });
    expect(provider.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringMatching(/^Validation failed for tool 'add':\n {2}- a: must be integer/),
    });
    expect(run.toolCalls.map(({ status, attempts }) => [status, attempts])).toEqual([
      ['rejected', 1],
      ['rejected', 2],
      ['success', 3],
    ]);
  });

  test('the run fails with ToolRetriesExhausted after two retries', async () => {
    const provider = new ScriptedProvider([wrong, wrong, wrong, { content: 'never asked for' }]);
    const run = await runToolLoop({ provider, model: 'm', tools: adding() }, question);
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ToolRetriesExhausted', code: 503 } });
    expect(ToolwrightError.is(run.error)).toBe(true);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(provider.requests).toHaveLength(3);
  });

  test('maxRetries limits the retries', async () => {
    const provider = new ScriptedProvider([wrong, { content: 'never asked for' }]);
    const run = await runToolLoop({ provider, model: 'm', tools: adding(), maxRetries: 0 }, question);
    expect(run).toMatchObject({ status: 'failed', iterations: 1 });
  });
});

describe('calls in text', () => {
  const call = '{"name": "add", "arguments": {"a": 42, "b": 58}}';

  test('an object with name and arguments is a call, and gets a numbered id if it has none', () => {
    const { toolCall, toolCalls: all, textBefore } = new ToolCallParser().parse(`Let me add. ${call}`);
    expect(toolCall).toEqual({ id: 'call_1', name: 'add', arguments: { a: 42, b: 58 } });
    expect([all.length, textBefore]).toEqual([1, 'Let me add. ']);
    const two = new ToolCallParser().parse(`${call}\n${call}`);
    expect(two.toolCalls.map(({ id }) => id)).toEqual(['call_1', 'call_2']);
  });

  test('an existing id is used', () => {
    const { toolCall } = new ToolCallParser().parse('{"id": "abc", "name": "add", "arguments": {}}');
    expect(toolCall).toMatchObject({ id: 'abc', name: 'add' });
  });

  test('text without a complete call is text', () => {
    for (const text of ['The sum is 100.', '{"name": "add"}', '{"name": "add", "arguments": {"a": 4']) {
      expect(new ToolCallParser().parse(text)).toMatchObject({ toolCalls: [] });
      expect(new ToolCallParser().parse(text).toolCall).toBeUndefined();
    }
  });

  test('the loop runs calls and returns results until a text has no call', async () => {
    const model = new ScriptedProvider([{ content: `I will add. ${call}` }, { content: 'That is 100.' }]);
    const run = await runToolLoop({ provider: withTextTools(model), model: 'm', tools: adding() }, question);
    expect(run).toMatchObject({ status: 'completed', content: 'That is 100.', iterations: 2 });
    expect(run.messages[2]).toEqual({ role: 'tool', content: '100', tool_call_id: 'call_1' });
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('100');
    expect(historyFaults(run.messages)).toEqual([]);
  });

  test('withTextTools limits a run to 5 requests by default', async () => {
    const endless = Array.from({ length: 9 }, (_, index) => ({
      content: `{"name": "add", "arguments": {"a": ${index}, "b": 1}}`,
    }));
    const model = new ScriptedProvider(endless);
    const run = await runToolLoop({ provider: withTextTools(model), model: 'm', tools: adding() }, question);
    expect(run).toMatchObject({
      status: 'limit',
      content: '',
      iterations: 5,
      error: { name: 'ToolLoopLimitReached', code: 504 },
    });
    expect(run.toolCalls.map(({ result }) => result.forLLM)).toEqual(['1', '2', '3', '4', '5']);
  });

  test('every call in a text runs, not only the first', async () => {
    const model = new ScriptedProvider([{ content: `${call}\n${call}` }, { content: 'done' }]);
    const run = await runToolLoop({ provider: withTextTools(model), model: 'm', tools: adding() }, question);
    expect(run.toolCalls.map(({ id, status }) => [id, status])).toEqual([
      ['call_1', 'success'],
      ['call_2', 'success'],
    ]);
  });
});

test('toolCalls has raw and used arguments, repairs and the result of each call', async () => {
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'x', name: 'add', arguments: '{"a": "42", "b": 58, "c": 1,}' }] },
    toolCalls('no_such_tool', {}),
    { content: '100' },
  ]);
  const run = await runToolLoop({ provider, model: 'm', tools: adding() }, question);
  expect(run.toolCalls).toMatchObject([
    {
      id: 'x',
      name: 'add',
      rawArguments: '{"a": "42", "b": 58, "c": 1,}',
      arguments: { a: 42, b: 58 },
      repairs: ['repaired the JSON', 'coerced a'],
      removed: ['c'],
      attempts: 1,
      durationMs: expect.any(Number),
      status: 'success',
      result: { forLLM: '100' },
    },
    { id: 'call_1', name: 'no_such_tool', status: 'rejected', result: { error: { code: 500 } } },
  ]);
});

test('the error codes 500 to 504 have stable names', async () => {
  const names = ['ToolNotFound', 'ToolExecutionFailed', 'InvalidToolSignature'] as const;
  expect(names.map((name) => ERROR_TABLE[name].code)).toEqual([500, 501, 502]);
  expect([ERROR_TABLE.ToolRetriesExhausted.code, ERROR_TABLE.ToolLoopLimitReached.code]).toEqual([503, 504]);
  const tools = adding();
  registerFunction(tools, 'fail', 'Fails', [], () => {
    throw new Error('disk full');
  });
  expect((await tools.execute('missing', {})).error).toMatchObject({ name: 'ToolNotFound', code: 500 });
  expect((await tools.execute('fail', {})).error).toMatchObject({ name: 'ToolExecutionFailed', code: 501 });
});
