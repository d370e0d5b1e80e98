import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import {
  answerStoredRun,
  cancelRun,
  compensateRun,
  defineTool,
  discoverTools,
  type Effect,
  errorResult,
  foldRun,
  type Hooks,
  type JobCompletion,
  MemoryJobEngine,
  type Reconciliation,
  recoverRuns,
  runJobs,
  runToolLoop,
  Tool,
  ToolContext,
  type ToolDefinition,
  ToolResult,
  Toolset,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const messages = [{ role: 'user', content: 'Go' }] as const;

/** A shop whose effects can be undone, with a log of what was undone. */
class Shop {
  readonly log: unknown[] = [];
  isClosed = false;
  readonly store = new MemoryRunStore();

  tool(name: string, more: Partial<ToolDefinition> = {}): ToolDefinition {
    return defineTool({
      name,
      description: name,
      parameters: { type: 'object', properties: { n: { type: 'integer' } } },
      execute: ({ n }) => {
        if (n === 13) throw new Error('not this one');
        return `${name} ${n}`;
      },
      compensate: ({ arguments: args, result, idempotencyKey }, context) => {
        if (this.isClosed && args.n === 1) throw new Error('the shop is closed');
        this.log.push([name, args.n, result.forLLM]);
        expect(context.idempotencyKey).not.toBe(idempotencyKey);
        return `undid ${args.n}`;
      },
      ...more,
    });
  }

  async sell(numbers: readonly (readonly number[])[], tools: readonly ToolDefinition[]): Promise<void> {
    const replies = numbers.map((step) => ({
      content: '',
      toolCalls: step.map((n, index) => ({
        id: `c${index}`,
        name: tools[n % tools.length]?.name ?? '',
        arguments: { n },
      })),
    }));
    const provider = new ScriptedProvider([...replies, { content: 'Done' }]);
    const config = {
      provider,
      model: 'm',
      tools,
      store: this.store,
      checkpoint: 'step',
      runId: 'r',
    } as const;
    await runToolLoop(config, messages, { owner: { user: 'u1' } });
  }
}

describe('compensateRun', () => {
  test('undoes the effects of a run in reverse order, each once', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve'), shop.tool('pay')];
    await shop.sell([[0, 1], [13], [2]], tools);
    const first = await compensateRun(shop.store, 'r', { tools });
    expect(first.map(({ callId, tool, status, text }) => [callId, tool, status, text])).toEqual([
      ['c0', 'reserve', 'compensated', 'undid 2'],
      ['c0', 'pay', 'unknown', 'not this one'],
      ['c1', 'pay', 'compensated', 'undid 1'],
      ['c0', 'reserve', 'compensated', 'undid 0'],
    ]);
    expect(shop.log).toEqual([
      ['reserve', 2, 'reserve 2'],
      ['pay', 1, 'pay 1'],
      ['reserve', 0, 'reserve 0'],
    ]);
    const keys = foldRun(shop.store.read('r')!).toolCalls.map(({ idempotencyKey }) => idempotencyKey);
    expect(first.map(({ idempotencyKey }) => idempotencyKey)).toEqual([keys[3], keys[2], keys[1], keys[0]]);
    const again = await compensateRun(shop.store, 'r', { tools });
    expect(again.map(({ status }) => status)).toEqual(['before', 'unknown', 'before', 'before']);
    expect(shop.log).toHaveLength(3);
    expect(shop.store.read('r')).toMatchObject({ status: 'ended' });
    expect(shop.store.read('r')?.leaseEnd).toBeUndefined();
  });

  test('stops at a compensation that fails, and continues from it in the next call', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve'), shop.tool('pay')];
    await shop.sell([[0, 1, 2]], tools);
    shop.isClosed = true;
    expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([
      { status: 'compensated' },
      { status: 'failed', text: 'the shop is closed' },
    ]);
    shop.isClosed = false;
    expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([
      { status: 'before' },
      { status: 'compensated' },
      { status: 'compensated' },
    ]);
    expect(shop.log).toHaveLength(3);
  });

  test('undoes an effect whose record is only partly JSON', async () => {
    const shop = new Shop();
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    const content = [{ type: 'text', content: 'sold', ring }] as const;
    const execute = () => new ToolResult({ forLLM: 'sold', forUser: 'Sold', content });
    const tools = [shop.tool('sell', { execute })];
    await shop.sell([[4]], tools);
    const [record] = foldRun(shop.store.read('r')!).toolCalls;
    expect(record).toMatchObject({
      rawArguments: { n: 4 },
      arguments: { n: 4 },
      result: { forUser: 'Sold' },
    });
    expect(record?.result).not.toHaveProperty('content');
    expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([{ status: 'compensated' }]);
    expect(shop.log).toEqual([['sell', 4, 'sold']]);
  });

  test('reports effects without a compensation', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve'), shop.tool('look', { compensate: undefined })];
    await shop.sell([[0, 1]], tools);
    expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([
      { tool: 'look', status: 'none' },
      { tool: 'reserve', status: 'compensated' },
    ]);
  });

  test('ends a suspended run, which cannot be resumed', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve'), shop.tool('approve', { approval: true })];
    await shop.sell([[0], [1]], tools);
    expect(shop.store.read('r')).toMatchObject({ status: 'suspended' });
    expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([
      { tool: 'reserve', status: 'compensated' },
    ]);
    expect(shop.store.load('r')).toBeUndefined();
    expect(foldRun(shop.store.read('r')!).end).toMatchObject({ status: 'aborted', error: { code: 508 } });
  });

  test.each([undefined, { data: { by: 'clerk' } }])(
    'passes the owner and the id of the run to compensate, with the scope %j',
    async (scope) => {
      const shop = new Shop();
      const seen: unknown[] = [];
      const compensate: ToolDefinition['compensate'] = (_effect, { owner, runId, data }) => {
        seen.push([owner, runId, data]);
      };
      const tools = [shop.tool('pay', { compensate })];
      await shop.sell([[1]], tools);
      await compensateRun(shop.store, 'r', { tools, ...(scope ? { scope } : {}) });
      expect(seen).toEqual([[{ user: 'u1' }, 'r', scope?.data ?? {}]]);
    },
  );

  test('rejects a run that is missing, claimed, or has another owner', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve')];
    const other = { tools, scope: { owner: { user: 'u2' } } };
    await expect(compensateRun(shop.store, 'r', { tools })).rejects.toMatchObject({ name: 'RunNotFound' });
    await shop.sell([[0]], tools);
    await expect(compensateRun(shop.store, 'r', other)).rejects.toMatchObject({ name: 'RunNotAllowed' });
    shop.store.seize({ runId: 'r', claim: 'other', leaseMs: 60_000, from: 'nobody' });
    await expect(compensateRun(shop.store, 'r', { tools })).rejects.toMatchObject({ name: 'RunClaimed' });
    expect(shop.log).toEqual([]);
  });

  test('reports the running call of a lost run as unknown', async () => {
    let now = 0;
    const store = new MemoryRunStore({ now: () => now });
    let began = (): void => {};
    const begun = new Promise<void>((resolve) => {
      began = resolve;
    });
    const keys: string[] = [];
    const hang = defineTool({
      name: 'hang',
      description: 'Hangs',
      execute: (_args, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        began();
        return new Promise(() => {});
      },
    });
    const provider = new ScriptedProvider([
      { content: '', toolCalls: [{ id: 'c1', name: 'hang', arguments: {} }] },
    ]);
    const config = { provider, model: 'm', tools: [hang], store, checkpoint: 'step', runId: 'r' } as const;
    runToolLoop({ ...config, toolTimeoutMs: Number.POSITIVE_INFINITY }, messages).catch(() => {});
    await begun;
    now = 60_000;
    const text = expect.stringContaining('its effects are unknown');
    const unknown = { callId: 'c1', tool: 'hang', idempotencyKey: keys[0], status: 'unknown', text };
    expect(await compensateRun(store, 'r', { tools: [hang] })).toEqual([unknown]);
    expect(await compensateRun(store, 'r', { tools: [hang] })).toEqual([unknown]);
    expect(await recoverRuns({ store, config })).toEqual([]);
  });

  test('adds to the history that an effect was undone', async () => {
    const shop = new Shop();
    const tools = [shop.tool('reserve'), shop.tool('approve', { approval: true })];
    await shop.sell([[0], [2, 1]], tools);
    await compensateRun(shop.store, 'r', { tools });
    const run = foldRun(shop.store.read('r')!);
    expect(historyFaults(run.messages)).toEqual([]);
    expect(run.messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))).toEqual([
      'reserve 0\n\nThis was undone later: undid 0',
      'reserve 2\n\nThis was undone later: undid 2',
      "The run was aborted. The tool 'approve' was not run.",
    ]);
  });
});

