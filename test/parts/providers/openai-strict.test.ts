import { describe, expect, test } from '@jest/globals';
import { defineTool, type JsonSchema, runToolLoop, streamToolLoop } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { completion, events, json, LoopbackServer } from './loopback-server.js';
import { eventsOf, functionCall, message, responseOf } from './responses-bodies.js';

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    limit: { type: 'integer' },
    tags: { type: 'object', additionalProperties: { type: 'string' } },
  },
  required: ['city'],
};
/** In the strict form, an optional value that is left out is null. */
const SENT = '{"city":"Bern","limit":null,"tags":[{"key":"a","value":"b"}]}';
const MEANT = { city: 'Bern', tags: { a: 'b' } };

async function run(
  options: { readonly strict?: 'auto' | boolean; readonly api?: 'chat' | 'responses' },
  { strict, isStreamed = false }: { readonly strict?: boolean; readonly isStreamed?: boolean } = {},
) {
  const { api = 'chat' } = options;
  const called: unknown[] = [];
  const find = defineTool({
    name: 'find',
    description: 'Finds',
    parameters: PARAMETERS,
    ...(strict === undefined ? {} : { strict }),
    execute: (args) => {
      called.push(args);
      return 'found';
    },
  });
  const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: SENT } };
  const item = { ...functionCall('c1', SENT), name: 'find' };
  await using server = await LoopbackServer.start((response, request) => {
    const isFirst = server.requests.length === 1;
    if (api === 'chat')
      return json(completion(isFirst ? { content: null, tool_calls: [call] } : { content: 'Done.' }))(
        response,
        request,
      );
    const reply = responseOf([isFirst ? item : message('Done.')]);
    return (request.body.stream ? events(eventsOf(reply), '') : json(reply))(response, request);
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL, ...options });
  const config = { provider, model: 'gpt-5', tools: [find] };
  const hello = [{ role: 'user', content: 'Hi' }] as const;
  const ended = isStreamed ? await streamToolLoop(config, hello).result : await runToolLoop(config, hello);
  const [first, second] = server.requests.map(({ body }) => body as never as Readonly<Record<string, never>>);
  return { ended, called, first, second };
}

describe('OpenAIProvider with strict tools', () => {
  test.each([
    ['a tool with strict: true', {}, true],
    ["option 'auto'", { strict: 'auto' }, undefined],
    ['option true and a tool with strict: false', { strict: true }, false],
  ] as const)(
    '%s: sends the strict form, and the tool gets arguments that fit its own schema',
    async (_, options, strict) => {
      const { called, ended, first } = await run(options, { strict });
      expect(first?.tools).toMatchObject([
        {
          function: {
            strict: true,
            parameters: { required: ['city', 'limit', 'tags'], additionalProperties: false },
          },
        },
      ]);
      expect(called).toEqual([MEANT]);
      expect(ended).toMatchObject({
        status: 'completed',
        toolCalls: [{ arguments: MEANT, status: 'success' }],
      });
    },
  );

  test.each([
    ['by default', {}, undefined],
    ['option false and a tool with strict: true', { strict: false }, true],
    ["option 'auto' and a tool with strict: false", { strict: 'auto' }, false],
  ] as const)('%s: sends the schema unchanged', async (_, options, strict) => {
    const { first } = await run(options, { strict });
    expect(first?.tools).toMatchObject([{ function: { parameters: PARAMETERS } }]);
    expect(JSON.stringify(first)).not.toContain('"strict":true');
  });

  test('the next request repeats the strict form of the calls, and the run stores the arguments of the tool', async () => {
    const { ended, second } = await run({ strict: 'auto' });
    const messages = (second?.messages ?? []) as readonly Readonly<Record<string, unknown>>[];
    const asked = messages[1] ?? {};
    const shown = (asked.tool_calls as [{ function: { arguments: string } }])[0].function.arguments;
    expect(JSON.parse(shown)).toEqual(JSON.parse(SENT));
    const kept = ended.messages.find(({ role }) => role === 'assistant');
    expect(JSON.stringify(kept)).toContain(JSON.stringify(JSON.stringify(MEANT)).slice(1, -1));
  });

  test.each([false, true])(
    'the strict form also works over the Responses API (streamed: %p)',
    async (isStreamed) => {
      const { called, first, second } = await run({ strict: 'auto', api: 'responses' }, { isStreamed });
      expect(first?.tools).toMatchObject([
        { name: 'find', strict: true, parameters: { additionalProperties: false } },
      ]);
      expect(called).toEqual([MEANT]);
      const input = (second?.input ?? []) as readonly Readonly<Record<string, unknown>>[];
      expect(input.find(({ type }) => type === 'function_call')).toMatchObject({ arguments: SENT });
    },
  );

  test('a tool whose schema has no strict form is sent unchanged', async () => {
    const odd = defineTool({
      name: 'odd',
      description: 'Odd',
      parameters: { type: 'object', properties: { deep: { not: {} } }, required: ['deep'] },
      strict: true,
      execute: () => 'x',
    });
    await using server = await LoopbackServer.start(json(completion({ content: 'Done.' })));
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    await runToolLoop({ provider, model: 'm', tools: [odd] }, [{ role: 'user', content: 'Hi' }]);
    expect(server.requests[0]?.body.tools).toMatchObject([
      { function: { strict: false, parameters: { required: ['deep'] } } },
    ]);
  });
});
