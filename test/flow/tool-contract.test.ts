import { describe, expect, test } from '@jest/globals';
import {
  type AsyncCallback,
  type AsyncTool,
  asyncResult,
  errorResult,
  type Message,
  runToolLoop,
  silentResult,
  type ToolContext,
  ToolRegistry,
  ToolResult,
  toolResult,
  toolToSchema,
  userResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { readFile, readFileParameters, Sender, toolNamed } from './contract-tools.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

describe('tool contract', () => {
  test('a tool is an object with name, description, parameters and execute', async () => {
    const registry = new ToolRegistry();
    registry.register(readFile());
    const result = await registry.execute('read_file', { path: '/tmp/foo' });
    expect(result).toBeInstanceOf(ToolResult);
    expect(result).toEqual(toolResult('Hello from /tmp/foo\n'));
    expect(registry.get('read_file')).toMatchObject({ name: 'read_file', parameters: readFileParameters });
  });

  test.each([
    [{ channel: 'telegram', chatId: '42' }, [['setContext', 'telegram', '42']]],
    [{ channel: 'telegram' }, []],
    [{ chatId: '42' }, []],
    [{ channel: '', chatId: '42' }, []],
    [{}, []],
  ])('with the scope %j, setContext is called only if both are set', async (scope, told) => {
    const sender = new Sender();
    await new ToolRegistry().register(sender).executeWithContext('send', {}, scope);
    expect(sender.told).toEqual([...told, ['execute', {}]]);
  });

  test('setCallback is called before execute, and only with a listener', async () => {
    const sender = new Sender();
    const registry = new ToolRegistry().register(sender);
    await registry.executeWithContext('send', {}, {}, () => {});
    const { callback } = sender;
    expect(sender.told).toEqual([['setCallback'], ['execute', {}]]);
    await registry.execute('send', {});
    expect(sender.told).toEqual([['setCallback'], ['execute', {}], ['execute', {}]]);
    expect(sender.callback).toBe(callback);
  });

  test('an async tool is acknowledged at once and completes later with the context of the call', async () => {
    let finish: (text: string) => void = () => {};
    let callback: AsyncCallback = () => {};
    const build: AsyncTool = {
      ...toolNamed('build'),
      setCallback: (given) => {
        callback = given;
      },
      execute: (_args: unknown, context: ToolContext) => {
        finish = (text) => callback(context, toolResult(text));
        return asyncResult('Task started, will report back');
      },
    };
    const completion = Promise.withResolvers<{ context: ToolContext | undefined; result: ToolResult }>();
    const acknowledged = await new ToolRegistry()
      .register(build)
      .executeWithContext('build', {}, { chatId: '42' }, (context, result) =>
        completion.resolve({ context, result }),
      );
    expect(acknowledged).toEqual(asyncResult('Task started, will report back'));
    finish('built');
    const { context, result } = await completion.promise;
    expect(result).toEqual(toolResult('built'));
    expect(context?.chatId).toBe('42');
  });

  test('toolToSchema returns the function object with the same parameters object', () => {
    const schema = toolToSchema(readFile());
    expect(schema).toEqual({
      type: 'function',
      function: {
        name: 'read_file',
        description: 'Read the contents of a file at the given path.',
        parameters: readFileParameters,
      },
    });
    expect(schema.function.parameters).toBe(readFileParameters);
  });
});

describe('result model', () => {
  test('toJSON returns for_llm, the flags, and for_user unless empty, but never the error', () => {
    expect(JSON.stringify(toolResult('x').withError(new Error('hidden')))).toBe(
      '{"for_llm":"x","silent":false,"is_error":false,"async":false}',
    );
    expect(JSON.stringify(userResult('x'))).toBe(
      '{"for_llm":"x","for_user":"x","silent":false,"is_error":false,"async":false}',
    );
    expect(JSON.parse(JSON.stringify(new ToolResult({ forLLM: 'x', forUser: '' })))).not.toHaveProperty(
      'for_user',
    );
  });

  test('the helpers set only the field in their name', () => {
    const plain = { silent: false, isError: false, async: false };
    expect(toolResult('x')).toMatchObject({ forLLM: 'x', ...plain });
    expect(silentResult('x')).toMatchObject({ forLLM: 'x', ...plain, silent: true });
    expect(asyncResult('x')).toMatchObject({ forLLM: 'x', ...plain, async: true });
    expect(errorResult('x')).toMatchObject({ forLLM: 'x', ...plain, isError: true });
    expect(userResult('x')).toMatchObject({ forLLM: 'x', forUser: 'x', ...plain });
    for (const make of [toolResult, silentResult, asyncResult, errorResult]) {
      expect(make('x').forUser).toBeUndefined();
      expect(make('x').error).toBeUndefined();
    }
  });

  test('withError attaches an error to a result, returns the same result and does not change isError', () => {
    const cause = new Error('disk full');
    const result = toolResult('x');
    expect(result.withError(cause)).toBe(result);
    expect(result.error).toBe(cause);
    expect(result.isError).toBe(false);
    expect(errorResult('failed').withError(cause)).toMatchObject({ error: cause, isError: true });
  });

  test('forUser and silent stay in the result, and the tool message falls back to the error', async () => {
    const tools = [
      toolNamed('quiet', () => new ToolResult({ forLLM: 'x', forUser: 'y', silent: true })),
      toolNamed('mute', () => errorResult('').withError(new Error('disk full'))),
    ];
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'quiet' }, { name: 'mute' }] },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.toolCalls[0]?.result).toMatchObject({ forUser: 'y', silent: true });
    expect(run.messages.slice(2, 4).map(({ content }) => content)).toEqual(['x', 'disk full']);
  });

  test('a JSON round trip keeps the five fields and drops the error', () => {
    const result = new ToolResult({ forLLM: 'a', forUser: 'b', silent: true, isError: true, async: true });
    const back = ToolResult.fromJSON(JSON.parse(JSON.stringify(result.withError(new Error('x')))));
    expect(back).toMatchObject({ forLLM: 'a', forUser: 'b', silent: true, isError: true, async: true });
    expect(back.error).toBeUndefined();
  });
});