describe('compensateRun with background jobs', () => {
  /** A run that has started a job after a call, and a worker that can be started. */
  async function started(more: Partial<ToolDefinition> = {}) {
    const shop = new Shop();
    const engine = new MemoryJobEngine();
    const tools = [shop.tool('pay'), shop.tool('ship', { background: true, ...more })];
    const calls = [
      { id: 'c0', name: 'pay', arguments: { n: 0 } },
      { id: 'c1', name: 'ship', arguments: { n: 1 } },
    ];
    const provider = new ScriptedProvider([{ content: '', toolCalls: calls }, { content: 'Done' }]);
    const { store } = shop;
    const config = { provider, model: 'm', tools, engine, store, checkpoint: 'step', runId: 'r' } as const;
    await runToolLoop(config, messages);
    const ended = Promise.withResolvers<string>();
    const onAsyncResult = ({ result }: JobCompletion) => ended.resolve(result.forLLM);
    const work = () => runJobs({ engine, store, tools, onAsyncResult });
    return { shop, store, tools, work, ended: ended.promise };
  }

  const statuses = async (store: MemoryRunStore, tools: readonly ToolDefinition[]) =>
    (await compensateRun(store, 'r', { tools })).map(({ tool, status }) => [tool, status]);

  test('cancels a job that has not started', async () => {
    const ran: string[] = [];
    const { store, tools, work, ended } = await started({ execute: () => void ran.push('shipped') });
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'cancelled'],
      ['pay', 'compensated'],
    ]);
    const worker = await work();
    expect(await ended).toBe("The work of the tool 'ship' was cancelled: its effects are being undone");
    await worker.close();
    expect(ran).toEqual([]);
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'cancelled'],
      ['pay', 'before'],
    ]);
  });

  test('undoes a completed job once, and adds that to the history', async () => {
    const { shop, store, tools, work, ended } = await started();
    const worker = await work();
    await ended;
    await worker.close();
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'compensated'],
      ['pay', 'compensated'],
    ]);
    expect(shop.log).toEqual([
      ['ship', 1, 'ship 1'],
      ['pay', 0, 'pay 0'],
    ]);
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'before'],
      ['pay', 'before'],
    ]);
    const texts = foldRun(store.read('r')!).messages.map(({ content }) => content);
    expect(texts).toContain('Started; the result will follow.\n\nThis was undone later: undid 1');
  });

  test('reports a running job as unknown, and undoes it after it has ended', async () => {
    const end = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<void>();
    const execute = () => {
      begun.resolve();
      return end.promise;
    };
    const { store, tools, work, ended } = await started({ execute });
    const worker = await work();
    await begun.promise;
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'unknown'],
      ['pay', 'compensated'],
    ]);
    end.resolve('shipped');
    await ended;
    await worker.close();
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'compensated'],
      ['pay', 'before'],
    ]);
  });

  test('reports a failed job as unknown', async () => {
    const execute = () => {
      throw new Error('the van broke down');
    };
    const { store, tools, work, ended } = await started({ execute });
    const worker = await work();
    await ended;
    await worker.close();
    expect(await statuses(store, tools)).toEqual([
      ['ship', 'unknown'],
      ['pay', 'compensated'],
    ]);
  });
});

