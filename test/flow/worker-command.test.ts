import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { answerStoredRun, Conversations, defineTool, foldRun, runToolLoop } from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

const COMMAND = builtFile('dist/src/dev/cli/main.js');
const builtModule = (name: string) => JSON.stringify(builtFile(`dist/src/${name}`));
const nest = JSON.stringify(createRequire(import.meta.url).resolve('@nestjs/common'));

/** Calls the tool that the prompt names, then replies with its result. */
const PROVIDER = `
const provider = {
  async chat({ messages }) {
    const { role, content } = messages.at(-1);
    if (role !== 'user' || content.startsWith('[')) return { content: 'heard: ' + content, toolCalls: [], finishReason: 'stop' };
    return { content: '', toolCalls: [{ id: 'call_1', name: content, arguments: {} }], finishReason: 'tool_calls' };
  },
};
`;

const TOOLS = `
async function hold() {
  console.log('holding');
  await once(process.stdin, 'data');
  return 'went on';
}
`;

/** An application: `hold` waits for stdin; `reprice` is a job that a guard allows only for clerks. */
const NEST = `
import { once } from 'node:events';
import { Injectable, Module, UseGuards } from ${nest};
import { MemoryJobEngine, Tool } from ${builtModule('index.js')};
import { ToolwrightModule } from ${builtModule('surfaces/nestjs/index.js')};
import { SqliteRunStore } from ${builtModule('durable/stores/index.js')};
${PROVIDER}
${TOOLS}
class ClerksOnly {
  canActivate(context) { return context.switchToHttp().getRequest()?.role === 'clerk'; }
}
Injectable()(ClerksOnly);
class ShopTools {
  hold() { return hold(); }
  reprice() { return 'repriced'; }
}
const describe = (key, options, ...others) => {
  const method = Object.getOwnPropertyDescriptor(ShopTools.prototype, key);
  for (const decorate of [...others, Tool(options)]) decorate(ShopTools.prototype, key, method);
};
describe('hold', { description: 'Hold', parameters: { type: 'object', properties: {} } });
describe('reprice', { description: 'Reprice', background: true, parameters: { type: 'object', properties: {} } }, UseGuards(ClerksOnly));
Injectable()(ShopTools);
export class AppModule {}
Module({
  imports: [ToolwrightModule.forRoot({
    provider, model: 'm', worker: false, engine: new MemoryJobEngine(),
    store: new SqliteRunStore({ path: 'runs.sqlite' }),
    conversations: { pollMs: 20 },
    scopeOf: (user) => ({ request: { user, role: 'clerk' } }),
    jobScope: ({ scope }) => ({ request: { user: scope.owner, role: scope.owner === 'cleo' ? 'clerk' : 'customer' } }),
  })],
  providers: [ShopTools],
})(AppModule);
`;

const PLAIN = `
import { once } from 'node:events';
import { defineTool, MemoryJobEngine } from ${builtModule('index.js')};
${PROVIDER}
${TOOLS}
const tools = [
  defineTool({ name: 'hold', description: 'Hold', execute: hold }),
  defineTool({ name: 'sign', description: 'Sign', approval: true, execute: () => 'signed' }),
  defineTool({ name: 'reprice', description: 'Reprice', background: true, execute: () => 'repriced' }),
];
export const config = { provider, model: 'm', tools, engine: new MemoryJobEngine() };
`;

const EMPTY_NEST = `
import { Module } from ${nest};
import { ToolwrightModule } from ${builtModule('surfaces/nestjs/index.js')};
export class AppModule {}
Module({ imports: [ToolwrightModule.forRoot()] })(AppModule);
`;

/** Unreachable engines: their import, their creation, and what is logged about them. */
const AWAY = {
  'pg-boss': [
    `import { pgBossEngine } from ${builtModule('durable/pg-boss/index.js')};`,
    "pgBossEngine({ connection: 'postgres://nobody@127.0.0.1:1/none' })",
    /toolwright: pg-boss, queue 'toolwright' in PostgreSQL at 127\.0\.0\.1:1\/none does not answer; [^\n]*: connect ECONNREFUSED [\d.:]+\n/,
  ],
  BullMQ: [
    `import { bullmqEngine } from ${builtModule('durable/bullmq/index.js')};`,
    "bullmqEngine({ connection: 'redis://127.0.0.1:1' })",
    /toolwright: BullMQ, queue 'toolwright' in Redis at 127\.0\.0\.1:1 does not answer; [^\n]*: connect ECONNREFUSED [\d.:]+\n/,
  ],
} as const;

