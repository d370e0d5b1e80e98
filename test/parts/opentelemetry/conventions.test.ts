import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SpanKind } from '@opentelemetry/api';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { defineTool, type LLMProvider, type LLMStreamPart, streamToolLoop, ToolRegistry } from 'toolwright';
import { openTelemetry } from 'toolwright/opentelemetry';
import { connectClient, listen } from '../mcp/mcp-connections.js';
import { Recording } from './recording.js';

interface Signal {
  readonly kind?: string;
  readonly unit?: string;
  readonly required: readonly string[];
  readonly others: readonly string[];
}

/** The names of the published conventions, with their types and requirements. */
const CONVENTIONS = JSON.parse(readFileSync('test/fixtures/gen-ai-conventions.json', 'utf8')) as {
  readonly attributes: Readonly<Record<string, string>>;
  readonly spans: Readonly<Record<string, Signal>>;
  readonly metrics: Readonly<Record<string, Signal>>;
  readonly schemas: Readonly<Record<string, object>>;
};

const ajv = new Ajv2020({ strict: false });
const SCHEMAS = new Map(
  Object.entries(CONVENTIONS.schemas).map(([name, schema]) => [name, ajv.compile(schema)]),
);

let recording: Recording;
beforeEach(() => {
  recording = new Recording();
});
afterEach(() => recording.end());

const IS_OF: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  int: (value) => Number.isSafeInteger(value),
  double: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  'string[]': (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  // Spans of this SDK accept no structures, so the value is JSON.
  json: (value) => typeof value === 'string' && typeof JSON.parse(value) === 'object',
};

/** The violations of the conventions by the attributes. Our own attributes are recognized by their prefix. */
function faults(
  attributes: Readonly<Record<string, unknown>>,
  { required, others }: Signal,
): readonly string[] {
  const missing = required
    .filter((name) => attributes[name] === undefined)
    .map((name) => `${name} is missing`);
  const wrong = Object.entries(attributes).flatMap(([name, value]) => {
    if (name.startsWith('toolwright.')) return [];
    if (!required.includes(name) && !others.includes(name)) return [`${name} is unknown`];
    if (!IS_OF[CONVENTIONS.attributes[name] ?? '']?.(value)) return [`${name} is ${JSON.stringify(value)}`];
    const check = SCHEMAS.get(name);
    if (check === undefined || check(JSON.parse(value as string))) return [];
    return [`${name}: ${JSON.stringify(check.errors)}`];
  });
  return [...missing, ...wrong];
}

const weather = defineTool({
  name: 'weather',
  description: 'Tells the weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }: { city: string }) => {
    if (city === 'Atlantis') throw new TypeError('there is no such city');
    return city === 'Rome' ? { celsius: 31 } : 'rain';
  },
});

const usage = {
  inputTokens: 20,
  outputTokens: 8,
  totalTokens: 28,
  cacheReadTokens: 4,
  cacheWriteTokens: 2,
  reasoningTokens: 3,
};

/** A model that streams, reasons, and calls tools that succeed, fail and do not exist. */
function streamingModel(): LLMProvider {
  let requests = 0;
  const replies: readonly (() => Extract<LLMStreamPart, { type: 'response' }>['response'])[] = [
    () => ({
      content: '',
      reasoning: 'two cities',
      finishReason: 'tool_calls',
      rawFinishReason: 'tool_calls',
      usage,
      toolCalls: [
        { id: 'c1', name: 'weather', arguments: { city: 'Rome' } },
        { id: 'c2', name: 'weather', arguments: { city: 'Atlantis' } },
        { id: 'c3', name: 'nothing_like_it', arguments: {} },
        { id: 'c4', name: 'weather', arguments: '{"city": 7, "x' },
      ],
    }),
    () => ({ content: 'It is hot in Rome.', finishReason: 'stop', usage, toolCalls: [] }),
  ];
  const next = () => (replies[requests++] ?? replies[1])?.() as never;
  return {
    identity: () => ({ name: 'openai', address: 'api.openai.com', port: 443 }),
    chat: async () => next(),
    async *stream() {
      yield { type: 'text-delta', text: 'It is ' };
      yield { type: 'text-delta', text: 'hot' };
      yield { type: 'response', response: next() };
    },
  };
}

