import { describe, expect, test } from '@jest/globals';
import { Type } from '@sinclair/typebox';
import {
  agentTool,
  Conversation,
  type ConversationEvent,
  complete,
  type LoopEvent,
  type Message,
  runToolLoop,
  streamToolLoop,
  ToolRegistry,
} from 'toolwright';
import { calculateTool, getCurrentTimeTool } from 'toolwright/builtin';
import { ScriptedProvider } from 'toolwright/testing';
import { countingTool, downloadTool, tenUpdates, weatherTool } from './agent-tool-examples.js';
import { historyFaults } from './strict-history.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const calling = (name: string, args: object = {}, id = 'call_abc') => ({
  toolCalls: [{ id, name, arguments: args as never }],
});

/** Runs one call of a tool, and then a final reply. */
function runOne(tools: Parameters<typeof runToolLoop>[0]['tools'], call: ReturnType<typeof calling>) {
  const provider = new ScriptedProvider([call, { content: 'done' }]);
  return runToolLoop({ provider, model: 'm', tools }, hello).then((run) => ({ run, provider }));
}

describe('agent tools', () => {
  test('execute receives the call id, typed parameters, a signal, an update callback and a context', async () => {
    const got: unknown[] = [];
    const tool = agentTool({
      name: 'search',
      label: 'Search',
      description: 'Search the web',
      parameters: Type.Object({
        query: Type.String({ description: 'Search query' }),
        limit: Type.Optional(Type.Number({ description: 'Max results', default: 10 })),
      }),
      execute: async (toolCallId, params, signal, onUpdate, context) => {
        got.push(toolCallId, params, signal?.aborted, typeof onUpdate, context?.messages.length);
        return { content: [{ type: 'text', content: params.query.toUpperCase() }], details: {} };
      },
    });
    const { run } = await runOne([tool], calling('search', { query: 'cats' }, 'call_7'));
    expect(got).toEqual(['call_7', { query: 'cats', limit: 10 }, false, 'function', 2]);
    expect(run.toolCalls[0]?.result.forLLM).toBe('CATS');
    expect(tool.annotations).toEqual({ title: 'Search' });
  });

  test('content is sent to the model, details never are', async () => {
    const tool = agentTool({
      name: 'look',
      label: 'Look',
      description: 'Looks',
      parameters: Type.Object({}),
      execute: async () => ({
        content: [
          { type: 'text', content: 'one' },
          { type: 'image', data: 'AAAA', mimeType: 'image/png' },
          { type: 'file', data: 'BBBB', mimeType: 'text/plain', filename: 'b.txt' },
          { type: 'text', content: 'two' },
        ],
        details: { secret: 'for the app only' },
      }),
    });
    const { run, provider } = await runOne([tool], calling('look'));
    expect(run.messages[2]).toMatchObject({ role: 'tool', content: 'one\ntwo', tool_call_id: 'call_abc' });
    expect(run.toolCalls[0]?.result).toMatchObject({
      content: [{ type: 'text' }, { type: 'image' }, { type: 'file', filename: 'b.txt' }, { type: 'text' }],
      details: { secret: 'for the app only' },
    });
    expect(JSON.stringify(provider.requests)).not.toContain('for the app only');
    expect(JSON.stringify(run.toolCalls[0]?.result)).not.toContain('for the app only');
  });

  test('context.messages is read-only, contains the calls and no results of the same message', async () => {
    const shown: (readonly Message[])[] = [];
    const count = countingTool((messages) => shown.push(messages));
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { id: '1', name: 'count_messages' },
          { id: '2', name: 'count_messages' },
        ],
      },
      { content: 'done' },
    ]);
    const run = await runToolLoop({ provider, model: 'm', tools: [count], maxConcurrency: 1 }, hello);
    expect(shown.map((messages) => messages.map(({ role }) => role))).toEqual([
      ['user', 'assistant'],
      ['user', 'assistant'],
    ]);
    expect(Object.isFrozen(shown[0])).toBe(true);
    expect(() => (shown[0] as Message[]).push(...hello)).toThrow(TypeError);
    expect(run.messages).toHaveLength(5);
  });

  test('onUpdate receives every update with its call, and the model receives none', async () => {
    const updates: unknown[] = [];
    const provider = new ScriptedProvider([calling('download_file', { url: 'u' }), { content: 'done' }]);
    const tools = [downloadTool(turn)];
    const run = await runToolLoop({ provider, model: 'm', tools }, hello, {
      onUpdate: (update, call) => updates.push([update, call]),
    });
    const call = { callId: 'call_abc', tool: 'download_file' };
    expect(updates).toEqual(tenUpdates.map((update) => [update, call]));
    expect(JSON.stringify(run.messages)).not.toContain('Downloading');
  });

  test('the stream has the same updates as events, with the arguments of the call', async () => {
    const provider = new ScriptedProvider([calling('download_file', { url: 'u' }), { content: 'done' }]);
    const run = streamToolLoop({ provider, model: 'm', tools: [downloadTool(turn)] }, hello);
    const events: LoopEvent[] = [];
    for await (const event of run) if (event.type.startsWith('call-')) events.push(event);
    const of = { callId: 'call_abc', tool: 'download_file' };
    expect(events.slice(0, -1)).toEqual([
      { type: 'call-start', ...of, arguments: { url: 'u' } },
      ...tenUpdates.map((update) => ({ type: 'call-progress', ...of, arguments: { url: 'u' }, update })),
    ]);
    expect(events.at(-1)).toMatchObject({
      type: 'call-end',
      ...of,
      result: { forLLM: 'Download complete!' },
    });
  });

  test('a thrown error becomes an error result with exactly its message, and the run continues', async () => {
    const failing = (thrown: unknown) =>
      agentTool({
        name: 'risky',
        label: 'Risky',
        description: 'Fails',
        parameters: Type.Object({}),
        execute: () => Promise.reject(thrown),
      });
    const cause = new Error('Operation failed: disk full');
    const { run } = await runOne([failing(cause)], calling('risky'));
    expect(run).toMatchObject({ status: 'completed', content: 'done' });
    expect(run.messages[2]).toMatchObject({ role: 'tool', content: 'Operation failed: disk full' });
    expect(run.toolCalls[0]?.result).toMatchObject({ isError: true, error: { code: 501, cause } });
    const text = await new ToolRegistry().register(failing('just text')).execute('risky');
    expect(text).toMatchObject({ forLLM: 'just text', isError: true });
  });

  test('invalid arguments never reach execute; every fault is reported, and the run continues', async () => {
    let ran = 0;
    const search = agentTool({
      name: 'search',
      label: 'Search',
      description: 'Search',
      parameters: Type.Object({
        query: Type.String(),
        user: Type.Optional(Type.Object({ age: Type.Integer({ minimum: 0 }) })),
        n: Type.Optional(Type.Array(Type.Number())),
      }),
      execute: async () => ({ content: [{ type: 'text', content: String(++ran) }], details: {} }),
    });
    const plain = await runOne([search], calling('search', { query: 123 }));
    expect(plain.run.toolCalls[0]).toMatchObject({ status: 'rejected', rawArguments: { query: 123 } });
    const lines = (text: unknown) => String(text).split('\n');
    expect(lines(plain.run.messages[2]?.content).slice(0, 2)).toEqual([
      "Validation failed for tool 'search':",
      '  - query: must be string',
    ]);
    const all = await runOne([search], calling('search', { user: { age: -1 }, n: [1, 'x'] }));
    expect(all.run.status).toBe('completed');
    expect(lines(all.run.messages[2]?.content).filter((line) => line.startsWith('  - '))).toEqual([
      '  - query: is required',
      expect.stringMatching(/^ {2}- user\.age: must be >= 0/),
      expect.stringMatching(/^ {2}- n\.1: must be number/),
    ]);
    expect(ran).toBe(0);
  });

  test('calculate with 2 + 2 * 3 gives 8', async () => {
    const { run } = await runOne([calculateTool], calling('calculate', { expression: '2 + 2 * 3' }));
    expect(run.messages[2]?.content).toBe('8');
  });

  test('get_current_time returns ISO 8601 with the offset, and reports an invalid time zone', async () => {
    const tools = new ToolRegistry().register(getCurrentTimeTool);
    const { forLLM } = await tools.execute('get_current_time', { timezone: 'America/New_York' });
    expect(forLLM).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d-0[45]:00$/);
    const wrong = await tools.execute('get_current_time', { timezone: 'Nowhere/Else' });
    expect(wrong).toMatchObject({ isError: true });
    expect(wrong.forLLM).toMatch(/^Invalid timezone: Nowhere\/Else\. Current UTC time: \d{4}-.+Z$/);
  });

  test('complete accepts plain tools, returns calls as content blocks, and executes nothing', async () => {
    const provider = new ScriptedProvider([
      { content: 'Searching.', ...calling('search', { query: 'cats' }, 'call_1') },
    ]);
    const search = {
      name: 'search',
      description: 'Search the web',
      parameters: Type.Object({ query: Type.String() }),
    };
    const response = await complete(
      { provider, model: 'm' },
      { messages: hello, systemPrompt: 'Be brief.', tools: [search] },
    );
    const toolCalls = response.content.filter((c) => c.type === 'toolCall');
    expect(toolCalls).toEqual([
      { type: 'toolCall', toolCallId: 'call_1', name: 'search', arguments: { query: 'cats' } },
    ]);
    expect(provider.requests[0]?.tools).toEqual([{ type: 'function', function: search }]);
    provider.assertUsedUp();
  });

  test('the loop sends prompt, calls and results until a reply has no calls', async () => {
    const provider = new ScriptedProvider([
      calling('get_weather', { city: 'Paris' }, 'a'),
      calling('calculate', { expression: '22 * 2' }, 'b'),
      { content: 'Twice 22 is 44.' },
    ]);
    const tools = [weatherTool, calculateTool, getCurrentTimeTool];
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(provider.requests[0]?.tools?.map(({ function: { name } }) => name)).toEqual([
      'get_weather',
      'calculate',
      'get_current_time',
    ]);
    expect(run.content).toBe('Twice 22 is 44.');
  });

  test('literal unions, arrays, defaults, nested objects and lengths are validated', async () => {
    const seen: unknown[] = [];
    const tool = agentTool({
      name: 'file_operation',
      label: 'File',
      description: 'Does something to a file',
      parameters: Type.Object({
        operation: Type.Union([Type.Literal('read'), Type.Literal('write'), Type.Literal('delete')]),
        path: Type.String({ minLength: 1, maxLength: 1000 }),
        tags: Type.Optional(Type.Array(Type.String())),
        options: Type.Optional(
          Type.Object({
            encoding: Type.Optional(Type.String({ default: 'utf-8' })),
            recursive: Type.Optional(Type.Boolean({ default: false })),
          }),
        ),
      }),
      execute: async (_id, params) => {
        seen.push(params);
        return { content: [{ type: 'text', content: params.operation }], details: {} };
      },
    });
    const tools = new ToolRegistry().register(tool);
    await tools.execute('file_operation', { operation: 'read', path: 'a', tags: ['x'], options: {} });
    expect(seen).toEqual([
      { operation: 'read', path: 'a', tags: ['x'], options: { encoding: 'utf-8', recursive: false } },
    ]);
    const wrong = await tools.execute('file_operation', {
      operation: 'burn',
      path: '',
      tags: [1],
      options: { recursive: 7 },
    });
    const faults = wrong.forLLM.split('\n').filter((line) => line.startsWith('  - '));
    expect(faults.map((line) => /^ {2}- ([\w.]+): /.exec(line)?.[1])).toEqual([
      'operation',
      'path',
      'tags.0',
      'options.recursive',
    ]);
    expect(faults[0]).toMatch(/read.*write.*delete/);
    expect(seen).toHaveLength(1);
  });
});

