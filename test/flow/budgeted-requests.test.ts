import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from '@jest/globals';
import {
  type Budget,
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type Message,
  PRICES,
  resumeToolLoop,
  runToolLoop,
  type ToolLoopConfig,
} from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { fromAiSdk } from 'toolwright/ai-sdk';
import { OpenAIProvider } from 'toolwright/openai';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { completion, json, LoopbackServer } from '../parts/providers/loopback-server.js';

const USER: readonly Message[] = [{ role: 'user', content: 'Go' }];
/** A reply that is valid for Chat Completions and for the Responses API. */
const REPLY = {
  ...(completion({ role: 'assistant', content: 'Done.' }) as object),
  ...{ id: 'r1', created: 1, model: 'gpt-5', object: 'response', status: 'completed', created_at: 1 },
  usage: {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    input_tokens: 100,
    output_tokens: 20,
  },
  output: [
    {
      ...{ type: 'message', id: 'm1', role: 'assistant', status: 'completed' },
      content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
    },
  ],
};

/** The body of the request that a run with this config sends. */
async function bodyOf(
  make: (server: LoopbackServer) => LLMProvider,
  config: Partial<ToolLoopConfig> = {},
): Promise<Readonly<Record<string, unknown>>> {
  await using server = await LoopbackServer.start(json(REPLY));
  const run = await runToolLoop(
    { provider: make(server), model: 'gpt-5', budget: { cost: 0.5 }, ...config },
    USER,
  );
  expect([run.status, run.content, server.requests.length]).toEqual(['completed', 'Done.', 1]);
  return server.requests[0]?.body ?? {};
}

const viaChat = ({ baseURL }: LoopbackServer) => new OpenAIProvider({ baseURL, apiKey: 'k' });
const viaResponses = ({ baseURL }: LoopbackServer) =>
  new OpenAIProvider({ baseURL, apiKey: 'k', api: 'responses' });
const viaAiSdk = ({ baseURL }: LoopbackServer) =>
  fromAiSdk(createOpenAI({ baseURL, apiKey: 'k' }).chat('gpt-5'));
const viaAiSdkResponses = ({ baseURL }: LoopbackServer) =>
  fromAiSdk(createOpenAI({ baseURL, apiKey: 'k' }).responses('gpt-5'));

/** The output tokens that 0.5 dollars pay for, without input. */
const AFFORDED = 0.5 / (Number(PRICES['gpt-5']?.output) / 1_000_000);

