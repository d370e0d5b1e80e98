import { createAnthropic } from '@ai-sdk/anthropic';
import { expect, test } from '@jest/globals';
import {
  defineTool,
  type LLMRequest,
  type LLMStreamPart,
  type Message,
  runToolLoop,
  streamToolLoop,
  ToolRegistry,
} from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { anthropicMessage } from './anthropic-bodies.js';
import { collect, completion, events, json, LoopbackServer } from './loopback-server.js';
import { eventsOf, message, responseOf } from './responses-bodies.js';

type Fields = Readonly<Record<string, unknown>>;

const HELLO: readonly Message[] = [{ role: 'user', content: 'Ada owes us 40.' }];

const parameters = {
  type: 'object',
  properties: { customer: { type: 'string' } },
  required: ['customer'],
} as const;
const create = defineTool({
  name: 'create_invoice',
  description: 'Creates an invoice',
  parameters,
  defer: true,
  namespace: 'billing',
  execute: ({ customer }) => `invoice for ${customer}`,
});
const greet = defineTool({ name: 'greet', description: 'Greets', parameters: {}, execute: () => 'hi' });
const paint = defineTool({
  name: 'paint',
  description: 'Paints',
  parameters: {},
  defer: true,
  execute: () => 'ok',
});

const tools = new ToolRegistry().register(paint, greet, create);

const SEARCH = {
  type: 'tool_search_call',
  id: 'ts_1',
  call_id: 'call_s',
  execution: 'client',
  status: 'completed',
  arguments: { query: 'invoice', limit: 1 },
};
const CREATE = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_c',
  name: 'create_invoice',
  namespace: 'billing',
  arguments: '{"customer":"Ada"}',
  status: 'completed',
};

async function responses(): Promise<LoopbackServer> {
  const left: Fields[][] = [[SEARCH], [CREATE], [message('Done.')]];
  return LoopbackServer.start((response, request) => {
    const reply = responseOf(left.shift() ?? []);
    (request.body.stream ? events(eventsOf(reply), '') : json(reply))(response, request);
  });
}

test.each([false, true])(
  'OpenAIProvider of responses searches by tool_search and appends found definitions to the input (streamed: %p)',
  async (isStreamed) => {
    await using server = await responses();
    const provider = new OpenAIProvider({
      baseURL: server.baseURL,
      apiKey: 'k',
      api: 'responses',
      toolSearch: true,
    });
    const config = { provider, model: 'gpt-5.4', tools };
    const run = isStreamed ? await streamToolLoop(config, HELLO).result : await runToolLoop(config, HELLO);
    expect(run.content).toBe('Done.');
    expect(run.toolCalls.map(({ name, status }) => [name, status])).toEqual([
      ['search_tools', 'success'],
      ['create_invoice', 'success'],
    ]);
    const bodies = server.requests.map(({ body }) => body);
    const [first, second, third] = bodies.map(({ input }) => input as readonly Fields[]);
    expect(bodies[0]?.tools).toMatchObject([
      { type: 'function', name: 'greet' },
      { type: 'tool_search', execution: 'client', parameters: { required: ['query'] } },
    ]);
    for (const body of bodies) expect(JSON.stringify(body.tools)).toBe(JSON.stringify(bodies[0]?.tools));
    expect(second?.slice(0, first?.length)).toEqual(first);
    expect(third?.slice(0, second?.length)).toEqual(second);
    expect(second?.slice(-2)).toEqual([
      SEARCH,
      {
        type: 'tool_search_output',
        call_id: 'call_s',
        execution: 'client',
        status: 'completed',
        tools: [
          {
            type: 'namespace',
            name: 'billing',
            description: 'Tools for billing.',
            tools: [
              {
                ...{ type: 'function', name: 'create_invoice', description: 'Creates an invoice' },
                ...{ parameters: create.parameters, strict: false, defer_loading: true },
              },
            ],
          },
        ],
      },
    ]);
    expect(third?.slice(-2)).toEqual([
      CREATE,
      { type: 'function_call_output', call_id: 'call_c', output: 'invoice for Ada' },
    ]);
  },
);

test('OpenAIProvider of responses streams the input of a search under the name of the tool that searches', async () => {
  await using server = await responses();
  const told: LLMStreamPart[] = [];
  class Watched extends OpenAIProvider {
    override async *stream(request: LLMRequest) {
      for await (const part of super.stream(request)) {
        if (part.type.startsWith('call-input')) told.push(part);
        yield part;
      }
    }
  }
  const provider = new Watched({ baseURL: server.baseURL, apiKey: 'k', api: 'responses', toolSearch: true });
  const events = await collect(streamToolLoop({ provider, model: 'gpt-5.4', tools }, HELLO));
  expect(told.slice(0, 3)).toMatchObject([
    { type: 'call-input-start', tool: 'search_tools' },
    { type: 'call-input-delta', text: JSON.stringify(SEARCH.arguments) },
    { type: 'call-input-end' },
  ]);
  // Readers of the run do not see the search.
  expect(events.find(({ type }) => type === 'call-input-start')).toMatchObject({ tool: 'create_invoice' });
});

