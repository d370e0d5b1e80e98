import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from '@jest/globals';
import { defineTool, type LLMProvider, runToolLoop } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { anthropicMessage } from '../parts/providers/anthropic-bodies.js';
import { completion, json, LoopbackServer } from '../parts/providers/loopback-server.js';
import { functionCall, message, responseOf } from '../parts/providers/responses-bodies.js';

type Fields = Readonly<Record<string, unknown>>;

const PIXEL = 'iVBORw0KGgo=';
const PDF = 'JVBERi0xLjQ=';
const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object', properties: {} },
  execute: () => ({
    content: [
      { type: 'text', content: 'Seen.' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'file', data: PDF, mimeType: 'application/pdf', filename: 'a.pdf' },
    ],
  }),
});

/** The body of the request that follows the call of the tool. */
async function sentAfterCall(
  create: (baseURL: string) => LLMProvider,
  replies: { readonly call: unknown; readonly end: unknown },
): Promise<Fields> {
  await using server = await LoopbackServer.start((response, request) =>
    json(server.requests.length === 1 ? replies.call : replies.end)(response, request),
  );
  const config = { provider: create(server.baseURL), model: 'gemini-3-pro', tools: [look] };
  const run = await runToolLoop(config, [{ role: 'user', content: 'Look.' }]);
  expect(run).toMatchObject({ status: 'completed', content: 'Fine.' });
  return server.requests[1]?.body ?? {};
}

const RESPONSES = {
  call: responseOf([functionCall('c1', '{}')], { created_at: 1, model: 'm' }),
  end: responseOf([message('Fine.')], { created_at: 1, model: 'm' }),
};

function googleReply(part: unknown): unknown {
  return {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: {},
  };
}

describe('images and files of a result', () => {
  test('OpenAIProvider with api responses sends them within the output of the call', async () => {
    const body = await sentAfterCall(
      (baseURL) => new OpenAIProvider({ baseURL, api: 'responses' }),
      RESPONSES,
    );
    expect((body.input as Fields[]).at(-1)).toMatchObject({
      type: 'function_call_output',
      call_id: 'c1',
      output: [
        { type: 'input_text', text: 'Seen.' },
        { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
        { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
      ],
    });
  });

  test('OpenAIProvider with api chat sends them in a user message after the answer', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
    const replies = {
      call: completion({ content: null, tool_calls: [call] }),
      end: completion({ content: 'Fine.' }),
    };
    const body = await sentAfterCall((baseURL) => new OpenAIProvider({ baseURL }), replies);
    expect((body.messages as Fields[]).slice(-2)).toMatchObject([
      { role: 'tool', tool_call_id: 'c1', content: 'Seen.' },
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url' }, { type: 'file', file: { filename: 'a.pdf' } }],
      },
    ]);
  });

  test('fromAiSdk with Claude sends them as blocks of the result', async () => {
    const body = await sentAfterCall(
      (baseURL) => fromAiSdk(() => createAnthropic({ baseURL, apiKey: 'k' })('claude-sonnet-4-5')),
      {
        call: anthropicMessage([{ type: 'tool_use', id: 'c1', name: 'look', input: {} }]),
        end: anthropicMessage([{ type: 'text', text: 'Fine.' }]),
      },
    );
    expect((body.messages as Fields[]).at(-1)?.content).toMatchObject([
      {
        type: 'tool_result',
        content: [
          { type: 'text', text: 'Seen.' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } },
        ],
      },
    ]);
  });

  test('fromAiSdk with Gemini 3 sends them in the function response', async () => {
    const body = await sentAfterCall((baseURL) => fromAiSdk(createGoogle({ baseURL, apiKey: 'k' })), {
      call: googleReply({ functionCall: { id: 'c1', name: 'look', args: {} }, thoughtSignature: 's' }),
      end: googleReply({ text: 'Fine.' }),
    });
    expect((body.contents as Fields[]).at(-1)).toMatchObject({
      role: 'user',
      parts: [
        {
          functionResponse: {
            name: 'look',
            response: { content: 'Seen.' },
            parts: [
              { inlineData: { data: PIXEL, mimeType: 'image/png' } },
              { inlineData: { data: PDF, mimeType: 'application/pdf' } },
            ],
          },
        },
      ],
    });
  });

  test('fromAiSdk with OpenAI sends them within the output of the call', async () => {
    const body = await sentAfterCall(
      (baseURL) => fromAiSdk(() => createOpenAI({ baseURL, apiKey: 'k' })('gpt-5')),
      RESPONSES,
    );
    expect((body.input as Fields[]).at(-1)).toMatchObject({
      type: 'function_call_output',
      output: [
        { type: 'input_text', text: 'Seen.' },
        { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
        { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
      ],
    });
  });
});
