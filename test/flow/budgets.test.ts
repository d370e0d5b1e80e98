import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Budget,
  type BudgetLedger,
  type CallScope,
  Conversation,
  defineTool,
  type LLMProvider,
  type LoopEvent,
  PRICES,
  recoverRuns,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { runs } from '../setup/runs.js';
import { setup } from './budgeted-run.js';
import { historyFaults } from './strict-history.js';

const USER = [{ role: 'user', content: 'Go' }] as const;
const usage = (inputTokens: number, outputTokens: number, others: object = {}) => ({
  ...{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
  ...others,
});
const calling = (ids: readonly string[], name = 'look', told = usage(50, 50)) => ({
  content: '',
  toolCalls: ids.map((id) => ({ id, name, arguments: { id } })),
  usage: told,
});
const said = (content = 'Done.', told = usage(50, 50)) => ({ content, usage: told });

/** A model that always calls its tool, with the given usage per reply. */
function greedy(outputTokens: number): LLMProvider {
  let count = 0;
  return {
    chat: async () => {
      count += 1;
      const toolCalls = [{ id: `c${count}`, name: 'look', arguments: { id: `${count}` } }];
      return { content: '', toolCalls, finishReason: 'tool_calls', usage: usage(10, outputTokens) };
    },
  };
}

describe('budget', () => {
  test('ends the run before a request that could exceed tokens, with a valid history', async () => {
    const { config, provider, ran } = setup([calling(['a']), calling(['b']), said()]);
    const budget = { tokens: 350, countTokens: () => 100 };
    const run = await runToolLoop({ ...config, budget }, USER);
    // Each request used 100 and reserves 200: the third would need 400 of 350.
    expect([run.status, provider.requests.length, ran]).toEqual(['budget', 2, ['a', 'b']]);
    expect(run.error).toMatchObject({ name: 'BudgetSpent', code: 538 });
    expect(run.error?.message).toBe(
      'The budget of the run is spent: of 350 tokens, 150 are left, and the next request reserves 200 for about 100 tokens of input and 100 of output. Raise budget.tokens, or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions.',
    );
    expect(historyFaults(run.messages)).toEqual([]);
    expect(run.messages.at(-1)).toMatchObject({ role: 'tool', content: 'saw b' });
    expect(run.spent).toMatchObject({ tokens: 200, calls: 2, steps: 2 });
    expect(run.spent).not.toHaveProperty('cost');
  });

  test('ends the run after the last of `steps` requests, and after `timeMs`', async () => {
    const steps = await runToolLoop(
      { ...setup([calling(['a']), said()]).config, budget: { steps: 1 } },
      USER,
    );
    expect([steps.status, steps.iterations, steps.spent?.steps]).toEqual(['budget', 1, 1]);
    let later = 0;
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + later);
    const slow = {
      execute: () => {
        later = 3_600_000;
        return 'late';
      },
    };
    const timed = await runToolLoop(
      { ...setup([calling(['a']), said()], slow).config, budget: { timeMs: 1_800_000 } },
      USER,
    );
    clock.mockRestore();
    expect([timed.status, timed.toolCalls[0]?.status]).toEqual(['budget', 'success']);
  });

  test('refuses calls beyond `calls`, and ends the run when all are answered', async () => {
    const { config, ran } = setup([calling(['a', 'b', 'c']), said()]);
    const run = await runToolLoop({ ...config, budget: { calls: 2 } }, USER);
    expect([run.status, ran]).toEqual(['budget', ['a', 'b']]);
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['success', 'success', 'refused']);
    expect(run.toolCalls[2]?.result.forLLM).toMatch(/budget of the run is spent: of 2 calls, 0 are left/);
    expect(historyFaults(run.messages)).toEqual([]);
  });

  test('counts cached input, the cost of calls, and the cost of single tokens', async () => {
    const cost = ({ id }: { id?: string }) => (id === 'a' ? 0.25 : 0.5);
    const { config } = setup(
      [
        calling(['a', 'b'], 'look', usage(1_000_000, 100_000, { cacheReadTokens: 600_000 })),
        said('', usage(0, 1)),
        said('Done.', usage(1, 0)),
      ],
      { cost },
    );
    const run = await runToolLoop({ ...config, budget: { cost: 100 } }, USER);
    const {
      input,
      cachedInput = 0,
      output,
    } = PRICES['gpt-5'] as { input: number; cachedInput?: number; output: number };
    const tokens = 0.4 * input + 0.6 * cachedInput + 0.1 * output + 1e-6 * output + 1e-6 * input;
    expect(run.status).toBe('completed');
    expect(run.spent?.cost).toBeCloseTo(tokens + 0.75, 8);
    expect(run.spent?.tools).toEqual({ look: { calls: 2, cost: 0.75 } });
  });

  test('refuses a call whose cost exceeds the budget or is not a number', async () => {
    for (const [cost, reason] of [
      [3, /of 2 units of cost, 1.99/],
      [() => Number.NaN, /the hook 'budget' failed/],
    ] as const) {
      const { config, ran } = setup([calling(['a']), said()], { cost });
      const run = await runToolLoop({ ...config, budget: { cost: 2 } }, USER);
      expect([ran, run.toolCalls[0]?.status]).toEqual([[], 'refused']);
      expect(run.toolCalls[0]?.result.forLLM).toMatch(reason);
    }
  });

  test('with a cost rejects a model without a price, at the start and later', async () => {
    const { config } = setup([said()]);
    const unknown = { ...config, model: 'gpt-unheard' };
    await expect(runToolLoop({ ...unknown, budget: { cost: 1 } }, USER)).rejects.toThrow(
      /no price for the model 'gpt-unheard'\.\n {3}Write instead: budget: { prices: { \.\.\.PRICES, 'gpt-unheard':/,
    );
    const free = await runToolLoop({ ...unknown, budget: { tokens: 1000 } }, USER);
    expect(free.status).toBe('completed');
    const later = setup([said()]).config;
    const prepareStep = () => ({ model: 'gpt-unheard' });
    const run = await runToolLoop({ ...later, prepareStep, budget: { cost: 1 } }, USER);
    expect([run.status, run.error]).toMatchObject(['failed', { code: 539 }]);
    const dated = setup([said()]).config;
    const known = await runToolLoop({ ...dated, model: 'gpt-5-2025-08-07', budget: { cost: 1 } }, USER);
    expect(known.status).toBe('completed');
    const like = setup([said()]).config;
    const similar = runToolLoop({ ...like, model: 'gpt-5-ultra', budget: { cost: 1 } }, USER);
    await expect(similar).rejects.toThrow(/no price/);
  });

  test('counts the reserved tokens for a reply without usage, and nothing for a failed request', async () => {
    const { config } = setup([{ content: 'Done.' }]);
    const silent = await runToolLoop({ ...config, budget: { tokens: 1000, countTokens: () => 30 } }, USER);
    expect(silent.spent?.tokens).toBe(130);
    let tries = 0;
    const provider: LLMProvider = {
      chat: async () => {
        tries += 1;
        if (tries === 1) throw Object.assign(new Error('busy'), { retryable: true, retryAfterMs: 0 });
        return { content: 'Done.', toolCalls: [], finishReason: 'stop', usage: usage(10, 5) };
      },
    };
    const again = await runToolLoop(
      { ...config, provider, budget: { tokens: 200, countTokens: () => 30 } },
      USER,
    );
    expect([again.status, again.spent?.tokens, again.spent?.steps]).toEqual(['completed', 15, 1]);
  });

  test('continues in a resumed run, and counts each call once', async () => {
    const { config, ran } = setup([calling(['a']), calling(['b']), said()], { approval: true });
    const budget = { calls: 1, tokens: 10_000 };
    const first = await runToolLoop({ ...config, budget }, USER);
    expect([first.status, first.spent?.calls, first.spent?.tokens]).toEqual(['suspended', 0, 100]);
    const state = JSON.parse(JSON.stringify(first.state));
    const yes = (run: typeof first) => (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
    const second = await resumeToolLoop({ ...config, budget }, state, yes(first));
    expect([second.status, second.spent?.calls, second.spent?.tokens]).toEqual(['suspended', 1, 200]);
    const third = await resumeToolLoop({ ...config, budget }, second.state, yes(second));
    expect([third.status, ran]).toEqual(['budget', ['a']]);
  });

  test('reports what is spent in the event of each step and in the result', async () => {
    const { config } = setup([calling(['a']), said()]);
    const events: LoopEvent[] = [];
    const stream = streamToolLoop({ ...config, budget: { tokens: 10_000 } }, USER);
    for await (const event of stream) events.push(event);
    const spent = events.flatMap((event) => (event.type === 'step-end' ? [event.spent?.tokens] : []));
    expect([spent, (await stream.result).spent?.tokens]).toEqual([[100, 200], 200]);
    const { spent: none } = await runToolLoop(setup([said()]).config, USER);
    expect(none).toBeUndefined();
  });

  test('counts and limits nested runs, and passes on its keys', async () => {
    const inner = {
      provider: greedy(50),
      model: 'gpt-5',
      tools: setup([]).config.tools,
      llmOptions: { max_tokens: 50 },
    };
    const statuses: string[] = [];
    const agent = defineTool({
      name: 'agent',
      description: 'Asks another model',
      parameters: {},
      execute: async () => {
        const run = await runToolLoop(inner, USER);
        statuses.push(`${run.status} ${run.iterations}`);
        return run.status;
      },
    });
    const store = new MemoryRunStore();
    const provider = new ScriptedProvider([calling(['x', 'y'], 'agent'), said()] as never);
    const budget: Budget = {
      ...{ tokens: 100_000, children: { steps: 3 }, countTokens: () => 10, store },
      by: [{ key: () => 'tenant:t', steps: 100 }],
    };
    const run = await runToolLoop({ provider, model: 'gpt-5', tools: [agent], budget }, USER);
    expect(statuses).toEqual(['budget 3', 'budget 3']);
    expect(run).toMatchObject({ status: 'completed', spent: { steps: 8, tokens: 200 + 6 * 60 } });
    expect(run.spent?.tools).toMatchObject({ agent: { calls: 2 }, look: { calls: 6 } });
    expect(store.budgets.balance({ key: 'tenant:t' })).toMatchObject({
      spent: { steps: 8 },
      reserved: { steps: 0 },
    });
  });

  test('leaves nothing reserved after an abort during a reservation', async () => {
    const { budgets: kept } = new MemoryRunStore();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const budgets: BudgetLedger = {
      reserve: async (reservation) => {
        if (reservation.amounts.calls > 0) {
          asked.resolve();
          await answer.promise;
        }
        return kept.reserve(reservation);
      },
      renewReservation: (id, leaseMs) => kept.renewReservation(id, leaseMs),
      settle: (id, spent) => kept.settle(id, spent),
      balance: (account) => kept.balance(account),
      removeOlderThan: (ageMs) => kept.removeOlderThan(ageMs),
    };
    const budget: Budget = { by: [{ key: () => 'tenant:t', calls: 5 }], store: { budgets } };
    const { config, ran } = setup([calling(['a']), said()]);
    const abort = new AbortController();
    const ending = runToolLoop({ ...config, budget, signal: abort.signal }, USER);
    await asked.promise;
    abort.abort();
    const answering = pause(30).then(answer.resolve);
    expect([(await ending).status, ran]).toEqual(['aborted', []]);
    await answering;
    expect(await kept.balance({ key: 'tenant:t' })).toMatchObject({
      spent: { calls: 0 },
      reserved: { calls: 0 },
    });
  });

  test('by key is shared by runs and restarts with its window; a run without a key is rejected', async () => {
    let time = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => time });
    const budget: Budget = {
      by: [{ key: ({ owner }) => owner as string | undefined, windowMs: 60_000, steps: 1 }],
    };
    const run = async (owner?: string) => {
      const scope = owner === undefined ? {} : { owner };
      return (await runToolLoop({ ...setup([said()]).config, store, budget }, USER, scope)).status;
    };
    expect([await run('u1'), await run('u1'), await run('u2')]).toEqual(['completed', 'budget', 'completed']);
    time += 60_000;
    expect(await run('u1')).toBe('completed');
    await expect(run()).rejects.toThrow('the key is not a non-empty string');
    await expect(runToolLoop({ ...setup([said()]).config, budget }, USER, { owner: 'u1' })).rejects.toThrow(
      /store/,
    );
  });

  test('rejects the run if its key function throws', async () => {
    const { config, provider } = setup([said()]);
    const key = ({ owner }: CallScope) => `tenant:${(owner as { readonly tenant: string }).tenant}`;
    const budget: Budget = { by: [{ key, steps: 1 }] };
    const run = runToolLoop({ ...config, store: new MemoryRunStore(), budget }, USER);
    await expect(run).rejects.toMatchObject({ code: 521, faults: [{ option: 'budget.by[0].key' }] });
    expect(provider.requests).toEqual([]);
  });

  test('accepts keys of at most 512 bytes that every store can hold', async () => {
    const store = new MemoryRunStore();
    const under = (key: string) =>
      runToolLoop({ ...setup([said()]).config, store, budget: { by: [{ key: () => key, steps: 1 }] } }, USER);
    expect((await under('ü'.repeat(256))).status).toBe('completed');
    const refused = (option: string, problem: string) => ({ code: 521, faults: [{ option, problem }] });
    const long = 'budget.by[0].key has 514 bytes as UTF-8';
    await expect(under('ü'.repeat(257))).rejects.toMatchObject(refused('budget.by[0].key', long));
    for (const key of ['u\u0000', 'u\ud800', ' '])
      await expect(under(key)).rejects.toMatchObject({ code: 521, faults: [{ option: 'budget.by[0].key' }] });
    const turn = { ...setup([said()]).config, store, budget: { conversation: { steps: 1 } } };
    await expect(runToolLoop(turn, USER, { conversationId: 'c'.repeat(513) })).rejects.toMatchObject(
      refused('scope.conversationId', 'scope.conversationId has 513 bytes as UTF-8'),
    );
  });

  test('of a conversation covers all its turns, and requires a conversationId', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const { config } = setup([said('One.'), said('Two.'), said('Three.')]);
    const budget = { conversation: { steps: 2 } };
    const conversation = new Conversation({ ...config, store, budget, scope: { conversationId: 'c1' } });
    const statuses = [];
    for (const text of ['1', '2', '3']) statuses.push((await conversation.prompt(text)).status);
    expect(statuses).toEqual(['completed', 'completed', 'budget']);
    await expect(runToolLoop({ ...config, store, budget }, USER)).rejects.toThrow(/conversationId/);
    store.close();
  });

  test('of a conversation is not spent by the lost request of a recovered run', async () => {
    let time = Date.now();
    const store = new MemoryRunStore({ now: () => time });
    const budget = { conversation: { tokens: 1500 }, countTokens: () => 100, maxOutputTokens: 1000 };
    const common = { model: 'm', tools: [], budget, store, checkpoint: 'step', runId: 'r' } as const;
    const asked = Promise.withResolvers<void>();
    const never = Promise.withResolvers<void>();
    const lost = new ScriptedProvider([
      async () => {
        asked.resolve();
        await never.promise;
        return said();
      },
    ]);
    const dead = runToolLoop({ ...common, provider: lost }, USER, { conversationId: 'c1', owner: 'u' });
    await asked.promise;
    // The run has no holder after 30 s, and the reservation of its request expires after 60 s.
    time += 31_000;
    const { balance } = store.budgets;
    jest.spyOn(store.budgets, 'balance').mockImplementation((account) => {
      const current = balance.call(store.budgets, account);
      time += 29_500;
      return current;
    });
    const [recovered] = await recoverRuns({
      store,
      config: { ...common, provider: new ScriptedProvider([said()]) },
    });
    expect(recovered).toMatchObject({ runId: 'r', result: { status: 'completed', content: 'Done.' } });
    never.resolve();
    await dead.catch(() => {});
  });

  test('makes no request and no call if its store fails', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const { config, provider } = setup([said()]);
    store.close();
    const budget = { store, by: [{ key: () => 't', steps: 5 }] };
    const run = await runToolLoop({ ...config, budget }, USER);
    expect([run.status, run.error, provider.requests]).toMatchObject(['failed', { code: 518 }, []]);
  });

  test('replies and results of calls are not lost if its store fails, and are counted once it works again', async () => {
    const { budgets } = new MemoryRunStore();
    let writes = 0;
    const settle: BudgetLedger['settle'] = (id, spent) => {
      writes += 1;
      // Every first write fails.
      if (writes % 2 === 1) throw new Error('The store is away.');
      return budgets.settle(id, spent);
    };
    const { config } = setup([calling(['a']), said()]);
    const store = { budgets: Object.assign(Object.create(budgets), { settle }) };
    const run = await runToolLoop({ ...config, budget: { store, by: [{ key: () => 't', calls: 5 }] } }, USER);
    expect(run).toMatchObject({ status: 'completed', content: 'Done.', toolCalls: [{ status: 'success' }] });
    expect([writes, await budgets.balance({ key: 't' })]).toMatchObject([
      6,
      { spent: { calls: 1, tokens: 200, steps: 2 }, reserved: { calls: 0, tokens: 0 } },
    ]);
  });

  test('amounts that its store does not accept until the end of the run are logged', async () => {
    const { budgets } = new MemoryRunStore();
    const settle = () => Promise.reject(new Error('The store is away.'));
    const { config } = setup([said()]);
    const store = { budgets: Object.assign(Object.create(budgets), { settle }) };
    const lines: string[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void lines.push(line) };
    const budget = { store, by: [{ key: () => 't', calls: 5 }] };
    const run = await runToolLoop({ ...config, budget, logger }, USER);
    expect([run.status, lines]).toEqual([
      'completed',
      ['The last amounts of a run could not be written to its shared budget: The store is away.'],
    ]);
  });

  test('rejects invalid options', async () => {
    const { config } = setup([said()]);
    const wrong = [
      { maxCost: 3 },
      { tokens: -1 },
      { cost: '3' },
      { by: [{ steps: 1 }] },
      { prices: { m: { input: 1 } } },
      { children: { step: 1 } },
    ];
    for (const budget of wrong)
      await expect(runToolLoop({ ...config, budget: budget as never }, USER)).rejects.toThrow(/budget/);
  });
});

