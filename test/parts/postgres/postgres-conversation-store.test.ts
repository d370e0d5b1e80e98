import { afterAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { PostgresConversationStore, PostgresRunStore } from 'toolwright/postgres';
import { conversationStoreConformance } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { turn } from '../satellite/said-turn.js';
import { runState } from '../stores/run-state.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

const HOUR = 3_600_000;

describePostgres('with PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const stores: PostgresConversationStore[] = [];

  function open(options: { readonly schema?: string; readonly expiresAfterMs?: number } = {}) {
    const place = { connectionString: service.url, schema: schemas.newSchema() };
    const store = new PostgresConversationStore({ ...place, ...options });
    stores.push(store);
    return store;
  }

  const age = (schema: string, ms: number) =>
    schemas.pool.query(`UPDATE ${schema}.conversations SET used_at = used_at - $1`, [ms]);

  afterAll(() => Promise.all(stores.map((store) => store.close())));

  const cases = conversationStoreConformance({
    name: 'PostgresConversationStore',
    open() {
      const schema = schemas.newSchema();
      return { store: open({ schema }), other: open({ schema }) };
    },
  });
  for (const { title, run } of cases) test(title, run);

  test('PostgresConversationStore deletes a conversation when it expires, by the clock of the server', async () => {
    const schema = schemas.newSchema();
    const store = open({ schema, expiresAfterMs: HOUR });
    await store.append('c1', turn('t1'));
    await age(schema, HOUR - 60_000);
    await store.append('c1', turn('t2', 't1'));
    await age(schema, HOUR - 60_000);
    expect(await store.load('c1')).toBeDefined();
    await age(schema, 60_000);
    expect(await store.load('c1')).toBeUndefined();
    expect(await store.append('c1', turn('t3', 't2'))).toBe(false);
    expect(await store.append('c1', turn('t4'))).toBe(true);
    expect((await store.load('c1'))?.messages).toEqual(turn('t4').messages);
  });

  test('PostgresConversationStore removes all rows of expired conversations when new ones start', async () => {
    const schema = schemas.newSchema();
    const store = open({ schema, expiresAfterMs: HOUR });
    for (let index = 0; index < 15; index += 1) await store.append(`old${index}`, turn('t1'));
    await age(schema, HOUR);
    for (const id of ['new1', 'new2']) await store.append(id, turn('t1'));
    const { rows } = await schemas.pool.query(
      `SELECT DISTINCT conversation_id AS id FROM ${schema}.conversation_turns ORDER BY id`,
    );
    expect(rows).toEqual([{ id: 'new1' }, { id: 'new2' }]);
    const forever = open({ schema, expiresAfterMs: Number.POSITIVE_INFINITY });
    await age(schema, 100_000 * HOUR);
    expect(await forever.load('new1')).toBeDefined();
  });

  test('PostgresConversationStore returns the correct result of a turn whose response was lost', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const place = { connectionString: proxy.through(service.url), schema: schemas.newSchema() };
    await using store = new PostgresConversationStore(place);
    await store.append('c1', turn('t1'));
    proxy.loseNextAnswer();
    expect(await store.append('c1', turn('t2', 't1'))).toBe(true);
    proxy.loseNextAnswer();
    expect(await store.append('c1', turn('t3', 't1'))).toBe(false);
    expect(proxy.lost).toBe(2);
    expect((await store.load('c1'))?.messages).toHaveLength(4);
  });

  test('PostgresConversationStore can share a connection and a schema with a run store', async () => {
    const pool = new pg.Pool({ connectionString: service.url, max: 2 });
    const schema = schemas.newSchema();
    const [runs, talks] = [
      new PostgresRunStore({ pool, schema }),
      new PostgresConversationStore({ pool, schema }),
    ];
    await Promise.all([runs.save(runState('r', 1)), talks.append('c1', turn('t1'))]);
    expect((await runs.load('r'))?.revision).toBe(1);
    expect((await talks.load('c1'))?.turnId).toBe('t1');
    await pool.end();
  });

  test('PostgresConversationStore migrates the tables of an older version with their contents', async () => {
    const schema = schemas.newSchema();
    await using runs = new PostgresRunStore({ connectionString: service.url, schema });
    await runs.save(runState('r', 1));
    await schemas.pool.query(`
      DROP TABLE ${schema}.conversation_turns, ${schema}.conversations, ${schema}.jobs, ${schema}.fleet_conversations,
        ${schema}.fleet_messages, ${schema}.fleet_inbox, ${schema}.fleet_events, ${schema}.reservations,
        ${schema}.budgets, ${schema}.results, ${schema}.approvals, ${schema}.kept_results, ${schema}.schedules;
      DELETE FROM ${schema}.migrations WHERE version > 1;`);
    expect(await open({ schema }).append('c1', turn('t1'))).toBe(true);
    expect((await runs.load('r'))?.revision).toBe(1);
  });
});