test('OpenAIProvider supports found tools for GPT-5.4 and later at OpenAI over Responses, unless toolSearch is false', () => {
  const at = (more: object) => new OpenAIProvider({ apiKey: 'k', ...more });
  const byResponses = at({ api: 'responses' });
  for (const model of ['gpt-5.4', 'gpt-5.4-mini', 'gpt-6', 'gpt-5.10'])
    expect(byResponses.takesFoundTools(model)).toBe(true);
  for (const model of ['gpt-5', 'gpt-5.3', 'gpt-4.1', 'o3', 'qwen3'])
    expect(byResponses.takesFoundTools(model)).toBe(false);
  expect(at({ api: 'chat' }).takesFoundTools('gpt-6')).toBe(false);
  expect(at({ api: 'responses', baseURL: 'http://127.0.0.1:1/v1' }).takesFoundTools('gpt-6')).toBe(false);
  expect(at({ api: 'responses', toolSearch: false }).takesFoundTools('gpt-6')).toBe(false);
});

test('OpenAIProvider of Chat Completions sends neither found tools nor deferred loading', async () => {
  await using server = await LoopbackServer.start(json(completion({ content: 'Hi' })));
  const provider = new OpenAIProvider({ baseURL: server.baseURL, apiKey: 'k' });
  const found: Message[] = [
    ...HELLO,
    {
      role: 'assistant',
      content: '',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'search_tools', arguments: '{"query":"x"}' } },
      ],
    },
    { role: 'tool', content: 'Found 1', tool_call_id: 'c1', found: ['create_invoice'] },
  ];
  await runToolLoop({ provider, model: 'm', tools }, found);
  const body = server.requests[0]?.body ?? {};
  expect((body.messages as Fields[]).at(-1)).toEqual({
    role: 'tool',
    content: 'Found 1',
    tool_call_id: 'c1',
  });
  for (const tool of body.tools as Fields[]) expect(Object.keys(tool)).toEqual(['type', 'function']);
});

test('fromAiSdk sends Claude tool references in the search result and defers the found tools', async () => {
  const left = [
    anthropicMessage(
      [{ type: 'tool_use', id: 't1', name: 'search_tools', input: { query: 'invoice', limit: 1 } }],
      { stop: 'tool_use' },
    ),
    anthropicMessage([{ type: 'tool_use', id: 't2', name: 'create_invoice', input: { customer: 'Ada' } }], {
      stop: 'tool_use',
    }),
    anthropicMessage([{ type: 'text', text: 'Done.' }]),
  ];
  await using server = await LoopbackServer.start((response, request) =>
    json(left.shift())(response, request),
  );
  const anthropic = createAnthropic({ baseURL: server.baseURL, apiKey: 'k' });
  const run = await runToolLoop({ provider: fromAiSdk(anthropic), model: 'claude-sonnet-4-5', tools }, HELLO);
  expect(run.content).toBe('Done.');
  const bodies = server.requests.map(({ body }) => body);
  const offered = bodies.map((body) =>
    (body.tools as Fields[]).map((tool) => [tool.name, tool.defer_loading ?? false]),
  );
  expect(offered).toEqual([
    [
      ['greet', false],
      ['search_tools', false],
    ],
    ...Array(2).fill([
      ['greet', false],
      ['search_tools', false],
      ['create_invoice', true],
    ]),
  ]);
  const said = bodies[1]?.messages as { readonly content: readonly Fields[] }[];
  const answer = said.at(-1)?.content[0];
  expect(answer).toMatchObject({
    type: 'tool_result',
    tool_use_id: 't1',
    content: [{ type: 'tool_reference', tool_name: 'create_invoice' }],
  });
});

test('fromAiSdk reports which Claude models support tool references', () => {
  const provider = fromAiSdk(createAnthropic({ apiKey: 'k' }));
  for (const model of ['claude-sonnet-4-5', 'claude-haiku-4-5-20251001', 'claude-opus-5-5'])
    expect(provider.takesFoundTools(model)).toBe(true);
  for (const model of ['claude-opus-4-1', 'claude-sonnet-4-20250514', 'claude-3-haiku-20240307'])
    expect(provider.takesFoundTools(model)).toBe(false);
});
