import { describe, expect, test } from '@jest/globals';
import {
  type AsyncTool,
  asyncResult,
  type LLMRequest,
  type Message,
  runToolLoop,
  type ToolContext,
  ToolRegistry,
  toolResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { readFile, Sender, toolNamed } from './contract-tools.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

describe('runToolLoop', () => {
  test('a tool registered during the run is offered in the next request', async () => {
    const tools = new ToolRegistry();
    tools.register(
      toolNamed('grow', () => {
        tools.register(toolNamed('grown'));
        return 'ok';
      }),
    );
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'grow' }] },
      { toolCalls: [{ name: 'grown' }] },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    const offered = provider.requests.map((request) => request.tools?.map(({ function: f }) => f.name));
    expect(offered).toEqual([['grow'], ['grow', 'grown'], ['grow', 'grown']]);
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['success', 'success']);
  });

  test('a reply without calls ends the run, and its content is the result', async () => {
    const provider = new ScriptedProvider([{ content: 'Hi!' }]);
    const run = await runToolLoop({ provider, model: 'm', tools: [readFile()] }, hello);
    expect(run).toMatchObject({ content: 'Hi!', iterations: 1, status: 'completed', toolCalls: [] });
    expect(run.messages).toEqual([...hello, { role: 'assistant', content: 'Hi!' }]);
  });

  test('one assistant message has all calls, and each runs with channel and chat id', async () => {
    const sender = new Sender();
    const provider = new ScriptedProvider([
      {
        content: "I'll read that file for you.",
        toolCalls: [
          { id: 'call_abc123', name: 'read_file', arguments: { path: '/tmp/foo' } },
          { id: 'call_abc124', name: 'send', arguments: {} },
        ],
      },
      { content: 'done' },
    ]);
    const scope = { channel: 'telegram', chatId: '42' };
    const run = await runToolLoop({ provider, model: 'm', tools: [readFile(), sender] }, hello, scope);
    expect(run.messages[1]).toEqual({
      role: 'assistant',
      content: "I'll read that file for you.",
      tool_calls: [
        {
          id: 'call_abc123',
          type: 'function',
          function: { name: 'read_file', arguments: '{"path":"/tmp/foo"}' },
        },
        { id: 'call_abc124', type: 'function', function: { name: 'send', arguments: '{}' } },
      ],
    });
    // There is no listener, so that setCallback is not called.
    expect(sender.told).toEqual([
      ['setContext', 'telegram', '42'],
      ['execute', {}],
    ]);
  });

  test('onAsyncResult receives the completion of an asynchronous tool', async () => {
    const completion = Promise.withResolvers<string>();
    const build: AsyncTool = {
      ...toolNamed('build', () => asyncResult('started')),
      setCallback: (callback) => setImmediate(() => callback(undefined, toolResult('built'))),
    };
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'build' }] }, { content: 'done' }]);
    const run = await runToolLoop(
      {
        provider,
        model: 'm',
        tools: [build],
        onAsyncResult: (_context, { forLLM }) => completion.resolve(forLLM),
      },
      hello,
    );
    expect(run.messages[2]).toMatchObject({ role: 'tool', content: 'started' });
    expect(run.toolCalls[0]?.status).toBe('started');
    await expect(completion.promise).resolves.toBe('built');
  });

  test('calls are dispatched by name, and the arguments are validated', async () => {
    const raw: unknown[] = [];
    const tools = new ToolRegistry().register({
      ...readFile(),
      execute: ({ path }: { path: string }, context: ToolContext) => {
        raw.push(context.rawArguments);
        return path;
      },
    });
    const refused = await tools.execute('read_file', '{"path":7}');
    expect(refused.forLLM).toBe(
      'Validation failed for tool \'read_file\':\n  - path: must be string\nReceived: {"path":7}',
    );
    expect(raw).toEqual([]);
    await tools.execute('read_file', '{"path": "/tmp/foo"}');
    expect(raw).toEqual(['{"path": "/tmp/foo"}']);
  });

  test('a tool message has only role, content and tool_call_id', async () => {
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'call_abc123', name: 'read_file', arguments: { path: '/tmp/foo' } }] },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: [readFile()] }, hello);
    const expected = { role: 'tool', content: 'Hello from /tmp/foo\n', tool_call_id: 'call_abc123' };
    expect(run.messages[2]).toEqual(expected);
    expect(provider.requests[1]?.messages.at(-1)).toEqual(expected);
  });

  test('answers are in call order, one per call, whichever tool ends first', async () => {
    const gate = Promise.withResolvers<string>();
    const tools = [
      toolNamed('slow', () => gate.promise),
      toolNamed('fast', () => {
        gate.resolve('slow');
        return 'fast';
      }),
    ];
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { id: '1', name: 'slow' },
          { id: '2', name: 'fast' },
          { id: '3', name: 'slow' },
        ],
      },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.messages.slice(2, -1)).toEqual([
      { role: 'tool', content: 'slow', tool_call_id: '1' },
      { role: 'tool', content: 'fast', tool_call_id: '2' },
      { role: 'tool', content: 'slow', tool_call_id: '3' },
    ]);
  });

  test('content is empty at the limit, and nothing is thrown', async () => {
    const again = { toolCalls: [{ name: 'read_file', arguments: { path: 'a' } }] };
    const provider = new ScriptedProvider([again, again, again]);
    const config = { provider, model: 'm', tools: [readFile()], maxIterations: 2 };
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ content: '', iterations: 2, status: 'limit' });
    expect(run.error).toMatchObject({ name: 'ToolLoopLimitReached', code: 504 });
    expect(provider.requests).toHaveLength(2);
  });

  test('maxIterations 0 makes no request', async () => {
    const provider = new ScriptedProvider([]);
    const run = await runToolLoop({ provider, model: 'm', maxIterations: 0 }, hello);
    expect(run).toMatchObject({ content: '', iterations: 0, messages: hello });
    expect(run.error?.message).toBe('The run made no request: maxIterations is 0.');
    expect(provider.requests).toEqual([]);
  });

  test('a run without tools offers none, and answers an unexpected call', async () => {
    const provider = new ScriptedProvider([{ toolCalls: [{ id: '1', name: 'ghost' }] }, { content: 'done' }]);
    const run = await runToolLoop({ provider, model: 'm' }, hello);
    expect(provider.requests.every((request) => !('tools' in request))).toBe(true);
    expect(run.messages[2]).toEqual({
      role: 'tool',
      content: 'tool not found: ghost',
      tool_call_id: '1',
      isError: true,
    });
    expect(run.content).toBe('done');
  });

  test('a provider error ends the run as failed, with the error as its cause', async () => {
    const down = new Error('503 overloaded');
    const provider = new ScriptedProvider([{ toolCalls: [{ id: '1', name: 'send' }] }, down]);
    const run = await runToolLoop({ provider, model: 'm', tools: [new Sender()] }, hello);
    expect(run).toMatchObject({ status: 'failed', content: '', iterations: 2 });
    expect(run.error?.message).toBe('LLM call failed: 503 overloaded');
    expect(run.error?.cause).toBe(down);
    expect(run.messages.at(-1)).toEqual({ role: 'tool', content: 'sent', tool_call_id: '1' });
  });

  test('llmOptions are passed unchanged, and are empty by default', async () => {
    const llmOptions = { max_tokens: 4096, temperature: 0.7 };
    const options = async (given?: Record<string, unknown>) => {
      const provider = new ScriptedProvider([{ content: 'Hi!' }]);
      await runToolLoop({ provider, model: 'gpt-4o', llmOptions: given }, hello);
      const request = provider.requests[0] as LLMRequest;
      expect(request.model).toBe('gpt-4o');
      return request.options;
    };
    expect(await options(llmOptions)).toBe(llmOptions);
    expect(await options()).toEqual({});
  });

  test.each([{ path: '/tmp/foo' }, '{"path": "/tmp/foo"}'])(
    'arguments sent as %j reach the tool as an object, and the history as JSON text',
    async (args) => {
      const provider = new ScriptedProvider([
        { toolCalls: [{ id: '1', name: 'read_file', arguments: args }] },
        { content: 'done' },
      ]);
      const run = await runToolLoop({ provider, model: 'm', tools: [readFile()] }, hello);
      expect(run.messages[2]?.content).toBe('Hello from /tmp/foo\n');
      const [call] = (run.messages[1] as Extract<Message, { role: 'assistant' }>).tool_calls ?? [];
      expect(JSON.parse(call?.function.arguments ?? '')).toEqual({ path: '/tmp/foo' });
      expect(run.toolCalls[0]).toMatchObject({ rawArguments: args, arguments: { path: '/tmp/foo' } });
    },
  );
});
