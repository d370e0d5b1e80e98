import 'reflect-metadata';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  agentAsTool,
  Conversation,
  Conversations,
  cancelJob,
  defineTool,
  discoverTools,
  type Hooks,
  type Job,
  type JobCompletion,
  type JobEngine,
  type JsonObject,
  MemoryJobEngine,
  type RunJobsOptions,
  runJobs,
  runToolLoop,
  TaskQueue,
  Tool,
  ToolContext,
  type ToolPolicy,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { describeRedis } from '../services/services.js';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A worker and its completions. */
async function working(options: RunJobsOptions) {
  const completions: JobCompletion[] = [];
  let heard = Promise.withResolvers<void>();
  const worker = await runJobs({
    ...options,
    onAsyncResult: (completion) => {
      completions.push(completion);
      heard.resolve();
      heard = Promise.withResolvers();
    },
  });
  closers.push(() => worker.close());
  const completed = async (count = 1): Promise<readonly JobCompletion[]> => {
    while (completions.length < count) await heard.promise;
    return completions;
  };
  return { worker, completed, completions };
}

function calling(tool: string, args: JsonObject) {
  return new ScriptedProvider([{ toolCalls: [{ name: tool, arguments: args }] }, { content: 'Done' }]);
}

const USER = [{ role: 'user', content: 'Go' }] as const;
const SCHEMA = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] };

type JobMethod = 'beginJob' | 'completeJob';

/** The store, with methods that fail the given number of times. `onAsked` is called on each failure. */
function awayFor(
  store: MemoryRunStore,
  times: Partial<Record<JobMethod, number>>,
  onAsked = () => {},
): MemoryRunStore {
  const left = new Map(Object.entries(times));
  const jobs = new Proxy(store.jobs, {
    get(target, name: JobMethod) {
      const method = target[name].bind(target) as () => unknown;
      return (...args: []) => {
        const more = left.get(name) ?? 0;
        if (more === 0) return method(...args);
        left.set(name, more - 1);
        onAsked();
        throw new Error('the store is away');
      };
    },
  });
  return Object.create(store, { jobs: { value: jobs } }) as MemoryRunStore;
}

@Toolset()
class MailTools {
  @Tool({ description: 'Sends a mail', background: { attempts: 3 } })
  sendMail(to: string, context: ToolContext) {
    if (context.attempt < 3) throw new Error(`attempt ${context.attempt}`);
    return `sent to ${to} by ${String(context.data.sender)} for ${context.chatId}`;
  }
}

function started(engine: JobEngine = new MemoryJobEngine(), store = new MemoryRunStore()) {
  closers.push(() => engine.close());
  return { engine, store };
}

/** A worker that begins jobs and fails without recording their results. */
function deadly({ engine, store }: Pick<RunJobsOptions, 'engine' | 'store'>, message: string) {
  return engine.work({
    handle: async ({ id }) => {
      await store.jobs.beginJob(id, 1);
      throw new Error(message);
    },
  });
}

/** From now on the engine reports that the workers of all dead jobs died. */
function workersDie(engine: JobEngine): void {
  const { deadJobs } = engine;
  engine.deadJobs = async (query) =>
    (await deadJobs.call(engine, query)).map((dead) => ({ ...dead, workersDied: true }));
}

test('runToolLoop passes the work of a background tool to the engine by name and arguments', async () => {
  const { engine, store } = started();
  const [tool] = discoverTools({ toolsets: [MailTools] });
  const tools = [tool as NonNullable<typeof tool>];
  const provider = calling('send_mail', { to: 'ada' });
  const run = await runToolLoop({ provider, model: 'm', tools, engine, store }, USER, {
    channel: 'web',
    chatId: '7',
    data: { sender: 'the clerk' },
  });
  expect(run.toolCalls[0]).toMatchObject({ status: 'started' });
  const id = run.toolCalls[0]?.taskId ?? '';
  expect(store.jobs.job(id)).toMatchObject({
    status: 'waiting',
    options: { attempts: 3 },
    job: { tool: 'send_mail', arguments: { to: 'ada' }, scope: { channel: 'web', chatId: '7' } },
  });
  const jobScope = (job: Job) =>
    new (class {
      readonly chatId = 'another';
      get data() {
        return { sender: `the scope of ${job.tool}` };
      }
    })();
  const { completed } = await working({ engine, store, tools, jobScope });
  const [completion] = await completed();
  expect(completion?.result.forLLM).toBe('sent to ada by the scope of send_mail for 7');
  expect(store.jobs.job(id)).toMatchObject({ status: 'completed', attempt: 3 });
});

