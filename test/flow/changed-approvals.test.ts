import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  agentAsTool,
  answerStoredRun,
  Conversation,
  Conversations,
  cancelRun,
  defineTool,
  type Hooks,
  MemoryJobEngine,
  type PendingCall,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello = [{ role: 'user', content: 'Refund it' }] as const;
const CHANGED = { name: 'DefinitionChanged', code: 529 };

/** Two versions of a tool, and the arguments of every call that ran. */
function setup() {
  const ran: unknown[] = [];
  const refund = (more: Partial<ToolDefinition> = {}, required: readonly string[] = []) =>
    defineTool({
      name: 'refund',
      description: 'Refund',
      approval: true,
      parameters: {
        type: 'object',
        properties: { amount: { type: 'integer' }, reason: { type: 'string' } },
        required: ['amount', ...required],
      },
      ...more,
      execute: (args) => `refunded ${ran.push(args)}`,
    });
  const store = new MemoryRunStore();
  const config = {
    provider: new ScriptedProvider([
      { toolCalls: [{ id: 'a', name: 'refund', arguments: { amount: 5 } }] },
      { content: 'Done.' },
    ]),
    model: 'm',
    store,
  };
  const versions = {
    old: [refund()],
    renamed: [refund({ name: 'pay_back' })],
    stricter: [refund({ approval: { title: 'Refund with a reason' } }, ['reason'])],
  };
  return { ran, store, config, refund, versions };
}

function yes(pending: readonly PendingCall[] | undefined, more: object = {}): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true, ...more }) as Answer);
}

const WITH_REASON = { arguments: { amount: 5, reason: 'broken' } };

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

