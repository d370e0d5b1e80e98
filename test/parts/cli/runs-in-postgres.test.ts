import { tmpdir } from 'node:os';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { defineTool, foldRun, recoverRuns, runToolLoop, type ToolLoopConfig } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { runCommand } from './run-command.js';

describePostgres('toolwright runs over PostgreSQL', (service) => {
  test('toolwright runs lists, shows, answers and cancels with a database URL as its store', async () => {
    const name = service.newName();
    const admin = new pg.Client({ connectionString: service.url });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    try {
      const url = new URL(service.url);
      url.pathname = name;
      await operate(url.href);
    } finally {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    }
  });
});

async function operate(connectionString: string): Promise<void> {
  const runs = (...args: readonly string[]) =>
    runCommand(['runs', ...args, '--store', connectionString], tmpdir());
  await using store = new PostgresRunStore({ connectionString });
  const sign = defineTool({ name: 'sign', description: 'Sign', approval: true, execute: () => 'signed' });
  const provider = new ScriptedProvider([
    { toolCalls: [{ name: 'sign', arguments: {} }] },
    { toolCalls: [{ name: 'sign', arguments: {} }] },
    { content: 'Done' },
  ]);
  const config: ToolLoopConfig = { provider, model: 'm', tools: [sign], store, checkpoint: 'step' };
  for (const runId of ['r1', 'r2'])
    await runToolLoop({ ...config, runId }, [{ role: 'user', content: 'Sign' }]);
  const listed = await runs('list', '--status', 'suspended');
  expect([listed.code, listed.out]).toEqual([0, expect.stringMatching(/r2.*r1/s)]);
  expect((await runs('show', 'r1')).out).toContain('sign');
  expect(await runs('answer', 'r1', '--approve', '--by', 'clerk 7')).toMatchObject({ code: 0, error: '' });
  expect(await runs('cancel', 'r2', '--reason', 'closed')).toMatchObject({ code: 0, error: '' });
  expect(await recoverRuns({ store, config })).toMatchObject([{ runId: 'r1', result: { content: 'Done' } }]);
  const [signed, cancelled] = [await store.read('r1'), await store.read('r2')];
  expect(signed && foldRun(signed).toolCalls).toMatchObject([
    { answeredBy: 'clerk 7', result: { forLLM: 'signed' } },
  ]);
  expect(cancelled?.status).toBe('ended');
}