test('runToolLoop refuses an engine without a store that stores jobs', async () => {
  const { engine } = started();
  const run = runToolLoop({ provider: calling('x', {}), model: 'm', engine }, USER);
  await expect(run).rejects.toMatchObject({ name: 'InvalidOptions' });
});

test('onAsyncResult of the run gets the result of a job, and its TaskQueue lists and cancels it', async () => {
  const { engine, store } = started();
  const begun = Promise.withResolvers<void>();
  const wait = defineTool({
    name: 'wait',
    description: 'Waits',
    background: true,
    execute: async (_args, context) => {
      context.progress('half');
      begun.resolve();
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    },
  });
  const tasks = new TaskQueue();
  const updates: unknown[] = [];
  tasks.subscribe((event) => {
    if (event.type === 'task-progress') updates.push(event.update);
  });
  const heard = Promise.withResolvers<string>();
  await runToolLoop(
    {
      provider: calling('wait', {}),
      model: 'm',
      tools: [wait],
      engine,
      store,
      tasks,
      onAsyncResult: (_context, result) => heard.resolve(result.forLLM),
    },
    USER,
  );
  await new Promise((resolve) => setImmediate(resolve));
  const { completions } = await working({ engine, store, tools: [wait] });
  await begun.promise;
  const [task] = tasks.tasks;
  expect(task).toMatchObject({ tool: 'wait' });
  expect(tasks.cancel(task?.id ?? '', 'no more')).toBe(true);
  expect(await heard.promise).toBe("The work of the tool 'wait' was cancelled: no more");
  await tasks.idle();
  expect(updates).toEqual(['half']);
  // A cancelled job already has its result.
  expect(completions).toEqual([]);
});

test('Conversation delivers the result of a job in a new turn', async () => {
  const { engine, store } = started();
  const send = defineTool({
    name: 'send',
    description: 'Sends',
    background: true,
    execute: () => 'It is sent',
  });
  await working({ engine, store, tools: [send] });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'send', arguments: {} }] },
    { content: 'Started' },
    { content: 'I heard of it' },
  ]);
  const conversation = new Conversation({ provider, model: 'm', tools: [send], engine, store });
  await conversation.prompt('Go');
  await conversation.idle({ tasks: true });
  expect(conversation.messages.slice(-2)).toMatchObject([
    { role: 'user', content: '[System: async:send] It is sent' },
    { role: 'assistant', content: 'I heard of it' },
  ]);
});

