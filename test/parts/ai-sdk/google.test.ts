import { createGoogle } from '@ai-sdk/google';
import { describe, expect, test } from '@jest/globals';
import type { Message } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { type Answer, events, json, type LoopbackServer } from '../providers/loopback-server.js';
import { ask, CITIES, METHODS, type Method, RESULTS, run, serve } from './talk.js';

const MODEL = 'gemini-3-pro';
const CALL_SIGNATURE = 'CiQBVKhc7x+/f0==\u2029\\';
const TEXT_SIGNATURE = 'AVSoXO4zmq9+/1==';

const THOUGHT = { text: 'Two cities, two calls.', thought: true };
const CALLS = CITIES.map((city, at) => ({
  functionCall: { id: `call-${at}`, name: 'weather', args: { city } },
  // The API signs only the first of parallel calls.
  ...(at === 0 && { thoughtSignature: CALL_SIGNATURE }),
}));
const FIRST = [THOUGHT, { text: 'I look it up.', thoughtSignature: TEXT_SIGNATURE }, ...CALLS];
const LAST = [{ text: 'Oslo is cold.' }];
const USAGE = {
  promptTokenCount: 50,
  cachedContentTokenCount: 30,
  candidatesTokenCount: 10,
  thoughtsTokenCount: 25,
  totalTokenCount: 85,
};

function answer(method: Method, parts: readonly unknown[]): Answer {
  const chunk = (some: readonly unknown[], more = {}) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: some }, ...more }],
    usageMetadata: USAGE,
  });
  const end = { finishReason: 'STOP' };
  if (method === 'chat') return json(chunk(parts, end));
  return events([...parts.map((part) => chunk([part])), chunk([], end)], '');
}

async function start(method: Method, ...replies: readonly (readonly unknown[])[]) {
  const server = await serve(...replies.map((parts) => answer(method, parts)));
  const google = createGoogle({ baseURL: server.baseURL, apiKey: 'k' });
  return { server, provider: fromAiSdk(google(MODEL), { maxRetries: 0 }) };
}

const QUESTION: Message = { role: 'user', content: 'Is it cold in Oslo and in Rome?' };
const ASKED = { model: MODEL, messages: [QUESTION], options: {} };
describe('fromAiSdk(google(…)) with a local server', () => {
  test.each(METHODS)('fromAiSdk().%s stores the signatures of texts and calls separately', async (method) => {
    const { server, provider } = await start(method, FIRST);
    await using _ = server;
    const reply = await ask(provider, method, ASKED);
    const key = `ai-sdk.google.generative-ai/${MODEL}`;
    expect(provider.itemKey(MODEL)).toBe(key);
    expect(reply).toMatchObject({
      content: 'I look it up.',
      reasoning: THOUGHT.text,
      finishReason: 'tool_calls',
      rawFinishReason: 'STOP',
      usage: { inputTokens: 50, cacheReadTokens: 30, reasoningTokens: 25 },
    });
    const [first, second] = reply.toolCalls;
    expect(JSON.stringify(first?.providerItems?.[key])).toContain(JSON.stringify(CALL_SIGNATURE));
    expect(second).toEqual({ id: 'call-1', name: 'weather', arguments: { city: 'Rome' } });
    expect(JSON.stringify(reply.providerItems)).toContain(TEXT_SIGNATURE);
    expect(JSON.stringify(reply.providerItems)).not.toContain(CALL_SIGNATURE.slice(0, 8));
  });

  test.each(METHODS)(
    'fromAiSdk().%s sends every signature back with its own part during a run',
    async (method) => {
      const { server, provider } = await start(method, FIRST, LAST);
      await using _ = server;
      const { status, content } = await run(method, { provider, model: MODEL }, [QUESTION]);
      expect([status, content]).toEqual(['completed', 'Oslo is cold.']);
      const [, sent, results] = contents(server);
      expect(sent).toMatchObject({ role: 'model', parts: FIRST });
      expect(results?.parts).toMatchObject(
        RESULTS.map((content) => ({ functionResponse: { name: 'weather', response: { content } } })),
      );
    },
  );
});

function contents(server: LoopbackServer) {
  return server.requests.at(-1)?.body.contents as { readonly parts: readonly unknown[] }[];
}
