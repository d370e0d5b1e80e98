import { describe, expect, test } from '@jest/globals';
import { defineTool, runToolLoop, streamToolLoop, type ToolLoopResult, ToolRegistry } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { type FaultPlan, faultyFetch, ScriptedProvider } from 'toolwright/testing';
import { type Answer, completion, delta, events, json, LoopbackServer } from './loopback-server.js';

const MESSAGES = [{ role: 'user', content: 'Add.' }] as const;
const BIG = JSON.stringify({ a: 'x'.repeat(100) });

/** Two calls in the first reply, text in all others; streamed or whole as requested. */
const twoCalls: Answer = (response, request) => {
  const isFirst = !JSON.stringify(request.body.messages).includes('"tool"');
  const calls = ['call_a', 'call_b'].map((id, index) => ({
    ...{ index, id, type: 'function' },
    function: { name: 'note', arguments: BIG },
  }));
  const message = isFirst ? { content: '', tool_calls: calls } : { content: 'Done.' };
  const finish_reason = isFirst ? 'tool_calls' : 'stop';
  const answer = request.body.stream
    ? events([delta(message), delta({}, finish_reason)])
    : json(completion(message, { finish_reason }));
  answer(response, request);
};

async function runWith(plan: FaultPlan, { maxRetries = 0, isStreamed = false } = {}) {
  await using server = await LoopbackServer.start(twoCalls);
  const noted: unknown[] = [];
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'note',
      description: 'Notes',
      parameters: { type: 'object', properties: { a: { type: 'string' } } },
      execute: (_args, { callId }) => void noted.push(callId),
    }),
  );
  const fetch = faultyFetch(globalThis.fetch, plan);
  const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries, fetch });
  const config = { provider, model: 'm', tools, providerRetries: 0 };
  const run: ToolLoopResult = isStreamed
    ? await streamToolLoop(config, MESSAGES).result
    : await runToolLoop(config, MESSAGES);
  return { run, noted, requests: server.requests.length, injected: fetch.injected };
}

describe.each([false, true])('OpenAIProvider under faults, streamed: %p', (isStreamed) => {
  test('retries after 429, 500 and a lost connection, up to maxRetries', async () => {
    const plan = [
      { kind: 'status', status: 429, retryAfter: 0 },
      { kind: 'status', status: 500 },
      { kind: 'reset' },
    ] as const;
    const { run, injected } = await runWith(plan, { maxRetries: 3, isStreamed });
    expect(run).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(injected.map(({ kind }) => kind)).toEqual(['status', 'status', 'reset', 'none', 'none']);
    const tooFew = await runWith(plan, { maxRetries: 0, isStreamed });
    expect(tooFew.run).toMatchObject({ status: 'failed' });
  });

  test.each([0, 1, 40, 120, 200])('runs no call if the reply is cut after %i bytes', async (afterBytes) => {
    const { run, noted } = await runWith([{ kind: 'cut', afterBytes }], { isStreamed });
    expect(noted).toEqual([]);
    expect(run.status).toBe('failed');
    expect(run.messages.at(-1)).toMatchObject({ role: 'user' });
  });

  test('fails the run if the reply is broken JSON, and runs no call', async () => {
    const { run, noted } = await runWith([{ kind: 'broken-json' }], { isStreamed });
    expect({ status: run.status, noted }).toEqual({ status: 'failed', noted: [] });
    expect(run.error).toBeDefined();
  });

  test('runs two calls with the same id once each, under different ids', async () => {
    const { run, noted } = await runWith([{ kind: 'duplicate-ids' }], { isStreamed });
    expect(run.status).toBe('completed');
    expect(new Set(noted).size).toBe(2);
    const ids = run.messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
    );
    expect(
      run.messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
    ).toEqual(ids);
  });

  test('every run under random faults ends with a valid history', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const faults = [
        { kind: 'status', status: 500 },
        { kind: 'reset' },
        { kind: 'cut', afterBytes: 90 },
        { kind: 'broken-json' },
        { kind: 'duplicate-ids' },
      ] as const;
      const { run } = await runWith({ seed, rate: 0.5, faults }, { isStreamed });
      const open = run.messages.flatMap((message) =>
        message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
      );
      const answered = run.messages.flatMap((message) =>
        message.role === 'tool' ? [message.tool_call_id] : [],
      );
      expect(answered).toEqual(open);
      expect(['completed', 'failed']).toContain(run.status);
    }
  });
});

test.each([
  ['retries a stream that ended without any chunk', [], { status: 'completed', content: 'Done.' }, 2],
  [
    'fails the run if a stream ends in the middle of a text',
    [delta({ content: 'It is fo' })],
    {
      status: 'failed',
      content: '',
      error: { name: 'ProviderFailed', cause: { name: 'ProviderError', retryable: true } },
    },
    1,
  ],
])('OpenAIProvider %s', async (_what, chunks, expected, requests) => {
  let asked = 0;
  await using server = await LoopbackServer.start((response, request) => {
    asked += 1;
    const answer = asked === 1 ? events(chunks, '') : events([delta({ content: 'Done.' }, 'stop')]);
    answer(response, request);
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL });
  const run = await streamToolLoop({ provider, model: 'm', tools: [] }, MESSAGES).result;
  expect(run).toMatchObject(expected);
  expect(server.requests).toHaveLength(requests);
});

test('OpenAIProvider leaves retries to the run, which uses its fallback if the server asks for a long pause', async () => {
  await using server = await LoopbackServer.start((response) => {
    response.writeHead(429, { 'retry-after': '75' }).end();
  });
  const provider = new OpenAIProvider({ baseURL: server.baseURL });
  const fallback = [{ provider: new ScriptedProvider([{ content: 'Done.' }]), model: 'other' }];
  const run = await runToolLoop({ provider, model: 'm', fallback }, MESSAGES);
  expect(run).toMatchObject({ status: 'completed', content: 'Done.', providerRetries: 1 });
  expect(server.requests).toHaveLength(1);
});

test('OpenAIProvider aborts a request without a first byte after timeoutMs', async () => {
  await using server = await LoopbackServer.start(twoCalls);
  const fetch = faultyFetch(globalThis.fetch, [{ kind: 'slow', ms: 1_000_000 }]);
  const provider = new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0, timeoutMs: 5, fetch });
  // In Jest the client does not recognize the abort: its `Error` class is another one.
  await expect(provider.chat({ model: 'm', messages: MESSAGES, options: {} })).rejects.toThrow(
    server.baseURL,
  );
  expect(server.requests).toEqual([]);
});
