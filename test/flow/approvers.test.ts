import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  type ApprovalOptions,
  type Approver,
  agentAsTool,
  answerStoredRun,
  answerWait,
  Conversation,
  Conversations,
  defineTool,
  type PendingCall,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello = [{ role: 'user', content: 'Refund it' }] as const;
const OWNER = { user: 'u1' };
const CLERK = { user: 'clerk' };
const scope = { owner: OWNER };

const calling = (amount: number) => ({ toolCalls: [{ name: 'refund', arguments: { amount } }] });

function setup(approver: Approver, more: Partial<ApprovalOptions> = {}, amounts: readonly number[] = [5]) {
  const ran: number[] = [];
  const refund = defineTool({
    name: 'refund',
    description: 'Refund',
    parameters: {
      type: 'object',
      properties: { amount: { type: 'integer' } },
      required: ['amount'],
    } as const,
    approval: { approver, ...more },
    execute: (args) => `refunded ${ran.push(Number(args.amount))}`,
  });
  const store = new MemoryRunStore();
  const provider = new ScriptedProvider([...amounts.map(calling), { content: 'Done.' }]);
  return { ran, refund, store, config: { provider, model: 'm', tools: [refund], store } };
}

function yes(pending: readonly PendingCall[] | undefined, more: object = {}): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true, ...more }) as Answer);
}

const REFUSED = { name: 'RunNotAllowed', code: 523 };

const opened: Conversations[] = [];
afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
});

