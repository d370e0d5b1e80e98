import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type Approver,
  Conversations,
  defineTool,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolLoopConfig,
} from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

const COMMAND = builtFile('dist/src/dev/cli/main.js');

let folder: string;
let store: SqliteRunStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-approvers-'));
  store = new SqliteRunStore({ path: join(folder, 'runs.sqlite') });
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function toolwright(...args: readonly string[]) {
  await using command = new NodeProcess([COMMAND, ...args], { folder });
  return await command.ended();
}

const answer = (...args: readonly string[]) =>
  toolwright('runs', 'answer', 'r1', '--store', 'runs.sqlite', ...args);

/** A stored run of u1 that waits for the approval of a refund. */
async function suspend(approver: Approver): Promise<void> {
  const refund = defineTool({
    name: 'refund',
    description: 'Refund',
    parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
    approval: { approver },
    execute: () => 'refunded',
  });
  const provider = new ScriptedProvider([{ toolCalls: [{ name: 'refund', arguments: { amount: 5 } }] }]);
  const config: ToolLoopConfig = {
    provider,
    model: 'm',
    tools: [refund],
    store,
    checkpoint: 'step',
    runId: 'r1',
  };
  await runToolLoop(config, [{ role: 'user', content: 'Refund it' }], { owner: { user: 'u1' } });
}

/** A module with another version of the tool. */
function writeModule(approval: string, required = '[]'): void {
  writeFileSync(
    join(folder, 'worker.mjs'),
    `export const refund = {
      name: 'refund', description: 'Refund', execute: () => 'refunded', approval: ${approval},
      parameters: {
        type: 'object', required: ${required},
        properties: { amount: { type: 'integer' }, reason: { type: 'string' } },
      },
    };
    export const config = { provider: { chat() {} }, model: 'm', tools: [refund] };`,
  );
}