/** Ways in which a call ends after its effect without a stored result. */
const CUT_OFF = ['abort', 'cancel', 'timeout', 'throw', 'broken store'] as const;

/** A run whose only payment was interrupted, with the calls of reconcile and compensate. */
async function cutOff(how: (typeof CUT_OFF)[number], more: Partial<ToolDefinition> = {}) {
  const store = new MemoryRunStore();
  const asked: unknown[] = [];
  const paid = Promise.withResolvers<void>();
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    parameters: { type: 'object', properties: { amount: { type: 'integer' }, tip: { default: 1 } } },
    ...(how === 'timeout' ? { timeoutMs: 20 } : {}),
    execute: () => {
      paid.resolve();
      if (how === 'throw') throw new Error('the connection was lost');
      return new Promise(() => {});
    },
    reconcile: ({ idempotencyKey, arguments: args }, { owner, runId }) => {
      asked.push(['reconcile', idempotencyKey, args, owner, runId]);
      return { status: 'done', result: 'payment 7' };
    },
    compensate: ({ idempotencyKey, arguments: args, result }) => {
      asked.push(['compensate', idempotencyKey, args, result.forLLM]);
      return 'refunded';
    },
    ...more,
  });
  const toolCalls = [{ id: 'c1', name: 'pay', arguments: { amount: 7 } }];
  const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
  const abort = new AbortController();
  const kept = { store, checkpoint: 'step', runId: 'r', leaseMs: 300 } as const;
  const config = { provider, model: 'm', tools: [pay], ...kept };
  const scope = { owner: { user: 'u1' }, signal: abort.signal };
  const run = runToolLoop(config, messages, scope).catch(() => {});
  await paid.promise;
  if (how === 'abort') abort.abort();
  if (how === 'cancel') await cancelRun({ store, runId: 'r' });
  if (how === 'broken store') {
    // As when a run throws: its end is stored without the ends of its calls.
    const claim = { runId: 'r', claim: 'other' };
    store.seize({ ...claim, leaseMs: 300, from: 'anybody' });
    const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    const end = { type: 'end', messages: [], status: 'failed', content: '', iterations: 1, usage } as const;
    store.end(claim, [end]);
  }
  await run;
  return { store, tools: [pay], asked };
}

