import { describe, expect, test } from '@jest/globals';
import {
  type CallScope,
  defineTool,
  type Effect,
  MemoryJobEngine,
  type Reconciliation,
  type RecoverOptions,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolContext,
  type ToolDefinition,
  type ToolLoopConfig,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const LEASE = 60_000;
const messages = [{ role: 'user', content: 'Go' }] as const;
const NEVER = new Promise<never>(() => {});

/** A run whose process dies during its call of `work`. */
class DeadRun {
  now = 1_700_000_000_000;
  readonly store = new MemoryRunStore({ now: () => this.now });
  readonly config: ToolLoopConfig;
  readonly contexts: ToolContext[] = [];
  asked = 0;
  #isAlive = false;

  constructor(more: Partial<ToolDefinition> = {}, config: Partial<ToolLoopConfig> = {}) {
    const work = defineTool({
      name: 'work',
      description: 'Works',
      parameters: { type: 'object', properties: { n: { type: 'integer', default: 1 } } },
      ...more,
      execute: (_args, context) => {
        this.contexts.push(context);
        return this.#isAlive ? `worked at try ${this.contexts.length}` : NEVER;
      },
    });
    const provider = {
      chat: async ({ messages: history }: { readonly messages: readonly unknown[] }) => {
        this.asked += 1;
        const toolCalls = history.length === 1 ? [{ id: 'c1', name: 'work', arguments: {} }] : [];
        return { content: 'Hm', toolCalls, finishReason: 'stop' as const };
      },
    };
    this.config = { provider, model: 'm', tools: [work], toolTimeoutMs: Number.POSITIVE_INFINITY, ...config };
  }

  /** Begins the run. Its process dies during the call. */
  async die(scope: CallScope = {}): Promise<void> {
    const { config, store } = this;
    const run = runToolLoop(
      { ...config, store, checkpoint: 'step', runId: 'r', leaseMs: LEASE },
      messages,
      scope,
    );
    run.catch(() => {});
    while (this.contexts.length === 0) await new Promise((resolve) => setImmediate(resolve));
    this.now += LEASE;
    this.#isAlive = true;
  }

  /** The next process also dies during the call. */
  async dieAgain(resume: () => Promise<unknown>): Promise<void> {
    const { length } = this.contexts;
    this.#isAlive = false;
    resume().catch(() => {});
    while (this.contexts.length === length) await new Promise((resolve) => setImmediate(resolve));
    this.now += LEASE;
    this.#isAlive = true;
  }

  recover(options: Partial<RecoverOptions> = {}) {
    return recoverRuns({ store: this.store, config: this.config, leaseMs: LEASE, ...options });
  }

  resume(
    answer: { readonly outcome: 'done'; readonly result?: unknown } | { readonly outcome: 'not-done' },
    id = this.store.load('r')?.pending[0]?.id ?? '',
  ) {
    const answers = [{ id, ...answer }];
    const config = { ...this.config, checkpoint: 'step', leaseMs: LEASE } as const;
    return resumeStoredRun(config, { store: this.store, runId: 'r' }, answers);
  }
}

describe('recoverRuns', () => {
  test('returns nothing if no run was interrupted', async () => {
    const { store, config } = new DeadRun();
    await runToolLoop({ ...config, tools: [], store, checkpoint: 'step' }, [
      ...messages,
      { role: 'user', content: 'x' },
    ]);
    expect(await recoverRuns({ store, config })).toEqual([]);
  });

  test('does not repeat work that `once` had finished, with checkpoint call', async () => {
    let now = 1_700_000_000_000;
    const store = new MemoryRunStore({ now: () => now });
    const [charged, died] = [[] as string[], Promise.withResolvers<void>()];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      annotations: { idempotent: true },
      execute: async (_args, context) => {
        const receipt = await context.once('charge', () => `receipt ${charged.push(context.callId)}`);
        if (now > 1_700_000_000_000) return receipt;
        died.resolve();
        return NEVER;
      },
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'pay', arguments: {} }] },
      { content: 'Paid' },
    ]);
    const config = { provider, model: 'm', tools: [pay], toolTimeoutMs: Number.POSITIVE_INFINITY };
    const kept = { store, checkpoint: 'call', runId: 'r', leaseMs: LEASE } as const;
    runToolLoop({ ...config, ...kept }, messages).catch(() => {});
    await died.promise;
    now += LEASE;
    const [recovered] = await recoverRuns({
      store,
      config: { ...config, checkpoint: 'call' },
      leaseMs: LEASE,
    });
    expect(recovered).toMatchObject({ result: { status: 'completed', toolCalls: [{ status: 'success' }] } });
    expect(charged).toHaveLength(1);
  });

  test.each([{ readOnly: true }, { idempotent: true }])(
    'repeats an interrupted call with the annotations %j',
    async (annotations) => {
      const run = new DeadRun({ annotations });
      await run.die();
      const [recovered] = await run.recover();
      expect(recovered).toMatchObject({ runId: 'r', result: { status: 'completed', runId: 'r' } });
      expect(run.contexts).toHaveLength(2);
      expect(new Set(run.contexts.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
      expect(run.asked).toBe(2);
    },
  );

  test('suspends a run whose call has an unknown outcome, and a resume uses the given outcome', async () => {
    const run = new DeadRun();
    await run.die();
    const [recovered] = await run.recover();
    expect(recovered).toMatchObject({ result: { status: 'suspended' } });
    expect(run.store.load('r')?.pending).toMatchObject([
      {
        kind: 'outcome',
        callId: 'c1',
        tool: 'work',
        arguments: { n: 1 },
        message: "The call of 'work' was interrupted. It is not known whether it was executed.",
      },
    ]);
    const resumed = await run.resume({ outcome: 'done', result: { paid: 7 } });
    expect(resumed.messages.at(2)).toMatchObject({ role: 'tool', content: '{"paid":7}' });
    expect(run.contexts).toHaveLength(1);
  });

  test('repeats the call with the same idempotency key if the answer is `not-done`', async () => {
    const run = new DeadRun();
    await run.die();
    await run.recover();
    const resumed = await run.resume({ outcome: 'not-done' });
    expect(resumed).toMatchObject({
      status: 'completed',
      toolCalls: [{ result: { forLLM: 'worked at try 2' } }],
    });
    const [first, second] = run.contexts;
    expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
  });

  test('asks for the outcome again if the process also dies during the repeated call', async () => {
    const run = new DeadRun();
    await run.die();
    await run.recover();
    const [first] = run.store.load('r')?.pending ?? [];
    await run.dieAgain(() => run.resume({ outcome: 'not-done' }));
    await run.recover();
    const [second] = run.store.load('r')?.pending ?? [];
    expect(second).toMatchObject({ kind: 'outcome', callId: 'c1' });
    expect(second?.id).not.toBe(first?.id);
    expect(run.contexts).toHaveLength(2);
    await expect(run.resume({ outcome: 'not-done' }, first?.id)).rejects.toMatchObject({
      name: 'InvalidAnswer',
    });
    expect(run.contexts).toHaveLength(2);
    const resumed = await run.resume({ outcome: 'not-done' });
    expect(resumed.toolCalls).toMatchObject([{ result: { forLLM: 'worked at try 3' } }]);
  });

  test.each(['step', 'call'] as const)(
    'keeps the checkpoint %s of a run that was resumed without one, and whose process then died',
    async (checkpoint) => {
      const run = new DeadRun();
      const { config, store } = run;
      await run.die();
      await run.recover({ config: { ...config, checkpoint } });
      const [pending] = store.load('r')?.pending ?? [];
      const answers = [{ id: pending?.id ?? '', outcome: 'not-done' }] as const;
      await run.dieAgain(() =>
        resumeStoredRun({ ...config, leaseMs: LEASE }, { store, runId: 'r' }, answers),
      );
      expect(store.read('r')).toMatchObject({ status: 'running', state: { checkpoint } });
      expect(await run.recover()).toMatchObject([{ result: { status: 'suspended' } }]);
      expect(store.load('r')).toMatchObject({ checkpoint, pending: [{ kind: 'outcome', callId: 'c1' }] });
      expect(run.contexts).toHaveLength(2);
    },
  );

  test('keeps the channel, the chat and the conversation of the scope', async () => {
    const budget = { conversation: { calls: 9 }, store: new MemoryRunStore() };
    const run = new DeadRun({ annotations: { readOnly: true } }, { budget });
    await run.die({ channel: 'mail', chatId: 'ada', conversationId: 'c1', data: { userId: 'u1' } });
    const [recovered] = await run.recover({ scope: () => ({ chatId: 'bob' }) });
    expect(recovered).toMatchObject({ result: { status: 'completed' } });
    expect(run.contexts[1]).toMatchObject({ channel: 'mail', chatId: 'bob', conversationId: 'c1' });
    expect(run.contexts[1]?.data).toEqual({});
  });

  test('treats a refusal as the outcome as a refused call', async () => {
    const run = new DeadRun();
    await run.die();
    await run.recover();
    const [pending] = run.store.load('r')?.pending ?? [];
    const answers = [{ id: pending?.id ?? '', approved: false, reason: 'leave it' }];
    const resumed = await resumeStoredRun(run.config, { store: run.store, runId: 'r' }, answers);
    expect(resumed.toolCalls).toMatchObject([{ status: 'refused' }]);
  });

  test.each([{ outcome: 'perhaps' }, { outcome: 'done', result: () => 1 }, { result: 5 }])(
    'refuses the outcome %j',
    async (answer) => {
      const run = new DeadRun();
      await run.die();
      await run.recover();
      await expect(run.resume(answer as never)).rejects.toMatchObject({ name: 'InvalidAnswer' });
    },
  );

  test('with `onUnknown`, reports an unknown outcome to the model or repeats the call', async () => {
    const told = new DeadRun();
    await told.die();
    await told.recover({ onUnknown: 'error' });
    const end = told.store.read('r')?.entries.at(-1);
    expect(end).toMatchObject({
      messages: [
        { role: 'assistant' },
        {
          role: 'tool',
          content:
            "The call of 'work' was interrupted. It is not known whether it was executed. Find out, or ask, before you call it again.",
        },
        { role: 'assistant' },
      ],
    });
    const again = new DeadRun();
    await again.die();
    expect(await again.recover({ onUnknown: 'rerun' })).toMatchObject([{ result: { status: 'completed' } }]);
    expect(again.contexts).toHaveLength(2);
  });

  test.each<readonly [string, Reconciliation, unknown]>([
    [
      'done',
      { status: 'done', result: 'it was done' },
      { status: 'completed', toolCalls: [{ result: { forLLM: 'it was done' } }] },
    ],
    [
      'not done',
      { status: 'not-done' },
      { status: 'completed', toolCalls: [{ result: { forLLM: 'worked at try 2' } }] },
    ],
    ['unknown', { status: 'unknown' }, { status: 'suspended' }],
    ['nonsense', { status: 'perhaps' } as never, { status: 'suspended' }],
  ])('asks the tool for the outcome of its call: %s', async (_what, known, result) => {
    const asked: Effect[] = [];
    const reconcile = (effect: Effect): Reconciliation => {
      asked.push(effect);
      return known;
    };
    const run = new DeadRun({ reconcile });
    await run.die();
    expect(await run.recover()).toMatchObject([{ result }]);
    expect(asked).toEqual([
      { callId: 'c1', arguments: { n: 1 }, idempotencyKey: run.contexts[0]?.idempotencyKey },
    ]);
  });

  test('asks a person for the outcome if `reconcile` throws', async () => {
    const reconcile = () => {
      throw new Error('the bank is closed');
    };
    const run = new DeadRun({ reconcile });
    await run.die();
    expect(await run.recover()).toMatchObject([{ result: { status: 'suspended' } }]);
  });

  test('uses the owner, the tools and the model of the run', async () => {
    const run = new DeadRun({ annotations: { readOnly: true } });
    await run.die({ owner: { user: 'u1' } });
    const requests: unknown[] = [];
    const other = defineTool({ name: 'other', description: 'Other', execute: () => 1 });
    const provider = {
      chat: async (request: {
        readonly model: string;
        readonly tools?: readonly { readonly function: object }[];
      }) => {
        requests.push([request.model, request.tools?.map((tool) => tool.function)]);
        return run.config.provider.chat(request as never);
      },
    };
    const { tools = [] } = run.config;
    const config = { provider, model: 'another', tools: [...(tools as readonly ToolDefinition[]), other] };
    const wrong = await run.recover({ config, scope: () => ({ owner: { user: 'u2' } }) });
    expect(wrong).toMatchObject([{ runId: 'r', error: { name: 'RunNotAllowed' } }]);
    run.now += LEASE;
    expect(await run.recover({ config })).toMatchObject([{ result: { status: 'completed' } }]);
    expect(requests).toEqual([['m', [expect.objectContaining({ name: 'work' })]]]);
  });

  test('leaves a run that fails to resume here to the next attempt after the lease', async () => {
    const run = new DeadRun({ annotations: { readOnly: true } });
    await run.die();
    const config = () => {
      throw new Error('no config for this one');
    };
    const heard: unknown[] = [];
    const failed = await run.recover({ config, onResult: (recovered) => heard.push(recovered) });
    expect(failed).toEqual([{ runId: 'r', error: new Error('no config for this one') }]);
    expect(heard).toEqual(failed);
    expect(await run.recover()).toEqual([]);
    run.now += LEASE;
    expect(await run.recover()).toMatchObject([{ result: { status: 'completed' } }]);
  });

  test('recovers no runs after it was aborted', async () => {
    const run = new DeadRun();
    await run.die();
    expect(await run.recover({ signal: AbortSignal.abort() })).toEqual([]);
    expect(run.store.read('r')).toMatchObject({ generation: 1 });
  });

  test('makes the store refuse writes of the previous holder of the lease', async () => {
    const run = new DeadRun();
    const { config, store } = run;
    let finish = (): void => {};
    const slow = defineTool({
      name: 'work',
      description: 'Works',
      annotations: { readOnly: true },
      execute: (_args, context) => {
        run.contexts.push(context);
        return run.contexts.length === 1 ? new Promise<void>((resolve) => (finish = resolve)) : 'quick';
      },
    });
    const first = runToolLoop(
      { ...config, tools: [slow], store, checkpoint: 'step', runId: 'r', leaseMs: LEASE },
      messages,
    );
    while (run.contexts.length === 0) await new Promise((resolve) => setImmediate(resolve));
    run.now += LEASE;
    expect(await run.recover({ config: { ...config, tools: [slow] } })).toMatchObject([
      { result: { status: 'completed' } },
    ]);
    const before = store.read('r');
    finish();
    await expect(first).rejects.toMatchObject({ name: 'RunClaimed' });
    expect(store.read('r')).toEqual(before);
  });

  test('recovers several runs concurrently, each in only one process', async () => {
    const run = new DeadRun({ annotations: { readOnly: true } });
    for (const runId of ['a', 'b', 'c'])
      runToolLoop(
        { ...run.config, store: run.store, checkpoint: 'step', runId, leaseMs: LEASE },
        messages,
      ).catch(() => {});
    await run.die();
    const both = await Promise.all([run.recover({ maxConcurrency: 2 }), run.recover()]);
    expect(
      both
        .flat()
        .map(({ runId }) => runId)
        .sort(),
    ).toEqual(['a', 'b', 'c', 'r']);
  });

  test('does not start the job of a background tool twice if the process died before storing its result', async () => {
    let now = 0;
    const store = new MemoryRunStore({ now: () => now });
    const engine = new MemoryJobEngine();
    let dies = (): void => {};
    const death = new Promise<void>((resolve) => {
      dies = resolve;
    });
    const dying = new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          const isResult =
            ['append', 'end'].includes(String(name)) && JSON.stringify(args[1]).includes('"calls","calls"');
          if (!isResult) return method.apply(target, args);
          dies();
          return NEVER;
        };
      },
    });
    const mail = defineTool({ name: 'mail', description: 'Mails', background: true, execute: () => 'sent' });
    const config = {
      model: 'm',
      tools: [mail],
      engine,
      checkpoint: 'step',
      runId: 'r',
      leaseMs: LEASE,
    } as const;
    const toolCalls = [{ id: 'c1', name: 'mail', arguments: {} }];
    const first = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
    runToolLoop({ ...config, provider: first, store: dying }, messages).catch(() => {});
    await death;
    now = LEASE;
    const provider = new ScriptedProvider([{ content: 'Done' }]);
    const [recovered] = await recoverRuns({ store, config: { ...config, provider, store } });
    expect(recovered).toMatchObject({ result: { status: 'completed', toolCalls: [{ status: 'started' }] } });
    expect((await store.jobs.listJobs()).jobs).toHaveLength(1);
    await engine.close();
  });

  test('must come first: resuming an interrupted run throws RunNotSuspended', async () => {
    const run = new DeadRun();
    await run.die();
    await expect(resumeStoredRun(run.config, { store: run.store, runId: 'r' }, [])).rejects.toMatchObject({
      name: 'RunNotSuspended',
    });
  });

  test('continues the count of the loop guard of the interrupted run', async () => {
    const replies = Array.from({ length: 8 }, () => ({
      content: '',
      toolCalls: [{ id: 'c', name: 'work', arguments: {} }],
    }));
    const provider = new ScriptedProvider(replies);
    const run = new DeadRun({ annotations: { readOnly: true } });
    let calls = 0;
    const work = defineTool({
      name: 'work',
      description: 'Works',
      annotations: { readOnly: true },
      execute: (_args, context) => {
        calls += 1;
        run.contexts.push(context);
        return calls === 5 ? NEVER : 'the same';
      },
    });
    const config = { ...run.config, provider, tools: [work] };
    runToolLoop(
      { ...config, store: run.store, checkpoint: 'step', runId: 'r', leaseMs: LEASE },
      messages,
    ).catch(() => {});
    while (calls < 5) await new Promise((resolve) => setImmediate(resolve));
    run.now += LEASE;
    const [recovered] = await run.recover({ config });
    expect(recovered).toMatchObject({
      result: { status: 'failed', error: { name: 'ToolLoopStuck' }, iterations: 6 },
    });
    expect(recovered && 'result' in recovered && recovered.result.toolCalls).toHaveLength(6);
  });
});
