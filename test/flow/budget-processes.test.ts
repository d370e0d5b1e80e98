import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import type { BudgetLedger, Spending } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { SqliteRunStore } from 'toolwright/stores';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { buildProgram } from '../processes/build-program.js';
import { NodeProcess } from '../processes/node-process.js';
import { describePostgres } from '../services/services.js';

const program = buildProgram('test/flow/budget-program.ts');
const folder = mkdtempSync(join(tmpdir(), 'toolwright-budgets-'));
afterAll(() => {
  program.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface Told {
  readonly status: string;
  readonly error?: string;
  readonly spent: Spending;
}

async function spend(place: string, schema: string, seed: number): Promise<readonly Told[]> {
  const args = [program.file, place, schema, `${seed}`];
  await using spending = new NodeProcess(args, {
    folder: process.cwd(),
    environment: { PATH: process.env.PATH },
  });
  const [line] = await spending.waitFor(/^\[.*\]$/m);
  return JSON.parse(line) as readonly Told[];
}

/** Three processes with four runs each spend one budget completely. */
async function expectNeverOver(ledger: BudgetLedger, place: string, schema: string): Promise<void> {
  const told = (await Promise.all([11, 22, 33].map((seed) => spend(place, schema, seed)))).flat();
  expect(told.map(({ status, error }) => [status, error])).toEqual(
    Array(12).fill(['budget', expect.stringMatching(/^The budget of 'tenant:t' is spent/)]),
  );
  const { spent, reserved } = await ledger.balance({ key: 'tenant:t' });
  const sum = (part: 'tokens' | 'calls'): number => told.reduce((total, run) => total + run.spent[part], 0);
  expect([spent.tokens, spent.calls]).toEqual([sum('tokens'), sum('calls')]);
  expect(spent.tokens).toBeLessThanOrEqual(20_000);
  expect(spent.calls).toBeLessThanOrEqual(150);
  expect(spent.cost).toBeLessThanOrEqual(500_000_000);
  expect(spent.calls).toBeGreaterThan(20);
  expect(reserved.tokens).toBe(0);
}

/** A process killed during a request leaves its reservation, which expires. */
async function expectRunsOut(
  ledger: BudgetLedger,
  { place, schema }: { place: string; schema: string },
  advance: () => unknown,
): Promise<void> {
  const args = [program.file, place, schema, '1', 'die'];
  await using dying = new NodeProcess(args, {
    folder: process.cwd(),
    environment: { PATH: process.env.PATH },
  });
  await dying.ended();
  expect((await ledger.balance({ key: 'tenant:t' })).reserved.tokens).toBeGreaterThanOrEqual(400);
  await advance();
  expect(await ledger.balance({ key: 'tenant:t' })).toMatchObject({
    spent: { tokens: 0 },
    reserved: { tokens: 0 },
  });
}

describe('budgets of several processes', () => {
  test('in SQLite are never exceeded, and nothing stays reserved', async () => {
    const path = join(folder, 'a.sqlite');
    const store = new SqliteRunStore({ path });
    await expectNeverOver(store.budgets, path, '');
    store.close();
  });

  test('in SQLite get back the reservation of a killed process', async () => {
    const path = join(folder, 'b.sqlite');
    let ahead = 0;
    const store = new SqliteRunStore({ path, now: () => Date.now() + ahead });
    await expectRunsOut(store.budgets, { place: path, schema: '' }, () => {
      ahead = 61_000;
    });
    store.close();
  });
});

describePostgres('budgets of several processes, in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  test('are never exceeded, and get back the reservation of a killed process', async () => {
    const [schema, other] = [schemas.newSchema(), schemas.newSchema()];
    await using store = new PostgresRunStore({ connectionString: service.url, schema });
    await expectNeverOver(store.budgets, service.url, schema);
    await using second = new PostgresRunStore({ connectionString: service.url, schema: other });
    await second.migrate();
    const place = { place: service.url, schema: other };
    await expectRunsOut(second.budgets, place, () =>
      schemas.pool.query(`UPDATE ${other}.reservations SET lease_end = lease_end - 61000`),
    );
  });
});