describe('runJobs', () => {
  test('runJobs completes a job once, even if two workers run it at the same time', async () => {
    const { engine, store } = started();
    const meeting = Promise.withResolvers<void>();
    let runs = 0;
    const tool = defineTool({
      name: 'work',
      description: 'Works',
      background: true,
      execute: async () => {
        runs += 1;
        if (runs === 2) meeting.resolve();
        await meeting.promise;
        return `run ${runs}`;
      },
    });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    const { jobs } = await store.jobs.listJobs();
    // Another broker that does not know the id accepts the job again.
    const other = new MemoryJobEngine();
    closers.push(() => other.close());
    await other.enqueue(jobs[0]?.job as Job);
    const one = await working({ engine, store, tools: [tool] });
    const two = await working({ engine: other, store, tools: [tool] });
    await meeting.promise;
    await Promise.all([one.worker.close(), two.worker.close()]);
    expect(one.completions.length + two.completions.length).toBe(1);
  });

  test('runJobs does not repeat a job that has a result, but reports the result again', async () => {
    const { engine, store } = started();
    let runs = 0;
    const tool = defineTool({ name: 'work', description: 'W', background: true, execute: () => (runs += 1) });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    const first = await working({ engine, store, tools: [tool] });
    const [done] = await first.completed();
    const other = new MemoryJobEngine();
    closers.push(() => other.close());
    const again = await working({ engine: other, store, tools: [tool] });
    await other.enqueue(done?.job as Job);
    const [told] = await again.completed();
    expect([told?.job.callId, told?.result.forLLM, runs]).toEqual([done?.job.callId, '1', 1]);
  });

  test('runJobs enqueues jobs that a broker never received or lost', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const broken = new MemoryJobEngine();
    broken.enqueue = () => Promise.reject(new Error('the broker is away'));
    await runToolLoop(
      { provider: calling('work', {}), model: 'm', tools: [tool], engine: broken, store },
      USER,
    );
    const forgetful = new MemoryJobEngine();
    await runToolLoop(
      { provider: calling('work', {}), model: 'm', tools: [tool], engine: forgetful, store },
      USER,
    );
    await forgetful.close();
    const { completed } = await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    expect((await completed(2)).map(({ result }) => result.forLLM)).toEqual(['done', 'done']);
  });

  test('runJobs enqueues the other jobs if the engine rejects one', async () => {
    const { engine, store } = started();
    const execute = ({ text }: { text?: string }) => text ?? '';
    const parameters = { type: 'object', properties: { text: { type: 'string' } } } as const;
    const tool = defineTool({ name: 'work', description: 'W', background: true, parameters, execute });
    const broken = new MemoryJobEngine();
    broken.enqueue = () => Promise.reject(new Error('the broker is away'));
    for (const text of ['odd', 'one', 'two']) {
      const provider = calling('work', { text });
      await runToolLoop({ provider, model: 'm', tools: [tool], engine: broken, store }, USER);
    }
    const { enqueue } = engine;
    engine.enqueue = (job, options) =>
      job.arguments.text === 'odd'
        ? Promise.reject(new Error('no such text'))
        : enqueue.call(engine, job, options);
    const { completed } = await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    expect((await completed(2)).map(({ result }) => result.forLLM).sort()).toEqual(['one', 'two']);
  });

  test('runJobs leaves a failed job in the dead jobs, with its failure as the result', async () => {
    const { engine, store } = started();
    const tool = defineTool({
      name: 'fail',
      description: 'Fails',
      background: { attempts: 2 },
      execute: () => Promise.reject(new Error('no paper')),
    });
    const tools = [tool];
    await runToolLoop({ provider: calling('fail', {}), model: 'm', tools, engine, store }, USER);
    const { completed, worker } = await working({ engine, store, tools });
    const [completion] = await completed();
    await worker.close();
    expect(completion?.result).toMatchObject({ isError: true, forLLM: 'no paper' });
    expect(await engine.deadJobs()).toMatchObject([{ job: completion?.job, attempts: 2 }]);
  });

  test('runJobs waits for an unreachable store when a job begins and ends, and runs the work once', async () => {
    const { engine, store } = started();
    let runs = 0;
    const tool = defineTool({ name: 'work', description: 'W', background: true, execute: () => (runs += 1) });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    const { completed } = await working({
      engine,
      store: awayFor(store, { beginJob: 7, completeJob: 7 }),
      tools: [tool],
    });
    expect((await completed())[0]?.result.forLLM).toBe('1');
    expect(await engine.deadJobs()).toEqual([]);
    expect(runs).toBe(1);
  });

  test('runJobs that is closed while its store is unreachable leaves its jobs and all their attempts to others', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    for (const method of ['beginJob', 'completeJob'] as const) {
      const asked = Promise.withResolvers<void>();
      const away = awayFor(store, { [method]: Number.POSITIVE_INFINITY }, asked.resolve);
      const { worker } = await working({ engine, store: away, tools: [tool] });
      await asked.promise;
      await worker.close();
    }
    const { completed } = await working({ engine, store, tools: [tool] });
    expect((await completed())[0]?.result.forLLM).toBe('done');
    expect(await engine.deadJobs()).toEqual([]);
  });

  test('runJobs enqueues a dead job again that no worker had begun', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    const hopeless = await engine.work({ handle: () => Promise.reject(new Error('no store')) });
    await hopeless.close();
    expect(await engine.deadJobs()).toHaveLength(1);
    const { completed } = await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    expect((await completed())[0]?.result.forLLM).toBe('done');
    expect(await engine.deadJobs()).toEqual([]);
  });

  test('runJobs retries a job whose workers died, after a delay as long as it had been tried', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    await (await deadly({ engine, store }, 'its workers died')).close();
    workersDie(engine);
    const { revive } = engine;
    const delays: unknown[] = [];
    engine.revive = (job, options) => {
      delays.push(options?.delay);
      return revive.call(engine, job, options);
    };
    const [dead] = await engine.deadJobs();
    const stored = await store.jobs.job(dead?.job.id as string);
    const tried = Number(stored?.changedAt) - Number(stored?.addedAt);
    const { completed } = await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    expect((await completed())[0]?.result.forLLM).toBe('done');
    expect(delays).toEqual([tried]);
  });

  test('runJobs gives up a job after `revivals` retries whose workers died, and reports that in the conversation', async () => {
    const { engine, store } = started();
    const background = { revivals: 2 };
    const tool = defineTool({ name: 'work', description: 'Works', background, execute: () => 'done' });
    await store.conversations.enter({
      conversationId: 'c1',
      key: 'k1',
      content: { kind: 'prompt', content: 'Go' },
    });
    const config = { provider: calling('work', {}), model: 'm', tools: [tool], engine, store, runId: 'c1.1' };
    await runToolLoop(config, USER, { conversationId: 'c1' });
    workersDie(engine);
    let revivals = 0;
    const { work, revive } = engine;
    engine.revive = (job, options) => {
      revivals += 1;
      return revive.call(engine, job, options);
    };
    engine.work = () => deadly({ engine: { ...engine, work: work.bind(engine) }, store }, 'killed');
    const ended = Promise.withResolvers<string>();
    await engine.subscribe(({ jobId }) => ended.resolve(jobId));
    await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    const given = await store.jobs.job(await ended.promise);
    const text = "The work of the tool 'work' was given up: it crashed more workers than its engine allows";
    expect(given?.result?.forLLM).toContain(text);
    expect(revivals).toBe(2);
    expect(await engine.deadJobs()).toMatchObject([{ job: { tool: 'work' }, workersDied: true }]);
    expect((await store.conversations.read('c1'))?.inbox.at(-1)?.content).toMatchObject({
      kind: 'completion',
      text: expect.stringContaining(text),
    });
  });

  test('runJobs gives up a dead job whose last failure was not recorded', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    await runToolLoop({ provider: calling('work', {}), model: 'm', tools: [tool], engine, store }, USER);
    await (await deadly({ engine, store }, 'no store')).close();
    const { worker } = await working({ engine, store, tools: [tool], sweepMs: 20, silentForMs: 20 });
    const ended = Promise.withResolvers<string>();
    await engine.subscribe(({ jobId }) => ended.resolve(jobId));
    const given = await store.jobs.job(await ended.promise);
    expect(given?.result?.forLLM).toBe("The work of the tool 'work' was given up: no store");
    await worker.close();
  });

  test('runJobs runs a job of a changed tool if its arguments still fit, and otherwise reports the change', async () => {
    const { engine, store } = started();
    const before = defineTool({
      name: 'mail',
      description: 'Mails',
      background: true,
      parameters: SCHEMA,
      execute: () => 'old',
    });
    const tools = [before];
    await runToolLoop({ provider: calling('mail', { to: 'a' }), model: 'm', tools, engine, store }, USER);
    const fitting = { ...SCHEMA, properties: { ...SCHEMA.properties, copy: { type: 'boolean' } } };
    const still = defineTool({ ...before, parameters: fitting, execute: () => 'new' });
    const one = await working({ engine, store, tools: [still] });
    expect((await one.completed())[0]?.result.forLLM).toBe('new');
    await one.worker.close();
    await runToolLoop({ provider: calling('mail', { to: 'b' }), model: 'm', tools, engine, store }, USER);
    const other = { type: 'object', properties: { address: { type: 'string' } }, required: ['address'] };
    const changed = defineTool({ ...before, parameters: other, execute: () => 'never' });
    const two = await working({ engine, store, tools: [changed] });
    const [{ result } = {}] = await two.completed();
    expect(result?.error).toMatchObject({ name: 'DefinitionChanged' });
    expect(result?.forLLM).toContain('was changed after the work had been started (its parameters)');
  });

  test('runJobs refuses a job with an argument that its tool no longer has', async () => {
    const { engine, store } = started();
    const done: unknown[] = [];
    const mail = (copy: string) =>
      defineTool({
        name: 'mail',
        description: 'Mails',
        background: true,
        parameters: { ...SCHEMA, properties: { ...SCHEMA.properties, [copy]: { type: 'string' } } },
        execute: (args) => void done.push(args),
      });
    const config = { model: 'm', tools: [mail('bcc')], engine, store };
    await runToolLoop({ ...config, provider: calling('mail', { to: 'a', bcc: 'boss' }) }, USER);
    const { completed } = await working({ engine, store, tools: [mail('blind_copy')] });
    const [{ result } = {}] = await completed();
    expect(result?.error).toMatchObject({ name: 'DefinitionChanged' });
    expect(result?.forLLM).toContain("It no longer has 'bcc'. The work was not done.");
    expect(done).toEqual([]);
  });

  test('runJobs asks policies again, but not for an approval that was given', async () => {
    const { engine, store } = started();
    const tool = defineTool({
      name: 'pay',
      description: 'Pays',
      background: true,
      approval: (_args, context) => context.taskId !== undefined || context.data.isChecked !== true,
      execute: () => 'paid',
    });
    const tools = [tool];
    const scope = { data: { isChecked: true } };
    await runToolLoop({ provider: calling('pay', {}), model: 'm', tools, engine, store }, USER, scope);
    const one = await working({ engine, store, tools });
    expect((await one.completed())[0]?.result.forLLM).toBe('paid');
    await one.worker.close();
    await runToolLoop({ provider: calling('pay', {}), model: 'm', tools, engine, store }, USER, scope);
    const policy = () => ({ allow: false, reason: 'the till is closed' });
    const two = await working({ engine, store, tools, policy });
    expect((await two.completed())[0]?.result.forLLM).toContain('the till is closed');
  });

  test('runJobs runs a job without the policy and hooks of the run that started it', async () => {
    const { engine, store } = started();
    const pay = defineTool({ name: 'pay', description: 'Pays', execute: () => 'paid' });
    const [provider, seen] = [calling('pay', {}), [] as string[]];
    const agent = agentAsTool({ name: 'clerk', description: 'Pays', provider, model: 'm', tools: [pay] });
    const later = defineTool({
      ...agent,
      name: 'later',
      background: true,
      execute: async (args: unknown, context: ToolContext) => agent.execute(args as JsonObject, context),
    });
    const tools = new ToolRegistry().register(later);
    const { completed } = await working({ engine, store, tools });
    const hooks: readonly Hooks[] = [{ beforeCall: ({ tool }) => void seen.push(String(tool?.name)) }];
    const policy: ToolPolicy = ({ tool }) => tool.name === 'later';
    const outer = calling('later', { task: 'Pay' });
    await runToolLoop({ provider: outer, model: 'm', tools, engine, store, hooks, policy }, USER);
    expect(await completed()).toMatchObject([{ result: { forLLM: 'Done' } }]);
    expect(provider.requests[1]?.messages.at(-1)).toMatchObject({ content: 'paid' });
    expect(seen).toEqual(['later']);
  });

  test('runJobs runs at most `concurrency` jobs of a tool at the same time', async () => {
    const { engine, store } = started();
    let [running, most] = [0, 0];
    const tool = defineTool({
      name: 'work',
      description: 'Works',
      background: { concurrency: 2 },
      execute: async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      },
    });
    const toolCalls = Array.from({ length: 6 }, () => ({ name: 'work', arguments: {} }));
    const provider = new ScriptedProvider([{ toolCalls }, { content: 'Done' }]);
    await runToolLoop({ provider, model: 'm', tools: [tool], engine, store }, USER);
    const { completed } = await working({ engine, store, tools: [tool] });
    await completed(6);
    expect(most).toBe(2);
  });

  test('ToolRegistry.execute passes the work of a background tool to the engine too', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const tools = new ToolRegistry({ engine, store }).register(tool);
    expect((await tools.execute('work')).async).toBe(true);
    expect((await store.jobs.listJobs()).jobs).toHaveLength(1);
    const { completed } = await working({ engine, store, tools });
    expect((await completed())[0]?.result.forLLM).toBe('done');
  });

  test('a repeated call of an interrupted run does not start a second job', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const tools = new ToolRegistry({ engine, store }).register(tool);
    const call = { id: 'c1', name: 'work', arguments: {}, place: { runId: 'r1', step: 1, index: 0 } };
    const first = await tools.invoke(call);
    const again = await tools.invoke({ ...call, hasBegun: true });
    expect([first.status, again.status]).toEqual(['started', 'started']);
    expect(again.record.taskId).toBe(first.record.taskId);
    expect((await store.jobs.listJobs()).jobs).toMatchObject([{ job: { runId: 'r1' } }]);
  });

  test('cancelJob ends a waiting job permanently, and refuses invalid ids and options', async () => {
    const { engine, store } = started();
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const tools = new ToolRegistry({ engine, store }).register(tool);
    const { record } = await tools.invoke({ id: 'c1', name: 'work', arguments: {} });
    const id = record.taskId ?? '';
    expect(await cancelJob(id, { engine, store, reason: 'closed' })).toBe(true);
    expect(await cancelJob(id, { engine, store })).toBe(false);
    expect(await cancelJob('none', { engine, store })).toBe(false);
    const wrong = { engine, store, raeson: 'closed' } as never;
    await expect(cancelJob(id, wrong)).rejects.toMatchObject({
      code: 521,
      message: expect.stringContaining('did you mean `reason`'),
    });
    for (const odd of ['', ' ', 'a\u0000', '\ud800', 'x'.repeat(513)])
      await expect(cancelJob(odd, { engine, store })).rejects.toMatchObject({ code: 521 });
    await expect(cancelJob('a\u0000\u001b[2J\n', { engine, store })).rejects.toThrow(
      "jobId is 'a\\u0000\\u001b[2J\\n'",
    );
    expect((await store.jobs.job(id))?.result?.forLLM).toContain('closed');
  });
});

