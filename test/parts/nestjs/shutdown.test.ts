import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { MemoryJobEngine, Tool, ToolContext } from 'toolwright';
import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import { pgBossEngine } from 'toolwright/pg-boss';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { boot } from './boot.js';

@Injectable()
class Database implements OnModuleDestroy {
  isOpen = true;

  onModuleDestroy(): void {
    this.isOpen = false;
  }
}

@Module({ providers: [Database], exports: [Database] })
class DatabaseModule {}

@Injectable()
class SlowTools extends EventEmitter {
  constructor(private readonly database: Database) {
    super();
  }

  @Tool('Work until it is told to go on')
  async work() {
    this.emit('begun');
    await once(this, 'go-on');
    return this.database.isOpen ? 'written' : 'lost';
  }

  @Tool('Work until it is aborted')
  async hang(context: ToolContext) {
    const { signal } = context;
    this.emit('begun');
    await once(signal, 'abort');
    this.emit('aborted', String(signal.reason));
    return 'aborted';
  }

  @Tool('Work until it is aborted, and wind up')
  async windUp(signal: AbortSignal) {
    this.emit('begun');
    await once(signal, 'abort');
    await once(this, 'go-on');
    return this.database.isOpen ? 'written' : 'lost';
  }

  @Tool('Work for ever')
  async ignore() {
    this.emit('begun');
    await new Promise(() => {});
  }
}

const bootSlow = (shutdownTimeoutMs: number | undefined, provider?: ScriptedProvider) =>
  boot({
    options: { shutdownTimeoutMs, model: 'm', ...(provider ? { provider } : {}) },
    imports: [DatabaseModule],
    providers: [SlowTools],
  });

test('a shutdown waits for running calls before anything else is closed', async () => {
  const { module, tools } = await bootSlow(60_000);
  const slow = module.get(SlowTools);
  const begun = once(slow, 'begun');
  const working = tools.execute('work');
  await begun;
  const closing = module.close();
  slow.emit('go-on');
  expect((await working).forLLM).toBe('written');
  await closing;
  expect(module.get(Database).isOpen).toBe(false);
});

test('a shutdown waits for an aborted call whose method takes the signal and needs time to end', async () => {
  const { module, tools } = await bootSlow(60_000);
  const slow = module.get(SlowTools);
  const begun = once(slow, 'begun');
  const stop = new AbortController();
  const working = tools.executeWithContext('wind_up', {}, { signal: stop.signal });
  await begun;
  stop.abort();
  const closing = module.close();
  // Long enough for a shutdown that does not wait.
  for (let tick = 0; tick < 20; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  slow.emit('go-on');
  expect((await working).forLLM).toBe('written');
  await closing;
});

test('a shutdown waits until a running run has ended as a whole', async () => {
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'work', arguments: {} }] },
    { content: '', toolCalls: [{ id: 'b', name: 'work', arguments: {} }] },
    { content: 'done' },
  ]);
  const { module, toolwright } = await bootSlow(60_000, provider);
  const slow = module.get(SlowTools);
  const begun = once(slow, 'begun');
  const running = toolwright.run([]);
  await begun;
  const closing = module.close();
  const begunAgain = once(slow, 'begun');
  slow.emit('go-on');
  await begunAgain;
  slow.emit('go-on');
  const run = await running;
  expect(run.status).toBe('completed');
  expect(run.toolCalls.map(({ result }) => result.forLLM)).toEqual(['written', 'written']);
  await closing;
});

test('a shutdown aborts calls and runs at its time limit, and the runs have a valid history', async () => {
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'a', name: 'hang', arguments: {} }] },
    { content: 'done' },
  ]);
  const { module, toolwright, tools } = await bootSlow(20, provider);
  const slow = module.get(SlowTools);
  const aborted: string[] = [];
  slow.on('aborted', (reason) => aborted.push(reason));
  const running = toolwright.run([]);
  await once(slow, 'begun');
  const begun = once(slow, 'begun');
  const call = tools.execute('hang');
  await begun;
  const ignoring = tools.execute('ignore');
  await module.close();
  const reason = 'The application is shutting down.';
  expect(await call).toMatchObject({ isError: true, forLLM: reason });
  expect(await ignoring).toMatchObject({ isError: true, forLLM: reason });
  expect(aborted).toEqual([`AbortError: ${reason}`, `AbortError: ${reason}`]);
  const run = await running;
  expect(run.status).toBe('aborted');
  expect(run.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'a' });
  expect(await tools.execute('work')).toMatchObject({ isError: true, forLLM: reason });
});

test('without shutdownTimeoutMs, a shutdown waits for ten seconds', async () => {
  const { module, tools } = await bootSlow(undefined);
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
  try {
    const slow = module.get(SlowTools);
    const aborted = jest.fn();
    slow.on('aborted', aborted);
    const begun = once(slow, 'begun');
    const hanging = tools.execute('hang');
    await begun;
    const closing = module.close();
    await jest.advanceTimersByTimeAsync(9_999);
    expect(aborted).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(aborted).toHaveBeenCalledTimes(1);
    expect(await hanging).toMatchObject({ isError: true });
    await closing;
  } finally {
    jest.useRealTimers();
  }
});

test('a stream that is no longer read does not delay a shutdown', async () => {
  const provider = new ScriptedProvider([{ content: 'one two three' }]);
  const { module, toolwright } = await bootSlow(20, provider);
  const events = toolwright.stream([])[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: 'run-start' });
  await module.close();
});

