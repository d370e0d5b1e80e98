import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv, type ValidateFunction } from 'ajv';
import fc from 'fast-check';
import {
  defineTool,
  type LLMRequest,
  type Message,
  runToolLoop,
  streamToolLoop,
  type ToolChoice,
} from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { toChatBody } from '../../../src/models/openai/chat-completions.js';
import { toResponsesBody } from '../../../src/models/openai/responses.js';
import { schemasOfTypes } from '../../processes/schemas-of-types.js';
import { collect, json, LoopbackServer } from './loopback-server.js';
import { historyAfter } from './openai-dialogue.js';
import { customCall, functionCall, message, reasoning, responseOf } from './responses-bodies.js';

const APIS = ['chat', 'responses'] as const;
type Api = (typeof APIS)[number];

/** Unknown properties are errors. */
let judges: Readonly<Record<Api, ValidateFunction>>;

beforeAll(async () => {
  const schemas = await schemasOfTypes({
    path: 'test/parts/providers/openai-request-types.ts',
    tsconfig: 'test/parts/providers/openai-request-types.json',
    names: ['ChatBody', 'ResponsesBody'],
    additionalProperties: false,
  });
  const judge = (type: string) =>
    new Ajv({ strict: false, code: { optimize: false } }).compile(schemas[type]!);
  judges = { chat: judge('ChatBody'), responses: judge('ResponsesBody') };
});

function expectFits(api: Api, body: unknown): void {
  const judge = judges[api];
  // As JSON, because the request is sent as JSON.
  const fits = judge(JSON.parse(JSON.stringify(body)));
  expect(fits ? [] : { faults: judge.errors?.slice(0, 5), body }).toEqual([]);
}

const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
  execute: () => ({
    content: [
      { type: 'text', content: 'Seen' },
      { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
      { type: 'file', data: 'YQ==', mimeType: 'application/pdf', filename: 'a.pdf' },
    ],
  }),
});

describe.each(APIS)(
  'every request of OpenAIProvider to a mock server matches the types of OpenAI’s client (%s)',
  (api) => {
    const mock = new LLMock({ port: 0, host: '127.0.0.1' });

    beforeAll(async () => {
      await mock.start();
      mock.onToolResult('call_a', { content: 'Done.' });
      mock.onMessage('look', {
        toolCalls: [
          { id: 'call_a', name: 'look', arguments: '{"at":"Paris"}' },
          { id: 'call_b', name: 'look', arguments: '{}' },
        ],
      });
      // In Chat Completions, only compatible servers have a field for reasoning.
      const thought = api === 'responses' ? { reasoning: 'Let me think.' } : {};
      mock.onMessage(/./, { content: 'Hello.', ...thought });
    });
    afterAll(() => mock.stop());

    test('in runs with tools, streamed or not', async () => {
      // The journal of the mock server changes the bodies, so they are recorded before they are sent.
      const sent: string[] = [];
      const provider = new OpenAIProvider({
        api,
        baseURL: `${mock.url}/v1`,
        apiKey: 'k',
        maxRetries: 0,
        fetch: (url, init) => {
          sent.push(String(init?.body));
          return fetch(url, init);
        },
      });
      const config = { provider, model: 'gpt-5', tools: [look] };
      const messages: Message[] = [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hello' },
      ];
      const run = await runToolLoop({ ...config, parallelToolCalls: true, toolChoice: 'auto' }, messages);
      const asked = [...run.messages, { role: 'user', content: 'look' } as const];
      await runToolLoop({ ...config, toolChoice: { tools: ['look'] } }, asked, {});
      await collect(streamToolLoop(config, asked));
      const paths = mock.getRequests().map(({ path }) => path);
      expect(new Set(paths)).toEqual(new Set([api === 'chat' ? '/v1/chat/completions' : '/v1/responses']));
      expect(sent).toHaveLength(paths.length);
      expect(sent.length).toBeGreaterThanOrEqual(5);
      for (const body of sent) expectFits(api, JSON.parse(body));
    });
  },
);

