import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  type ApprovalOptions,
  answerStoredRun,
  Conversation,
  Conversations,
  defineTool,
  type Message,
  type PendingCall,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Pay' }];
const ALL = ['run', 'conversation', 'user'] as const;

type Call = { readonly to: string; readonly amount: number };

function setup(remember: ApprovalOptions['remember'] = { scopes: ALL, by: ['to'] }) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: {
      type: 'object',
      properties: { to: { type: 'string' }, amount: { type: 'integer' } },
      required: ['to', 'amount'],
    } as const,
    approval: remember === undefined ? {} : { remember },
    execute: (args) => `paid ${ran.push(args)}`,
  });
  const store = new MemoryRunStore();
  /** One run whose replies make these calls, and the config to resume it. */
  const begin = async (
    replies: readonly (readonly Call[])[],
    scope: object = {},
    tool: ToolDefinition = pay,
  ) => {
    const steps = [
      ...replies.map((calls) => ({ toolCalls: calls.map((args) => ({ name: 'pay', arguments: args })) })),
      { content: 'Done.' },
    ];
    const config = { provider: new ScriptedProvider(steps), model: 'm', tools: [tool], store };
    return { config, scope, run: await runToolLoop(config, hello, scope) };
  };
  return { ran, pay, store, begin };
}

function yes(pending: readonly PendingCall[] | undefined, more: object = {}): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true, ...more }) as Answer);
}

const A: Call = { to: 'A', amount: 1 };
const A2: Call = { to: 'A', amount: 2 };
const B: Call = { to: 'B', amount: 1 };
const U1 = { owner: { user: 'u1' }, conversationId: 'c1' };

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