describe('compensateRun of an interrupted or failed call', () => {
  test.each(CUT_OFF)('undoes it if reconcile returns done (%s)', async (how) => {
    const { store, tools, asked } = await cutOff(how);
    const [told, ...others] = await compensateRun(store, 'r', { tools });
    expect(told).toMatchObject({ callId: 'c1', tool: 'pay', status: 'compensated', text: 'refunded' });
    expect(others).toEqual([]);
    const key = told?.idempotencyKey;
    expect(asked).toEqual([
      ['reconcile', key, { amount: 7, tip: 1 }, { user: 'u1' }, 'r'],
      ['compensate', key, { amount: 7, tip: 1 }, 'payment 7'],
    ]);
    expect(await compensateRun(store, 'r', { tools })).toEqual([{ ...told, status: 'before' }]);
    expect(asked).toHaveLength(2);
  });

  test.each(CUT_OFF)('undoes nothing if reconcile returns not-done (%s)', async (how) => {
    const { store, tools, asked } = await cutOff(how, { reconcile: () => ({ status: 'not-done' }) });
    const told = [{ status: 'none', text: 'Its tool reports that it was not executed.' }];
    expect(await compensateRun(store, 'r', { tools })).toMatchObject(told);
    expect(asked).toEqual([]);
    // The result of reconcile may change later.
    const later = tools.map((tool) => ({ ...tool, reconcile: () => ({ status: 'done' }) as const }));
    expect(await compensateRun(store, 'r', { tools: later })).toMatchObject([{ status: 'compensated' }]);
  });

  const SILENT: readonly (readonly [string, Partial<ToolDefinition>, RegExp])[] = [
    ['has no reconcile', { reconcile: undefined }, /^the connection was lost$/],
    ['returns unknown', { reconcile: () => ({ status: 'unknown' }) }, /^the connection was lost$/],
    ['returns no status', { reconcile: () => 'yes' as never }, /lost\n.*`reconcile` must return/],
    [
      'throws in reconcile',
      {
        reconcile: () => {
          throw new Error('the bank is closed');
        },
      },
      /lost\n.*the bank is closed/,
    ],
  ];

  test.each(SILENT)('reports unknown if the tool %s', async (_, more, text) => {
    const { store, tools, asked } = await cutOff('throw', more);
    expect(await compensateRun(store, 'r', { tools })).toMatchObject([
      { status: 'unknown', text: expect.stringMatching(text) },
    ]);
    expect(asked).toEqual([]);
  });

  test('passes edited arguments, also for a call whose end was not stored', async () => {
    const store = new MemoryRunStore();
    const begun = Promise.withResolvers<string>();
    const asked: unknown[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
      approval: true,
      execute: (_args, { idempotencyKey }) => {
        begun.resolve(idempotencyKey);
        return new Promise(() => {});
      },
      reconcile: (effect) => ({ status: asked.push(effect) ? 'done' : 'unknown' }),
      compensate: ({ arguments: args }) => void asked.push(args),
    });
    const toolCalls = [{ id: 'c1', name: 'pay', arguments: { amount: 7 } }];
    const provider = new ScriptedProvider([{ content: '', toolCalls }]);
    const tools = [pay];
    const kept = { store, checkpoint: 'step', runId: 'r', leaseMs: 300 } as const;
    const { pending = [] } = await runToolLoop({ provider, model: 'm', tools, ...kept }, messages);
    const answers = pending.map(({ id }) => ({ id, approved: true, arguments: { amount: 5 } }));
    await answerStoredRun({ store, runId: 'r' }, answers, { tools });
    const recovering = recoverRuns({ store, config: { provider, tools }, leaseMs: 300 });
    const idempotencyKey = await begun.promise;
    await cancelRun({ store, runId: 'r' });
    expect(await compensateRun(store, 'r', { tools })).toMatchObject([
      { status: 'compensated', idempotencyKey },
    ]);
    expect(asked).toEqual([{ callId: 'c1', idempotencyKey, arguments: { amount: 5 } }, { amount: 5 }]);
    await recovering;
  });

  test('waits for reconcile only up to the timeout of the tool', async () => {
    const { store, tools } = await cutOff('timeout', { reconcile: () => new Promise(() => {}) });
    expect(await compensateRun(store, 'r', { tools })).toMatchObject([{ status: 'unknown' }]);
  });

  test('does not report a read-only call, or a failed one without reconcile and compensate', async () => {
    const reader = await cutOff('timeout', { annotations: { readOnly: true } });
    expect(await compensateRun(reader.store, 'r', { tools: reader.tools })).toEqual([]);
    const failed = await cutOff('throw', { reconcile: undefined, compensate: undefined });
    expect(await compensateRun(failed.store, 'r', { tools: failed.tools })).toEqual([]);
  });
});