test('every request of OpenAIProvider with tool_search matches the types of OpenAI’s client', async () => {
  const tools = ['billing', undefined].map((namespace, at) =>
    defineTool({
      name: `create_invoice_${at}`,
      description: 'Creates an invoice',
      parameters: { type: 'object', properties: { customer: { type: 'string' } } },
      defer: true,
      ...(namespace === undefined ? {} : { namespace }),
      execute: () => 'done',
    }),
  );
  const call = { type: 'function_call', status: 'completed', arguments: '{"customer":"Ada"}' };
  const search = { id: 'ts_1', call_id: 'call_s', execution: 'client', status: 'completed' };
  const replies = [
    [{ type: 'tool_search_call', ...search, arguments: { query: 'invoice' } }],
    [
      { ...call, id: 'fc_1', call_id: 'c1', name: 'create_invoice_0', namespace: 'billing' },
      { ...call, id: 'fc_2', call_id: 'c2', name: 'create_invoice_1' },
    ],
    [message('Done.')],
  ];
  await using server = await LoopbackServer.start((response, request) =>
    json(responseOf(replies.shift() ?? []))(response, request),
  );
  const { baseURL } = server;
  const provider = new OpenAIProvider({ baseURL, apiKey: 'k', api: 'responses', toolSearch: true });
  const messages: Message[] = [{ role: 'user', content: 'Invoice Ada.' }];
  const run = await runToolLoop({ provider, model: 'gpt-5.4', tools: [look, ...tools] }, messages);
  expect([run.content, run.toolCalls.map(({ status }) => status)]).toEqual([
    'Done.',
    Array(3).fill('success'),
  ]);
  const bodies = server.requests.map(({ body }) => body);
  expect(JSON.stringify(bodies[2])).toMatch(/tool_search_output.*"namespace"/);
  for (const body of bodies) expectFits('responses', body);
});

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const name = fc.constantFrom('look', 'sql', 'get_weather');
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.record({
    type: fc.constant('image_url'),
    image_url: fc.record({ url: fc.domain().map((host) => `https://${host}/a.png`) }),
  }),
  fc.record({ type: fc.constant('file'), file: fc.record({ file_data: text, filename: text }) }),
);
/** Custom calls arrive with a status, which is sent back although the client’s input type has none. */
const { status: _, ...custom } = customCall('c2', 'SELECT 1');
const output = fc.subarray([reasoning('a', 'b'), message('Looking.'), functionCall('c1', '{}'), custom]);
/** Possible replies of a model: from Responses, or without provider items. */
const spoken = fc.oneof(
  output.map((items) => ({
    content: items.some(({ type }) => type === 'message') ? 'Looking.' : '',
    toolCalls: items
      .filter((item) => 'call_id' in item)
      .map((item) => ({ id: String(item.call_id), name: String(item.name), arguments: '{}' })),
    finishReason: 'stop' as const,
    reasoning: 'secret',
    providerItems: { 'openai.responses/gpt-5': { id: 'resp_1', output: items } },
  })),
  fc.record({
    content: text,
    toolCalls: fc.uniqueArray(fc.record({ id: fc.uuid(), name, arguments: fc.constant({}) }), {
      selector: ({ id }) => id,
      maxLength: 3,
    }),
    finishReason: fc.constant('stop' as const),
  }),
);
const request: fc.Arbitrary<LLMRequest> = fc.record(
  {
    model: fc.constant('gpt-5'),
    messages: fc
      .tuple(fc.array(fc.oneof(text, fc.array(part, { minLength: 1 }))), fc.array(spoken))
      .map(([users, replies]): Message[] => [
        { role: 'system', content: 'Be brief.' },
        ...users.map((content) => ({ role: 'user', content }) as const),
        ...replies.flatMap(historyAfter),
      ]),
    options: fc.constantFrom({}, { temperature: 0, top_p: 1 }),
    tools: fc.constant([
      {
        type: 'function',
        function: { name: 'look', description: 'Looks', parameters: { type: 'object' } },
      } as const,
      {
        type: 'function',
        input: 'text',
        function: {
          name: 'sql',
          description: 'Asks',
          parameters: { properties: { query: { type: 'string' } } },
        },
      } as const,
    ]),
    toolChoice: fc.constantFrom<ToolChoice[]>(
      'auto',
      'none',
      'required',
      { tool: 'look' } as const,
      { tool: 'sql' } as const,
      { tools: ['look', 'sql'], mode: 'required' } as const,
    ),
    parallelToolCalls: fc.boolean(),
    responseFormat: fc.constantFrom(
      { type: 'text' } as const,
      { type: 'json' } as const,
      { type: 'json', schema: { type: 'object' } } as const,
    ),
  },
  { requiredKeys: ['model', 'messages', 'options'] },
);

describe('OpenAIProvider writes only requests that match the types of OpenAI’s client', () => {
  test('for any request to Chat Completions', () => {
    fc.assert(
      fc.property(request, (asked) => {
        expectFits('chat', toChatBody(asked, { itemKey: 'openai.chat/gpt-5' }));
        expectFits('chat', toChatBody(asked, { itemKey: 'openai.chat/gpt-5', stream: { withUsage: true } }));
      }),
    );
  });

  test('for any request to Responses', () => {
    fc.assert(
      fc.property(request, fc.boolean(), (asked, store) => {
        expectFits(
          'responses',
          toResponsesBody(asked, { itemKey: 'openai.responses/gpt-5', store, withEncrypted: true }),
        );
      }),
    );
  });

  test('and the validators reject requests that do not match', () => {
    const body = { model: 'gpt-5', messages: [{ role: 'user', content: 'x' }] };
    expectFits('chat', body);
    expect(judges.chat({ ...body, messages: [{ role: 'assistant', content: 'x', providerItems: {} }] })).toBe(
      false,
    );
    expect(judges.chat({ ...body, tool_choice: 'sometimes' })).toBe(false);
    expectFits('responses', { model: 'gpt-5', input: [{ role: 'user', content: 'x' }] });
    expect(judges.responses({ model: 'gpt-5', input: [{ type: 'function_call', name: 'x' }] })).toBe(false);
  });
});