describe('a budget below the cost of the largest reply', () => {
  test('createAgent sends its first request with the limit that the budget pays for', async () => {
    await using server = await LoopbackServer.start(json(REPLY));
    await using agent = await createAgent({
      provider: { openai: { baseURL: server.baseURL, apiKey: 'k' } },
      model: 'gpt-5',
      systemPrompt: 'You look after a small project.',
      toolboxes: ['files'],
      permissions: { mode: 'ask' },
      budget: { cost: 0.5 },
    });
    const run = await agent.run('Why does the test fail?');
    expect([run.status, run.content, server.requests.length]).toEqual(['completed', 'Done.', 1]);
    const limit = Number(server.requests[0]?.body.max_completion_tokens);
    expect([limit > 40_000, limit < AFFORDED]).toEqual([true, true]);
  });

  test.each([
    ['Chat Completions', viaChat, 'max_completion_tokens'],
    ['the Responses API', viaResponses, 'max_output_tokens'],
    ['an AI SDK model', viaAiSdk, 'max_completion_tokens'],
    ['an AI SDK model of the Responses API', viaAiSdkResponses, 'max_output_tokens'],
  ])('lowers the output limit, with the option of %s', async (_, make, name) => {
    const budget = { tokens: 5_000, countTokens: () => 1_000 };
    expect(await bodyOf(make, { budget })).toMatchObject({ [name]: 4_000 });
    const options = make === viaChat ? { max_completion_tokens: 2_000 } : undefined;
    const own =
      options ?? (make === viaResponses ? { max_output_tokens: 2_000 } : { maxOutputTokens: 2_000 });
    expect(await bodyOf(make, { budget, llmOptions: own })).toMatchObject({ [name]: 2_000 });
    const larger = Object.fromEntries(Object.keys(own).map((key) => [key, 9_000]));
    expect(await bodyOf(make, { budget, llmOptions: larger })).toMatchObject({ [name]: 4_000 });
    const large = await bodyOf(make, { budget: { tokens: 50_000 } });
    expect(large).not.toHaveProperty(name);
  });

  test('lowers max_tokens if llmOptions has it', async () => {
    const budget = { tokens: 5_000, countTokens: () => 1_000 };
    const body = await bodyOf(viaChat, { budget, llmOptions: { max_tokens: 9_000 } });
    expect(body).toMatchObject({ max_tokens: 4_000 });
    expect(body).not.toHaveProperty('max_completion_tokens');
  });

  test('sends no limit if the budget pays for the largest reply', async () => {
    expect(await bodyOf(viaChat, { budget: { cost: 2 } })).not.toHaveProperty('max_completion_tokens');
  });

  test('sends its own maxOutputTokens', async () => {
    const budget = { cost: 2, maxOutputTokens: 3_000 };
    expect(await bodyOf(viaChat, { budget })).toMatchObject({ max_completion_tokens: 3_000 });
    const llmOptions = { max_completion_tokens: 2_000 };
    expect(await bodyOf(viaChat, { budget, llmOptions })).toMatchObject(llmOptions);
  });

  test('is never exceeded by a model that respects the limit', async () => {
    const limits: (number | undefined)[] = [];
    const greedy: LLMProvider = {
      chat: async ({ maxOutputTokens = 128_000 }: LLMRequest) => {
        limits.push(maxOutputTokens);
        const outputTokens = Math.ceil(maxOutputTokens / 3);
        const usage = { inputTokens: 100, outputTokens, totalTokens: 100 + outputTokens };
        return {
          content: '',
          toolCalls: [{ id: `c${limits.length}`, name: 'look', arguments: {} }],
          finishReason: 'tool_calls',
          usage,
        };
      },
    };
    const look = defineTool({ name: 'look', description: 'Looks', execute: () => `seen ${limits.length}` });
    const budget = { cost: 0.5, countTokens: () => 100 };
    const run = await runToolLoop({ provider: greedy, model: 'gpt-5', tools: [look], budget }, USER);
    expect([run.status, run.error?.name]).toEqual(['budget', 'BudgetSpent']);
    expect(run.spent?.cost).toBeLessThanOrEqual(0.5);
    expect(limits.length).toBeGreaterThan(5);
    expect(limits).toEqual(limits.toSorted((one, other) => Number(other) - Number(one)));
    for (const limit of limits) expect(limit).toBeGreaterThanOrEqual(1_024);
  });

  test('limits a request that a hook has replaced', async () => {
    const hook = {
      beforeRequest: ({ model, messages, options }: LLMRequest) => ({
        request: { model, messages, options },
      }),
    };
    const budget = { tokens: 5_000, countTokens: () => 1_000 };
    expect(await bodyOf(viaChat, { budget, hooks: [hook as never] })).toMatchObject({
      max_completion_tokens: 4_000,
    });
  });
});

/** A run with a model that replies once; also returns the number of requests. */
async function runWith(budget: Budget, more: Partial<ToolLoopConfig> = {}, scope = {}) {
  const provider = new ScriptedProvider([{ content: 'Done.' }]);
  const config = { provider, model: 'gpt-5', budget, ...more };
  const ended = await runToolLoop(config, USER, scope).catch((error: unknown) => ({
    error,
    status: 'threw',
  }));
  return { ...ended, asked: provider.requests.length };
}

const count = () => 100;