test('context.idempotencyKey of a job is that of its call on every attempt', async () => {
  const { engine, store } = started();
  const keys: string[] = [];
  const tool = defineTool({
    name: 'pay',
    description: 'Pays',
    background: { attempts: 2 },
    execute: (_args, context) => {
      keys.push(context.idempotencyKey);
      throw new Error('the bank is away');
    },
  });
  const run = await runToolLoop(
    { provider: calling('pay', {}), model: 'm', tools: [tool], engine, store },
    USER,
  );
  const { completed } = await working({ engine, store, tools: [tool] });
  const [completion] = await completed();
  expect(keys).toEqual([completion?.job.idempotencyKey, completion?.job.idempotencyKey]);
  expect(run.toolCalls[0]?.taskId).toBe(`task_${completion?.job.idempotencyKey}`);
});

test('context.background stays in its process, and with an engine logs one warning', async () => {
  const { engine, store } = started();
  const tool = defineTool({
    name: 'start',
    description: 'Starts',
    execute: (_args, context) => context.background(() => 'done'),
  });
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, error() {}, warn: (text: string) => void warnings.push(text) };
  const config = { model: 'm', tools: [tool], engine, store, logger, onAsyncResult: () => {} };
  await runToolLoop({ ...config, provider: calling('start', {}) }, USER);
  await runToolLoop({ ...config, provider: calling('start', {}) }, USER);
  expect(warnings.filter((text) => text.includes('ends with it'))).toHaveLength(1);
  expect((await store.jobs.listJobs()).jobs).toEqual([]);
});