describe('compensateRun of a call that a hook changed', () => {
  const HOOKS: Readonly<Record<'dry run' | 'onError' | 'afterCall', Hooks>> = {
    'dry run': { beforeRun: () => ({ result: 'dry run' }) },
    onError: { onError: () => ({ result: 'rescued' }) },
    afterCall: { afterCall: ({ status }) => (status === 'error' ? { result: 'rescued' } : undefined) },
  };
  const fail = () => {
    throw new Error('the bank is down');
  };

  /** Statuses of `compensateRun` after a run with one call, and what was asked of its tool. */
  async function undone(hooks: readonly Hooks[], more: Partial<ToolDefinition> = {}) {
    const asked: string[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      execute: () => 'paid',
      reconcile: () => ({ status: asked.push('reconcile') ? 'not-done' : 'unknown' }),
      compensate: () => void asked.push('compensate'),
      ...more,
    });
    const toolCalls = [{ id: 'c1', name: 'pay', arguments: {} }];
    const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
    const store = new MemoryRunStore();
    const kept = { store, checkpoint: 'step', runId: 'r' } as const;
    await runToolLoop({ provider, model: 'm', tools: [pay], hooks, ...kept }, messages);
    const told = await compensateRun(store, 'r', { tools: [pay] });
    return { told: told.map(({ status, text }) => [status, text]), asked };
  }

  test('leaves out a call that the hook answered before its tool ran', async () => {
    expect(await undone([HOOKS['dry run']])).toEqual({ told: [], asked: [] });
    const failing = { beforeRun: () => ({ result: errorResult('no dry run') }) };
    expect(await undone([failing, HOOKS.onError])).toEqual({ told: [], asked: [] });
  });

  test.each(['onError', 'afterCall'] as const)(
    'treats a failure that %s replaced as a failure',
    async (moment) => {
      const more = { execute: fail };
      expect(await undone([HOOKS[moment]], more)).toEqual({
        told: [['none', 'Its tool reports that it was not executed.']],
        asked: ['reconcile'],
      });
      expect(await undone([HOOKS[moment]], { ...more, reconcile: undefined })).toEqual({
        told: [['unknown', 'rescued']],
        asked: [],
      });
      const reconcile = (): Reconciliation => ({ status: 'done', result: 'payment 7' });
      expect(await undone([HOOKS[moment]], { ...more, reconcile })).toMatchObject({ asked: ['compensate'] });
      const neither = { reconcile: undefined, compensate: undefined };
      expect(await undone([HOOKS[moment]], { ...more, ...neither })).toEqual({ told: [], asked: [] });
    },
  );

  test('undoes a successful call whose result afterCall changed', async () => {
    expect(await undone([{ afterCall: () => ({ result: 'shorter' }) }])).toMatchObject({
      asked: ['compensate'],
    });
  });
});

