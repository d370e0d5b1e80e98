import { describe, expect, test } from '@jest/globals';
import {
  type CheckpointStore,
  defineTool,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  type ToolDefinition,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedReply } from 'toolwright/testing';

const messages = [{ role: 'user', content: 'Go' }] as const;
const done: ScriptedReply = { content: 'Done' };

function calls(...names: readonly string[]): ScriptedReply {
  return {
    content: 'Calling',
    toolCalls: names.map((name, index) => ({ id: `c${index}`, name, arguments: {} })),
  };
}

function tool(name: string, execute: () => unknown, more: Partial<ToolDefinition> = {}) {
  return defineTool({ name, description: name, ...more, execute });
}

const add = tool('add', () => 2);
const alone = tool('alone', async () => 'alone', { sequential: true });
const order = tool('order', () => 'ordered', { approval: true });

/** A config with a store and a scripted provider. */
function kept(replies: readonly ScriptedReply[], tools: readonly ToolDefinition[] = [add, alone, order]) {
  const store = new MemoryRunStore();
  const provider = new ScriptedProvider(replies);
  return { store, provider, model: 'm', tools, checkpoint: 'step', runId: 'r' } as const;
}

/** The stored entries of a run in short form. */
function written(store: MemoryRunStore): readonly string[] {
  return (store.read('r')?.entries ?? []).map((entry) => {
    if (entry.type === 'step') return `step: ${entry.open.calls.map(({ status }) => status).join(' ')}`;
    if (entry.type === 'calls')
      return `calls: ${entry.calls.map(({ index, call }) => `${index} ${call.status}`).join(', ')}`;
    return entry.type === 'end' ? `end: ${entry.status}` : entry.type;
  });
}

/** A store that runs a function before one of its methods. */
function storeWith(
  store: CheckpointStore,
  name: keyof CheckpointStore,
  before: () => unknown,
): CheckpointStore {
  return new Proxy(store, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      const method = member as (...args: unknown[]) => unknown;
      if (key !== name) return method.bind(target);
      return async (...args: unknown[]) => {
        await before();
        return method.apply(target, args);
      };
    },
  });
}