describeRedis('started work over Redis', ({ url, newName }) => {
  test('runJobs completes jobs from another connection and notifies the run that started them', async () => {
    const { hostname, port } = new URL(url);
    const [connection, queue] = [{ host: hostname, port: Number(port) }, newName()];
    const { engine, store } = started(bullmqEngine({ connection, queue }));
    const { engine: other } = started(bullmqEngine({ connection, queue }));
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    await working({ engine: other, store, tools: [tool] });
    const heard = Promise.withResolvers<string>();
    const onAsyncResult = (_context: unknown, { forLLM }: { readonly forLLM: string }) =>
      heard.resolve(forLLM);
    const provider = calling('work', {});
    await runToolLoop({ provider, model: 'm', tools: [tool], engine, store, onAsyncResult }, USER);
    expect(await heard.promise).toBe('done');
  });

  test('a process that closes its conversations and then its engine logs no warnings', async () => {
    const warnings: string[] = [];
    const warn = (text: string) => void warnings.push(text);
    const logger = { debug() {}, info() {}, error: warn, warn };
    const tasks = new TaskQueue();
    const { hostname, port } = new URL(url);
    for (const isConnected of [false, true]) {
      const engine = bullmqEngine({ connection: { host: hostname, port: Number(port) }, queue: newName() });
      if (isConnected) await engine.subscribe(() => {});
      const store = new MemoryRunStore();
      const tool = defineTool({
        name: 'work',
        description: 'Works',
        background: true,
        execute: () => 'done',
      });
      const config = { provider: calling('work', {}), model: 'm', tools: [tool], tasks };
      const conversations = new Conversations({ store, engine, jobConcurrency: 0, config, logger });
      await conversations.prompt('c1', 'Go');
      await conversations.idle('c1');
      await conversations.close();
      await engine.close();
      await tasks.idle();
      await pause(100);
    }
    expect(warnings).toEqual([]);
  });

  test('runJobs leaves jobs to the worker that has their tool, even if another takes them first', async () => {
    const { hostname, port } = new URL(url);
    const [connection, queue] = [{ host: hostname, port: Number(port) }, newName()];
    const { engine, store } = started(bullmqEngine({ connection, queue }));
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const other = defineTool({ name: 'other', description: 'Other', background: true, execute: () => 1 });
    const { engine: first } = started(bullmqEngine({ connection, queue }));
    const old = await working({ engine: first, store, tools: [other] });
    const { engine: second } = started(bullmqEngine({ connection, queue }));
    const { completed } = await working({ engine: second, store, tools: [tool], concurrency: 1 });
    const config = { model: 'm', tools: [tool], engine, store };
    await Promise.all(
      Array.from({ length: 8 }, () => runToolLoop({ ...config, provider: calling('work', {}) }, USER)),
    );
    const texts = (await completed(8)).map(({ result }) => result.forLLM);
    expect(texts).toEqual(Array.from({ length: 8 }, () => 'done'));
    expect(old.completions).toEqual([]);
  });
});