describe('agent tools in a conversation', () => {
  test('get_weather returns the weather in either unit, with details', async () => {
    const tools = new ToolRegistry().register(weatherTool);
    const paris = await tools.execute('get_weather', { city: 'Paris' });
    expect(paris).toMatchObject({
      forLLM: 'Weather in Paris: 22°C, Sunny',
      details: { apiCallDuration: expect.any(Number), source: 'weather-api' },
      isError: false,
    });
    const warm = await tools.execute('get_weather', { city: 'Paris', units: 'fahrenheit' });
    expect(warm.forLLM).toBe('Weather in Paris: 72°F, Sunny');
  });

  test('get_weather fails with Operation cancelled if the signal is already aborted', async () => {
    const tools = new ToolRegistry().register(weatherTool);
    const signal = AbortSignal.abort();
    const result = await tools.executeWithContext('get_weather', { city: 'Paris' }, { signal });
    expect(result).toMatchObject({ forLLM: 'Operation cancelled', isError: true });
  });

  test('a download sends ten updates and returns its result', async () => {
    const updates: unknown[] = [];
    const tools = new ToolRegistry().register(downloadTool(turn));
    const result = await tools.executeWithContext(
      'download_file',
      { url: 'u' },
      { onUpdate: (update) => updates.push(update) },
    );
    expect(updates).toEqual(tenUpdates);
    expect(result).toMatchObject({
      forLLM: 'Download complete!',
      details: { progress: 1, bytesDownloaded: 1024 },
    });
  });

  test('an aborted download returns Download cancelled', async () => {
    const controller = new AbortController();
    const provider = new ScriptedProvider([calling('download_file', { url: 'u' })]);
    const run = await runToolLoop({ provider, model: 'm', tools: [downloadTool(turn)] }, hello, {
      signal: controller.signal,
      onUpdate: () => controller.abort(),
    });
    expect(run).toMatchObject({ status: 'aborted', error: { code: 508 } });
    expect(run.toolCalls[0]).toMatchObject({
      status: 'aborted',
      result: { forLLM: 'Download cancelled', isError: true },
    });
    expect(historyFaults(run.messages)).toEqual([]);
  });

  test('a download returns Download cancelled if the reader leaves the stream', async () => {
    const provider = new ScriptedProvider([calling('download_file', { url: 'u' })]);
    const run = streamToolLoop({ provider, model: 'm', tools: [downloadTool(turn)] }, hello);
    for await (const event of run) if (event.type === 'call-progress') break;
    expect((await run.result).messages.at(-1)?.content).toBe('Download cancelled');
  });

  test('count_messages counts only messages of the user', async () => {
    const provider = new ScriptedProvider([calling('count_messages'), { content: 'done' }]);
    const run = await runToolLoop({ provider, model: 'm', tools: [countingTool()] }, [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Yes?' },
      { role: 'user', content: 'Two' },
    ]);
    expect(run.toolCalls[0]?.result.forLLM).toBe('Found 2 user messages');
  });
});