describe('approval.approver', () => {
  test("'not-the-owner' refuses the owner and anonymous answers, and accepts another user", async () => {
    const { config, ran } = setup('not-the-owner');
    const run = await runToolLoop(config, hello, scope);
    expect(run.pending).toMatchObject([{ kind: 'approval', approver: 'not-the-owner' }]);
    for (const answeredBy of [
      undefined,
      OWNER,
      { user: 'u1' },
      null,
      { user: null },
      '',
      '   ',
      { user: ' ' },
    ]) {
      const resumed = resumeToolLoop(config, run.state, yes(run.pending), { scope, answeredBy });
      await expect(resumed).rejects.toMatchObject({
        ...REFUSED,
        message: expect.stringMatching(/'refund'.*can be approved only by a user who is not the owner/),
      });
    }
    expect(ran).toEqual([]);
    const done = await resumeToolLoop(config, run.state, yes(run.pending), { scope, answeredBy: CLERK });
    expect(done.status).toBe('completed');
    expect(done.toolCalls).toMatchObject([{ status: 'success', answeredBy: CLERK }]);
    expect(ran).toEqual([5]);
  });

  test("'not-the-owner' refuses an answeredBy whose form differs from that of the owner", async () => {
    const { config, ran } = setup('not-the-owner');
    for (const [owner, answeredBy, reason] of [
      [OWNER, 'u1', 'the owner has the form { user: string }, answeredBy string'],
      ['u1', { user: 'u1' }, 'the owner has the form string, answeredBy { user: string }'],
      [7, '7', 'the owner has the form number, answeredBy string'],
      [OWNER, { user: 'u1', role: 'clerk' }, 'answeredBy { role: string, user: string }'],
      [{ user: 'u1', session: 's' }, OWNER, 'the owner has the form { session: string, user: string }'],
      [OWNER, { id: 'u1' }, 'answeredBy { id: string }'],
      [{ user: 7 }, { user: '7' }, 'the owner has the form { user: number }'],
      [['u1'], ['u1', 'x'], 'answeredBy [string, string]'],
    ] as const) {
      const provider = new ScriptedProvider([calling(5)]);
      const { pending, state } = await runToolLoop({ ...config, provider }, hello, { owner });
      const stored = { store: config.store, runId: state?.runId ?? '' };
      const refused = { ...REFUSED, message: expect.stringContaining(reason) };
      const by = { owner, answeredBy };
      await expect(answerStoredRun(stored, yes(pending), by)).rejects.toMatchObject(refused);
      const resumed = resumeToolLoop(config, state, yes(pending), { scope: { owner }, answeredBy });
      await expect(resumed).rejects.toMatchObject(refused);
    }
    expect(ran).toEqual([]);
  });

  test('the owner may still refuse the call', async () => {
    const { config, ran } = setup('not-the-owner');
    const run = await runToolLoop(config, hello, scope);
    const [{ id } = { id: '' }] = run.pending ?? [];
    const done = await resumeToolLoop(config, run.state, [{ id, approved: false }], { scope });
    expect(done.toolCalls).toMatchObject([{ status: 'refused' }]);
    expect(ran).toEqual([]);
  });

  test('a refusal names neither the owner nor the approvers', async () => {
    const { config } = setup(({ answeredBy }) => answeredBy === 'the-secret-boss');
    const run = await runToolLoop(config, hello, scope);
    const error = await resumeToolLoop(config, run.state, yes(run.pending), { scope }).catch(
      (thrown) => thrown,
    );
    expect(error).toMatchObject(REFUSED);
    expect(error.message).not.toMatch(/u1|boss/);
  });

  test('a function decides with answeredBy, the owner and the arguments that would run', async () => {
    const seen: unknown[] = [];
    const { config, ran } = setup((request) => {
      seen.push(request);
      return request.call.arguments.amount !== 5 && (request.answeredBy as typeof CLERK).user === 'clerk';
    });
    const run = await runToolLoop(config, hello, scope);
    expect(run.pending).toMatchObject([{ approver: 'function' }]);
    const by = { scope, answeredBy: CLERK };
    await expect(resumeToolLoop(config, run.state, yes(run.pending), by)).rejects.toMatchObject(REFUSED);
    expect(seen).toEqual([
      { answeredBy: CLERK, owner: OWNER, call: { tool: 'refund', arguments: { amount: 5 } } },
    ]);
    const edited = yes(run.pending, { arguments: { amount: 3 } });
    await expect(resumeToolLoop(config, run.state, edited, { scope })).rejects.toMatchObject(REFUSED);
    expect((await resumeToolLoop(config, run.state, edited, by)).status).toBe('completed');
    expect(ran).toEqual([3]);
  });

  test('a function that throws or does not return true refuses; the error is logged', async () => {
    const logged: unknown[] = [];
    const logger = {
      ...{ debug() {}, info() {}, warn() {} },
      error: (message: string, fields?: object) => logged.push([message, fields]),
    };
    const answers = [
      () => {
        throw new Error('no directory');
      },
      () => 1,
      () => 'true',
      () => undefined,
      async () => true,
      async () => {
        throw new Error('later');
      },
    ] as unknown as readonly Approver[];
    for (const approver of answers) {
      const { config, ran } = setup(approver);
      const run = await runToolLoop(config, hello, scope);
      const by = { scope, answeredBy: CLERK };
      await expect(
        resumeToolLoop({ ...config, logger }, run.state, yes(run.pending), by),
      ).rejects.toMatchObject(REFUSED);
      expect(ran).toEqual([]);
    }
    expect(logged).toMatchObject([[expect.stringContaining('approver'), { tool: 'refund' }]]);
  });

  test('a function cannot change the arguments that run', async () => {
    const { config, ran } = setup(({ call }) => {
      call.arguments.amount = 1_000;
      return true;
    });
    const run = await runToolLoop(config, hello, scope);
    await resumeToolLoop(config, run.state, yes(run.pending), { scope });
    expect(ran).toEqual([5]);
  });

  test("'may-answer' also accepts the owner, and needs no owner of the run", async () => {
    const { config, ran } = setup('may-answer');
    const run = await runToolLoop(config, hello);
    await resumeToolLoop(config, run.state, yes(run.pending));
    expect(ran).toEqual([5]);
  });

  test('a run without an owner rejects such tools at its start', async () => {
    const { config } = setup('not-the-owner');
    await expect(runToolLoop(config, hello)).rejects.toMatchObject({
      name: 'InvalidOptions',
      message: expect.stringMatching(/owner is missing.*'refund'/),
    });
    expect(config.provider.requests).toEqual([]);
    await expect(new Conversation(config).prompt('Refund it')).rejects.toMatchObject({
      name: 'InvalidOptions',
    });
  });

  test('an unknown approver throws', () => {
    expect(() => setup('not-owner' as Approver)).toThrow(/approver/);
    expect(() => setup(undefined as never)).toThrow(/approver/);
  });

  test('an answer in the journal of a call without answeredBy counts as the owner’s', async () => {
    const { refund, ran } = setup('not-the-owner');
    const tools = new ToolRegistry().register(refund);
    const call = { id: 'c1', name: 'refund', arguments: { amount: 5 } };
    const first = await tools.invoke(call, scope);
    if (first.status !== 'suspended') throw new Error('it was to wait');
    const { waits, journal } = first.suspension;
    const answered = answerWait({ wait: waits[0]!, journal }, { approved: true });
    if (!answered.ok) throw new Error(answered.problem);
    expect(await tools.invoke({ ...call, journal: answered.journal }, scope)).toMatchObject({
      status: 'suspended',
    });
    expect(ran).toEqual([]);
    const given = [{ kind: 'approval' as const, index: 0, answeredBy: CLERK }];
    await tools.invoke({ ...call, journal: { ...answered.journal, given } }, scope);
    expect(ran).toEqual([5]);
  });
});