let folder: string;
let store: SqliteRunStore;
let conversations: Conversations;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-worker-'));
  store = new SqliteRunStore({ path: join(folder, 'runs.sqlite') });
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  conversations = new Conversations({ store, config, takesTurns: false });
  writeFileSync(join(folder, 'nest.mjs'), NEST);
  writeFileSync(join(folder, 'plain.mjs'), PLAIN);
  writeFileSync(join(folder, 'empty-nest.mjs'), EMPTY_NEST);
  writeFileSync(join(folder, 'empty.mjs'), 'export const nothing = 1;');
});

afterEach(async () => {
  await conversations.close();
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

const startWorker = (...args: readonly string[]) => new NodeProcess([COMMAND, 'worker', ...args], { folder });

async function refusal(...args: readonly string[]) {
  await using command = startWorker(...args);
  command.endInput();
  const { exitCode, stderr } = await command.ended();
  return { exitCode, stderr };
}

describe('toolwright worker', () => {
  test('runs a turn of a NestJS application, and on SIGTERM finishes it but takes no new turn', async () => {
    await conversations.prompt('c1', 'hold');
    await using worker = startWorker('nest.mjs');
    await worker.waitFor(/worker of nest\.mjs: conversations, jobs, runs\n/);
    await worker.waitFor(/holding\n/);
    worker.send('SIGTERM');
    await worker.waitFor(/SIGTERM: no new work is started; waiting for the running work\n/);
    await conversations.prompt('c2', 'hold');
    worker.write('go on\n');
    const { exitCode, stderr } = await worker.ended();
    expect({ exitCode, last: stderr.split('\n').at(-2) }).toEqual({
      exitCode: 0,
      last: 'toolwright: drained',
    });
    expect((await conversations.snapshot('c1'))?.messages.at(-1)?.content).toBe('heard: went on');
    expect(await conversations.snapshot('c2')).toMatchObject({ status: 'running', turns: 0 });
    expect((await store.conversations.read('c2'))?.isHeld).toBe(false);
  });

  test('runs jobs of an application with its guards, as in a request', async () => {
    await using worker = startWorker('nest.mjs');
    await worker.waitFor(/worker of/);
    const said: unknown[] = [];
    for (const [id, owner] of [
      ['c1', 'cleo'],
      ['c2', 'ada'],
    ] as const) {
      await conversations.prompt(id, 'reprice', { owner });
      for await (const { event } of conversations.events(id))
        if (event.type === 'turn-end' && String(event.content).includes('async:reprice')) {
          said.push(event.content);
          break;
        }
    }
    expect(said).toEqual([
      'heard: [System: async:reprice] repriced',
      expect.stringContaining("The tool 'reprice' was refused"),
    ]);
  });

  test('runs turns, jobs and answered runs of a module that exports a config, with --store', async () => {
    const provider = new ScriptedProvider([{ toolCalls: [{ id: 'call_1', name: 'sign' }] }]);
    const sign = defineTool({ name: 'sign', description: 'Sign', approval: true, execute: () => '' });
    const config = { provider, model: 'm', tools: [sign], store, checkpoint: 'step', runId: 'r1' } as const;
    const { pending = [] } = await runToolLoop(config, [{ role: 'user', content: 'sign' }]);
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    await answerStoredRun({ store, runId: 'r1' }, answers);
    await conversations.prompt('c1', 'hold');
    await conversations.prompt('c2', 'reprice');
    await using worker = startWorker('plain.mjs', '--store', 'runs.sqlite');
    await worker.waitFor(/worker of plain\.mjs: conversations, jobs, runs\n/);
    await worker.waitFor(/holding\n/);
    const repriced = 'heard: [System: async:reprice] repriced';
    for await (const { event } of conversations.events('c2'))
      if (event.type === 'turn-end' && event.content === repriced) break;
    worker.send('SIGINT');
    worker.write('go on\n');
    expect((await worker.ended()).exitCode).toBe(0);
    expect((await conversations.snapshot('c1'))?.messages.at(-1)?.content).toBe('heard: went on');
    const run = await store.read('r1');
    expect(run && foldRun(run).end).toMatchObject({ status: 'completed', content: 'heard: signed' });
  });

  test.each([[['nest.mjs']], [['plain.mjs', '--store', 'runs.sqlite']]])(
    'continues runs with an expired approval: %j',
    async (args) => {
      const provider = new ScriptedProvider([{ toolCalls: [{ id: 'call_1', name: 'hold' }] }]);
      const approval = { expiresInMs: 1 };
      const hold = defineTool({ name: 'hold', description: 'Hold', approval, execute: () => 'held' });
      const config = { provider, model: 'm', tools: [hold], store, checkpoint: 'step', runId: 'r1' } as const;
      await runToolLoop(config, [{ role: 'user', content: 'hold' }]);
      await pause(50);
      await using worker = startWorker(...args);
      await worker.waitFor(/worker of/);
      while ((await store.read('r1'))?.status !== 'ended') await pause(20);
      worker.send('SIGTERM');
      const { exitCode, stderr } = await worker.ended();
      expect(exitCode).toBe(0);
      // An application has its own logger.
      if (args[0] === 'plain.mjs')
        expect(stderr).toMatch(
          /^toolwright: Tool call refused: hold \(call_1 of r1\): [^\n]*it was not approved until/m,
        );
      const run = await store.read('r1');
      expect(run && foldRun(run).end).toMatchObject({
        status: 'completed',
        content: expect.stringMatching(/^heard: .*it was not approved until/),
      });
    },
  );

  test.each([[['nest.mjs']], [['plain.mjs', '--store', 'runs.sqlite']]])(
    'submits due prompts of schedules: %j',
    async (args) => {
      const timing = { kind: 'cron', cron: '0 9 * * *', timeZone: 'Europe/Vienna' } as const;
      const schedule = { id: 's1', conversationId: 'c1', text: 'Report', timing, dueAt: 0, createdAt: 0 };
      store.schedules.addSchedule(schedule);
      await using worker = startWorker(...args);
      await worker.waitFor(/worker of/);
      const said = 'heard: [System: schedule:s1, due 1970-01-01T00:00:00.000Z] Report';
      for await (const { event } of conversations.events('c1'))
        if (event.type === 'turn-end' && event.content === said) break;
      worker.send('SIGTERM');
      expect((await worker.ended()).exitCode).toBe(0);
      const [moved] = await store.schedules.listSchedules();
      expect(moved?.dueAt).toBeGreaterThan(Date.now());
    },
  );

  test('uses the store in the config of its module', async () => {
    const configured = `import { SqliteRunStore } from ${builtModule('durable/stores/index.js')};
      ${PLAIN}
      config.store = new SqliteRunStore({ path: 'configured.sqlite' });`;
    writeFileSync(join(folder, 'configured.mjs'), configured);
    await using worker = startWorker('configured.mjs');
    await worker.waitFor(/worker of configured\.mjs: conversations, jobs, runs\n/);
    worker.send('SIGTERM');
    expect((await worker.ended()).exitCode).toBe(0);
    expect(existsSync(join(folder, 'configured.sqlite'))).toBe(true);
  });

  test('creates a missing store and reports that', async () => {
    const path = join(folder, 'new.sqlite');
    await using worker = startWorker('plain.mjs', '--store', 'new.sqlite');
    await worker.waitFor(/worker of plain\.mjs: conversations, jobs, runs\n/);
    expect(existsSync(path)).toBe(true);
    worker.send('SIGTERM');
    const { exitCode, stderr } = await worker.ended();
    expect(exitCode).toBe(0);
    expect(stderr.split('\n').filter((line) => line.includes('new.sqlite'))).toEqual([
      `toolwright: --store: created ${path}, which did not exist`,
    ]);
    const { exitCode: refused, stderr: told } = await refusal('plain.mjs', '--store', 'none/new.sqlite');
    expect({ refused, told }).toEqual({
      refused: 1,
      told: expect.stringMatching(/^toolwright: --store: Cannot open [^\n]+\n$/),
    });
  });

  test.each([
    ['a module', PLAIN, ['--store', 'runs.sqlite']],
    ['a NestJS application', NEST, []],
  ])('lists the queues of its jobs if tools of %s name any', async (_of, program, options) => {
    const routed = program.replace('background: true', "background: { queue: 'prices' }");
    writeFileSync(join(folder, 'routed.mjs'), routed);
    await using worker = startWorker('routed.mjs', ...options);
    await worker.waitFor(/worker of routed\.mjs: conversations, jobs \(queues: prices\), runs\n/);
  });

  test('waits for an unreachable database until it is told to end', async () => {
    await using worker = startWorker('plain.mjs', '--store', 'postgres://nobody@127.0.0.1:1/none');
    await worker.waitFor(/worker of plain\.mjs: conversations, jobs, runs\n/);
    worker.send('SIGTERM');
    await worker.waitFor(/drained\n/);
    expect((await worker.ended()).exitCode).toBe(0);
  });

  test.each([
    ['a module', 'pg-boss'],
    ['a module', 'BullMQ'],
    ['a NestJS application', 'pg-boss'],
    ['a NestJS application', 'BullMQ'],
  ] as const)(
    'runs turns of %s while its engine, %s, is unreachable, and drains on SIGTERM',
    async (of, named) => {
      const [imported, engine, told] = AWAY[named];
      const isPlain = of === 'a module';
      const rest = isPlain
        ? `${PLAIN}config.engine = ${engine};`
        : NEST.replace('new MemoryJobEngine()', engine);
      writeFileSync(join(folder, 'away.mjs'), `${imported}${rest}`);
      await conversations.prompt('c1', 'hold');
      await using worker = startWorker('away.mjs', ...(isPlain ? ['--store', 'runs.sqlite'] : []));
      await worker.waitFor(/worker of away\.mjs: conversations, jobs, runs\n/);
      await worker.waitFor(/holding\n/);
      await worker.waitFor(told);
      worker.send('SIGTERM');
      await worker.waitFor(/SIGTERM: no new work is started; waiting for the running work\n/);
      worker.write('go on\n');
      expect((await worker.ended()).exitCode).toBe(0);
      expect((await conversations.snapshot('c1'))?.messages.at(-1)?.content).toBe('heard: went on');
    },
  );

  test('reports a database error in one line and does not repeat it', async () => {
    writeFileSync(join(folder, 'quick.mjs'), `${PLAIN}config.leaseMs = 60;`);
    await using worker = startWorker('quick.mjs', '--store', 'postgres://nobody@127.0.0.1:1/none');
    await worker.waitFor(/toolwright: [^\n]*conversations[^\n]*: [^\n]*ECONNREFUSED[^\n]*\n/);
    await worker.waitFor(
      /toolwright: The lost runs could not be read from the store: [^\n]*ECONNREFUSED[^\n]*\n/,
    );
    await pause(300);
    worker.send('SIGTERM');
    const { stderr } = await worker.ended();
    const lines = stderr.split('\n').filter((line) => line.includes('ECONNREFUSED'));
    expect(new Set(lines).size).toBe(lines.length);
  });

  test.each([['config.logger = logger;'], ['export { logger };']])(
    'uses the logger of its module everywhere: %s',
    async (handed) => {
      const logger = `const say = (message, fields) => console.log('logged: ' + message);
        const logger = { debug() {}, info() {}, warn: say, error: say };`;
      writeFileSync(join(folder, 'logged.mjs'), `${PLAIN}${logger}${handed}`);
      await using worker = startWorker('logged.mjs', '--store', 'postgres://nobody@127.0.0.1:1/none');
      await worker.waitFor(/logged: The lost runs could not be read from the store: [^\n]*ECONNREFUSED/);
      worker.send('SIGTERM');
      expect((await worker.ended()).stderr).not.toContain('ECONNREFUSED');
    },
  );

  test('refuses misspelt and invalid exports, all in one line', async () => {
    const exported = `
      export const onUnkown = 'ask', jobConcurency = 2, jobScope = 5, conversations = {};
      export const shops = 1;`;
    writeFileSync(join(folder, 'slips.mjs'), `${PLAIN}${exported}`);
    const { exitCode, stderr } = await refusal('slips.mjs', '--store', 'runs.sqlite');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^toolwright: slips\.mjs: [^\n]+\n$/);
    for (const name of ['onUnknown', 'jobConcurrency', 'jobScope', 'conversations'])
      expect(stderr).toContain(name);
    expect(stderr).not.toContain('shops');
  });

  test('refuses a config with a misspelt policy', async () => {
    writeFileSync(join(folder, 'slip.mjs'), `${PLAIN}config.polcy = () => false;`);
    const { exitCode, stderr } = await refusal('slip.mjs', '--store', 'runs.sqlite');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('did you mean `policy`?');
  });

  test('reports wrong arguments and modules in one line', async () => {
    expect(await refusal()).toEqual({
      exitCode: 2,
      stderr: 'toolwright: worker takes one module: toolwright worker dist/app.module.js\n',
    });
    expect(await refusal('nest.mjs', '--store', 'runs.sqlite')).toEqual({
      exitCode: 2,
      stderr:
        'toolwright: --store cannot be used with an application: ToolwrightModule.forRoot sets its store\n',
    });
    expect(await refusal('empty-nest.mjs')).toEqual({
      exitCode: 1,
      stderr:
        'toolwright: empty-nest.mjs has no work for a worker: set a store with ToolwrightModule.forRoot({ store })\n',
    });
    expect(await refusal('empty.mjs')).toEqual({
      exitCode: 1,
      stderr: 'toolwright: empty.mjs exports no config: export const config = { provider, model, tools }\n',
    });
    expect(await refusal('plain.mjs')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^toolwright: --store is missing[^\n]*\n$/),
    });
  });
});