describe('budgets, in random runs', () => {
  test('are never exceeded by more than the requests that are running', async () => {
    const request = fc.record({
      input: fc.integer({ min: 0, max: 400 }),
      output: fc.integer({ min: 0, max: 400 }),
      calls: fc.integer({ min: 0, max: 4 }),
      fails: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(request, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 300, max: 3000 }),
        fc.integer({ min: 0, max: 12 }),
        async (plans, tokens, calls) => {
          const store = new MemoryRunStore();
          let largest = 0;
          let ran = 0;
          const look = defineTool({
            name: 'look',
            description: 'Looks',
            parameters: {},
            execute: async () => {
              await null;
              ran += 1;
            },
          });
          const tools = new ToolRegistry().register(look);
          const started = plans.map((plan) => {
            let step = 0;
            const provider: LLMProvider = {
              chat: async () => {
                const {
                  input,
                  output,
                  calls: count,
                  fails,
                } = plan[step % plan.length] as (typeof plan)[number];
                step += 1;
                await new Promise((resolve) => setImmediate(resolve));
                if (fails && step > 1) throw new Error('down');
                largest = Math.max(largest, input + output);
                const toolCalls = Array.from({ length: step > 5 ? 0 : count }, (_, index) => ({
                  id: `c${step}.${index}`,
                  name: 'look',
                  arguments: {},
                }));
                return { content: 'x', toolCalls, finishReason: 'stop', usage: usage(input, output) };
              },
            };
            const budget: Budget = {
              ...{ store, countTokens: () => 100, maxOutputTokens: 200 },
              by: [{ key: () => 'all', tokens, calls }],
            };
            return runToolLoop(
              { provider, model: 'm', tools, budget, providerRetries: 0, loopGuard: false },
              USER,
            );
          });
          const ended = await Promise.all(started);
          const { spent, reserved } = store.budgets.balance({ key: 'all' }) as {
            spent: { tokens: number; calls: number };
            reserved: object;
          };
          for (const run of ended) expect(historyFaults(run.messages)).toEqual([]);
          // A request may use more than it reserved; with several running, each of them may.
          const over = Math.max(0, largest - 300) * plans.length;
          expect(spent.tokens).toBeLessThanOrEqual(tokens + over);
          expect(spent.calls).toBeLessThanOrEqual(calls);
          expect([ran, reserved]).toEqual([
            spent.calls,
            { tokens: 0, cost: 0, calls: 0, steps: 0, timeMs: 0 },
          ]);
          const sum = ended.reduce((total, run) => total + (run.spent?.tokens ?? 0), 0);
          expect(spent.tokens).toBe(sum);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

test('a budget of calls counts 0 for the cost of a tool without a cost', async () => {
  const free = defineTool({ name: 'free', description: 'Costs nothing', execute: () => 'ok' });
  const provider = new ScriptedProvider([{ toolCalls: [{ name: 'free' }] }, { content: 'Done' }]);
  const config = { provider, model: 'm', tools: [free], budget: { calls: 3 } };
  const run = await runToolLoop(config, [{ role: 'user', content: 'Go' }]);
  expect(run.spent?.tools.free?.cost).toBe(0);
});
