import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  agentAsTool,
  answerStoredRun,
  type Budget,
  type CallScope,
  Conversation,
  Conversations,
  type KeyedBudget,
  type LLMProvider,
  type LoopEvent,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamResumedToolLoop,
  streamToolLoop,
  type ToolLoopResult,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { setup } from './budgeted-run.js';
import { historyFaults } from './strict-history.js';

const USER = [{ role: 'user', content: 'Go' }] as const;
const usage = { inputTokens: 50, outputTokens: 50, totalTokens: 100 };
const calling = (...ids: string[]) => ({
  content: '',
  toolCalls: ids.map((id) => ({ id, name: 'look', arguments: { id } })),
  usage,
});
const said = (content = 'Done.') => ({ content, usage });

const json = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));

describe('whenSpent: ask', () => {
  test('suspends the run before the request that could exceed the budget, and continues with the grant', async () => {
    const { config, provider } = setup([calling('a'), said()]);
    const budget: Budget = { tokens: 250, whenSpent: 'ask', countTokens: () => 100 };
    const first = await runToolLoop({ ...config, budget }, USER);
    expect(first).toMatchObject({ status: 'suspended', iterations: 1, spent: { tokens: 100, calls: 1 } });
    expect(first.pending).toEqual([
      {
        id: expect.stringMatching(/^question_/),
        callId: expect.stringMatching(/^budget_/),
        kind: 'question',
        tool: 'budget',
        arguments: { of: 'the run', part: 'tokens', limit: 250, left: 150, least: 50, most: 250 },
        message:
          'The budget of the run is spent: of 250 tokens, 150 are left, and the next step may use more. How many more may it use, from 50 to 250?',
        schema: { type: 'integer', minimum: 50, maximum: 250 },
      },
    ]);
    const [{ id = '' } = {}] = first.pending ?? [];
    const state = json(first.state);
    for (const value of [49, 251, 'many'])
      await expect(resumeToolLoop({ ...config, budget }, state, [{ id, value }])).rejects.toThrow(
        /does not fit/,
      );
    const second = await resumeToolLoop({ ...config, budget }, state, [{ id, value: 60 }]);
    expect([second.status, second.content, provider.requests.length]).toEqual(['completed', 'Done.', 2]);
    expect(historyFaults(second.messages)).toEqual([]);
    expect(second.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(second.toolCalls.map(({ name }) => name)).toEqual(['look']);
    expect(second.spent).toMatchObject({ tokens: 200, steps: 2, calls: 1 });
  });

  test('ends the run with status budget and the reason if the grant is refused', async () => {
    const { config, provider } = setup([calling('a'), said()]);
    const budget: Budget = { steps: 1, whenSpent: 'ask' };
    const first = await runToolLoop({ ...config, budget }, USER);
    const [{ id = '' } = {}] = first.pending ?? [];
    const run = await resumeToolLoop({ ...config, budget }, json(first.state), [
      { id, approved: false, reason: 'too dear' },
    ]);
    expect([run.status, provider.requests.length]).toEqual(['budget', 1]);
    expect(run.error).toMatchObject({
      code: 538,
      message: expect.stringMatching(/no more was granted: too dear/),
    });
    expect(historyFaults(run.messages)).toEqual([]);
  });

  test('grants at most the total of ask, and then ends the run', async () => {
    const { config } = setup([calling('a'), calling('b'), calling('c'), calling('d'), said()]);
    const budget: Budget = { steps: 1, whenSpent: { ask: { steps: 2 } } };
    let run = await runToolLoop({ ...config, budget }, USER);
    const most: unknown[] = [];
    while (run.status === 'suspended') {
      const [{ id = '', schema } = {}] = run.pending ?? [];
      most.push((schema as { maximum: number }).maximum);
      run = await resumeToolLoop({ ...config, budget }, json(run.state), [{ id, value: 1 }]);
    }
    expect([run.status, run.iterations, most]).toEqual(['budget', 3, [2, 1]]);
    // A forged answer in the state cannot exceed the limit of the budget.
    const again = await runToolLoop({ ...setup([calling('a'), calling('b')]).config, budget }, USER);
    const forged = json(again.state) as never as {
      open: { calls: { journal: { answers: object[] }; waits: object[] }[] };
    };
    const [asked] = forged.open.calls;
    Object.assign(asked ?? {}, { waits: [] });
    asked?.journal.answers.push({ index: 0, message: '', value: 1000 });
    const over = await resumeToolLoop(
      { ...setup(Array.from({ length: 9 }, (_, at) => calling(`x${at}`))).config, budget },
      { ...forged, pending: [] } as never,
      [],
    );
    expect([over.status, over.iterations]).toEqual(['budget', 3]);
  });

  test('holds excess calls, keeps finished ones, and runs the rest after a grant', async () => {
    const { config, ran } = setup([calling('a', 'b', 'c'), said()], { approval: true });
    const budget: Budget = { calls: 1, whenSpent: { ask: { calls: 9 } } };
    const first = await runToolLoop({ ...config, budget }, USER);
    const yes = (first.pending ?? []).map(({ id }) => ({ id, approved: true }));
    expect(yes).toHaveLength(3);
    const second = await resumeToolLoop({ ...config, budget }, json(first.state), yes);
    expect([second.status, ran]).toEqual(['suspended', ['a']]);
    expect(second.pending).toMatchObject([
      { tool: 'budget', arguments: { part: 'calls', least: 1, most: 9 } },
    ]);
    const [{ id = '' } = {}] = second.pending ?? [];
    // The approval is not requested again.
    const third = await resumeToolLoop({ ...config, budget }, json(second.state), [{ id, value: 1 }]);
    expect([third.status, ran, third.pending?.length]).toEqual(['suspended', ['a', 'b'], 1]);
    const fourth = await resumeToolLoop({ ...config, budget }, json(third.state), [
      { id: third.pending?.[0]?.id ?? '', value: 5 },
    ]);
    expect([fourth.status, ran]).toEqual(['completed', ['a', 'b', 'c']]);
    expect(historyFaults(fourth.messages)).toEqual([]);
    expect(fourth.toolCalls.map(({ id, status }) => [id, status])).toEqual([
      ['a', 'success'],
      ['b', 'success'],
      ['c', 'success'],
    ]);
    expect(fourth.spent?.calls).toBe(3);
    const refused = await resumeToolLoop({ ...config, budget }, json(second.state), [
      { id, approved: false },
    ]);
    expect([refused.status, refused.toolCalls.map(({ status }) => status)]).toEqual([
      'budget',
      ['success', 'refused', 'refused'],
    ]);
    expect(historyFaults(refused.messages)).toEqual([]);
  });

  test('ends the run if a limit that cannot be granted is also exceeded', async () => {
    const cost = ({ id }: { id: string }) => (id === 'a' ? 1 : 900);
    const { config, ran } = setup([calling('a', 'b'), said()], { cost });
    const budget: Budget = { calls: 0, cost: 5, whenSpent: { ask: { calls: 1 } } };
    const run = await runToolLoop({ ...config, budget }, USER);
    expect([run.status, ran, run.toolCalls.map(({ status }) => status)]).toEqual([
      'budget',
      [],
      ['refused', 'refused'],
    ]);
    expect(run.error?.message).toMatch(/of 5 units of cost/);
    expect(historyFaults(run.messages)).toEqual([]);
    // With `ask`, at most the limit is granted again: here 0.
    const again = setup([calling('a'), said()]).config;
    const none = await runToolLoop({ ...again, budget: { calls: 0, whenSpent: 'ask' } }, USER);
    expect(none.status).toBe('budget');
  });

  /** Runs of one user that share a budget in a file, each with its own connection, at a given time. */
  function sharing(limits: Pick<KeyedBudget, 'steps' | 'windowMs' | 'whenSpent'>) {
    const path = join(mkdtempSync(join(tmpdir(), 'toolwright-grants-')), 'runs.sqlite');
    const clock = { now: 1_000_000 };
    const open = <Result>(work: (budget: Budget) => Promise<Result>): Promise<Result> => {
      const store = new SqliteRunStore({ path, now: () => clock.now });
      const by = [{ key: ({ owner }: CallScope) => `user:${owner}`, ...limits }];
      return work({ store, by }).finally(() => store.close());
    };
    const scope = { owner: 'u1' };
    return {
      clock,
      run: (replies: readonly object[]) =>
        open((budget) => runToolLoop({ ...setup(replies).config, budget }, USER, scope)),
      answer: ({ state, pending = [] }: ToolLoopResult, value: number) =>
        open((budget) => {
          const [{ id = '' } = {}] = pending;
          return resumeToolLoop({ ...setup([said()]).config, budget }, json(state), [{ id, value }], scope);
        }),
      spent: () => open(async ({ store }) => store?.budgets.balance({ key: 'user:u1' })),
    };
  }

  test('asks about a shared budget, and the grant applies to all runs that share it', async () => {
    const { run, answer, spent } = sharing({ steps: 1, whenSpent: { ask: { steps: 4 } } });
    const first = await run([calling('a')]);
    expect(first.pending).toMatchObject([
      { arguments: { of: "'user:u1'", part: 'steps', limit: 1, most: 4 } },
    ]);
    expect((await answer(first, 2)).status).toBe('completed');
    expect(await spent()).toMatchObject({ spent: { steps: 2 } });
    // One of the two granted steps is left.
    expect((await run([said()])).status).toBe('completed');
    const next = await run([said()]);
    expect(next.pending).toMatchObject([{ arguments: { limit: 3, left: 0, least: 1, most: 2 } }]);
    expect((await answer(next, 2)).status).toBe('completed');
    const last = await run([calling('b'), said()]);
    expect([last.status, last.error?.message]).toEqual(['budget', expect.stringContaining("of 'user:u1'")]);
  });

  test('applies a grant once, even if the answer is sent again', async () => {
    const { run, answer } = sharing({ steps: 1, whenSpent: { ask: { steps: 4 } } });
    const first = await run([calling('a')]);
    await answer(first, 1);
    // As if the process died before it reported: the same answer to the same state.
    expect(await answer(first, 1)).toMatchObject({
      pending: [{ arguments: { limit: 2, left: 0, least: 1, most: 3 } }],
    });
  });

  test('grants more only for the window in which the budget was spent', async () => {
    const { clock, run, answer } = sharing({ steps: 1, windowMs: 60_000, whenSpent: 'ask' });
    const first = await run([calling('a')]);
    expect((await answer(first, 1)).status).toBe('completed');
    expect((await run([said()])).status).toBe('budget');
    clock.now += 60_000;
    const next = await run([calling('a')]);
    expect(next.pending).toMatchObject([{ arguments: { limit: 1, least: 1, most: 1 } }]);
  });

  test('also asks for the amount by which the budget was exceeded', async () => {
    const long = { ...calling('a'), usage: { inputTokens: 150, outputTokens: 250, totalTokens: 400 } };
    const { config } = setup([long, said()]);
    const budget: Budget = { tokens: 300, whenSpent: { ask: { tokens: 1_000 } }, countTokens: () => 100 };
    const first = await runToolLoop({ ...config, budget }, USER);
    // 400 are spent before the call, which needs no tokens; the next request reserves 200.
    expect(first.pending).toMatchObject([{ arguments: { limit: 300, left: 0, least: 100 } }]);
    const answer = ({ state, pending = [] }: ToolLoopResult, value: number) =>
      resumeToolLoop({ ...config, budget }, json(state), [{ id: pending[0]?.id ?? '', value }]);
    const second = await answer(first, 100);
    expect(second.pending).toMatchObject([{ arguments: { limit: 400, left: 0, least: 200 } }]);
    expect((await answer(second, 200)).status).toBe('completed');
  });

  test('asks about the budget of a nested run through the call that started it', async () => {
    const inner = new ScriptedProvider([calling('a'), said('Found.')] as never);
    const agent = agentAsTool({
      name: 'researcher',
      description: 'Looks things up',
      ...{ provider: inner, model: 'gpt-5', tools: setup([]).config.tools },
    });
    const provider = new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'r', name: 'researcher', arguments: { task: 'look' } }], usage },
      said('All done.'),
    ] as never);
    const budget: Budget = { steps: 20, children: { steps: 1, whenSpent: 'ask' } };
    const config = { provider, model: 'gpt-5', tools: [agent], budget };
    const first = await runToolLoop(config, USER);
    expect(first.pending).toMatchObject([
      { tool: 'budget', kind: 'question', path: [{ callId: 'r', tool: 'researcher' }] },
    ]);
    const [{ id = '' } = {}] = first.pending ?? [];
    const run = await resumeToolLoop(config, json(first.state), [{ id, value: 1 }]);
    expect([run.status, run.content, run.spent?.steps]).toEqual(['completed', 'All done.', 4]);
    expect(run.toolCalls[0]?.result.forLLM).toContain('Found.');
  });

  test('streams the question as a suspended call that ends with the answer', async () => {
    const { config } = setup([calling('a'), said()]);
    const budget: Budget = { steps: 1, whenSpent: 'ask' };
    const events: LoopEvent[] = [];
    const stream = streamToolLoop({ ...config, budget }, USER);
    for await (const event of stream) events.push(event);
    const { state, pending = [] } = await stream.result;
    const told = events.filter(({ type }) => type === 'call-start' || type === 'call-suspended');
    expect(told).toMatchObject([
      { tool: 'look' },
      { type: 'call-start', tool: 'budget', callId: pending[0]?.callId },
      { type: 'call-suspended', tool: 'budget', pending },
    ]);
    const resumed = streamResumedToolLoop({ ...config, budget }, json(state), [
      { id: pending[0]?.id ?? '', value: 1 },
    ]);
    const after: LoopEvent[] = [];
    for await (const event of resumed) after.push(event);
    expect(after.filter(({ type }) => type === 'call-end')).toMatchObject([
      { tool: 'budget', callId: pending[0]?.callId, record: { status: 'success' } },
    ]);
  });

  test('rejects an invalid whenSpent', async () => {
    for (const whenSpent of ['stop', { ask: 3 }, { ask: { token: 3 } }, { asks: {} }])
      await expect(
        runToolLoop({ ...setup([said()]).config, budget: { steps: 1, whenSpent } as never }, USER),
      ).rejects.toThrow(/whenSpent/);
  });

  test('rejects a whenSpent that could never grant anything', async () => {
    const { config, provider } = setup([said()]);
    const store = new MemoryRunStore();
    const wrong: readonly (readonly [Budget, string])[] = [
      [{ whenSpent: 'ask' }, 'budget.whenSpent'],
      [{ calls: 1, whenSpent: { ask: {} } }, 'budget.whenSpent.ask'],
      [{ whenSpent: { ask: { tokens: 5 } } }, 'budget.whenSpent'],
      [{ calls: 1, whenSpent: { ask: { tokens: 5, calls: 1 } } }, 'budget.whenSpent.ask.tokens'],
      [{ conversation: { whenSpent: 'ask' } }, 'budget.conversation.whenSpent'],
      [{ by: [{ key: () => 'u1', whenSpent: 'ask' }] }, 'budget.by[0].whenSpent'],
      [{ steps: 5, children: { cost: 1, whenSpent: { ask: {} } } }, 'budget.children.whenSpent.ask'],
    ];
    for (const [budget, option] of wrong)
      await expect(runToolLoop({ ...config, store, budget }, USER)).rejects.toMatchObject({
        code: 521,
        faults: [{ option }],
      });
    expect(provider.requests).toEqual([]);
  });
});

