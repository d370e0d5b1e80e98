import { describe, expect, test } from '@jest/globals';
import { type JsonSchema, type Message, runToolLoop, streamToolLoop } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { completion, delta, events, json, LoopbackServer } from './loopback-server.js';
import { eventsOf, message, responseOf } from './responses-bodies.js';

const OUTPUT: JsonSchema = {
  type: 'object',
  properties: {
    place: { type: 'string' },
    degrees: { type: 'number' },
    tags: { type: 'object', additionalProperties: { type: 'string' } },
  },
  required: ['place'],
};
/** The answer in strict form: no property is left out, and a record is a list of pairs. */
const SAID = '{"place":"Bern","degrees":null,"tags":[{"key":"sky","value":"grey"}]}';
const MEANT = { place: 'Bern', tags: { sky: 'grey' } };
const STRICT = {
  type: 'object',
  required: ['place', 'degrees', 'tags'],
  additionalProperties: false,
  properties: { degrees: { type: ['number', 'null'] } },
};
const QUESTION: readonly Message[] = [{ role: 'user', content: 'How is the weather?' }];

interface Asked {
  readonly api: 'chat' | 'responses';
  readonly isStreamed?: boolean;
  readonly responseFormat?: boolean;
  readonly output?: JsonSchema;
}

/** Runs with a model that gives these replies, and returns the bodies that the server received. */
async function run(
  texts: readonly string[],
  { api, isStreamed, responseFormat = true, output = OUTPUT }: Asked,
) {
  const left = [...texts];
  await using server = await LoopbackServer.start((response, request) => {
    const text = left.shift() ?? 'Nothing is left.';
    const streamed =
      api === 'chat'
        ? events([delta({ content: text }, 'stop')])
        : events(eventsOf(responseOf([message(text)])), '');
    const whole = json(api === 'chat' ? completion({ content: text }) : responseOf([message(text)]));
    (request.body.stream ? streamed : whole)(response, request);
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL, api, responseFormat });
  const config = { provider, model: 'gpt-5', output };
  const ended = isStreamed
    ? await streamToolLoop(config, QUESTION).result
    : await runToolLoop(config, QUESTION);
  return { ended, bodies: server.requests.map(({ body }) => body as Readonly<Record<string, never>>) };
}

const WAYS = [
  ['chat', false],
  ['chat', true],
  ['responses', false],
  ['responses', true],
] as const;

describe('OpenAIProvider with output of a run', () => {
  test.each(WAYS)(
    'OpenAIProvider of %s (streamed: %p) requests the strict form, and the run returns output that fits the schema',
    async (api, isStreamed) => {
      const { ended, bodies } = await run([SAID], { api, isStreamed });
      expect(ended).toMatchObject({ status: 'completed', content: SAID });
      expect(ended.output).toEqual(MEANT);
      const [body] = bodies;
      const format = api === 'chat' ? body?.response_format : body?.text;
      const said = { name: 'final_answer', strict: true, schema: STRICT };
      expect(format).toMatchObject(
        api === 'chat'
          ? { type: 'json_schema', json_schema: said }
          : { format: { type: 'json_schema', ...said } },
      );
      expect(body).not.toHaveProperty('tools');
    },
  );

  test.each(['chat', 'responses'] as const)(
    'OpenAIProvider of %s requests an invalid answer again once, and then fails the run',
    async (api) => {
      const { ended, bodies } = await run(['{"degrees":7}', SAID], { api });
      expect(ended.output).toEqual(MEANT);
      expect(JSON.stringify(bodies[1])).toContain('place: is required');
      const hopeless = await run(['{"degrees":7}', 'Fine weather.', SAID], { api });
      expect(hopeless.ended).toMatchObject({ status: 'failed', error: { name: 'InvalidOutput' } });
      expect(hopeless.bodies).toHaveLength(2);
    },
  );

  test('OpenAIProvider sends a schema that has no strict form unchanged', async () => {
    const output: JsonSchema = { type: 'object', properties: { deep: { not: {} } }, required: ['deep'] };
    const { bodies } = await run(['{}'], { api: 'responses', output });
    expect(bodies[0]?.text).toMatchObject({ format: { strict: false, schema: output } });
  });

  test('OpenAIProvider at another base URL offers the final_answer tool by default', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: '{"place":"Bern"}' })));
    const provider = new OpenAIProvider({ baseURL: server.baseURL });
    const ended = await runToolLoop({ provider, model: 'gpt-5', output: OUTPUT }, QUESTION);
    expect(ended.output).toEqual({ place: 'Bern' });
    expect(server.requests[0]?.body).toMatchObject({ tools: [{ function: { name: 'final_answer' } }] });
    expect(server.requests[0]?.body).not.toHaveProperty('response_format');
  });

  test.each([
    ['https://api.openai.com/v1', 'gpt-5', true],
    ['https://eu.api.openai.com/v1', 'ft:gpt-4o-mini:acme', true],
    ['https://api.openai.com/v1', 'gpt-4-turbo', false],
    ['https://api.openai.com/v1', 'gpt-3.5-turbo', false],
    ['https://api.openai.com.example.org/v1', 'gpt-5', false],
    ['http://127.0.0.1:11434/v1', 'gpt-5', false],
  ])('OpenAIProvider.supportsResponseFormat at %s with %s returns %p', (baseURL, model, expected) => {
    expect(new OpenAIProvider({ baseURL, apiKey: 'k' }).supportsResponseFormat(model)).toBe(expected);
    expect(
      new OpenAIProvider({ baseURL, apiKey: 'k', responseFormat: !expected }).supportsResponseFormat(model),
    ).toBe(!expected);
  });
});
