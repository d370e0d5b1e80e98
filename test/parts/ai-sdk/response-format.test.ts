import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { describe, expect, test } from '@jest/globals';
import { type Message, runToolLoop } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { z } from 'zod';
import { anthropicMessage } from '../providers/anthropic-bodies.js';
import { type Answer, json } from '../providers/loopback-server.js';
import { message, responseOf } from '../providers/responses-bodies.js';
import { serve, weather } from './talk.js';

const QUESTION: readonly Message[] = [{ role: 'user', content: 'How is the weather?' }];
const output = z.object({ place: z.string(), degrees: z.number().optional() });
const STRICT = {
  type: 'object',
  required: ['place', 'degrees'],
  additionalProperties: false,
};
const BAD = '{"degrees":7}';
const GOOD = '{"place":"Bern","degrees":null}';

function fromAnthropic(text: string): Answer {
  return json(anthropicMessage([{ type: 'text', text }], { model: 'm' }));
}

function fromGoogle(text: string): Answer {
  const content = { role: 'model', parts: [{ text }] };
  return json({ candidates: [{ index: 0, content, finishReason: 'STOP' }], usageMetadata: {} });
}

function fromOpenAI(text: string): Answer {
  return json(responseOf([message(text)], { created_at: 1, model: 'm' }));
}

const anthropic = (baseURL: string, model: string) => createAnthropic({ baseURL, apiKey: 'k' })(model);
const google = (baseURL: string, model: string) => createGoogle({ baseURL, apiKey: 'k' })(model);
const openai = (baseURL: string, model: string) => createOpenAI({ baseURL, apiKey: 'k' })(model);

type Provider = [
  model: string,
  create: (baseURL: string, model: string) => LanguageModelV4,
  answer: (text: string) => Answer,
  format: unknown,
];
const PROVIDERS: readonly Provider[] = [
  [
    'claude-sonnet-4-5',
    anthropic,
    fromAnthropic,
    { output_config: { format: { type: 'json_schema', schema: STRICT } } },
  ],
  [
    'gemini-3-pro-preview',
    google,
    fromGoogle,
    {
      generationConfig: {
        responseMimeType: 'application/json',
        responseJsonSchema: { required: STRICT.required },
      },
    },
  ],
  [
    'gpt-5',
    openai,
    fromOpenAI,
    { text: { format: { type: 'json_schema', strict: true, name: 'final_answer', schema: STRICT } } },
  ],
];

describe('fromAiSdk with output of a run', () => {
  test.each(PROVIDERS)(
    'fromAiSdk of %s sends the output schema with the tools and asks again after an invalid answer',
    async (model, create, answer, format) => {
      await using server = await serve(answer(BAD), answer(GOOD));
      const provider = fromAiSdk(create(server.baseURL, model), { maxRetries: 0 });
      const ended = await runToolLoop({ provider, model, tools: [weather], output }, QUESTION);
      expect(ended).toMatchObject({ status: 'completed', content: GOOD });
      expect(ended.output).toEqual({ place: 'Bern' });
      const [first, second] = server.requests.map(({ body }) => body);
      expect(first).toMatchObject(format as object);
      expect(JSON.stringify(first?.tools)).toContain('"weather"');
      expect(JSON.stringify(first?.tools)).not.toContain('final_answer');
      expect(JSON.stringify(second)).toContain('place: is required');
    },
  );

  test('fromAiSdk of gpt-5 sends strict: false for a schema that is not strict', async () => {
    await using server = await serve(fromOpenAI('{}'), fromOpenAI('{}'));
    const provider = fromAiSdk(openai(server.baseURL, 'gpt-5'));
    const asked = { model: 'gpt-5', messages: QUESTION };
    const schema = { type: 'object', properties: { place: { type: 'string' } } } as const;
    const responseFormat = { type: 'json', schema } as const;
    await provider.chat({ ...asked, responseFormat, options: {} });
    expect(server.requests[0]?.body).toMatchObject({ text: { format: { schema, strict: false } } });
    const options = { providerOptions: { openai: { strictJsonSchema: true } } };
    await provider.chat({ ...asked, responseFormat, options });
    expect(server.requests[1]?.body).toMatchObject({ text: { format: { strict: true } } });
  });

  test.each([
    [anthropic, 'claude-opus-4-20250514', false],
    [anthropic, 'claude-opus-4-1-20250805', true],
    [anthropic, 'claude-3-5-haiku-latest', false],
    [anthropic, 'claude-sonnet-5', true],
    [google, 'gemini-2.5-pro', false],
    [openai, 'gpt-4.1', true],
    [openai, 'gpt-4-turbo', false],
  ])('fromAiSdk(…).supportsResponseFormat, %#: %s', (create, name, expected) => {
    const model = create('http://127.0.0.1:1/v1', name);
    expect(fromAiSdk(model).supportsResponseFormat(name)).toBe(expected);
    expect(fromAiSdk(model, { responseFormat: !expected }).supportsResponseFormat(name)).toBe(!expected);
  });
});
