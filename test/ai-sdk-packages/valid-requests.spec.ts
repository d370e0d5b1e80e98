import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LLMRequest, Message, ToolChoice } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { json, LoopbackServer } from '../parts/providers/loopback-server.js';
import { faultsOf } from './body-faults.js';

const quiet = () => undefined;
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const PIXEL = 'iVBORw0KGgo=';
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.constant({ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }),
  fc.constant({ type: 'file', file: { file_data: 'data:application/pdf;base64,YQ==', filename: 'a.pdf' } }),
);
const CONTENTS = [
  undefined,
  [{ type: 'image', data: PIXEL, mimeType: 'image/png' }],
  [{ type: 'file', data: 'YQ==', mimeType: 'application/pdf', filename: 'a.pdf' }],
] as const;
/** A reply with calls, and their results. */
const exchange = fc
  .record({
    content: fc.oneof(text, fc.constant('')),
    parts: fc.constantFrom(...CONTENTS),
    isError: fc.boolean(),
  })
  .map(({ content, parts, isError }): Message[] => [
    {
      role: 'assistant',
      content,
      tool_calls: ['c1', 'c2'].map((id) => ({
        id,
        type: 'function' as const,
        function: { name: 'look', arguments: id === 'c1' ? '{"at":"Oslo"}' : 'broken' },
      })),
    },
    { role: 'tool', tool_call_id: 'c1', content: 'Seen.', ...(parts && { parts }), isError },
    { role: 'tool', tool_call_id: 'c2', content: 'The arguments are not JSON.', isError: true },
  ]);
const tool = (name: string, parameters: Record<string, unknown>) =>
  ({ type: 'function', function: { name, description: 'Looks', parameters } }) as const;
const SCHEMA = {
  type: 'object',
  properties: { at: { type: ['string', 'null'], description: 'Where' }, how: { enum: ['far', 'near', 3] } },
  required: ['at', 'how'],
  additionalProperties: false,
};
const request: fc.Arbitrary<Omit<LLMRequest, 'model'>> = fc.record(
  {
    messages: fc
      .tuple(fc.oneof(text, fc.array(part, { minLength: 1 })), fc.array(exchange, { maxLength: 3 }))
      .map(([content, exchanges]): Message[] => [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content },
        ...exchanges.flat(),
      ]),
    // No temperature, because the types of Anthropic’s client no longer contain it.
    options: fc.constantFrom({}, { maxOutputTokens: 100, stopSequences: ['END'] }),
    tools: fc.constant([tool('look', SCHEMA), tool('wait', {}), tool('any', { properties: { a: {} } })]),
    toolChoice: fc.constantFrom<ToolChoice[]>(
      'auto',
      'none',
      'required',
      { tool: 'look' } as const,
      { tools: ['look', 'wait'], mode: 'required' } as const,
    ),
    parallelToolCalls: fc.boolean(),
    responseFormat: fc.constantFrom(
      { type: 'text' } as const,
      { type: 'json', schema: { ...SCHEMA, description: 'A sight' } } as const,
    ),
  },
  { requiredKeys: ['messages', 'options'] },
);

describe('requests of fromAiSdk match the types of the provider’s own client', () => {
  test.each([
    ['claude-sonnet-4-5', (baseURL: string) => createAnthropic({ baseURL, apiKey: 'k' })],
    ['gemini-3-pro-preview', (baseURL: string) => createGoogle({ baseURL, apiKey: 'k' })],
    ['gemini-2.5-flash', (baseURL: string) => createGoogle({ baseURL, apiKey: 'k' })],
  ] as const)('random requests to %s are valid', async (model, create) => {
    await using server = await LoopbackServer.start(json({}, 400));
    const property = fc.asyncProperty(
      request,
      fc.constantFrom('auto' as const, false),
      async (generated, strict) => {
        const provider = fromAiSdk(create(server.baseURL), { maxRetries: 0, strict, logger });
        const { requests } = server;
        const before = requests.length;
        // The server rejects the request; `validate-exchanges.ts` validates it after the test.
        await expect(provider.chat({ model, ...generated })).rejects.toThrow('400');
        expect(requests).toHaveLength(before + 1);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  test('invalid request bodies are detected', () => {
    const message = { role: 'user', content: 'x' };
    const body = { model: 'claude-sonnet-4-5', max_tokens: 1, messages: [message] };
    expect(faultsOf('MessagesBody', body)).toEqual([]);
    for (const more of [
      { tool_choice: 'auto' },
      { providerItems: {} },
      { tools: [{ name: 'x', input_schema: {} }] },
    ])
      expect(faultsOf('MessagesBody', { ...body, ...more })).toHaveLength(1);
    const content = { role: 'user', parts: [{ text: 'x' }] };
    expect(faultsOf('GenerateBody', { contents: [content] })).toEqual([]);
    expect(faultsOf('GenerateBody', { contents: [{ ...content, providerItems: {} }] })).toHaveLength(1);
    expect(faultsOf('GenerateBody', { contents: [content], tools: [{ functions: [] }] })).toHaveLength(1);
  });
});