describe('runJobs without the tool of a job', () => {
  const label = defineTool({
    name: 'label',
    description: 'Prints a label',
    background: true,
    execute: (_args, { attempt }) => `printed at ${attempt > 1 ? 'a later' : 'the first'} try`,
  });
  const mail = defineTool({ name: 'mail', description: 'Mails', background: true, execute: () => 'sent' });
  const start = async (engine: JobEngine, store: MemoryRunStore) => {
    const config = { provider: calling('label', {}), model: 'm', tools: [label], engine, store };
    const run = await runToolLoop(config, USER);
    return run.toolCalls[0]?.taskId ?? '';
  };

  test('returns it until a worker with the tool takes it', async () => {
    const { engine, store } = started();
    const returned = Promise.withResolvers<void>();
    const logger = { debug() {}, info() {}, warn: () => returned.resolve(), error() {} };
    const old = await working({ engine, store, tools: [mail], logger });
    const id = await start(engine, store);
    await returned.promise;
    expect((await store.jobs.job(id))?.result).toBeUndefined();
    const { completed } = await working({ engine, store, tools: [label] });
    expect(await completed()).toMatchObject([{ result: { forLLM: 'printed at a later try' } }]);
    expect(old.completions).toEqual([]);
  });

  test('ends it after `missingToolMs` without such a worker', async () => {
    const { engine, store } = started();
    const { completed } = await working({ engine, store, tools: [mail], missingToolMs: 20 });
    const id = await start(engine, store);
    expect(await completed()).toMatchObject([
      { result: { isError: true, forLLM: expect.stringContaining("No worker has the tool 'label'") } },
    ]);
    expect((await store.jobs.job(id))?.attempt).toBeGreaterThan(1);
  });

  test('leaves it to others when closed', async () => {
    const { engine, store } = started();
    const returned = Promise.withResolvers<void>();
    const logger = { debug() {}, info() {}, warn: () => returned.resolve(), error() {} };
    const { worker } = await working({ engine, store, tools: [mail], logger });
    await start(engine, store);
    await returned.promise;
    await worker.close();
    const { completed } = await working({ engine, store, tools: [label] });
    expect(await completed()).toMatchObject([{ result: { isError: false } }]);
  });
});

test('Conversations.close stops jobs that take longer than `timeoutMs` and leaves them to others', async () => {
  const { engine, store } = started();
  const begun = Promise.withResolvers<AbortSignal>();
  let isLater = false;
  const slow = defineTool({
    name: 'slow',
    description: 'Takes long',
    background: true,
    execute: (_args, { signal }) => {
      if (isLater) return 'done by another';
      begun.resolve(signal);
      return new Promise(() => {});
    },
  });
  const config = { provider: calling('slow', {}), model: 'm', tools: [slow] };
  const conversations = new Conversations({ store, engine, config });
  await conversations.prompt('c1', 'Go');
  const signal = await begun.promise;
  await conversations.close({ timeoutMs: 10 });
  expect(signal.aborted).toBe(true);
  isLater = true;
  const { completed } = await working({ engine, store, tools: [slow] });
  expect(await completed()).toMatchObject([{ result: { forLLM: 'done by another' } }]);
});