describe('compensateRun of a call that ended without running again', () => {
  /** A run whose process died while its only call ran, with a clock that is past its lease. */
  async function died(more: Partial<ToolDefinition> = {}) {
    let now = 0;
    const store = new MemoryRunStore({ now: () => now });
    const begun = Promise.withResolvers<string>();
    const asked: string[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      execute: (_args, { idempotencyKey }) => {
        begun.resolve(idempotencyKey);
        return new Promise(() => {});
      },
      compensate: ({ result }) => void asked.push(result.forLLM),
      ...more,
    });
    const tools = [pay];
    const toolCalls = [{ id: 'c1', name: 'pay', arguments: {} }];
    const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
    const config = { provider, model: 'm', tools, store, checkpoint: 'step' } as const;
    runToolLoop({ ...config, runId: 'r' }, messages).catch(() => {});
    const idempotencyKey = await begun.promise;
    now = 60_000;
    return { store, tools, config, asked, idempotencyKey };
  }

  /** The same, after its outcome was asked for and a person refused to report it. */
  async function refused(more?: Partial<ToolDefinition>) {
    const run = await died(more);
    const { store, config } = run;
    await recoverRuns({ store, config });
    const [asked] = store.load('r')?.pending ?? [];
    expect(asked?.kind).toBe('outcome');
    await answerStoredRun({ store, runId: 'r' }, [
      { id: `${asked?.id}`, approved: false, reason: 'no idea' },
    ]);
    return run;
  }

  test.each(['continued', 'ended by compensateRun'])(
    'reports it as unknown if a person refused to report its outcome, and the run was %s',
    async (how) => {
      const { store, tools, config, asked, idempotencyKey } = await refused();
      if (how === 'continued') await recoverRuns({ store, config });
      const text = "The tool 'pay' was refused: no idea";
      const unknown = { callId: 'c1', tool: 'pay', idempotencyKey, status: 'unknown', text };
      expect(await compensateRun(store, 'r', { tools })).toEqual([unknown]);
      const known = tools.map((tool) => ({ ...tool, reconcile: () => ({ status: 'not-done' }) as const }));
      expect(await compensateRun(store, 'r', { tools: known })).toMatchObject([{ status: 'none' }]);
      const done = () => ({ status: 'done', result: 'payment 7' }) as const;
      const later = tools.map((tool) => ({ ...tool, reconcile: done }));
      expect(await compensateRun(store, 'r', { tools: later })).toMatchObject([{ status: 'compensated' }]);
      expect(asked).toEqual(['payment 7']);
    },
  );

  test.each<Hooks>([
    { beforeRun: () => ({ refuse: 'not now' }) },
    { beforeRun: () => ({ result: 'dry run' }) },
  ])('reports it as unknown if a hook ended the repeated call (%#)', async (hook) => {
    const { store, tools, config, asked, idempotencyKey } = await died({ annotations: { idempotent: true } });
    await recoverRuns({ store, config: { ...config, hooks: [hook] } });
    expect(await compensateRun(store, 'r', { tools })).toMatchObject([{ status: 'unknown', idempotencyKey }]);
    expect(asked).toEqual([]);
  });

  test('reports it as unknown if its question was refused after an effect in context.once', async () => {
    const store = new MemoryRunStore();
    const order = defineTool({
      name: 'order',
      description: 'Orders',
      execute: async (_args, context) => {
        await context.once('charge', () => 'charged');
        return context.ask({ message: 'Ship it?' });
      },
      compensate: () => 'refunded',
    });
    const toolCalls = [{ id: 'c1', name: 'order', arguments: {} }];
    const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
    const config = { provider, model: 'm', tools: [order], store, checkpoint: 'step' } as const;
    const { pending = [] } = await runToolLoop({ ...config, runId: 'r' }, messages);
    await answerStoredRun(
      { store, runId: 'r' },
      pending.map(({ id }) => ({ id, approved: false })),
    );
    await recoverRuns({ store, config });
    expect(await compensateRun(store, 'r', { tools: [order] })).toMatchObject([{ status: 'unknown' }]);
  });

  test('reports it as unknown if it was refused after a run within it had ended', async () => {
    const store = new MemoryRunStore();
    const calling = (name: string) => ({ content: '', toolCalls: [{ id: 'c1', name, arguments: {} }] });
    const reserve = defineTool({ name: 'reserve', description: 'Reserves', execute: () => 'reserved' });
    const inner = new ScriptedProvider([calling('reserve'), { content: 'Reserved' }]);
    const book = defineTool({
      name: 'book',
      description: 'Books',
      execute: async (_args, context) => {
        await runToolLoop({ provider: inner, model: 'm', tools: [reserve] }, messages);
        return context.ask({ message: 'Book it?' });
      },
      compensate: () => 'cancelled',
    });
    const provider = new ScriptedProvider([calling('book'), { content: 'Done' }]);
    const config = { provider, model: 'm', tools: [book], store, checkpoint: 'step' } as const;
    const { pending = [] } = await runToolLoop({ ...config, runId: 'r' }, messages);
    const answers = pending.map(({ id }) => ({ id, approved: false }));
    await answerStoredRun({ store, runId: 'r' }, answers);
    await recoverRuns({ store, config });
    expect(await compensateRun(store, 'r', { tools: [book] })).toMatchObject([{ status: 'unknown' }]);
  });

  test('is undone in the conversation and the chat of its run, also if that waited', async () => {
    const store = new MemoryRunStore();
    const places: unknown[] = [];
    const compensate = (_: Effect, { chatId, conversationId }: ToolContext) =>
      void places.push([chatId, conversationId]);
    const pay = defineTool({ name: 'pay', description: 'Pays', execute: () => 'paid', compensate });
    const send = defineTool({ name: 'send', description: 'Sends', approval: true, execute: () => 'sent' });
    const toolCalls = ['pay', 'send'].map((name) => ({ id: name, name, arguments: {} }));
    const provider = new ScriptedProvider([{ content: '', toolCalls }]);
    const tools = [pay, send];
    const config = { provider, model: 'm', tools, store, checkpoint: 'step', runId: 'r' } as const;
    await runToolLoop(config, messages, { chatId: 'ada', conversationId: 'c1' });
    await compensateRun(store, 'r', { tools });
    expect(places).toEqual([['ada', 'c1']]);
  });

  test('leaves out a call whose approval was refused', async () => {
    const shop = new Shop();
    const { store } = shop;
    const tools = [shop.tool('pay', { approval: true })];
    await shop.sell([[0]], tools);
    const [asked] = store.load('r')?.pending ?? [];
    await answerStoredRun({ store, runId: 'r' }, [{ id: `${asked?.id}`, approved: false }], {
      owner: { user: 'u1' },
    });
    expect(await compensateRun(store, 'r', { tools })).toEqual([]);
  });
});