async function recoveredIn(
  store: Parameters<typeof recoverRuns>[0]['store'],
  config: Parameters<typeof runToolLoop>[0],
): Promise<ToolLoopResult> {
  const [recovered] = await recoverRuns({ store, config });
  if (recovered === undefined || !('result' in recovered)) throw new Error(String(recovered?.error));
  return recovered.result;
}

describe('whenSpent: ask, in a store', () => {
  test('a stored run continues after each answer, and counts what was granted', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const { config, ran } = setup([calling('a', 'b'), calling('c'), said()]);
    const budget: Budget = { calls: 1, whenSpent: { ask: { calls: 2 } } };
    const kept = { ...config, budget, store, checkpoint: 'step', runId: 'r1' } as const;
    const first = await runToolLoop(kept, USER);
    expect([first.status, ran]).toEqual(['suspended', ['a']]);
    const { runId: _, ...others } = kept;
    const second = await resumeStoredRun(others, { store, runId: 'r1' }, [
      { id: first.pending?.[0]?.id ?? '', value: 1 },
    ]);
    expect([second.status, ran, second.pending]).toMatchObject([
      'suspended',
      ['a', 'b'],
      [{ tool: 'budget' }],
    ]);
    // Only stored here; recoverRuns continues the run.
    await answerStoredRun({ store, runId: 'r1' }, [{ id: second.pending?.[0]?.id ?? '', value: 1 }]);
    const recovered = await recoveredIn(store, others);
    expect([recovered.status, ran]).toEqual(['completed', ['a', 'b', 'c']]);
    expect(recovered.spent).toMatchObject({ calls: 3, tokens: 300, steps: 3 });
    store.close();
  });

  test('a lost run counts the requests, calls and costs up to its crash', async () => {
    let time = Date.now();
    const store = new MemoryRunStore({ now: () => time });
    let requests = 0;
    const provider: LLMProvider = {
      chat: async () => {
        requests += 1;
        // The process crashes here: this request never returns.
        if (requests === 3) return new Promise(() => {});
        const toolCalls = [{ id: `c${requests}`, name: 'look', arguments: { id: `${requests}` } }];
        return { content: '', toolCalls, finishReason: 'tool_calls', usage };
      },
    };
    const { config } = setup([], { cost: 0.25 });
    const budget: Budget = { cost: 100, prices: { 'gpt-5': { input: 1000, output: 1000 } } };
    const kept = { ...config, provider, budget, store, checkpoint: 'step', leaseMs: 1000 } as const;
    void runToolLoop({ ...kept, runId: 'lost' }, USER).catch(() => {});
    const isKept = () => JSON.stringify(store.read('lost')).includes('"forLLM":"saw 2"');
    while (requests < 3 || !isKept()) await new Promise((resolve) => setTimeout(resolve, 5));
    time += 60_000;
    const next = new ScriptedProvider([said()] as never);
    const recovered = await recoveredIn(store, { ...kept, provider: next });
    expect(recovered.status).toBe('completed');
    // Three replies of 100 tokens at 0.1 each, and two calls of 0.25.
    expect(recovered.spent).toMatchObject({ steps: 3, tokens: 300, calls: 2 });
    expect(recovered.spent?.cost).toBeCloseTo(0.8, 6);
    expect(recovered.spent?.tools).toEqual({ look: { calls: 2, cost: 0.5 } });
  });
});

