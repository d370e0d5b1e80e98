import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import {
  type Budget,
  type BudgetLedger,
  defineTool,
  type ResultCache,
  resumeToolLoop,
  runToolLoop,
} from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { budgetLedgerConformance, type OpenedLedger, ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-budgets-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function clock(): { readonly now: () => number; readonly advance: (ms: number) => void } {
  let time = 1_700_000_000_000;
  return {
    now: () => time,
    advance: (ms) => {
      time += ms;
    },
  };
}

const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const USER = [{ role: 'user', content: 'Go' }] as const;
const CALLING = { content: '', toolCalls: [{ id: 'a', name: 'look', arguments: {} }] };
const SAID = { content: 'Done.' };

interface Opened extends OpenedLedger {
  readonly cache: ResultCache;
  readonly ledger: BudgetLedger;
}

function testLedger(name: string, open: () => Opened | Promise<Opened>): void {
  describe(name, () => {
    for (const { title, run } of budgetLedgerConformance({ name: `${name}.budgets`, open })) test(title, run);

    test(`${name}.budgets stores amounts granted beyond a budget for all processes`, async () => {
      const { ledger, other = ledger, close } = await open();
      const run = (budgets: BudgetLedger, replies: readonly object[]) => ({
        ...{ provider: new ScriptedProvider(replies as never), model: 'm', tools: [look] },
        budget: {
          store: { budgets },
          conversation: { steps: 1, whenSpent: { ask: { steps: 2 } } },
          by: [{ key: () => 'u1', windowMs: 30 * 86_400_000, steps: 100, whenSpent: 'ask' }],
        } satisfies Budget,
      });
      const scope = { conversationId: 'c1' };
      const first = await runToolLoop(run(ledger, [CALLING]), USER, scope);
      const [{ id = '' } = {}] = first.pending ?? [];
      const { state = {} as never } = first;
      const granted = await resumeToolLoop(run(ledger, [SAID]), state, [{ id, value: 2 }], scope);
      const second = await runToolLoop(run(other, [SAID]), USER, scope);
      const third = await runToolLoop(run(other, [SAID]), USER, scope);
      expect([first, granted, second, third].map(({ status }) => status)).toEqual([
        ...['suspended', 'completed', 'completed', 'budget'],
      ]);
      expect(await ledger.balance({ key: 'conversation:c1' })).toMatchObject({ spent: { steps: 3 } });
      await close?.();
    });

    test(`${name}.cache stores results by key until they expire or are deleted`, async () => {
      const { cache, advance, close } = await open();
      const result = {
        forLLM: 'x\u0001👩‍🚀',
        silent: false,
        isError: false,
        async: false,
        details: { a: [1] },
      };
      for (const key of ['k', 'K', '__proto__'])
        await cache.cacheResult(key, { ...result, forLLM: key }, 60_000);
      await cache.cacheResult('k', result, 60_000);
      expect(await cache.cachedResult('k')).toEqual(result);
      expect((await cache.cachedResult('__proto__'))?.forLLM).toBe('__proto__');
      expect(await cache.cachedResult('constructor')).toBeUndefined();
      await cache.forgetResult('k');
      expect(await cache.cachedResult('k')).toBeUndefined();
      expect(await cache.cachedResult('K')).toBeDefined();
      await advance(60_000);
      expect(await cache.cachedResult('K')).toBeUndefined();
      await close?.();
    });
  });
}

testLedger('MemoryRunStore', () => {
  const { now, advance } = clock();
  const { budgets: ledger, cache } = new MemoryRunStore({ now });
  return { ledger, cache, advance };
});

testLedger('SqliteRunStore', () => {
  const { now, advance } = clock();
  files += 1;
  const path = join(folder, `${files}.sqlite`);
  const [store, other] = [new SqliteRunStore({ path, now }), new SqliteRunStore({ path, now })];
  return {
    ...{ ledger: store.budgets, other: other.budgets, cache: store.cache, advance },
    close() {
      store.close();
      other.close();
    },
  };
});

describePostgres('budgets in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const schema = schemas.newSchema();
  testLedger('PostgresRunStore', async () => {
    const open = () => new PostgresRunStore({ connectionString: service.url, schema });
    const [store, other] = [open(), open()];
    await store.migrate();
    await schemas.empty(schema);
    return {
      ...{ ledger: store.budgets, other: other.budgets, cache: store.cache },
      advance: async (ms) => {
        const { pool } = schemas;
        await pool.query(
          `UPDATE ${schema}.reservations SET lease_end = lease_end - $1, began_at = CASE WHEN window_ms = 0 THEN 0 ELSE began_at - $1 END`,
          [ms],
        );
        await pool.query(
          `UPDATE ${schema}.budgets SET changed_at = changed_at - $1, began_at = CASE WHEN window_ms = 0 THEN 0 ELSE began_at - $1 END`,
          [ms],
        );
        await pool.query(`UPDATE ${schema}.results SET ends_at = ends_at - $1`, [ms]);
      },
      async close() {
        await store.close();
        await other.close();
      },
    };
  });
});