describe('checkpoint', () => {
  test('stores each step before its calls run, their results together, and the end', async () => {
    const seen: (readonly string[])[] = [];
    const look = tool('look', () => seen.push(written(config.store)));
    const config = kept([calls('look'), calls('add', 'add'), done], [add, look]);
    const run = await runToolLoop(config, messages);
    expect(run).toMatchObject({ status: 'completed', content: 'Done', runId: 'r' });
    expect(seen).toEqual([['step: begun']]);
    expect(config.store.read('r')).toMatchObject({ status: 'ended', generation: 1 });
    expect(written(config.store)).toEqual([
      'step: begun',
      'calls: 0 settled',
      'step: begun begun',
      'calls: 0 settled, 1 settled',
      'end: completed',
    ]);
  });

  test('stores the start of a delayed call together with the result that it waited for', async () => {
    const config = kept([calls('add', 'alone', 'add', 'order'), done]);
    await runToolLoop({ ...config, maxConcurrency: 1 }, messages).then(({ pending = [] }) =>
      expect(pending).toHaveLength(1),
    );
    expect(config.store.read('r')).toMatchObject({ status: 'suspended', entries: [] });
    const again = kept([calls('add', 'alone', 'add'), done]);
    await runToolLoop(again, messages);
    expect(written(again.store)).toEqual([
      'step: begun held held',
      'calls: 0 settled, 1 begun',
      'calls: 1 settled, 2 begun',
      'calls: 2 settled',
      'end: completed',
    ]);
  });

  test('stores no start of a call that waits for an approval or the client', async () => {
    const client = tool('client', () => 'never', { execution: 'client' });
    const seen: (readonly string[])[] = [];
    const look = tool('look', () => seen.push(written(config.store)));
    const config = kept([calls('look', 'order', 'client'), done], [look, order, client]);
    await runToolLoop(config, messages);
    expect(seen).toEqual([['step: begun held held']]);
  });

  test('stores a resumed run step by step until its end', async () => {
    const config = kept([calls('add', 'order'), calls('add'), done]);
    const { pending = [] } = await runToolLoop(config, messages);
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    const run = await resumeStoredRun(config, { store: config.store, runId: 'r' }, answers);
    expect(run).toMatchObject({ status: 'completed', runId: 'r' });
    expect(config.store.read('r')).toMatchObject({
      status: 'ended',
      state: {
        revision: 1,
        open: { calls: [{ status: 'settled' }, { status: 'begun', journal: { approved: true } }] },
      },
    });
    expect(written(config.store)).toEqual([
      'calls: 1 settled',
      'step: begun',
      'calls: 0 settled',
      'end: completed',
    ]);
  });

  test('leaves a suspended run unchanged if its answers are invalid', async () => {
    const config = kept([calls('order'), done]);
    await runToolLoop(config, messages);
    const before = config.store.load('r');
    const resumed = resumeStoredRun(config, { store: config.store, runId: 'r' }, [
      { id: 'x', approved: true },
    ]);
    await expect(resumed).rejects.toMatchObject({ name: 'InvalidAnswer' });
    expect(config.store.load('r')).toEqual(before);
    expect(config.store.read('r')?.leaseEnd).toBeUndefined();
  });

  test('sends the call-end event after the result is stored', async () => {
    const config = kept([calls('add'), done]);
    const heard: unknown[] = [];
    for await (const event of streamToolLoop(config, messages))
      if (event.type === 'call-end' || event.type === 'run-end')
        heard.push([event.type, written(config.store).at(-1)]);
    expect(heard).toEqual([
      ['call-end', 'calls: 0 settled'],
      ['run-end', 'end: completed'],
    ]);
  });

  test.each(['step', 'suspend'] as const)(
    'rejects a run with checkpoint %s whose id exists in the store, and makes no request',
    async (checkpoint) => {
      const config = kept([done]);
      await runToolLoop(config, messages);
      const before = config.store.read('r');
      const provider = new ScriptedProvider([done]);
      await expect(runToolLoop({ ...config, provider, checkpoint }, messages)).rejects.toMatchObject({
        code: 517,
        message:
          "The store already has a run 'r', so this run was not started: give it another runId, or read the outcome of the other run with store.read('r').",
      });
      expect(config.store.read('r')).toEqual(before);
      expect(provider.requests).toEqual([]);
    },
  );

  test('is rejected if the store holds only suspended runs, and for resumeToolLoop', async () => {
    const { save, load, claim, renew, release, remove } = MemoryRunStore.prototype;
    const store = { save, load, claim, renew, release, remove };
    await expect(runToolLoop({ ...kept([done]), store }, messages)).rejects.toThrow(
      'a store of suspended runs only cannot',
    );
    const config = kept([calls('order')]);
    const { state } = await runToolLoop(config, messages);
    await expect(resumeToolLoop(config, state, [])).rejects.toThrow('resumeStoredRun');
  });

  test('runs no call if its step could not be stored', async () => {
    let ran = 0;
    const config = kept([calls('work'), done], [tool('work', () => (ran += 1))]);
    const store = storeWith(config.store, 'append', () => Promise.reject(new Error('the disk is full')));
    await expect(runToolLoop({ ...config, store, leaseMs: 100 }, messages)).rejects.toMatchObject({
      name: 'RunStoreFailed',
      message: expect.stringContaining('the disk is full'),
    });
    expect(ran).toBe(0);
    expect(config.store.read('r')).toMatchObject({ status: 'running', entries: [] });
  });

  test.each(['begin', 'append', 'end', 'release'] as const)(
    'does not retry a failure of the store in %s that is not retryable, and logs it once',
    async (name) => {
      const config = kept(name === 'release' ? [calls('order')] : [calls('add'), done]);
      let tries = 0;
      const store = storeWith(config.store, name, () => {
        tries += 1;
        throw Object.assign(new Error('permission denied'), { retryable: false });
      });
      const logged: string[] = [];
      const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void logged.push(line) };
      const message = "The store could not save run 'r': permission denied";
      await expect(runToolLoop({ ...config, store, logger }, messages)).rejects.toMatchObject({
        name: 'RunStoreFailed',
        message,
      });
      expect(tries).toBe(1);
      expect(logged).toEqual(name === 'release' ? [`Run failed: ${message}`] : []);
    },
  );

  test.each(['begin', 'append', 'end', 'release'] as const)(
    'logs a failure of the store in %s, and retries',
    async (name) => {
      let failures = 2;
      const config = kept([calls('add', 'order'), done].slice(name === 'release' ? 0 : 1));
      const replies = name === 'release' ? [calls('order')] : [calls('add'), done];
      const store = storeWith(config.store, name, () => {
        failures -= 1;
        if (failures >= 0) throw new Error('busy');
      });
      const logged: string[] = [];
      const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void logged.push(line) };
      const provider = new ScriptedProvider(replies);
      const run = await runToolLoop({ ...config, provider, store, logger }, messages);
      expect(run).toMatchObject({ status: name === 'release' ? 'suspended' : 'completed' });
      expect(run.error).toBeUndefined();
      expect(logged).toEqual([
        expect.stringMatching(/^Run '\S+' could not be saved; it is tried again .*: busy$/),
      ]);
    },
  );

  test.each(['begin', 'append', 'end', 'release'] as const)(
    'accepts a write of %s that succeeded although it threw',
    async (name) => {
      let isFirst = true;
      const config = kept(name === 'release' ? [calls('order')] : [calls('add'), done]);
      const doubtful = new Proxy(config.store as CheckpointStore, {
        get: (target, key) => {
          const method = Reflect.get(target, key) as (...args: unknown[]) => unknown;
          return (...args: unknown[]) => {
            const told = method.apply(target, args);
            if (key !== name || !isFirst) return told;
            isFirst = false;
            throw new Error('the connection was cut');
          };
        },
      });
      const run = await runToolLoop({ ...config, store: doubtful }, messages);
      expect(run).toMatchObject({ status: name === 'release' ? 'suspended' : 'completed' });
      expect(run.error).toBeUndefined();
    },
  );

  test('suspend rejects a second run with the same id, even a concurrent one', async () => {
    const { store, ...config } = kept([calls('order'), calls('order'), calls('order')]);
    const suspending = { ...config, store, checkpoint: 'suspend' } as const;
    const [first, second] = await Promise.all(
      ['ada', 'eve'].map((user) => runToolLoop(suspending, messages, { owner: { user } })),
    );
    expect([first?.status, second?.status].sort()).toEqual(['failed', 'suspended']);
    const { state } = first?.status === 'suspended' ? first : second!;
    expect(store.load('r')).toEqual(state);
    const third = runToolLoop(suspending, messages, { owner: { user: 'eve' } });
    await expect(third).rejects.toMatchObject({ name: 'RunClaimed', code: 517 });
    expect(store.load('r')).toEqual(state);
  });

  test('aborts a run that another process has claimed', async () => {
    let reason: unknown;
    const work = defineTool({
      name: 'work',
      description: 'Works',
      execute: async (_args, { signal }) => {
        config.store.seize({ runId: 'r', claim: 'other', leaseMs: 1000, from: 'anybody' });
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
      },
    });
    const config = kept([calls('work'), done], [work]);
    const run = runToolLoop({ ...config, leaseMs: 30 }, messages);
    await expect(run).rejects.toMatchObject({ name: 'RunClaimed' });
    expect(reason).toMatchObject({ name: 'RunClaimed' });
    expect(written(config.store)).toEqual(['step: begun']);
  });

  test('renews its lease while a call runs', async () => {
    let renewals = 0;
    let go = (): void => {};
    const renewed = new Promise<void>((resolve) => {
      go = resolve;
    });
    const config = kept([calls('work'), done], [tool('work', () => renewed)]);
    const store = storeWith(config.store, 'renew', () => {
      renewals += 1;
      if (renewals === 3) go();
    });
    await expect(runToolLoop({ ...config, store, leaseMs: 60 }, messages)).resolves.toMatchObject({
      status: 'completed',
    });
  });

  test('stores the end of a run that throws or whose prepareStep throws', async () => {
    const limit = kept([calls('add')]);
    const run = runToolLoop({ ...limit, maxIterations: 1, onLimit: 'throw' }, messages);
    await expect(run).rejects.toMatchObject({ name: 'ToolLoopLimitReached' });
    expect(limit.store.read('r')?.entries.at(-1)).toMatchObject({
      status: 'limit',
      error: { name: 'ToolLoopLimitReached', code: 504 },
    });
    const thrown = kept([calls('add'), done]);
    const prepareStep = ({ step }: { readonly step: number }) => {
      if (step === 2) throw new Error('the author erred');
      return undefined;
    };
    expect(await runToolLoop({ ...thrown, prepareStep }, messages)).toMatchObject({
      status: 'failed',
      toolCalls: [{ name: 'add', status: 'success' }],
    });
    expect(thrown.store.read('r')).toMatchObject({ status: 'ended' });
    expect(thrown.store.read('r')?.entries.at(-1)).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('the author erred') },
    });
  });

  test("with 'call' stores each value of `once` before the tool continues", async () => {
    const seen: (readonly string[])[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      execute: async (_args, context) => {
        await context.once('charge', () => 7);
        seen.push(written(config.store));
      },
    });
    const config = kept([calls('pay'), done], [pay]);
    await runToolLoop({ ...config, checkpoint: 'call' }, messages);
    expect(seen).toEqual([['step: begun', 'once']]);
    const step = kept([calls('pay'), done], [pay]);
    await runToolLoop(step, messages);
    expect(written(step.store)).not.toContain('once');
  });

  test('answers the calls of a truncated reply, and starts none', async () => {
    const config = kept([{ ...calls('add'), finishReason: 'length' }, done]);
    await runToolLoop(config, messages);
    expect(written(config.store)).toEqual(['step: settled', 'end: completed']);
  });
});

test('a run whose resume was aborted before it started still waits, and can be answered later', async () => {
  const { store, ...config } = kept([calls('order'), done]);
  const run = { store, runId: 'r' };
  const { pending = [] } = await runToolLoop({ ...config, store }, messages);
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const left = await resumeStoredRun(config, run, answers, { signal: AbortSignal.abort() });
  expect(left).toMatchObject({ status: 'aborted', toolCalls: [] });
  expect(store.load('r')?.pending).toEqual(pending);
  expect(await resumeStoredRun(config, run, answers)).toMatchObject({ status: 'completed', content: 'Done' });
});
