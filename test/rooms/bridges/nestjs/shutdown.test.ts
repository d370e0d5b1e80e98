import { EventEmitter, once } from 'node:events';
import { expect, test } from '@jest/globals';
import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Tool, ToolContext } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
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

  @Tool('Work for ever')
  async ignore() {
    this.emit('begun');
    await new Promise(() => {});
  }
}

const bootSlow = (shutdownTimeoutMs: number, provider?: ScriptedProvider) =>
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

test('a run that is under way is waited for as a whole', async () => {
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

test('what has not ended after the limit is aborted: calls by their signal, runs with a valid history', async () => {
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

test('a stream that nobody reads on does not hold up a shutdown', async () => {
  const provider = new ScriptedProvider([{ content: 'one two three' }]);
  const { module, toolwright } = await bootSlow(20, provider);
  const events = toolwright.stream([])[Symbol.asyncIterator]();
  expect((await events.next()).value).toMatchObject({ type: 'run-start' });
  await module.close();
});

test('a shutdown with nothing under way ends at once', async () => {
  const { module } = await bootSlow(Number.POSITIVE_INFINITY);
  await module.close();
  expect(module.get(Database).isOpen).toBe(false);
});

test('work that was started is waited for as well, and cancelled after the limit', async () => {
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
