import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { LoopEvent, Message, ToolLoopConfig, ToolLoopResult } from 'toolwright';
import { runToolLoop, streamToolLoop } from 'toolwright';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { CITIES, METHODS, type Method, RESULTS, serve, weather } from '../parts/ai-sdk/talk.js';
import { collect } from '../parts/providers/loopback-server.js';
import { runSnippet, snippetOf } from './snippet.js';
import type { Wire } from './wires.js';
import {
  bedrock,
  LAST,
  LOOKS,
  MISTRAL_IDS,
  mistral,
  ollama,
  ollamaCompatible,
  SIGNATURE,
  THOUGHT,
} from './wires.js';

const PAGE = 'docs/guides/providers-others.md';
const QUESTION: Message = { role: 'user', content: 'Is it cold in Oslo and in Rome?' };

const ENVIRONMENT = {
  MISTRAL_API_KEY: 'k',
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'secret',
};
Object.assign(process.env, ENVIRONMENT);
afterEach(() => {
  jest.restoreAllMocks();
});

/** Runs a snippet of the page with a local server instead of the provider. */
async function testSnippet(
  heading: string,
  { wire, method, at }: { wire: Wire; method: Method; at?: number },
) {
  await using server = await serve(...wire.replies(method));
  const { origin } = new URL(server.baseURL);
  const { fetch } = globalThis;
  // The snippet is unchanged except for the origin of its requests.
  const origins: string[] = [];
  jest.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    const url = new URL(String(input));
    origins.push(url.origin);
    return fetch(`${origin}${url.pathname}${url.search}`, init);
  });
  const events: LoopEvent[] = [];
  const run = async (config: ToolLoopConfig, messages: readonly Message[]): Promise<ToolLoopResult> => {
    if (method === 'chat') return runToolLoop(config, messages);
    events.push(...(await collect(streamToolLoop(config, messages))));
    const end = events.at(-1);
    if (end?.type !== 'run-end') throw new Error('the run did not end');
    return end.result;
  };
  const result = await runSnippet<ToolLoopResult>(snippetOf(PAGE, heading, at), {
    load: (name: string) => import(name),
    runToolLoop: run,
    fromAiSdk,
    tools: [weather],
    messages: [QUESTION],
  });
  expect(server.requests.map(({ path }) => path)).toEqual([wire.path(method), wire.path(method)]);
  expect(result).toMatchObject({ status: 'completed', content: LAST });
  expect(result.usage).toMatchObject({ inputTokens: 100, outputTokens: 70 });
  expect(result.messages[1]).toMatchObject({ content: LOOKS, reasoning: THOUGHT });
  if (method === 'stream') expectDeltas(events);
  return {
    origins: [...new Set(origins)],
    first: server.requests[0],
    second: server.requests[1]?.body,
    result,
  };
}

function expectDeltas(events: readonly LoopEvent[]) {
  const texts = (type: string) =>
    events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');
  expect(texts('reasoning-delta')).toBe(THOUGHT);
  expect(texts('text-delta')).toBe(LOOKS + LAST);
  expect(texts('call-input-delta')).toBe(CITIES.map((city) => JSON.stringify({ city })).join(''));
}

describe.each(METHODS)(
  'the snippets of the page about other providers work with the APIs of the providers (%s)',
  (method) => {
    test('Mistral: calls, text, thinking and tokens; thinking is returned in its original position', async () => {
      const { origins, second } = await testSnippet('Mistral', { wire: mistral, method });
      expect(origins).toEqual(['https://api.mistral.ai']);
      expect(second?.messages).toMatchObject([
        { role: 'user' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: THOUGHT }] },
            { type: 'text', text: LOOKS },
          ],
          tool_calls: CITIES.map((city, at) => ({
            id: MISTRAL_IDS[at],
            function: { name: 'weather', arguments: JSON.stringify({ city }) },
          })),
        },
        ...RESULTS.map((content, at) => ({ role: 'tool', tool_call_id: MISTRAL_IDS[at], content })),
      ]);
    });

    test('Amazon Bedrock: calls, text, signed thinking and tokens; signed thinking is returned unchanged', async () => {
      const { origins, first, second, result } = await testSnippet('Amazon Bedrock', {
        wire: bedrock,
        method,
      });
      expect(origins).toEqual(['https://bedrock-runtime.us-east-1.amazonaws.com']);
      expect(first?.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/);
      expect(result.usage).toMatchObject({ cacheReadTokens: 60 });
      expect(second?.messages).toMatchObject([
        { role: 'user' },
        {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: THOUGHT, signature: SIGNATURE } } },
            { text: LOOKS },
            ...CITIES.map((city, at) => ({
              toolUse: { toolUseId: `tooluse_${at}`, name: 'weather', input: { city } },
            })),
          ],
        },
        {
          role: 'user',
          content: RESULTS.map((text, at) => ({
            toolResult: { toolUseId: `tooluse_${at}`, content: [{ text }] },
          })),
        },
      ]);
    });

    test('Ollama with its own API: calls, text, thinking and tokens; thinking is returned', async () => {
      const { origins, second } = await testSnippet('Ollama', { wire: ollama, method });
      expect(origins).toEqual(['http://127.0.0.1:11434']);
      expect(second?.messages).toMatchObject([
        { role: 'user' },
        {
          role: 'assistant',
          content: LOOKS,
          thinking: THOUGHT,
          tool_calls: CITIES.map((city) => ({ function: { name: 'weather', arguments: { city } } })),
        },
        ...RESULTS.map((content) => ({ role: 'tool', content })),
      ]);
    });

    test('an OpenAI-compatible server: calls, text, reasoning and tokens', async () => {
      const heading = 'Other servers in the form of OpenAI’s';
      const { origins, second } = await testSnippet(heading, { wire: ollamaCompatible, method });
      expect(origins).toEqual(['http://127.0.0.1:11434']);
      // The package sends reasoning as `reasoning_content`; this server calls it `reasoning`.
      expect(second?.messages).toMatchObject([
        { role: 'user' },
        { role: 'assistant', content: LOOKS, reasoning_content: THOUGHT },
        ...RESULTS.map((content) => ({ role: 'tool', content })),
      ]);
    });
  },
);