describe('an approval whose tool has changed', () => {
  test('is rejected if the tool has a new required argument, and accepted with that argument', async () => {
    const { config, versions, ran } = setup();
    const run = await runToolLoop({ ...config, tools: versions.old }, hello);
    const now = { ...config, tools: versions.stricter };
    await expect(resumeToolLoop(now, run.state, yes(run.pending))).rejects.toMatchObject({
      ...CHANGED,
      message: expect.stringMatching(
        /nothing has run.*'refund' has changed.*reason.*approve it with arguments/,
      ),
    });
    expect(ran).toEqual([]);
    const done = await resumeToolLoop(now, run.state, yes(run.pending, WITH_REASON));
    expect(done.status).toBe('completed');
    expect(ran).toEqual([WITH_REASON.arguments]);
  });

  test('is rejected if the tool is gone; the call can be refused, or the run cancelled', async () => {
    const { config, versions, store, ran } = setup();
    const run = await runToolLoop({ ...config, tools: versions.old }, hello);
    const now = { ...config, tools: versions.renamed };
    for (const answers of [yes(run.pending), yes(run.pending, WITH_REASON)])
      await expect(resumeToolLoop(now, run.state, answers)).rejects.toMatchObject({
        ...CHANGED,
        message: expect.stringMatching(/'refund'.*renamed or removed.*refuse the call or cancel the run/),
      });
    const [{ id } = { id: '' }] = run.pending ?? [];
    const refused = await resumeToolLoop(now, run.state, [{ id, approved: false }]);
    expect(refused).toMatchObject({ status: 'completed', toolCalls: [{ status: 'refused' }] });
    expect(await cancelRun({ store, runId: run.state?.runId ?? '' })).toBe(true);
    expect(ran).toEqual([]);
  });

  test('leaves a stored run suspended, with the question of the current tool', async () => {
    const { config, versions, store, ran } = setup();
    const run = await runToolLoop({ ...config, tools: versions.old }, hello);
    const stored = { store, runId: run.state?.runId ?? '' };
    const { store: _, ...own } = config;
    const now = { ...own, tools: versions.stricter };
    await expect(resumeStoredRun(now, stored, yes(run.pending))).rejects.toMatchObject(CHANGED);
    const asked = await store.load(stored.runId);
    expect(asked?.pending).toMatchObject([
      {
        id: run.pending?.[0]?.id,
        title: 'Refund with a reason',
        description: expect.stringContaining('reason'),
      },
    ]);
    const { tools } = now;
    await expect(answerStoredRun(stored, yes(asked?.pending), { tools })).rejects.toMatchObject(CHANGED);
    expect((await resumeStoredRun(now, stored, yes(asked?.pending, WITH_REASON))).status).toBe('completed');
    expect(ran).toEqual([WITH_REASON.arguments]);
  });

  test('inside an agent leaves the run suspended, with the question of the current tool', async () => {
    const { store, versions, ran } = setup();
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'b', name: 'clerk', arguments: { task: 'Refund it' } }] },
      { toolCalls: [{ id: 'a', name: 'refund', arguments: { amount: 5 } }] },
      { content: 'Refunded.' },
      { content: 'Done.' },
    ]);
    const config = (tools: readonly ToolDefinition[]) => ({
      ...{ provider, model: 'm', store },
      tools: [agentAsTool({ name: 'clerk', description: 'Refunds', provider, model: 'm', tools })],
    });
    const { runId = '', pending } = await runToolLoop(config(versions.old), hello);
    const now = config(versions.stricter);
    await expect(resumeStoredRun(now, { store, runId }, yes(pending))).rejects.toMatchObject(CHANGED);
    const asked = store.load(runId)?.pending;
    expect(asked).toMatchObject([
      { tool: 'refund', title: 'Refund with a reason', path: [{ tool: 'clerk' }] },
    ]);
    const done = await resumeStoredRun(now, { store, runId }, yes(asked, WITH_REASON));
    expect(done.status).toBe('completed');
    expect(ran).toEqual([WITH_REASON.arguments]);
  });

  test('leaves the turn of a Conversation suspended, with the question of the current tool', async () => {
    const { config, versions, ran } = setup();
    const { store: _, ...own } = config;
    const conversation = new Conversation({ ...own, tools: versions.old });
    await conversation.prompt('Refund it');
    conversation.update({ tools: versions.stricter });
    await expect(conversation.answer(yes(conversation.pending))).rejects.toMatchObject(CHANGED);
    expect(conversation.pending).toMatchObject([{ title: 'Refund with a reason' }]);
    await conversation.answer(yes(conversation.pending, WITH_REASON));
    expect(ran).toEqual([WITH_REASON.arguments]);
  });

  test('leaves the turn of Conversations suspended, with the question of the current tool', async () => {
    const { config, versions, ran } = setup();
    const { store, ...own } = config;
    let tools = versions.old;
    const conversations = new Conversations({ store, config: () => ({ ...own, tools }) });
    opened.push(conversations);
    await conversations.prompt('c1', 'Refund it');
    const before = await conversations.idle('c1');
    tools = versions.stricter;
    await expect(conversations.answer('c1', yes(before?.pending))).rejects.toMatchObject(CHANGED);
    const asked = await conversations.snapshot('c1');
    expect(asked).toMatchObject({ status: 'suspended', pending: [{ title: 'Refund with a reason' }] });
    await conversations.answer('c1', yes(asked?.pending, WITH_REASON));
    expect((await conversations.idle('c1'))?.status).toBe('idle');
    expect(ran).toEqual([WITH_REASON.arguments]);
  });

  test.each(['renamed', 'stricter'] as const)(
    'that was stored without tools is asked for again by recoverRuns (%s)',
    async (version) => {
      const { config, versions, store, ran } = setup();
      const run = await runToolLoop({ ...config, tools: versions.old }, hello);
      const stored = { store, runId: run.state?.runId ?? '' };
      // An operator has no tools to check the answer with.
      expect(await answerStoredRun(stored, yes(run.pending))).toEqual([]);
      const now = { ...config, tools: versions[version], checkpoint: 'step' } as const;
      const [recovered] = await recoverRuns({ store, config: now });
      expect(recovered).toMatchObject({
        result: {
          status: 'suspended',
          pending: [
            { kind: 'approval', tool: 'refund', description: expect.stringContaining('has changed') },
          ],
        },
      });
      const asked = (await store.load(stored.runId))?.pending;
      expect(asked?.[0]?.id).not.toBe(run.pending?.[0]?.id);
      expect(ran).toEqual([]);
      const { store: _, ...own } = config;
      const resumed = { ...own, tools: version === 'renamed' ? versions.old : now.tools };
      const answers = yes(asked, version === 'renamed' ? {} : WITH_REASON);
      expect((await resumeStoredRun(resumed, stored, answers)).status).toBe('completed');
      expect(ran).toHaveLength(1);
    },
  );
});