describe('remember', () => {
  test('approves later matching calls of the run, asks for others, and is in the record', async () => {
    const { begin, ran, store } = setup();
    const { config, run, scope } = await begin([[A], [A2], [B]], U1);
    expect(run.pending).toMatchObject([{ mayRemember: { scopes: ALL } }]);
    const answers = yes(run.pending, { remember: { scope: 'run' } });
    const next = await resumeToolLoop(config, run.state, answers, { scope, answeredBy: 'clerk' });
    expect(ran).toEqual([A, A2]);
    expect(next.pending).toMatchObject([{ arguments: B }]);
    const [standing] = store.approvals.listApprovals() as readonly { id: string }[];
    expect(standing).toMatchObject({
      tool: 'pay',
      scope: 'run',
      owner: U1.owner,
      answeredBy: 'clerk',
      pattern: [['to', 'A']],
    });
    const done = await resumeToolLoop(config, next.state, yes(next.pending), { scope });
    expect(done.toolCalls).toMatchObject([
      { answeredBy: 'clerk', standing: { id: standing?.id } },
      { standing: { id: standing?.id, answeredBy: 'clerk' } },
      {},
    ]);
    expect(done.toolCalls[2]).not.toHaveProperty('standing');
    const other = await begin([[A]], U1);
    expect(other.run.status).toBe('suspended');
  });

  test('approves matching parallel calls', async () => {
    const { begin, ran } = setup();
    const { config, run, scope } = await begin([[A, B, A2]], U1);
    const [first] = run.pending ?? [];
    const next = await resumeToolLoop(config, run.state, yes([first!], { remember: { scope: 'run' } }), {
      scope,
    });
    expect(next.pending).toMatchObject([{ arguments: B }]);
    expect(ran).toEqual([]);
    await resumeToolLoop(config, next.state, yes(next.pending), { scope });
    expect(ran).toEqual([A, B, A2]);
  });

  test.each([
    ['conversation', [true, false, false, false]],
    ['user', [true, true, false, false]],
    ['run', [false, false, false, false]],
  ] as const)('for a %s applies only there and only to the same owner', async (scope, expected) => {
    const { begin } = setup();
    const { config, run, scope: own } = await begin([[A]], U1);
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope } }), { scope: own });
    const held: boolean[] = [];
    for (const other of [
      U1,
      { ...U1, conversationId: 'c2' },
      { ...U1, owner: { user: 'u2' } },
      { conversationId: 'c1' },
    ])
      held.push((await begin([[A2]], other)).run.status === 'completed');
    expect(held).toEqual(expected);
  });

  test('ends when it is revoked or when the definition changes, and expires after maxMs at most', async () => {
    const { begin, store, pay } = setup({ scopes: ['user'], by: [], maxMs: 3_600_000 });
    const { config, run, scope } = await begin([[A]], U1);
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope: 'user' } }), { scope });
    expect((await begin([[B]], U1)).run.status).toBe('completed');
    const changed = { ...pay, description: 'Pay twice' };
    expect((await begin([[B]], U1, changed)).run.status).toBe('suspended');
    const wider = { ...pay, approval: { remember: { scopes: ['user' as const], by: ['amount'] } } };
    expect((await begin([[B]], U1, wider)).run.status).toBe('suspended');
    const [standing] = store.approvals.listApprovals() as readonly { id: string; expiresAt: number }[];
    expect(standing?.expiresAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
    expect(await store.approvals.revokeApproval(standing?.id ?? '')).toBe(true);
    expect((await begin([[B]], U1)).run.status).toBe('suspended');
  });

  test('with an expiry ends at that time', async () => {
    let now = Date.now();
    const { pay } = setup({ scopes: ['user'], by: [] });
    const store = new SqliteRunStore({ path: ':memory:', now: () => now });
    const begin = (steps: object[]) => ({
      provider: new ScriptedProvider(steps as never),
      model: 'm',
      tools: [pay],
      store,
    });
    const calls = [{ toolCalls: [{ name: 'pay', arguments: A }] }, { content: 'Done.' }];
    const config = begin(calls);
    const run = await runToolLoop(config, hello, U1);
    const expires = new Date(now + 60_000).toISOString();
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope: 'user', expires } }), {
      scope: U1,
    });
    expect((await runToolLoop(begin(calls), hello, U1)).status).toBe('completed');
    now += 60_000;
    expect((await runToolLoop(begin(calls), hello, U1)).status).toBe('suspended');
    store.close();
  });

  test.each<[string, ApprovalOptions['remember'], object, object, string]>([
    ['if its tool does not allow it', undefined, { scope: 'run' }, U1, 'allows no approval to be remembered'],
    ['for a scope that its tool does not allow', { scopes: ['run'] }, { scope: 'user' }, U1, 'to be run'],
    ['for an unknown scope', { scopes: ALL }, { scope: 'everybody' }, U1, '"everybody"'],
    [
      'for longer than its tool allows',
      { scopes: ALL, maxMs: 1000 },
      { scope: 'run', expires: '2999-01-01T00:00:00Z' },
      U1,
      'at most 1000 ms',
    ],
    [
      'until a time in the past',
      { scopes: ALL },
      { scope: 'run', expires: '2001-01-01T00:00:00Z' },
      U1,
      'not a future time',
    ],
    ['for a user if the run has no owner', { scopes: ALL }, { scope: 'user' }, {}, 'the run has no owner'],
    [
      'for a conversation if the run has none',
      { scopes: ALL },
      { scope: 'conversation' },
      {},
      'conversationId',
    ],
  ])('is refused %s: nothing runs and nothing is stored', async (_what, allowed, remember, scope, told) => {
    const { ran, store, pay } = setup(allowed);
    const tool = allowed === undefined ? { ...pay, approval: true } : pay;
    const steps = [{ toolCalls: [{ name: 'pay', arguments: A }] }, { content: 'Done.' }];
    const config = { provider: new ScriptedProvider(steps), model: 'm', tools: [tool], store };
    const run = await runToolLoop(config, hello, scope);
    await expect(
      resumeToolLoop(config, run.state, yes(run.pending, { remember }), { scope }),
    ).rejects.toMatchObject({ name: 'InvalidAnswer', message: expect.stringContaining(told) });
    expect(ran).toEqual([]);
    expect(store.approvals.listApprovals()).toEqual([]);
    expect((await resumeToolLoop(config, run.state, yes(run.pending), { scope })).status).toBe('completed');
  });

  test('is refused without a store, and with a refusal', async () => {
    const { begin } = setup();
    const { config, run, scope } = await begin([[A]], U1);
    const { store: _, ...without } = config;
    await expect(
      resumeToolLoop(without, run.state, yes(run.pending, { remember: { scope: 'run' } }), { scope }),
    ).rejects.toMatchObject({ message: expect.stringContaining('the store does not store approvals') });
    const no = run.pending!.map(({ id }) => ({ id, approved: false, remember: { scope: 'run' as const } }));
    await expect(resumeToolLoop(config, run.state, no, { scope })).rejects.toMatchObject({
      name: 'InvalidAnswer',
    });
  });

  test('applies to the edited arguments, not to those that the model sent', async () => {
    const { begin } = setup({ scopes: ['user'] });
    const { config, run, scope } = await begin([[A]], U1);
    const answers = yes(run.pending, { arguments: B, remember: { scope: 'user' } });
    await resumeToolLoop(config, run.state, answers, { scope });
    expect((await begin([[B]], U1)).run.status).toBe('completed');
    expect((await begin([[A]], U1)).run.status).toBe('suspended');
  });

  test('ignores a forged pattern, id, owner or tool in the answer', async () => {
    const { begin, store } = setup();
    const { config, run, scope } = await begin([[A]], U1);
    const remember = { scope: 'user', by: [], pattern: [], id: 'x', owner: { user: 'u2' }, tool: 'drop' };
    await resumeToolLoop(config, run.state, yes(run.pending, { remember }), { scope });
    expect(store.approvals.listApprovals()).toMatchObject([
      { tool: 'pay', pattern: [['to', 'A']], owner: U1.owner },
    ]);
    expect((await begin([[B]], U1)).run.status).toBe('suspended');
  });

  test('does not override a policy that refuses or asks', async () => {
    const { begin, pay, store, ran } = setup();
    const { config, run, scope } = await begin([[A]], U1);
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope: 'user' } }), { scope });
    const steps = [{ toolCalls: [{ name: 'pay', arguments: A }] }, { content: 'Done.' }];
    const again = () => ({ provider: new ScriptedProvider(steps), model: 'm', tools: [pay], store });
    const refused = await runToolLoop({ ...again(), policy: () => false }, hello, U1);
    expect(refused.toolCalls).toMatchObject([{ status: 'refused' }]);
    const asked = await runToolLoop({ ...again(), policy: () => ({ ask: true, reason: 'why' }) }, hello, U1);
    expect(asked.status).toBe('suspended');
    expect(ran).toHaveLength(1);
  });

  test('has no effect if the store fails, so the call asks', async () => {
    const { begin, store } = setup();
    const { config, run, scope } = await begin([[A]], U1);
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope: 'user' } }), { scope });
    store.approvals.findApproval = () => {
      throw new Error('down');
    };
    expect((await begin([[A]], U1)).run.status).toBe('suspended');
  });

  test('applies across stored runs, conversations and answers that another process resumes', async () => {
    const { begin, store, pay, ran } = setup();
    const steps = () =>
      new ScriptedProvider([{ toolCalls: [{ name: 'pay', arguments: A }] }, { content: 'Done.' }]);
    const kept = {
      provider: steps(),
      model: 'm',
      tools: [pay],
      store,
      checkpoint: 'step' as const,
      runId: 'r1',
    };
    const run = await runToolLoop(kept, hello, U1);
    const remember = { scope: 'user' as const };
    await resumeStoredRun(kept, { store, runId: 'r1' }, yes(run.pending, { remember }), { scope: U1 });
    expect((await begin([[A2]], U1)).run.status).toBe('completed');

    const other = await begin([[B]], U1);
    const runId = other.run.state?.runId ?? '';
    const owner = U1.owner;
    await expect(
      answerStoredRun({ store, runId }, yes(other.run.pending, { remember }), { owner }),
    ).rejects.toMatchObject({ name: 'InvalidAnswer' });
    await answerStoredRun({ store, runId }, yes(other.run.pending, { remember }), { owner, tools: [pay] });
    expect((await begin([[B]], U1)).run.status).toBe('completed');

    const c: Call = { to: 'C', amount: 1 };
    const conversations = new Conversations({
      store,
      config: {
        provider: new ScriptedProvider([
          { toolCalls: [{ name: 'pay', arguments: c }] },
          { content: 'Done.' },
        ]),
        model: 'm',
        tools: [pay],
      },
      pollMs: 20,
    });
    opened.push(conversations);
    await conversations.prompt('c9', 'Pay C', { owner });
    const view = await conversations.idle('c9');
    await conversations.answer('c9', yes(view?.pending, { remember: { scope: 'conversation' } }), { owner });
    expect((await conversations.idle('c9'))?.status).toBe('idle');
    expect((await begin([[c]], { owner, conversationId: 'c9' })).run.status).toBe('completed');
    expect((await begin([[c]], U1)).run.status).toBe('suspended');

    const d: Call = { to: 'D', amount: 1 };
    const conversation = new Conversation({
      provider: new ScriptedProvider([{ toolCalls: [{ name: 'pay', arguments: d }] }, { content: 'Done.' }]),
      model: 'm',
      tools: [pay],
      store,
      scope: { owner },
    });
    await conversation.prompt('Pay D');
    await conversation.answer(yes(conversation.pending, { remember }));
    expect((await begin([[d]], U1)).run.status).toBe('completed');
    expect(ran.length).toBeGreaterThan(4);
  });
});
