import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { answerStoredRun, foldRun, MemoryJobEngine, runToolLoop, Tool, ToolContext } from 'toolwright';
import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { boot } from './boot.js';

interface Person {
  readonly user: string;
  readonly role: string;
}

/** The current roles in the application. */
const roles: Record<string, string> = {};

@Injectable()
class ClerksOnly implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<Person | undefined>()?.role === 'clerk';
  }
}

const intercepted: string[] = [];

@Injectable()
class Notes implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    intercepted.push(context.getHandler().name);
    return next.handle();
  }
}

@Injectable({ scope: Scope.REQUEST })
class CurrentUser {
  constructor(@Inject(REQUEST) readonly request: Person | undefined) {}
}

const events = new EventEmitter();

@Injectable()
@UseInterceptors(Notes)
class ShopTools {
  constructor(private readonly current: CurrentUser) {}

  @Tool('Who asks')
  whoAmI(context: ToolContext) {
    return `${this.current.request?.user} ${context.data.role}`;
  }

  @Tool({ description: 'Reprice all goods', background: true })
  @UseGuards(ClerksOnly)
  reprice() {
    return `repriced for ${this.current.request?.user}`;
  }

  @Tool({ description: 'Sign', approval: true })
  sign() {
    events.emit('signed', this.current.request?.user);
    return 'signed';
  }

  @Tool({ description: 'Rest until it is told to go on', annotations: { idempotent: true } })
  async rest() {
    const rested = once(events, 'go-on');
    events.emit('resting');
    await rested;
    return 'rested';
  }

  @Tool('Wait until it is told to go on')
  async hold() {
    events.emit('held');
    await once(events, 'go-on');
    return 'went on';
  }
}

const folder = mkdtempSync(join(tmpdir(), 'toolwright-nest-fleet-'));
const ends: (() => unknown)[] = [];
let files = 0;

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
  intercepted.length = 0;
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newStore(): SqliteRunStore {
  files += 1;
  const store = new SqliteRunStore({ path: join(folder, `${files}.sqlite`) });
  ends.push(() => store.close());
  return store;
}

/** One process of the fleet, with the permissions of the shop. */
async function openShop(options: ToolwrightModuleOptions, replies: readonly object[] = []) {
  const shop = await boot({
    options: {
      provider: new ScriptedProvider(replies),
      model: 'm',
      data: ({ role }: Person) => ({ role }),
      owner: ({ user }: Person) => user,
      scopeOf: (user: string) => ({ request: { user, role: roles[user] } }),
      conversations: { pollMs: 20 },
      ...options,
    },
    providers: [ShopTools, CurrentUser],
  });
  ends.push(() => shop.module.close());
  return shop;
}