describe('an approval whose tool would run with other arguments', () => {
  const PROPERTIES = { id: { type: 'string' }, note: { type: 'string', default: 'none' } } as const;
  const SHOWN = { id: 'o1', note: 'none' };

  /** A call that waits for the approval of a tool with these parameters. */
  async function waiting(
    more: Partial<ToolDefinition> = {},
    { hooks = [] as readonly Hooks[], shown = SHOWN } = {},
  ) {
    const ran: unknown[] = [];
    const refund = (properties: object, required: readonly string[] = ['id']) =>
      defineTool({
        name: 'refund',
        description: 'Refund',
        approval: { description: ({ note }) => `With the note ${note}` },
        parameters: { type: 'object', properties: properties as typeof PROPERTIES, required },
        ...more,
        execute: (args) => `refunded ${ran.push(args)}`,
      });
    const store = new MemoryRunStore();
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'a', name: 'refund', arguments: { id: 'o1' } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm' };
    const run = await runToolLoop({ ...config, hooks, tools: [refund(PROPERTIES)], store }, hello);
    expect(run.pending).toMatchObject([{ arguments: shown }]);
    return { ran, refund, config, store, run, stored: { store, runId: run.state?.runId ?? '' } };
  }

  const CHANGES = [
    ['an argument removed', { id: PROPERTIES.id }, "it would now run without 'note'", { id: 'o1' }],
    [
      'a new default',
      { ...PROPERTIES, tip: { type: 'integer', default: 50 } },
      "it would now run with 'tip' added",
      { ...SHOWN, tip: 50 },
    ],
    [
      'an argument of another type',
      { ...PROPERTIES, id: { type: 'array', items: { type: 'string' } } },
      "it would now run with another 'id'",
      { ...SHOWN, id: ['o1'] },
    ],
  ] as const;

  test.each(CHANGES)('is rejected for %s, and the run asks about the current arguments', async (...row) => {
    const [, properties, change, now] = row;
    const { ran, refund, config, store, run, stored } = await waiting();
    const changed = { ...config, tools: [refund(properties)] };
    const refused = { ...CHANGED, message: expect.stringContaining(`${change}.`) };
    await expect(resumeToolLoop(changed, run.state, yes(run.pending))).rejects.toMatchObject(refused);
    await expect(resumeStoredRun(changed, stored, yes(run.pending))).rejects.toMatchObject(refused);
    const asked = (await store.load(stored.runId))?.pending;
    expect(asked).toMatchObject([{ arguments: now, description: expect.stringContaining(change) }]);
    expect(asked?.[0]?.id).not.toBe(run.pending?.[0]?.id);
    // An answer to the previous question is rejected.
    await expect(resumeStoredRun(changed, stored, yes(run.pending))).rejects.toMatchObject({ code: 514 });
    expect(ran).toEqual([]);
    expect((await resumeStoredRun(changed, stored, yes(asked))).status).toBe('completed');
    expect(ran).toEqual([now]);
  });

  test.each(CHANGES)(
    'that was stored without tools is asked for again for %s, with the change',
    async (...row) => {
      const [, properties, change, now] = row;
      const { ran, refund, config, store, run, stored } = await waiting();
      expect(await answerStoredRun(stored, yes(run.pending))).toEqual([]);
      const changed = { ...config, tools: [refund(properties)], store, checkpoint: 'step' } as const;
      await recoverRuns({ store, config: changed });
      const asked = (await store.load(stored.runId))?.pending;
      expect(asked).toMatchObject([{ arguments: now, description: expect.stringContaining(change) }]);
      expect(ran).toEqual([]);
      const { store: _, ...own } = changed;
      expect((await resumeStoredRun({ ...own, checkpoint: 'suspend' }, stored, yes(asked))).status).toBe(
        'completed',
      );
      expect(ran).toEqual([now]);
    },
  );

  test.each([
    ['approved', {}],
    ['edited', { arguments: { id: 'o3', note: 'mine' } }],
  ])('asks about the arguments of a hook, and not of the model, if it was %s', async (_what, edit) => {
    const hooks = [{ beforeCall: () => ({ arguments: { id: 'o2' } }) }];
    const { ran, refund, config, store, stored } = await waiting(
      {},
      { hooks, shown: { id: 'o2', note: 'none' } },
    );
    const answers = yes((await store.load(stored.runId))?.pending, edit);
    await answerStoredRun(stored, answers, { tools: [refund(PROPERTIES)] });
    const first = { ...config, hooks, store, checkpoint: 'step' } as const;
    const tip = { ...PROPERTIES, tip: { type: 'integer', default: 50 } };
    await recoverRuns({ store, config: { ...first, tools: [refund(tip)] } });
    const asked = (await store.load(stored.runId))?.pending;
    expect(asked).toMatchObject([{ arguments: { id: 'o2', note: 'none', tip: 50 } }]);
    await resumeStoredRun(
      { ...config, hooks, tools: [refund(tip)], checkpoint: 'suspend' },
      stored,
      yes(asked),
    );
    expect(ran).toEqual([{ id: 'o2', note: 'none', tip: 50 }]);
  });

  test.each([
    ['another default', { ...PROPERTIES, note: { type: 'string', default: 'late' } }],
    ['no default', { ...PROPERTIES, note: { type: 'string' } }],
    ['another description', { ...PROPERTIES, id: { type: 'string', description: 'The order' } }],
  ])('is valid if the tool still accepts the approved arguments: %s', async (_what, properties) => {
    const { ran, refund, config, run } = await waiting();
    const done = await resumeToolLoop(
      { ...config, tools: [refund(properties)] },
      run.state,
      yes(run.pending),
    );
    expect(done).toMatchObject({ status: 'completed', toolCalls: [{ arguments: SHOWN }] });
    expect(ran).toEqual([SHOWN]);
  });

  test('passes the approved arguments again when the method asks afterwards', async () => {
    const { ran, refund, config, run } = await waiting();
    const later = refund({ ...PROPERTIES, note: { type: 'string', default: 'late' } });
    const asks = defineTool({
      ...later,
      execute: async (args: object, context) => {
        ran.push(args);
        return context.ask({ message: 'Sure?' });
      },
    });
    const now = { ...config, tools: [asks] };
    const asking = await resumeToolLoop(now, run.state, yes(run.pending));
    expect(asking.pending).toMatchObject([{ kind: 'question', arguments: SHOWN }]);
    const [{ id } = { id: '' }] = asking.pending ?? [];
    await resumeToolLoop(now, asking.state, [{ id, value: 'yes' }]);
    expect(ran).toEqual([SHOWN, SHOWN]);
  });
});