test('compensateRun reports a tool missing from `tools` as unknown, and undoes its call later', async () => {
  const shop = new Shop();
  const tools = [shop.tool('reserve'), shop.tool('pay')];
  await shop.sell([[0, 1]], tools);
  expect(await compensateRun(shop.store, 'r', { tools: tools.slice(0, 1) })).toMatchObject([
    { tool: 'pay', status: 'unknown', text: "`tools` has no 'pay', which may have had effects to undo." },
    { tool: 'reserve', status: 'compensated' },
  ]);
  expect(await compensateRun(shop.store, 'r', { tools })).toMatchObject([
    { tool: 'pay', status: 'compensated' },
    { tool: 'reserve', status: 'before' },
  ]);
});

@Toolset()
class Bank {
  readonly log: unknown[] = [];

  @Tool({ description: 'Pays', reconcile: 'findPayment', compensate: 'refund' })
  pay(amount: number = 7) {
    return `paid ${amount}`;
  }

  async findPayment(effect: Effect, context: ToolContext): Promise<Reconciliation> {
    this.log.push([effect.arguments, context instanceof ToolContext]);
    return { status: 'done', result: 'found' };
  }

  refund({ arguments: { amount }, result }: Effect & { readonly result: ToolResult }) {
    this.log.push([amount, result.forLLM]);
  }
}

