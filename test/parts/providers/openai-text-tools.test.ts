import { describe, expect, test } from '@jest/globals';
import { MockLanguageModelV4 } from 'ai/test';
import fc from 'fast-check';
import {
  defineTool,
  discoverTools,
  type Message,
  Param,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
  withTextTools,
} from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { ScriptedProvider } from 'toolwright/testing';
import { anyCharacter } from '../../setup/any-character.js';
import { collect, completion, events, json, LoopbackServer } from './loopback-server.js';
import { customCall, eventsOf, message, responseOf } from './responses-bodies.js';

type Fields = Readonly<Record<string, unknown>>;

const QUERY = 'SELECT "a\n"\tFROM \'t\' -- ✓ 😀';
const HELLO: readonly Message[] = [{ role: 'user', content: 'How many?' }];

function sqlTool(more: { readonly approval?: boolean } = {}) {
  const called: unknown[] = [];
  const tool = defineTool({
    name: 'sql',
    description: 'Asks the database',
    input: 'text',
    ...more,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'One statement', minLength: 3 } },
      required: ['query'],
    },
    execute: (args) => {
      called.push(args);
      return '7 rows';
    },
  });
  return { tool, called };
}

/** A server of the Responses API that gives these replies in turn. */
async function serve(...replies: readonly (readonly Fields[])[]): Promise<LoopbackServer> {
  const left = [...replies];
  return LoopbackServer.start((response, request) => {
    const reply = responseOf(left.shift() ?? [message('Nothing is left.')]);
    (request.body.stream ? events(eventsOf(reply), '') : json(reply))(response, request);
  });
}

function provide({ baseURL }: LoopbackServer) {
  return new OpenAIProvider({ baseURL, api: 'responses', maxRetries: 0 });
}

function inputOf({ requests }: LoopbackServer): readonly Fields[] {
  return (requests.at(-1)?.body.input ?? []) as readonly Fields[];
}

const ANSWER = { type: 'custom_tool_call_output', call_id: 'c1', output: '7 rows' };

describe('OpenAIProvider with tools that take text input', () => {
  test.each([false, true])(
    'OpenAIProvider of responses offers custom tools, and runs and answers custom calls (streamed: %p)',
    async (isStreamed) => {
      const { tool, called } = sqlTool();
      await using server = await serve([customCall('c1', QUERY)], [message('7.')]);
      const config = { provider: provide(server), model: 'gpt-5', tools: [tool] };
      const run = isStreamed ? await streamToolLoop(config, HELLO).result : await runToolLoop(config, HELLO);
      expect(run).toMatchObject({
        status: 'completed',
        content: '7.',
        toolCalls: [{ arguments: { query: QUERY } }],
      });
      expect(called).toEqual([{ query: QUERY }]);
      expect(server.requests[0]?.body.tools).toEqual([
        { type: 'custom', name: 'sql', description: 'Asks the database\n\nIts input: One statement' },
      ]);
      expect(inputOf(server).slice(1)).toEqual([customCall('c1', QUERY), ANSWER]);
    },
  );

  test('OpenAIProvider streams text input as JSON arguments, wherever it is split', async () => {
    const { tool } = sqlTool();
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: anyCharacter, minLength: 3, maxLength: 30 }),
        fc.integer({ min: 1, max: 5 }),
        async (query, size) => {
          await using server = await LoopbackServer.start(
            events(eventsOf(responseOf([customCall('c1', query)]), size), ''),
          );
          const request = {
            model: 'gpt-5',
            messages: HELLO,
            tools: new ToolRegistry().register(tool).toProviderDefs(),
            options: {},
          };
          const parts = await collect(provide(server).stream(request));
          const told = parts.map((part) => (part.type === 'call-input-delta' ? part.text : '')).join('');
          expect(JSON.parse(told)).toEqual({ query });
          expect(parts.filter(({ type }) => /start|end/.test(type)).map(({ type }) => type)).toEqual([
            'call-input-start',
            'call-input-end',
          ]);
          expect(parts.at(-1)).toMatchObject({ response: { toolCalls: [{ arguments: { query } }] } });
        },
      ),
      { numRuns: 20 },
    );
  });

  test('resumeToolLoop answers a suspended custom call in another process', async () => {
    const { tool, called } = sqlTool({ approval: true });
    await using first = await serve([customCall('c1', QUERY)]);
    const config = { model: 'gpt-5', tools: [tool] };
    const { state, pending = [] } = await runToolLoop({ ...config, provider: provide(first) }, HELLO);
    expect(pending).toMatchObject([{ tool: 'sql', arguments: { query: QUERY } }]);
    await using second = await serve([message('7.')]);
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    const resumed = await resumeToolLoop(
      { ...config, provider: provide(second) },
      JSON.parse(JSON.stringify(state)),
      answers,
    );
    expect(resumed).toMatchObject({ status: 'completed', content: '7.' });
    expect(called).toEqual([{ query: QUERY }]);
    expect(inputOf(second).slice(1)).toEqual([customCall('c1', QUERY), ANSWER]);
  });

  test('a call that does not match the schema is reported to the model, which corrects it', async () => {
    const { tool, called } = sqlTool();
    await using server = await serve([customCall('c1', 'x')], [customCall('c2', QUERY)], [message('7.')]);
    const run = await runToolLoop({ provider: provide(server), model: 'gpt-5', tools: [tool] }, HELLO);
    expect(run.status).toBe('completed');
    expect(called).toEqual([{ query: QUERY }]);
    expect(inputOf(server)[2]).toMatchObject({ type: 'custom_tool_call_output', call_id: 'c1' });
    expect(String(inputOf(server)[2]?.output)).toContain('query: must');
  });

  test('calls of other models and tool choices are sent as custom', async () => {
    const { tool } = sqlTool();
    const call = { toolCalls: [{ id: 'c1', name: 'sql', arguments: { query: QUERY } }] };
    const scripted = new ScriptedProvider([call, { content: '7.' }]);
    const { messages } = await runToolLoop({ provider: scripted, model: 'm', tools: [tool] }, HELLO);
    const tools = new ToolRegistry().register(tool).toProviderDefs();
    await using server = await serve([message('ok')], [message('ok')]);
    const request = { model: 'gpt-5', messages, tools, options: {} };
    await provide(server).chat({ ...request, toolChoice: { tool: 'sql' } });
    expect(inputOf(server)[1]).toEqual({
      type: 'custom_tool_call',
      call_id: 'c1',
      name: 'sql',
      input: QUERY,
    });
    expect(inputOf(server)[2]).toEqual(ANSWER);
    expect(server.requests[0]?.body.tool_choice).toEqual({ type: 'custom', name: 'sql' });
    await provide(server).chat({ ...request, toolChoice: { tools: ['sql'], mode: 'required' } });
    expect(server.requests[1]?.body.tool_choice).toEqual({
      type: 'allowed_tools',
      mode: 'required',
      tools: [{ type: 'custom', name: 'sql' }],
    });
  });

  test('an optional parameter still makes a custom tool in strict mode', async () => {
    const parameters = { type: 'object', properties: { query: { type: 'string', default: 'x' } } } as const;
    const called: unknown[] = [];
    const execute = (args: unknown) => void called.push(args);
    const tool = defineTool({ name: 'sql', description: 'Asks', input: 'text', parameters, execute });
    await using server = await serve([customCall('c1', QUERY)], [message('7.')]);
    const provider = new OpenAIProvider({ baseURL: server.baseURL, api: 'responses', strict: 'auto' });
    await runToolLoop({ provider, model: 'gpt-5', tools: [tool] }, HELLO);
    expect(server.requests[0]?.body.tools).toMatchObject([{ type: 'custom', name: 'sql' }]);
    expect(called).toEqual([{ query: QUERY }]);
  });

  test('Chat Completions gets an ordinary function', async () => {
    const { tool, called } = sqlTool();
    const call = {
      id: 'c1',
      type: 'function',
      function: { name: 'sql', arguments: JSON.stringify({ query: QUERY }) },
    };
    const replies = [completion({ content: null, tool_calls: [call] }), completion({ content: '7.' })];
    await using server = await LoopbackServer.start((response, request) =>
      json(replies.shift())(response, request),
    );
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    const run = await runToolLoop({ provider, model: 'gpt-5', tools: [tool] }, HELLO);
    expect(run.content).toBe('7.');
    expect(called).toEqual([{ query: QUERY }]);
    expect(server.requests[0]?.body.tools).toEqual([
      {
        type: 'function',
        function: { name: 'sql', description: 'Asks the database', parameters: tool.parameters },
      },
    ]);
  });
});