describe('a call that was running, recovered by a version that requires approval', () => {
  /** A run whose process ended during its call, recovered with another version of the tool. */
  async function dead(later: Partial<ToolDefinition>, more: Partial<ToolLoopConfig> = {}) {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => now });
    const keys: string[] = [];
    const pay = (options: Partial<ToolDefinition>, execute: () => unknown) =>
      defineTool({
        name: 'pay',
        description: 'Pay',
        annotations: { idempotent: true },
        parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
        ...options,
        execute: (_args, { idempotencyKey }) => {
          keys.push(idempotencyKey);
          return execute();
        },
      });
    const begun = Promise.withResolvers<void>();
    const old = pay({}, () => {
      begun.resolve();
      return new Promise(() => {});
    });
    const provider = () =>
      new ScriptedProvider([
        { toolCalls: [{ id: 'a', name: 'pay', arguments: { amount: 5 } }] },
        { content: 'Done.' },
      ]);
    const begin = { provider: provider(), model: 'm', tools: [old], store, checkpoint: 'step' } as const;
    void runToolLoop({ ...begin, runId: 'r', toolTimeoutMs: Number.POSITIVE_INFINITY }, hello).catch(
      () => {},
    );
    await begun.promise;
    now += 60_000;
    const config = {
      provider: new ScriptedProvider([{ content: 'Done.' }]),
      model: 'm',
      tools: [pay(later, () => 'paid')],
      store,
      checkpoint: 'step' as const,
      ...more,
    };
    const [recovered] = await recoverRuns({ store, config });
    if (recovered === undefined || !('result' in recovered)) throw new Error('it was to go on');
    const { result } = recovered;
    const answer = async (answers: readonly Answer[]) => {
      const { store: _, ...own } = config;
      return resumeStoredRun(own, { store, runId: 'r' }, answers);
    };
    return { result, keys, answer };
  }

  test('asks for its outcome, reports that it had started, and accepts no edits', async () => {
    const { result, keys, answer } = await dead({ approval: true });
    expect(result).toMatchObject({
      status: 'suspended',
      pending: [
        { kind: 'outcome', message: expect.stringContaining('The current rules do not let it run again') },
      ],
    });
    const [{ id } = { id: '' }] = result.pending ?? [];
    await expect(answer([{ id, approved: true, arguments: { amount: 6 } }])).rejects.toMatchObject({
      name: 'InvalidAnswer',
    });
    expect(keys).toHaveLength(1);
    const done = await answer([{ id, outcome: 'done', result: 'paid before' }]);
    expect(done.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'paid before' } }]);
    expect(keys).toHaveLength(1);
  });

  test('requires the approval after it is reported as not done', async () => {
    const { result, keys, answer } = await dead({ approval: true });
    const [{ id } = { id: '' }] = result.pending ?? [];
    const asked = await answer([{ id, outcome: 'not-done' }]);
    expect(asked).toMatchObject({ status: 'suspended', pending: [{ kind: 'approval' }] });
    expect(keys).toHaveLength(1);
    const done = await answer(yes(asked.pending));
    expect(done.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'paid' } }]);
    expect(new Set(keys).size).toBe(1);
  });

  test('asks for its outcome even if a policy now refuses it or asks', async () => {
    for (const decision of [false, { ask: true }] as const) {
      const { result } = await dead({}, { policy: () => decision });
      expect(result).toMatchObject({ status: 'suspended', pending: [{ kind: 'outcome' }] });
    }
  });

  test('takes its outcome from reconcile of the tool', async () => {
    const { result } = await dead({
      approval: true,
      reconcile: () => ({ status: 'done', result: 'paid once' }),
    });
    expect(result.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'paid once' } }]);
  });
});