const KINDS = new Map([
  [SpanKind.INTERNAL, 'internal'],
  [SpanKind.CLIENT, 'client'],
  [SpanKind.SERVER, 'server'],
]);

test('openTelemetry uses the published conventions, name by name, with and without contents', async () => {
  for (const content of [false, true]) {
    const telemetry = openTelemetry({ content });
    const tools = new ToolRegistry({ telemetry }).register(weather);
    const llmOptions = {
      temperature: 0.2,
      top_p: 1,
      top_k: 40,
      seed: 7,
      n: 2,
      max_tokens: 100,
      stop: ['END'],
      frequency_penalty: 0.1,
      presence_penalty: 0.1,
      reasoning: { effort: 'low' },
      previous_response_id: 'resp_1',
    };
    const run = streamToolLoop(
      { provider: streamingModel(), model: 'gpt-5', tools, agentName: 'guide', llmOptions },
      [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'How is the weather?' },
            { type: 'file', file_id: 'f1' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      { conversationId: 'conv_1' },
    );
    for await (const _event of run);
    await run.result;
    const server = await listen(tools);
    const client = await connectClient(server.url);
    await client.callTool({ name: 'weather', arguments: { city: 'Rome' } });
    await client.callTool({ name: 'weather', arguments: { city: 'Atlantis' } });
    await client.close();
    await server.close();
  }
  const seen = new Set<string>();
  const found = recording.spans.flatMap(({ name, kind, attributes }) => {
    const [type = ''] = name.split(' ');
    seen.add(type);
    const signal = CONVENTIONS.spans[type];
    if (signal === undefined) return [`${name} is not a span of the conventions`];
    const ofKind = KINDS.get(kind) === signal.kind ? [] : [`its kind is ${kind}`];
    return [...ofKind, ...faults(attributes, signal)].map((fault) => `${name}: ${fault}`);
  });
  expect(found).toEqual([]);
  expect([...seen].sort()).toEqual(Object.keys(CONVENTIONS.spans).sort());

  const points = await recording.points();
  const wrong = points.flatMap(({ name, unit, attributes }) => {
    const signal = CONVENTIONS.metrics[name];
    if (signal === undefined) return [`${name} is not a metric of the conventions`];
    const ofUnit = unit === signal.unit ? [] : [`its unit is ${unit}`];
    return [...ofUnit, ...faults(attributes, signal)].map((fault) => `${name}: ${fault}`);
  });
  expect(wrong).toEqual([]);
  expect([...new Set(points.map(({ name }) => name))].sort()).toEqual(
    Object.keys(CONVENTIONS.metrics).sort(),
  );
});

test('openTelemetry records failures with low-cardinality types, the same in spans and metrics', async () => {
  const tools = new ToolRegistry({ telemetry: openTelemetry() }).register(weather);
  await tools.execute('weather', { city: 'Atlantis' });
  await tools.execute('weather', {});
  await tools.execute('nothing_like_it', {});
  const types = recording.spans.map(({ name, attributes }) => [name, attributes['error.type']]);
  expect(types).toEqual([
    ['execute_tool weather', 'TypeError'],
    ['execute_tool weather', 'InvalidArguments'],
    // A tool name that a model made up is not part of a span name.
    ['execute_tool', 'ToolNotFound'],
  ]);
  const points = (await recording.points()).filter(({ name }) => name === 'gen_ai.execute_tool.duration');
  expect(points.map(({ attributes }) => [attributes['gen_ai.tool.name'], attributes['error.type']])).toEqual([
    ['weather', 'TypeError'],
    ['weather', 'InvalidArguments'],
    ['unknown', 'ToolNotFound'],
  ]);
});