describe('approval.approver at each entry point', () => {
  test('resumeStoredRun refuses the owner, and the run stays suspended', async () => {
    const { config, store, ran } = setup('not-the-owner');
    const { store: _, ...own } = config;
    const { pending, state } = await runToolLoop(config, hello, scope);
    const stored = { store, runId: state?.runId ?? '' };
    await expect(resumeStoredRun(own, stored, yes(pending), { scope })).rejects.toMatchObject(REFUSED);
    const by = { scope, answeredBy: CLERK };
    expect((await resumeStoredRun(own, stored, yes(pending), by)).status).toBe('completed');
    expect(ran).toEqual([5]);
  });

  test('answerStoredRun refuses the owner even without tools, and needs the tools to call a function', async () => {
    const plain = setup('not-the-owner');
    const run = await runToolLoop(plain.config, hello, scope);
    const stored = { store: plain.store, runId: run.state?.runId ?? '' };
    for (const tools of [{}, { tools: plain.config.tools }]) {
      const answering = answerStoredRun(stored, yes(run.pending), { owner: OWNER, ...tools });
      await expect(answering).rejects.toMatchObject(REFUSED);
    }
    expect(await plain.store.load(stored.runId)).toMatchObject({ pending: run.pending });
    const by = { owner: OWNER, answeredBy: CLERK };
    expect(await answerStoredRun(stored, yes(run.pending), by)).toEqual([]);

    const chosen = setup(({ answeredBy }) => (answeredBy as typeof CLERK).user === 'clerk');
    const other = await runToolLoop(chosen.config, hello, scope);
    const kept = { store: chosen.store, runId: other.state?.runId ?? '' };
    await expect(answerStoredRun(kept, yes(other.pending), by)).rejects.toMatchObject({
      ...REFUSED,
      message: expect.stringContaining('decides who may approve its call'),
    });
    const { tools } = chosen.config;
    expect(await answerStoredRun(kept, yes(other.pending), { ...by, tools })).toEqual([]);
  });

  test('Conversation refuses the owner, and its turn stays suspended', async () => {
    const { config, ran } = setup('not-the-owner');
    const { store: _, ...own } = config;
    const conversation = new Conversation({ ...own, scope });
    await conversation.prompt('Refund it');
    await expect(conversation.answer(yes(conversation.pending))).rejects.toMatchObject(REFUSED);
    expect(conversation.pending).toHaveLength(1);
    await conversation.answer(yes(conversation.pending), { answeredBy: CLERK });
    expect(ran).toEqual([5]);
  });

  test('Conversations refuses the owner, and the turn stays suspended', async () => {
    const { config, store, ran } = setup('not-the-owner');
    const { store: _, ...own } = config;
    const conversations = new Conversations({ store, config: own });
    opened.push(conversations);
    await conversations.prompt('c1', 'Refund it', { owner: OWNER });
    const { pending } = (await conversations.idle('c1')) ?? {};
    const answered = conversations.answer('c1', yes(pending), { owner: OWNER });
    await expect(answered).rejects.toMatchObject(REFUSED);
    await conversations.answer('c1', yes(pending), { owner: OWNER, answeredBy: CLERK });
    expect((await conversations.idle('c1'))?.status).toBe('idle');
    expect(ran).toEqual([5]);
  });

  test('a process without the tools leaves a function to the process that runs the turn', async () => {
    const { config, store, ran } = setup(({ answeredBy }) => (answeredBy as typeof CLERK).user === 'clerk');
    const { store: _, tools: __, ...web } = config;
    const worker = new Conversations({ store, config: { ...web, tools: config.tools } });
    const asking = new Conversations({ store, config: web, takesTurns: false });
    opened.push(worker, asking);
    await asking.prompt('c1', 'Refund it', { owner: OWNER });
    const { pending, lastEvent = 0 } = (await asking.idle('c1')) ?? {};
    await asking.answer('c1', yes(pending), { owner: OWNER });
    for await (const { event } of asking.events('c1', { after: lastEvent }))
      if (event.type === 'answers-refused') {
        expect(event).toMatchObject({ isLate: false, error: { name: 'RunNotAllowed' } });
        break;
      }
    expect(ran).toEqual([]);
    await asking.answer('c1', yes(pending), { owner: OWNER, answeredBy: CLERK });
    expect((await asking.idle('c1'))?.status).toBe('idle');
    expect(ran).toEqual([5]);
  });

  test('a turn of a conversation without an owner fails with InvalidOptions', async () => {
    const { config, store } = setup('not-the-owner');
    const { store: _, ...own } = config;
    const conversations = new Conversations({ store, config: own });
    opened.push(conversations);
    await conversations.prompt('c1', 'Refund it');
    for await (const { event } of conversations.events('c1'))
      if (event.type === 'turn-end') {
        expect(event).toMatchObject({ status: 'failed', error: { name: 'InvalidOptions' } });
        break;
      }
  });

  test('calls of an agent are approved according to the approver of their own tool', async () => {
    const { refund, ran } = setup('not-the-owner');
    const agent = agentAsTool({
      name: 'desk',
      description: 'Refunds',
      provider: new ScriptedProvider([calling(5), { content: 'Refunded.' }]),
      model: 'm',
      tools: [refund],
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'desk', arguments: { task: 'refund' } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools: [agent] };
    const run = await runToolLoop(config, hello, scope);
    expect(run.pending).toMatchObject([{ tool: 'refund', approver: 'not-the-owner' }]);
    await expect(resumeToolLoop(config, run.state, yes(run.pending), { scope })).rejects.toMatchObject(
      REFUSED,
    );
    await resumeToolLoop(config, run.state, yes(run.pending), { scope, answeredBy: CLERK });
    expect(ran).toEqual([5]);
  });
});

describe('an approved call whose process ended', () => {
  /** A refund that the clerk approved, and whose process ended while it ran. */
  async function dead(approver: Approver) {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => now });
    const begun = Promise.withResolvers<void>();
    let ran = 0;
    const refund = defineTool({
      name: 'refund',
      description: 'Refund',
      parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
      approval: { approver },
      execute: () => {
        ran += 1;
        begun.resolve();
        return ran === 1 ? new Promise<string>(() => {}) : 'refunded';
      },
    });
    const config = {
      provider: new ScriptedProvider([calling(5), { content: 'Done.' }]),
      model: 'm',
      tools: [refund],
      checkpoint: 'step' as const,
      toolTimeoutMs: Number.POSITIVE_INFINITY,
    };
    const stored = { store, runId: 'r1' };
    const run = await runToolLoop({ ...config, ...stored }, hello, scope);
    const by = { scope, answeredBy: CLERK };
    void resumeStoredRun(config, stored, yes(run.pending), by).catch(() => {});
    await begun.promise;
    now += 60_000;
    await recoverRuns({ store, config });
    const { pending = [] } = (await store.load('r1')) ?? {};
    const notDone = pending.map(({ id }) => ({ id, outcome: 'not-done' }) as const);
    return { config, stored, pending, notDone, by, ran: () => ran };
  }

  test('runs again only if not-done is reported by a permitted approver', async () => {
    const { config, stored, pending, notDone, by, ran } = await dead('not-the-owner');
    expect(pending).toMatchObject([{ kind: 'outcome', approver: 'not-the-owner' }]);
    const refused = {
      ...REFUSED,
      message: expect.stringMatching(
        /can be reported as done or not done only by a user who is not the owner/,
      ),
    };
    for (const answeredBy of [undefined, OWNER]) {
      const said = { owner: OWNER, answeredBy };
      await expect(answerStoredRun(stored, notDone, said)).rejects.toMatchObject(refused);
      await expect(resumeStoredRun(config, stored, notDone, { scope, answeredBy })).rejects.toMatchObject(
        refused,
      );
    }
    expect(ran()).toBe(1);
    const done = await resumeStoredRun(config, stored, notDone, by);
    expect(done.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'refunded' } }]);
    expect(ran()).toBe(2);
  });

  test('runs again only if the approver function accepts who reports not-done', async () => {
    const { config, stored, notDone, by, ran } = await dead(
      ({ answeredBy }) => (answeredBy as typeof CLERK).user === 'clerk',
    );
    const said = { owner: OWNER, answeredBy: CLERK };
    await expect(answerStoredRun(stored, notDone, said)).rejects.toMatchObject({
      ...REFUSED,
      message: expect.stringContaining('decides who may approve its call'),
    });
    await expect(resumeStoredRun(config, stored, notDone, { scope })).rejects.toMatchObject(REFUSED);
    expect((await resumeStoredRun(config, stored, notDone, by)).status).toBe('completed');
    expect(ran()).toBe(2);
  });

  test('can be refused by the owner, and reported as done only by a permitted approver', async () => {
    const { config, stored, pending, by, ran } = await dead('not-the-owner');
    const done = pending.map(({ id }) => ({ id, outcome: 'done', result: 'refunded before' }) as const);
    await expect(resumeStoredRun(config, stored, done, { scope })).rejects.toMatchObject(REFUSED);
    const reported = await resumeStoredRun(config, stored, done, by);
    expect(reported.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'refunded before' } }]);
    expect(ran()).toBe(1);
    const other = await dead('not-the-owner');
    const refusal = other.pending.map(({ id }) => ({ id, approved: false }) as const);
    const refused = await resumeStoredRun(other.config, other.stored, refusal, { scope });
    expect(refused.toolCalls).toMatchObject([{ status: 'refused' }]);
    expect(other.ran()).toBe(1);
  });

  test('is asked about again if the answer in the journal is the owner’s', async () => {
    const { config, stored, ran } = await dead('not-the-owner');
    const state = await stored.store.load('r1');
    const [open] = state?.open.calls ?? [];
    if (open?.status !== 'waiting') throw new Error('it was to wait');
    const answered = answerWait({ wait: open.waits[0]!, journal: open.journal }, { outcome: 'not-done' });
    if (!answered.ok) throw new Error(answered.problem);
    const tools = new ToolRegistry().register(...config.tools);
    const call = { id: open.id, name: 'refund', arguments: { amount: 5 }, journal: answered.journal };
    expect(await tools.invoke(call, scope)).toMatchObject({
      status: 'suspended',
      suspension: { waits: [{ kind: 'outcome', approver: 'not-the-owner' }] },
    });
    expect(ran()).toBe(1);
  });
});

