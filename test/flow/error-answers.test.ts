import { createAnthropic } from '@ai-sdk/anthropic';
import { describe, expect, test } from '@jest/globals';
import {
  Conversation,
  defineTool,
  type LLMProvider,
  type Message,
  resumeToolLoop,
  runToolLoop,
  ToolResult,
} from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { ScriptedProvider } from 'toolwright/testing';
import { anthropicMessage } from '../parts/providers/anthropic-bodies.js';
import { completion, json, LoopbackServer } from '../parts/providers/loopback-server.js';
import { message, responseOf } from '../parts/providers/responses-bodies.js';

const PIXEL = 'iVBORw0KGgo=';
const HELLO: readonly Message[] = [{ role: 'user', content: 'Hi' }];
const works = defineTool({ name: 'works', description: 'Works', execute: () => 'done' });
const fails = defineTool({
  name: 'fails',
  description: 'Fails',
  execute: () => {
    throw new Error('no disk');
  },
});
const photographs = defineTool({
  name: 'photographs',
  description: 'Fails with a picture',
  execute: () =>
    new ToolResult({
      isError: true,
      forLLM: 'it looks like this',
      content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }],
    }),
});
const asks = defineTool({ name: 'asks', description: 'Asks', approval: true, execute: () => 'asked' });
const tools = [works, fails, photographs, asks];

/** A reply that calls these tools; the name is also the call id. */
function calling(...names: readonly string[]) {
  return { toolCalls: names.map((name) => ({ id: name, name })) };
}

async function answersOf(...names: readonly string[]) {
  const provider = new ScriptedProvider([calling(...names), { content: 'So.' }]);
  const { messages } = await runToolLoop({ provider, model: 'm', tools }, HELLO);
  return messages.filter(({ role }) => role === 'tool');
}

/** The request body for a history with a success, an error and an error with an image. */
async function sentBy(create: (baseURL: string) => LLMProvider, reply: unknown): Promise<string> {
  const provider = new ScriptedProvider([calling('works', 'fails', 'photographs'), { content: 'So.' }]);
  const { messages } = await runToolLoop({ provider, model: 'm', tools }, HELLO);
  await using server = await LoopbackServer.start(json(reply));
  await create(server.baseURL).chat({ model: 'm', messages, options: {} });
  return JSON.stringify(server.requests[0]?.body);
}

describe('isError of a tool message', () => {
  test('runToolLoop sets it for errors only', async () => {
    expect(await answersOf('works', 'fails', 'nobody')).toEqual([
      { role: 'tool', content: 'done', tool_call_id: 'works' },
      { role: 'tool', content: 'no disk', tool_call_id: 'fails', isError: true },
      {
        role: 'tool',
        content: expect.stringContaining('tool not found'),
        tool_call_id: 'nobody',
        isError: true,
      },
    ]);
  });

  test('resumeToolLoop preserves it for a call that failed before the run was suspended', async () => {
    const provider = new ScriptedProvider([calling('fails', 'asks'), { content: 'So.' }]);
    const config = { provider, model: 'm', tools };
    const { state, pending = [] } = await runToolLoop(config, HELLO);
    const answers = pending.map(({ id }) => ({ id, approved: false }));
    const { messages } = await resumeToolLoop(config, JSON.parse(JSON.stringify(state)), answers);
    expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { tool_call_id: 'fails', isError: true },
      { tool_call_id: 'asks', isError: true },
    ]);
  });

  test('Conversation.restore preserves it, and accepts histories without it', async () => {
    const provider = new ScriptedProvider([calling('fails'), { content: 'So.' }, { content: 'Yes.' }]);
    const config = { provider, model: 'm', tools };
    const conversation = new Conversation(config);
    await conversation.prompt('Hi');
    const snapshot = JSON.parse(JSON.stringify(conversation));
    const restored = Conversation.restore(config, snapshot);
    expect(restored.messages[2]).toEqual(conversation.messages[2]);
    expect(restored.messages[2]).toHaveProperty('isError', true);
    delete snapshot.messages[2].isError;
    expect(Conversation.restore(config, snapshot).messages[2]).not.toHaveProperty('isError');
  });

  test('runToolLoop rejects a value that is not a boolean', async () => {
    const messages = [
      ...HELLO,
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'works', arguments: '{}' } }],
      },
      { role: 'tool', content: 'x', tool_call_id: 'c', isError: 'yes' },
    ] as never;
    const run = runToolLoop({ provider: new ScriptedProvider([]), model: 'm' }, messages);
    await expect(run).rejects.toThrow('neither true nor false');
  });

  test('OpenAIProvider sends it in neither API', async () => {
    const chat = await sentBy((baseURL) => new OpenAIProvider({ baseURL }), completion({ content: 'So.' }));
    const responses = await sentBy(
      (baseURL) => new OpenAIProvider({ baseURL, api: 'responses' }),
      responseOf([message('So.')]),
    );
    for (const sent of [chat, responses]) {
      expect(sent).toContain('no disk');
      expect(sent).toContain(`data:image/png;base64,${PIXEL}`);
      expect(sent).not.toMatch(/is_?error/i);
    }
  });

  test('fromAiSdk sends it if the API supports it, and also sends images of errors', async () => {
    const reply = anthropicMessage([{ type: 'text', text: 'So.' }], { model: 'm' });
    const sent = await sentBy((baseURL) => fromAiSdk(createAnthropic({ baseURL, apiKey: 'k' })('m')), reply);
    expect(JSON.parse(sent).messages.at(-2)?.content).toMatchObject([
      { tool_use_id: 'works', content: 'done' },
      { tool_use_id: 'fails', content: 'no disk', is_error: true },
      { tool_use_id: 'photographs', content: [{ text: 'it looks like this' }, { type: 'image' }] },
    ]);
    expect(sent.match(/is_error/g)).toHaveLength(1);
  });
});