describe('tools with input: text', () => {
  test('are ordinary tools for fromAiSdk and withTextTools', async () => {
    const { tool } = sqlTool();
    const model = new MockLanguageModelV4({ modelId: 'm' });
    const run = await runToolLoop({ provider: fromAiSdk(model), model: 'm', tools: [tool] }, HELLO);
    expect(run.status).toBe('failed');
    expect(model.doGenerateCalls[0]?.tools).toEqual([
      { type: 'function', name: 'sql', description: 'Asks the database', inputSchema: tool.parameters },
    ]);
    const scripted = new ScriptedProvider([{ content: 'So.' }]);
    await runToolLoop({ provider: withTextTools(scripted), model: 'm', tools: [tool] }, HELLO);
    const [prompt] = scripted.requests[0]?.messages ?? [];
    expect(prompt?.content).toContain('"name":"sql"');
    expect(prompt?.content).not.toContain('"input"');
  });

  test('are refused by defineTool and register unless they have exactly one string parameter', () => {
    const text = { type: 'string' } as const;
    const one = { input: 'text', name: 'a', description: 'A', execute: () => 'x' } as const;
    for (const properties of [
      {},
      { a: text, b: text },
      { a: { type: 'number' } },
      { a: { type: ['string', 'null'] } },
    ])
      expect(() => defineTool({ ...one, parameters: { type: 'object', properties } as never })).toThrow(
        'does not have exactly one string parameter',
      );
    const written = { ...one, parameters: { type: 'object', properties: {} } };
    expect(() => new ToolRegistry().register(written)).toThrow('does not have exactly one string parameter');
    expect(() =>
      defineTool({ ...one, input: 'words' as never, parameters: { properties: { a: text } } }),
    ).toThrow("'text'");
  });

  test('are refused by discoverTools with all errors in one exception', () => {
    @Toolset()
    class Wrong {
      @Tool({ description: 'Runs', input: 'text' })
      run(@Param('Code') code: string, @Param('Language') language: string) {
        return code + language;
      }

      @Tool({ description: 'Counts', input: 'text' })
      count(@Param('How many') many: number) {
        return many;
      }
    }
    @Toolset()
    class Right {
      @Tool({ description: 'Runs', input: 'text' })
      run(@Param('Code') code: string) {
        return code;
      }
    }
    const discover = () => discoverTools({ toolsets: [Wrong] });
    expect(discover).toThrow('Wrong.run');
    expect(discover).toThrow('Wrong.count');
    expect(discoverTools({ toolsets: [Right] })).toMatchObject([{ name: 'run', input: 'text' }]);
  });
});