describe('a queued job whose tool now requires approval', () => {
  const NEED = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as const;

  function mail(ran: unknown[], more: Partial<ToolDefinition> = {}) {
    return defineTool({
      name: 'mail',
      description: 'Mail',
      background: true,
      parameters: NEED,
      ...more,
      execute: (args) => `mailed ${ran.push(args)}`,
    });
  }

  async function started(tool: ToolDefinition) {
    const engine = new MemoryJobEngine();
    const store = new MemoryRunStore();
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'mail', arguments: { to: 'a' } }] },
      { content: 'Started.' },
    ]);
    const config = { provider, model: 'm', tools: [tool], engine, store };
    return { engine, store, config, run: await runToolLoop(config, hello, { owner: { user: 'u1' } }) };
  }

  async function completed({ engine, store }: Awaited<ReturnType<typeof started>>, tool: ToolDefinition) {
    const ended = Promise.withResolvers<{ readonly isError: boolean; readonly forLLM: string }>();
    const worker = await runJobs({
      engine,
      store,
      tools: [tool],
      onAsyncResult: ({ result }) => ended.resolve(result),
    });
    opened.push(worker, engine);
    return ended.promise;
  }

  test('does not run; the model is asked to call again, and the new call waits for approval', async () => {
    const ran: unknown[] = [];
    const begun = await started(mail(ran));
    const stricter = mail(ran, { approval: true });
    const result = await completed(begun, stricter);
    expect(result.isError).toBe(true);
    expect(result.forLLM).toMatch(/now needs an approval.*The work was not done.*Call the tool again/);
    expect(ran).toEqual([]);
    const provider = new ScriptedProvider([{ toolCalls: [{ name: 'mail', arguments: { to: 'a' } }] }]);
    const again = await runToolLoop({ ...begun.config, provider, tools: [stricter] }, hello);
    expect(again).toMatchObject({ status: 'suspended', pending: [{ kind: 'approval', tool: 'mail' }] });
  });

  test('runs if its call was approved by a permitted approver', async () => {
    for (const [answeredBy, isDone] of [
      [{ user: 'clerk' }, true],
      [undefined, false],
    ] as const) {
      const ran: unknown[] = [];
      const begun = await started(mail(ran, { approval: true }));
      const options = { scope: { owner: { user: 'u1' } }, answeredBy };
      await resumeToolLoop(begun.config, begun.run.state, yes(begun.run.pending), options);
      const result = await completed(begun, mail(ran, { approval: { approver: 'not-the-owner' } }));
      expect(result.isError).toBe(!isDone);
      expect(ran).toHaveLength(isDone ? 1 : 0);
    }
  });
});
