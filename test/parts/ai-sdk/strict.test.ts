import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4, LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { describe, expect, test } from '@jest/globals';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import { defineTool, type JsonSchema, type Message, runToolLoop, streamToolLoop } from 'toolwright';
import { type FromAiSdkOptions, fromAiSdk } from 'toolwright/ai-sdk';
import { json } from '../providers/loopback-server.js';
import { serve } from './talk.js';

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    limit: { type: 'integer' },
    tags: { type: 'object', additionalProperties: { type: 'string' } },
  },
  required: ['city'],
};
const STRICT = { required: ['city', 'limit', 'tags'], additionalProperties: false };
const SENT = { city: 'Bern', limit: null, tags: [{ key: 'a', value: 'b' }] };
const MEANT = { city: 'Bern', tags: { a: 'b' } };
const HELLO: readonly Message[] = [{ role: 'user', content: 'Hi' }];

const NO_TOKENS = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };
const USAGE = { inputTokens: NO_TOKENS, outputTokens: NO_TOKENS };
const FINISH = { finishReason: { unified: 'stop', raw: 'stop' }, usage: USAGE } as const;
const CALL = { type: 'tool-call', toolCallId: 'c1', toolName: 'find', input: JSON.stringify(SENT) } as const;
const TEXT: LanguageModelV4StreamPart[] = [
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Done.' },
  { type: 'text-end', id: '1' },
];

/** A model that calls the tool in the strict form and then answers with text. */
function callingModel(): MockLanguageModelV4 {
  const whole = (content: LanguageModelV4Content[]) => ({ content, warnings: [], ...FINISH });
  const streams = [[CALL], TEXT].map((parts) =>
    convertArrayToReadableStream<LanguageModelV4StreamPart>([...parts, { type: 'finish', ...FINISH }]),
  );
  return new MockLanguageModelV4({
    modelId: 'm',
    doGenerate: [whole([CALL]), whole([{ type: 'text', text: 'Done.' }])],
    doStream: streams.map((stream) => ({ stream })),
  });
}

interface Wanted {
  readonly strict?: boolean;
  readonly isStreamed?: boolean;
}

async function run(options: FromAiSdkOptions, { strict, isStreamed = false }: Wanted = {}) {
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
  const model = callingModel();
  const config = { provider: fromAiSdk(model, options), model: 'm', tools: [find] };
  const ended = isStreamed ? await streamToolLoop(config, HELLO).result : await runToolLoop(config, HELLO);
  const [first, second] = isStreamed ? model.doStreamCalls : model.doGenerateCalls;
  return { called, ended, first, second };
}

describe('fromAiSdk with strict tools', () => {
  test.each([
    ['strict: true of the tool', {}, { strict: true }],
    ["'auto'", { strict: 'auto' }, {}],
    ["'auto', streamed", { strict: 'auto' }, { isStreamed: true }],
    ['true, also with strict: false of the tool', { strict: true }, { strict: false }],
  ] as const)(
    'fromAiSdk sends the strict schema (%s), and the tool gets arguments of its own schema',
    async (_, options, wanted) => {
      const { called, ended, first, second } = await run(options, wanted);
      expect(first?.tools).toMatchObject([{ name: 'find', strict: true, inputSchema: STRICT }]);
      expect(called).toEqual([MEANT]);
      expect(ended).toMatchObject({ status: 'completed', toolCalls: [{ arguments: MEANT }] });
      expect(second?.prompt[1]).toMatchObject({ content: [{ type: 'tool-call', input: SENT }] });
    },
  );

  test.each([
    ['by default', {}, {}],
    ['false, also with strict: true of the tool', { strict: false }, { strict: true }],
    ["'auto' with strict: false of the tool", { strict: 'auto' }, { strict: false }],
  ] as const)('fromAiSdk sends the original schema (%s)', async (_, options, wanted) => {
    const { first } = await run(options, wanted);
    expect(first?.tools).toMatchObject([{ inputSchema: PARAMETERS }]);
    expect(JSON.stringify(first?.tools)).not.toContain('"strict":true');
  });

  test.each<[string, (baseURL: string) => LanguageModelV4, unknown]>([
    [
      'claude-sonnet-4-5',
      (baseURL) => createAnthropic({ baseURL, apiKey: 'k' })('claude-sonnet-4-5'),
      { tools: [{ name: 'find', strict: true, input_schema: STRICT }] },
    ],
    [
      'gpt-5',
      (baseURL) => createOpenAI({ baseURL, apiKey: 'k' })('gpt-5'),
      { tools: [{ name: 'find', strict: true, parameters: STRICT }] },
    ],
    [
      'gemini-3-pro-preview',
      (baseURL) => createGoogle({ baseURL, apiKey: 'k' })('gemini-3-pro-preview'),
      { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } },
    ],
  ])('fromAiSdk of %s sends the strict schema to the API', async (model, create, wire) => {
    await using server = await serve(json({}, 400));
    const provider = fromAiSdk(create(server.baseURL), { maxRetries: 0, strict: 'auto' });
    const find = {
      type: 'function',
      function: { name: 'find', description: 'Finds', parameters: PARAMETERS },
    } as const;
    // The server answers with an error; the test needs only the request.
    await provider.chat({ model, messages: HELLO, tools: [find], options: {} }).catch(() => undefined);
    expect(server.requests[0]?.body).toMatchObject(wire as object);
  });
});

test('Arguments with a large integer are converted from the strict form without losing digits', async () => {
  const called: unknown[] = [];
  const find = defineTool({
    name: 'find',
    description: 'Finds',
    strict: true,
    parameters: {
      type: 'object',
      properties: { id: { type: 'string' }, limit: { type: 'integer' } },
      required: ['id'],
    },
    execute: (args) => {
      called.push(args);
      return 'found';
    },
  });
  const digits = '12345678901234567891';
  const call = { ...CALL, input: `{"id":${digits},"limit":null}` };
  const model = new MockLanguageModelV4({
    modelId: 'm',
    doGenerate: [[call], [{ type: 'text' as const, text: 'Done.' }]].map((content) => ({
      content,
      warnings: [],
      ...FINISH,
    })),
  });
  await runToolLoop({ provider: fromAiSdk(model), model: 'm', tools: [find] }, HELLO);
  expect(called).toEqual([{ id: digits }]);
  const prompt = JSON.stringify(model.doGenerateCalls[1]?.prompt);
  expect(prompt).toContain(`"input":{"id":"${digits}","limit":null}`);
});