describe('whenSpent: ask, in a conversation', () => {
  test('is a pending question of the turn', async () => {
    const { config } = setup([calling('a'), said()]);
    const store = new MemoryRunStore();
    const conversation = new Conversation({
      ...{ ...config, store, scope: { conversationId: 'c1' } },
      budget: { conversation: { steps: 1, whenSpent: 'ask' } },
    });
    const first = await conversation.prompt('Go');
    expect([first.status, conversation.pending]).toMatchObject(['suspended', [{ tool: 'budget' }]]);
    const second = await conversation.answer([{ id: conversation.pending[0]?.id ?? '', value: 1 }]);
    expect([second.status, second.content]).toEqual(['completed', 'Done.']);
    expect(conversation.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });
});

describe('spent, of a conversation', () => {
  const replies = () => setup([calling('a'), said('One.'), calling('b'), said('Two.')], { cost: 0.5 });
  const budget: Budget = { cost: 100, prices: { 'gpt-5': { input: 1000, output: 1000 } } };
  // Four replies of 100 tokens at 0.1 each, and two calls of 0.5.
  const all = { tokens: 400, steps: 4, calls: 2, cost: 1.4, tools: { look: { calls: 2, cost: 1 } } };

  test('is the sum of all turns of a Conversation, also when restored or suspended', async () => {
    const { config } = replies();
    const first = new Conversation({ ...config, budget });
    expect(first.spent).toBeUndefined();
    await first.prompt('1');
    expect(first.spent).toMatchObject({ tokens: 200, cost: 0.7 });
    const second = Conversation.restore(
      { ...config, budget: { ...budget, steps: 1, whenSpent: 'ask' } },
      json(first.toJSON()),
    );
    await second.prompt('2');
    expect(second.spent).toMatchObject({ tokens: 300, steps: 3 });
    await second.answer([{ id: second.pending[0]?.id ?? '', value: 1 }]);
    expect(second.spent).toMatchObject(all);
  });

  test('is in the view and the events of Conversations, and includes replaced turns', async () => {
    const { config } = replies();
    const conversations = new Conversations({ store: new MemoryRunStore(), config: { ...config, budget } });
    await conversations.prompt('c1', '1', { key: 'first' });
    await conversations.idle('c1');
    await conversations.prompt('c1', '2', { replaces: 'first' });
    const view = await conversations.idle('c1');
    expect(view?.spent).toMatchObject(all);
    expect(view?.history).toMatchObject([{ spent: { tokens: 200, cost: 0.7 } }]);
    const told: unknown[] = [];
    for await (const { event } of conversations.events('c1', { upTo: view?.lastEvent ?? 0 }))
      if (event.type === 'turn-end') told.push((event.spent as { tokens: number }).tokens);
    expect(told).toEqual([200, 200]);
    await conversations.close();
  });
});