describe('a budget that cannot pay for a useful request', () => {
  test.each<[string, Budget, Partial<ToolLoopConfig>, string, string]>([
    [
      'of cost',
      { cost: 0.001, countTokens: count },
      {},
      'budget.cost is 0.001, which is not enough for one request: a request reserves 0.010365 for about 100 tokens of input and 1024 of output',
      'budget.cost: 0.010365 or more; or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions',
    ],
    [
      'of tokens',
      { tokens: 1_123, countTokens: count },
      {},
      'budget.tokens is 1123, which is not enough for one request: a request reserves 1124 for about 100 tokens of input and 1024 of output',
      'budget.tokens: 1124 or more; or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions',
    ],
    [
      'of tokens, with a small max_tokens in llmOptions',
      { tokens: 149, countTokens: count },
      { llmOptions: { max_tokens: 50 } },
      'budget.tokens is 149, which is not enough for one request: a request reserves 150 for about 100 tokens of input and 50 of output',
      'budget.tokens: 150 or more; or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions',
    ],
    [
      'of a key',
      { by: [{ key: () => 'k', tokens: 10 }], countTokens: count },
      { store: new MemoryRunStore() },
      'budget.by[0].tokens is 10, which is not enough for one request: a request reserves 1124 for about 100 tokens of input and 1024 of output',
      'budget.by[0].tokens: 1124 or more; or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions',
    ],
  ])('%s makes a new run throw 521 before any request', async (_, budget, more, problem, fix) => {
    const { status, error, asked } = await runWith(budget, more);
    expect([status, asked]).toEqual(['threw', 0]);
    expect(error).toMatchObject({ code: 521, faults: [{ where: 'the loop’s config', problem, fix }] });
  });

  test('starts at the smallest useful reply, even if that is the largest reply of the model', async () => {
    for (const [budget, more] of [
      [{ tokens: 1_124, countTokens: count }, {}],
      [{ tokens: 150, countTokens: count }, { llmOptions: { max_tokens: 50 } }],
      [{ tokens: 150, countTokens: count, maxOutputTokens: 50 }, {}],
      [
        {
          tokens: 150,
          countTokens: count,
          prices: { 'gpt-5': { input: 1, output: 1, maxOutputTokens: 50 } },
        },
        {},
      ],
    ] as const)
      expect(await runWith(budget, more)).toMatchObject({ status: 'completed', asked: 1 });
  });

  test('ends a resumed run with the reserved amounts and the options to change', async () => {
    const provider = new ScriptedProvider([
      {
        toolCalls: [{ id: 'c1', name: 'pay' }],
        usage: { inputTokens: 100, outputTokens: 900, totalTokens: 1_000 },
      },
      { content: 'Done.' },
    ]);
    const pay = defineTool({ name: 'pay', description: 'Pays', approval: true, execute: () => 'paid' });
    const config = { provider, model: 'gpt-5', tools: [pay], budget: { tokens: 2_000, countTokens: count } };
    const first = await runToolLoop(config, USER);
    expect(first.status).toBe('suspended');
    const answers = (first.pending ?? []).map(({ id }) => ({ id, approved: true }));
    const resumed = await resumeToolLoop(config, first.state, answers);
    expect([resumed.status, provider.requests.length]).toEqual(['budget', 1]);
    expect(resumed.error?.message).toBe(
      'The budget of the run is spent: of 2000 tokens, 1000 are left, and the next request reserves 1124 for about 100 tokens of input and 1024 of output. Raise budget.tokens, or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions.',
    );
  });

  test('asks for more if whenSpent is ask', async () => {
    const budget: Budget = { tokens: 600, countTokens: count, whenSpent: 'ask' };
    const { status, asked } = await runWith(budget);
    expect([status, asked]).toEqual(['suspended', 0]);
  });

  test('ends a new run with status budget if other runs have spent it', async () => {
    const store = new MemoryRunStore();
    const budget: Budget = { by: [{ key: () => 'k', tokens: 1_500 }], countTokens: count };
    expect(await runWith(budget, { store })).toMatchObject({ status: 'completed', asked: 1 });
    const next = await runWith(budget, { store });
    expect([next.status, next.asked]).toEqual(['budget', 0]);
    expect((next.error as Error).message).toMatch(/^The budget of 'k' is spent: of 1500 tokens, 0 are left/);
  });

  test('lowers the limit to what other running requests leave, and does not lower theirs', async () => {
    const store = new MemoryRunStore();
    const budget: Budget = { by: [{ key: () => 'k', tokens: 12_000 }], countTokens: count };
    const limits: (number | undefined)[] = [];
    const release = Promise.withResolvers<void>();
    const provider: LLMProvider = {
      chat: async ({ maxOutputTokens }) => {
        limits.push(maxOutputTokens);
        if (limits.length === 2) release.resolve();
        await release.promise;
        const usage = { inputTokens: 100, outputTokens: 50, totalTokens: 150 };
        return { content: 'Done.', toolCalls: [], finishReason: 'stop', usage };
      },
    };
    const config = { provider, model: 'm', store, budget };
    const ended = await Promise.all([runToolLoop(config, USER), runToolLoop(config, USER)]);
    expect(ended.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(limits).toEqual([undefined, 12_000 - 8_292 - 100]);
    expect(store.budgets.balance({ key: 'k' })).toMatchObject({
      spent: { tokens: 300 },
      reserved: { tokens: 0 },
    });
  });

  test('for nested runs is reported as an error of the tool', async () => {
    const inner = { provider: new ScriptedProvider([]), model: 'gpt-5' };
    const agent = defineTool({
      name: 'agent',
      description: 'Asks another model',
      execute: () => runToolLoop(inner, USER),
    });
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'agent' }] }, { content: 'Done.' }]);
    const budget = { tokens: 50_000, children: { tokens: 10 } };
    const run = await runToolLoop({ provider, model: 'gpt-5', tools: [agent], budget }, USER);
    expect(run.toolCalls[0]?.result.forLLM).toContain('budget.children.tokens is 10');
    expect(run.status).toBe('completed');
  });
});