/** Retries until the lease has ended. */
async function retried<Value>(work: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if ((error as Error).name !== 'RunClaimed') throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const calling = (name: string) => ({ toolCalls: [{ id: 'call_1', name }] });

function describeFleet(newSharedStore: () => NonNullable<ToolwrightModuleOptions['store']>): void {
  test('a prompt of one process runs in a worker, for the owner that scopeOf returns', async () => {
    roles.ada = 'customer';
    const store = newSharedStore();
    const web = await openShop({ store, worker: false });
    const { owner } = web.toolwright.scopeOf({ user: 'ada', role: 'customer' });
    await web.toolwright.conversations.prompt('c1', 'Who am I?', { owner });
    expect((await web.toolwright.conversations.snapshot('c1'))?.status).toBe('running');
    await openShop({ store, worker: true }, [calling('who_am_i'), { content: 'Ada' }]);
    const view = await web.toolwright.conversations.idle('c1');
    expect(view?.messages).toMatchObject([
      { content: 'Who am I?' },
      { tool_calls: [{ function: { name: 'who_am_i' } }] },
      { role: 'tool', content: 'ada customer' },
      { content: 'Ada' },
    ]);
    expect(intercepted).toEqual(['whoAmI']);
  });
}

describe('ToolwrightService.conversations over SqliteRunStore', () => describeFleet(newStore));

describePostgres('ToolwrightService.conversations over PostgresRunStore', (service) => {
  const schemas = new TestSchemas(service);
  describeFleet(() => {
    const store = new PostgresRunStore({ connectionString: service.url, schema: schemas.newSchema() });
    ends.push(() => store.close());
    return store;
  });
});

describe('ToolwrightModule in a fleet', () => {
  test('a job runs with the request of its jobScope, and its result enters the conversation', async () => {
    roles.cleo = 'clerk';
    const store = newStore();
    const jobs: string[] = [];
    const shop = await openShop(
      {
        store,
        engine: new MemoryJobEngine(),
        worker: true,
        jobScope: ({ tool, scope }) => {
          jobs.push(`${tool} of ${scope.owner}`);
          return { request: { user: `${scope.owner}, by job`, role: 'clerk' } };
        },
      },
      [calling('reprice'), { content: 'Begun' }, { content: 'Done' }],
    );
    await shop.toolwright.conversations.prompt('c1', 'Reprice', { owner: 'cleo' });
    for await (const { event } of shop.toolwright.conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'Done') break;
    const said = (await shop.toolwright.conversations.snapshot('c1'))?.messages;
    expect(said?.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
      'Reprice',
      '[System: async:reprice] repriced for cleo, by job',
    ]);
    expect(jobs).toEqual(['reprice of cleo']);
    expect(intercepted).toEqual(['reprice']);
  });

  test('a shutdown neither waits for jobs nor cancels them, and a worker runs them later', async () => {
    roles.cleo = 'clerk';
    const store = newStore();
    const engine = new MemoryJobEngine();
    const first = await openShop({ store, engine }, [calling('reprice'), { content: 'Begun' }]);
    await first.toolwright.conversations.prompt('c1', 'Reprice', { owner: 'cleo' });
    await first.toolwright.conversations.idle('c1');
    await first.module.close();
    const { jobs } = await store.jobs.listJobs({});
    expect(jobs.map(({ job }) => job.tool)).toEqual(['reprice']);
    const worker = await openShop({ store, engine, worker: true }, [{ content: 'Done' }]);
    for await (const { event } of worker.toolwright.conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'Done') break;
    expect((await worker.toolwright.conversations.snapshot('c1'))?.turns).toBe(2);
  });

  test('the result of a job enters its conversation if nothing else receives it', async () => {
    roles.cleo = 'clerk';
    const store = newStore();
    const engine = new MemoryJobEngine();
    const { tools, toolwright } = await openShop({ store, worker: false });
    await toolwright.conversations.prompt('c1', 'Reprice', { owner: 'cleo' });
    const provider = new ScriptedProvider([calling('reprice'), { content: 'Begun' }]);
    const scope = toolwright.scopeOf({ user: 'cleo', role: 'clerk' }, { conversationId: 'c1' });
    const config = { provider, model: 'm', tools, store, engine, runId: 'c1.1' };
    await runToolLoop(config, [{ role: 'user', content: 'Reprice' }], scope);
    const worker = await openShop({ store, engine, worker: true }, [{ content: 'Hi' }, { content: 'Done' }]);
    for await (const { event } of worker.toolwright.conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'Done') break;
    const view = await worker.toolwright.conversations.snapshot('c1');
    expect(view?.messages.at(-2)?.content).toBe('[System: async:reprice] repriced for cleo');
  });

  test('a guard refuses in a job as in a request', async () => {
    const { toolwright, tools } = await openShop(
      {
        store: newStore(),
        engine: new MemoryJobEngine(),
        worker: true,
        jobScope: ({ scope }) => ({ request: { user: scope.owner, role: roles[String(scope.owner)] } }),
      },
      [calling('reprice'), { content: 'Begun' }],
    );
    const clerk = { user: 'cleo', role: 'clerk' };
    roles.cleo = 'customer';
    const told = new Promise<string>((resolve) => {
      const config = {
        onAsyncResult: (_context: unknown, { forLLM }: { forLLM: string }) => resolve(forLLM),
      };
      void toolwright.run([{ role: 'user', content: 'Reprice' }], { request: clerk, config });
    });
    expect(await told).toContain("The tool 'reprice' was refused");
    const direct = await tools.executeWithContext(
      'reprice',
      {},
      toolwright.scopeOf({ user: 'cleo', role: 'customer' }),
    );
    expect(direct.forLLM).toBe(await told);
    expect(intercepted).toEqual([]);
  });

  test('a shutdown waits for a turn that runs in this process', async () => {
    const store = newStore();
    const shop = await openShop({ store }, [calling('hold'), { content: 'Done' }]);
    const held = once(events, 'held');
    await shop.toolwright.conversations.prompt('c1', 'Hold');
    await held;
    const closed = shop.module.close();
    events.emit('go-on');
    await closed;
    expect((await store.conversations.read('c1'))?.messages).toMatchObject([
      { content: 'Hold' },
      { tool_calls: [{ function: { name: 'hold' } }] },
      { content: 'went on' },
      { content: 'Done' },
    ]);
  });

  test('a shutdown leaves a turn that takes too long to another process, which continues its run', async () => {
    const store = newStore();
    const options = { store, leaseMs: 300, shutdownTimeoutMs: 20 };
    const shop = await openShop(options, [calling('rest'), { content: 'Done' }]);
    const held = once(events, 'resting');
    await shop.toolwright.conversations.prompt('c1', 'Rest');
    await held;
    await shop.module.close();
    const left = await store.conversations.read('c1');
    expect(left).toMatchObject({ turns: 1, turn: { runId: 'c1.1' }, messages: [] });
    expect(await store.read('c1.1')).toMatchObject({ status: 'running' });
    // More than once if this machine is too slow for such a short lease.
    const goOn = () => events.emit('go-on');
    events.on('resting', goOn);
    const other = await openShop(options, [{ content: 'Done' }]);
    const view = await other.toolwright.conversations.idle('c1');
    events.off('resting', goOn);
    expect(view?.messages).toMatchObject([
      { content: 'Rest' },
      { tool_calls: [{ function: { name: 'rest' } }] },
      { content: 'rested' },
      { content: 'Done' },
    ]);
    const told = await store.conversations.events({ conversationId: 'c1', after: 0, limit: 100 });
    const types = told.map(({ event }) => event.type);
    expect(types.filter((type) => type === 'turn-end' || type === 'run-end')).toEqual([
      'run-end',
      'turn-end',
    ]);
    expect(JSON.stringify(told)).not.toContain('aborted');
  });

  test('a shutdown leaves runs with stored steps to another process, even those that it had recovered', async () => {
    const store = newStore();
    const options = { store, leaseMs: 500, shutdownTimeoutMs: 20, checkpoint: 'step' as const };
    const hello = [{ role: 'user', content: 'Rest' }] as const;
    const shop = await openShop({ ...options, worker: false }, [calling('rest'), { content: 'Done' }]);
    let resting = once(events, 'resting');
    const ran = shop.toolwright.run(hello, { config: { runId: 'ran' } });
    ran.catch(() => {});
    await resting;
    resting = once(events, 'resting');
    const other = await openShop({ ...options, worker: false }, [calling('rest')]);
    const read = other.toolwright.stream(hello, { config: { runId: 'read' } });
    const reading = (async () => {
      for await (const _event of read);
    })();
    reading.catch(() => {});
    await resting;
    resting = once(events, 'resting');
    await Promise.all([shop.module.close(), other.module.close()]);
    await expect(ran).rejects.toMatchObject({ name: 'RunClaimed', message: expect.stringContaining('shut') });
    await expect(reading).rejects.toMatchObject({ name: 'RunClaimed' });
    for (const runId of ['ran', 'read'])
      expect(await store.read(runId)).toMatchObject({ status: 'running', entries: { length: 1 } });
    const worker = await openShop({ ...options, worker: true }, [{ content: 'Lost' }]);
    await resting;
    await worker.module.close();
    expect([await store.read('ran'), await store.read('read')]).toMatchObject([
      { status: 'running' },
      { status: 'running' },
    ]);
    const goOn = () => events.emit('go-on');
    events.on('resting', goOn);
    const last = await openShop({ ...options, worker: true, shutdownTimeoutMs: 10_000 }, [
      ...Array.from({ length: 9 }, () => ({ content: 'Done' })),
    ]);
    for (const runId of ['ran', 'read'])
      while ((await store.read(runId))?.status !== 'ended')
        await new Promise((resolve) => setTimeout(resolve, 20));
    await last.module.close();
    events.off('resting', goOn);
    for (const runId of ['ran', 'read']) {
      const ended = await store.read(runId);
      expect(ended && foldRun(ended)).toMatchObject({
        end: { status: 'completed', content: 'Done' },
        toolCalls: [{ status: 'success' }],
      });
    }
  });

  test('a shutdown leaves a run without stored steps suspended, and it can be resumed again', async () => {
    const store = newStore();
    const options = { store, leaseMs: 300, shutdownTimeoutMs: 20, worker: false };
    const request = { user: 'ada', role: 'customer' };
    const web = await openShop(options, [calling('sign')]);
    const { state, pending = [] } = await web.toolwright.run([{ role: 'user', content: 'Sign' }], {
      request,
    });
    const { runId = '' } = state ?? {};
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    const shop = await openShop(options, [calling('rest')]);
    const resting = once(events, 'resting');
    const resumed = shop.toolwright.resumeStored(runId, answers, { request });
    resumed.catch(() => {});
    await resting;
    await shop.module.close();
    await expect(resumed).rejects.toMatchObject({
      name: 'RunClaimed',
      message: expect.stringMatching(/remains suspended.*answers were not saved/),
    });
    const other = await openShop(options, [{ content: 'Done' }]);
    const end = await retried(() => other.toolwright.resumeStored(runId, answers, { request }));
    expect(end).toMatchObject({ status: 'completed', toolCalls: [{ name: 'sign', status: 'success' }] });
  });

  test('a worker continues a run without a holder, for its owner', async () => {
    roles.ada = 'customer';
    const store = newStore();
    const replies = [calling('sign'), { content: 'Signed' }];
    const web = await openShop({ store, checkpoint: 'step', worker: false }, replies);
    const request = { user: 'ada', role: 'customer' };
    const run = await web.toolwright.run([{ role: 'user', content: 'Sign' }], { request });
    const answers = run.pending?.map(({ id }) => ({ id, approved: true })) ?? [];
    const { runId = '' } = run;
    await answerStoredRun({ store, runId }, answers, { owner: 'ada' });
    expect((await store.read(runId))?.status).toBe('running');
    const signed = once(events, 'signed');
    const worker = await openShop({ store, checkpoint: 'step', worker: true }, [{ content: 'Signed' }]);
    expect(await signed).toEqual(['ada']);
    await worker.module.close();
    const ended = await store.read(runId);
    expect(ended && foldRun(ended).end).toMatchObject({ status: 'completed', content: 'Signed' });
  });

  test('a missing store or jobScope is reported', async () => {
    const shop = await openShop({});
    expect(() => shop.toolwright.conversations).toThrow('no store for conversations');
    await expect(openShop({ worker: true })).rejects.toThrow('a worker needs the store');
    await expect(
      openShop({ store: new MemoryRunStore(), worker: true, jobScope: undefined }),
    ).rejects.toThrow('jobScope');
  });
});