describe('@Tool', () => {
  test('takes reconcile and compensate as names of methods', async () => {
    const bank = new Bank();
    const [pay] = discoverTools({ toolsets: [Bank], container: { resolve: () => bank as never } });
    const context = {} as ToolContext;
    const effect = { callId: 'c', idempotencyKey: 'k', arguments: { amount: 7 } };
    expect(await pay?.reconcile?.(effect, context)).toEqual({ status: 'done', result: 'found' });
    const store = new MemoryRunStore();
    const toolCalls = [{ id: 'c1', name: 'pay', arguments: { amount: 9 } }];
    const provider = new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done' }]);
    const tools = pay ? [pay] : [];
    await runToolLoop({ provider, model: 'm', tools, store, checkpoint: 'step', runId: 'r' }, messages);
    expect(await compensateRun(store, 'r', { tools })).toMatchObject([{ status: 'compensated' }]);
    expect(bank.log).toEqual([
      [{ amount: 7 }, false],
      [9, 'paid 9'],
    ]);
  });

  test('rejects names of methods that the class does not have', () => {
    @Toolset()
    class Wrong {
      @Tool({ description: 'Pays', reconcile: 'findPaymnt', compensate: 'constructor' })
      pay() {}

      @Tool({ description: 'Asks', reconcile: (() => 1) as never })
      ask() {}
    }
    expect(() => discoverTools({ toolsets: [Wrong] })).toThrow(
      /`reconcile` names 'findPaymnt', which is not a method of Wrong[\s\S]*`compensate` names 'constructor'[\s\S]*name of a method of the same class/,
    );
  });
});