describe('a conversation with agent tools', () => {
  const systemPrompt = 'You have access to weather, calculator, and time tools.';

  test('sends the system prompt, and the tools in the order of the array', async () => {
    const provider = new ScriptedProvider([{ content: 'Hello.' }]);
    const tools = [weatherTool, calculateTool, getCurrentTimeTool];
    const conversation = new Conversation({ provider, model: 'm', tools, systemPrompt });
    await conversation.prompt('Hello');
    const [request] = provider.requests;
    expect(request?.messages).toEqual([{ role: 'system', content: systemPrompt }, ...hello]);
    expect(request?.tools?.map(({ function: { name } }) => name)).toEqual([
      'get_weather',
      'calculate',
      'get_current_time',
    ]);
  });

  test('runs prompt, calls and results until a reply has no calls', async () => {
    const provider = new ScriptedProvider([
      calling('get_weather', { city: 'Paris' }),
      { content: 'Sunny, 22°C.' },
    ]);
    const conversation = new Conversation({ provider, model: 'm', tools: [weatherTool], systemPrompt });
    const { content, status } = await conversation.prompt("What's the weather in Paris?");
    expect([content, status]).toEqual(['Sunny, 22°C.', 'completed']);
    expect(conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(conversation.messages[2]?.content).toBe('Weather in Paris: 22°C, Sunny');
  });

  test('tools see the messages of earlier turns, and subscribers receive their updates', async () => {
    const provider = new ScriptedProvider([
      calling('download_file', { url: 'u' }),
      { content: 'fetched' },
      calling('count_messages'),
      { content: 'counted' },
    ]);
    const tools = [downloadTool(turn), countingTool()];
    const conversation = new Conversation({ provider, model: 'm', tools, systemPrompt });
    const updates: unknown[] = [];
    conversation.subscribe((event: ConversationEvent) => {
      if (event.type === 'call-progress') updates.push(event.update);
    });
    await conversation.prompt('Fetch it');
    await conversation.prompt('How often did I ask?');
    expect(updates).toEqual(tenUpdates);
    expect(conversation.messages.at(-2)?.content).toBe('Found 2 user messages');
  });
});