const fault = (exitCode: number, text: RegExp) => ({
  exitCode,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^toolwright: [^\\n]*${text.source}[^\\n]*\\n$`)),
});

describe('toolwright runs answer', () => {
  test('requires --by for a call with restricted approvers, and stores who answered', async () => {
    await suspend('not-the-owner');
    expect(await answer('--approve')).toEqual(
      fault(
        2,
        /'refund' restricts who may approve it: set --by .*owner of this run is {"user":"u1"}: give --by/,
      ),
    );
    expect(await answer('--approve', '--by', '{"user":"u1"}')).toEqual(
      fault(1, /only by a user who is not the owner/),
    );
    expect(await store.load('r1')).toMatchObject({ pending: [{ tool: 'refund' }] });
    expect(await answer('--approve', '--by', 'u1')).toEqual(
      fault(2, /the owner of this run is {"user":"u1"}: give --by in the same form/),
    );
    const clerk = ['--approve', '--by', '{"user":"clerk 7"}'];
    expect(await answer(...clerk)).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await store.read('r1'))?.state.open?.calls).toMatchObject([
      { journal: { approved: true, given: [{ answeredBy: { user: 'clerk 7' } }] } },
    ]);
  });

  test('refuses the owner’s answer about a call that somebody else approved, and show names both', async () => {
    let now = 1_700_000_000_000;
    using kept = new SqliteRunStore({ path: join(folder, 'runs.sqlite'), now: () => now });
    const begun = Promise.withResolvers<void>();
    const refund = defineTool({
      name: 'refund',
      description: 'Refund',
      parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
      approval: {
        approver: 'not-the-owner',
        title: 'Refund an order',
        description: 'The money leaves\nthe account at once.',
        risk: 'high',
      },
      execute: () => {
        begun.resolve();
        return new Promise<string>(() => {});
      },
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'refund', arguments: { amount: 5 } }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools: [refund], checkpoint: 'step' as const };
    const limits = { toolTimeoutMs: Number.POSITIVE_INFINITY };
    const scope = { owner: { user: 'u1' } };
    const stored = { store: kept, runId: 'r1' };
    const run = await runToolLoop({ ...config, ...stored }, [{ role: 'user', content: 'Refund it' }], scope);
    const show = () => toolwright('runs', 'show', 'r1', '--store', 'runs.sqlite');
    expect((await show()).stdout).toContain(
      'Refund an order risk: high approver: not-the-owner\n  The money leaves\n  the account at once.\n',
    );
    const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
    const by = { scope, answeredBy: { user: 'bob' } };
    void resumeStoredRun({ ...config, ...limits }, stored, answers, by).catch(() => {});
    await begun.promise;
    now += 60_000;
    await recoverRuns({ store: kept, config });
    expect((await show()).stdout).toMatch(/ outcome refund .* approver: not-the-owner\n/);
    const again = await answer('--not-done', '--by', '{"user":"u1"}');
    expect(again).toEqual(
      fault(1, /can be reported as done or not done only by a user who is not the owner/),
    );
    expect(await answer('--not-done')).toEqual(fault(2, /set --by to the person who answers/));
    expect(await answer('--done', '"refunded"', '--by', '{"user":"u1"}')).toEqual(again);
    expect(await answer('--done', '"refunded"', '--by', '{"user":"bob"}')).toMatchObject({ exitCode: 0 });
    now = Date.now();
    await recoverRuns({ store: kept, config });
    expect((await show()).stdout).toContain(
      ': refunded, approved by {"user":"bob"}, outcome reported by {"user":"bob"}\n',
    );
  });

  test('asks the tool in the module who may approve', async () => {
    await suspend(() => true);
    writeModule(
      '{ approver: ({ answeredBy, call }) => answeredBy.role === "clerk" && call.arguments.amount < 9 }',
    );
    const by = (role: string) => ['--approve', '--by', `{"role":"${role}"}`];
    expect(await answer(...by('clerk'))).toEqual(fault(2, /'refund' decides with a function.*--module/));
    expect(await answer(...by('cook'), '--module', 'worker.mjs')).toEqual(
      fault(1, /only by a user whom its tool accepts/),
    );
    expect(await answer(...by('clerk'), '--module', 'worker.mjs')).toMatchObject({ exitCode: 0 });
  });

  test('reports in one line how the tool has changed, and the run stays suspended', async () => {
    await suspend('may-answer');
    writeModule('true', "['reason']");
    expect(await answer('--approve', '--module', 'worker.mjs')).toEqual(
      fault(1, /'refund' has changed.*reason.*approve it with arguments that fit, refuse the call or cancel/),
    );
    const edited = ['--arguments', '{"amount":5,"reason":"broken"}', '--module', 'worker.mjs'];
    expect(await answer('--approve', ...edited)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('names who answered first if a server took their answer in the meantime', async () => {
    const refund = defineTool({
      name: 'refund',
      description: 'Refund',
      parameters: { type: 'object', properties: {} },
      approval: true,
      execute: () => 'refunded',
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'refund', arguments: {} }] },
      { content: 'Done.' },
    ]);
    const server = new Conversations({ store, config: { provider, model: 'm', tools: [refund] } });
    await server.prompt('k1', 'Refund it');
    const { pending = [] } = (await server.idle('k1')) ?? {};
    writeModule('true');
    // The module loads after the command has read the conversation, and waits for the other answer.
    writeFileSync(
      join(folder, 'slow.mjs'),
      `import { existsSync } from 'node:fs';
      import { setTimeout } from 'node:timers/promises';
      console.error('loading');
      while (!existsSync('answered')) await setTimeout(20);
      export { config } from './worker.mjs';`,
    );
    const args = ['runs', 'answer', 'k1.1', '--store', 'runs.sqlite', '--approve', '--module', 'slow.mjs'];
    await using late = new NodeProcess([COMMAND, ...args], { folder });
    await late.waitFor(/loading/);
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    await server.answer('k1', answers, { answeredBy: 'clerk 7' });
    await server.idle('k1');
    await server.close();
    writeFileSync(join(folder, 'answered'), '');
    const { exitCode, stderr } = await late.ended();
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/k1\.1 does not wait for an answer: .*already answered, last by "clerk 7"\n$/);
  });

  test('toolwright chat runs tools with restricted approvers for the user of the operating system', async () => {
    writeModule("{ approver: 'not-the-owner' }");
    const args = ['chat', 'worker.mjs', '--offline', '--interactive'];
    await using command = new NodeProcess([COMMAND, ...args], { folder });
    command.write('Refund it\n');
    await command.waitFor(/Run refund\?/);
    command.write('y\n');
    await command.waitFor(/only by a user who is not the owner.*Run refund\?/s);
    command.write('n\n');
    await command.waitFor(/refused: /);
    command.endInput();
    expect((await command.ended()).exitCode).toBe(0);
  });
});