test('a shutdown without running work ends at once', async () => {
  const { module } = await bootSlow(Number.POSITIVE_INFINITY);
  await module.close();
  expect(module.get(Database).isOpen).toBe(false);
});

test('a shutdown waits for started work, and cancels it at the time limit', async () => {
  const work = new EventEmitter();
  @Injectable()
  class Background {
    constructor(private readonly database: Database) {}

    @Tool('Start work')
    start(context: ToolContext) {
      return context.background(async () => {
        await once(work, 'go-on');
        return this.database.isOpen ? 'written' : 'lost';
      }, 'started');
    }
  }
  for (const [shutdownTimeoutMs, isTold] of [
    [60_000, true],
    [20, false],
  ] as const) {
    const { module, tools } = await boot({
      options: { shutdownTimeoutMs },
      imports: [DatabaseModule],
      providers: [Background],
    });
    const completions: string[] = [];
    const acknowledged = await tools.executeWithContext('start', {}, {}, (_context, { forLLM }) =>
      completions.push(forLLM),
    );
    expect(acknowledged).toMatchObject({ async: true, forLLM: 'started' });
    const closing = module.close();
    if (isTold) work.emit('go-on');
    await closing;
    expect(completions).toEqual([isTold ? 'written' : expect.stringContaining('shutting down')]);
  }
});

const jobs = new EventEmitter();
/** How often the work of a job has started. */
let beginnings = 0;

@Injectable()
class LongJobs {
  @Tool({ description: 'Work on, whatever it is told', background: { attempts: 2 } })
  async workOn() {
    return this.#work(() => new Promise(() => {}));
  }

  @Tool({ description: 'Fail in its own words when it is told to stop', background: { attempts: 2 } })
  async giveUp(signal: AbortSignal) {
    return this.#work(async () => {
      await once(signal, 'abort');
      throw new Error('the line is dead');
    });
  }

  @Tool({ description: 'Work, one at a time', background: { attempts: 2, concurrency: 1 } })
  async takeTurns(signal: AbortSignal) {
    return this.#work(() => once(signal, 'abort').then(() => Promise.reject(signal.reason)));
  }

  /** The first run of the work is long; the second fails, as the first of two attempts. */
  async #work(lasting: () => Promise<unknown>): Promise<string> {
    beginnings += 1;
    jobs.emit('begun');
    if (beginnings === 1) await lasting();
    if (beginnings === 2) throw new Error('no paper');
    return 'done';
  }
}

type JobsOptions = Required<Pick<ToolwrightModuleOptions, 'store' | 'engine'>>;

/** An application that runs jobs, and whose shutdown waits only for a moment. */
const bootWorker = (place: JobsOptions, replies: readonly object[]) =>
  boot({
    options: {
      ...place,
      provider: new ScriptedProvider(replies),
      model: 'm',
      worker: true,
      shutdownTimeoutMs: 20,
      conversations: { pollMs: 20 },
    },
    providers: [LongJobs],
  });

interface OpenPlace {
  readonly place: JobsOptions;
  close(): Promise<void>;
}

/** `open` returns the store and the engine of a process, the same for all processes of a test. */
function describeJobs(open: () => OpenPlace): void {
  test.each([{ name: 'work_on' }, { name: 'give_up' }, { name: 'take_turns', calls: 2 }])(
    'a shutdown returns long jobs to the queue with all their attempts: $name',
    async ({ name, calls = 1 }) => {
      beginnings = 0;
      const [first, other] = [open(), open()];
      const begun = once(jobs, 'begun');
      const toolCalls = Array.from({ length: calls }, () => ({ name }));
      const shop = await bootWorker(first.place, [{ toolCalls }, { content: 'Begun' }]);
      await shop.toolwright.conversations.prompt('c1', 'Go');
      await begun;
      // The turn would also be left to other processes, for as long as its lease.
      await shop.toolwright.conversations.idle('c1');
      await shop.module.close();
      await first.close();
      expect(beginnings).toBe(1);
      const next = await bootWorker(other.place, Array(3).fill({ content: 'Noted' }));
      const { conversations } = next.toolwright;
      let results: readonly unknown[] = [];
      for await (const _event of conversations.events('c1')) {
        const said = (await conversations.snapshot('c1'))?.messages ?? [];
        results = said.map(({ content }) => content).filter((text) => String(text).startsWith('[System'));
        if (results.join('').split('[System').length > calls) break;
      }
      expect(results.join('').replaceAll(`[System: async:${name}] `, '')).toBe('done'.repeat(calls));
      await next.module.close();
      await other.close();
    },
  );
}

describe('jobs of an application on MemoryJobEngine', () => {
  let place: JobsOptions;
  beforeEach(() => {
    place = { store: new MemoryRunStore(), engine: new MemoryJobEngine() };
  });
  describeJobs(() => ({ place, close: async () => {} }));
});

describePostgres('jobs of an application on pg-boss', (service) => {
  const schemas = new TestSchemas(service);
  let names: { readonly schema: string; readonly bossSchema: string };
  beforeEach(() => {
    names = { schema: schemas.newSchema(), bossSchema: schemas.newSchema() };
  });
  describeJobs(() => {
    const store = new PostgresRunStore({ connectionString: service.url, schema: names.schema });
    const engine = pgBossEngine({ connection: service.url, schema: names.bossSchema });
    return { place: { store, engine }, close: () => engine.close().then(() => store.close()) };
  });
});
