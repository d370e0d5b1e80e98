import { expect, test } from '@jest/globals';
import { PostgresRunStore } from 'toolwright/postgres';
import { describePostgres } from '../../services/services.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

describePostgres('PostgresRunStore', (service) => {
  const schemas = new TestSchemas(service);

  test('PostgresRunStore begins a transaction again whose connection was cut in the middle of it', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: proxy.through(service.url), schema });
    await store.migrate();
    proxy.loseNextAnswer();
    const reserved = await store.budgets.reserve({
      id: 'r1',
      accounts: [{ key: 'k', limits: {} }],
      amounts: { calls: 0, cost: 0, steps: 0, timeMs: 0, tokens: 1 },
      leaseMs: 1000,
    });
    expect(reserved).toEqual({ status: 'reserved' });
    expect(proxy.lost).toBe(1);
  });
});