describe('standing approvals and approval.approver', () => {
  const remember = { scopes: ['user'], by: [] } as const;

  test('apply only to calls that the person who gave them may approve', async () => {
    const small: Approver = ({ answeredBy, call }) =>
      (answeredBy as typeof CLERK).user === 'clerk' && Number(call.arguments.amount) <= 100;
    const { config, ran } = setup(small, { remember }, [5, 50, 500]);
    const run = await runToolLoop(config, hello, scope);
    const answers = yes(run.pending, { remember: { scope: 'user' } });
    const next = await resumeToolLoop(config, run.state, answers, { scope, answeredBy: CLERK });
    expect(ran).toEqual([5, 50]);
    expect(next).toMatchObject({ status: 'suspended', pending: [{ arguments: { amount: 500 } }] });
  });

  test('do not apply to a parallel call that the person may not approve', async () => {
    const { refund, ran, store } = setup(({ call }) => Number(call.arguments.amount) <= 100, { remember });
    const toolCalls = [5, 500].map((amount) => ({ name: 'refund', arguments: { amount } }));
    const provider = new ScriptedProvider([{ toolCalls }, { content: 'Done.' }]);
    const config = { provider, model: 'm', tools: [refund], store };
    const run = await runToolLoop(config, hello, scope);
    const answers = yes(run.pending?.slice(0, 1), { remember: { scope: 'user' } });
    const next = await resumeToolLoop(config, run.state, answers, { scope, answeredBy: CLERK });
    expect(next).toMatchObject({ status: 'suspended', pending: [{ arguments: { amount: 500 } }] });
    expect(ran).toEqual([]);
  });

  test('of the owner no longer apply once the tool refuses the owner', async () => {
    const { config, refund, store, ran } = setup(({ answeredBy }) => answeredBy !== null, { remember }, [5]);
    const run = await runToolLoop(config, hello, scope);
    await resumeToolLoop(config, run.state, yes(run.pending, { remember: { scope: 'user' } }), { scope });
    expect(ran).toEqual([5]);
    const approver: Approver = ({ answeredBy, owner }) =>
      JSON.stringify(answeredBy) !== JSON.stringify(owner);
    const stricter: ToolDefinition = defineTool({ ...refund, approval: { approver, remember } });
    const provider = new ScriptedProvider([calling(6), { content: 'Done.' }]);
    const again = await runToolLoop({ provider, model: 'm', tools: [stricter], store }, hello, scope);
    expect(again.status).toBe('suspended');
    expect(ran).toEqual([5]);
  });
});
