import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { PostgresRunStore } from 'toolwright/postgres';
import { conversationLogConformance, runStoreConformance } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { isLong } from '../../setup/runs.js';
import { TestSchemas } from './test-schema.js';

const PARTITIONED = 'runs, run_entries, fleet_messages, fleet_inbox, fleet_events';

/** The statements that docs/guides/scaling.md links to, with fewer partitions. */
function statements(schema: string): string {
  return readFileSync('examples/fleet/partitions.sql', 'utf8')
    .replaceAll('toolwright.', `${schema}.`)
    .replace('0..63', '0..2')
    .replace('MODULUS 64', 'MODULUS 3');
}

describePostgres('with PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const schema = schemas.newSchema();
  const open = () => new PostgresRunStore({ connectionString: service.url, schema });
  let made: Promise<unknown> | undefined;

  async function makeTables(): Promise<void> {
    await using store = open();
    await store.migrate();
    await schemas.pool.query(statements(schema));
  }

  /** Two connections to empty tables. */
  async function openEmpty() {
    made ??= makeTables();
    await made;
    await schemas.empty(schema);
    const [store, other] = [open(), open()];
    const close = async () => {
      await store.close();
      await other.close();
    };
    return { store, other, close };
  }

  const runs = runStoreConformance({
    name: 'PostgresRunStore over partitioned tables',
    async open() {
      return { ...(await openEmpty()), advance: (ms) => schemas.age(schema, ms) };
    },
  });
  const conversations = conversationLogConformance({
    name: 'PostgresRunStore.conversations over partitioned tables',
    async open() {
      const { store, other, close } = await openEmpty();
      const advance = (ms: number) => schemas.ageConversations(schema, ms);
      return { log: store.conversations, other: other.conversations, advance, close };
    },
  });
  // Each case empties all partitions, which is slow.
  const cases = [...runs, ...conversations].filter((_case, index) => isLong || index % 5 === 0);
  for (const { title, run } of cases) test(title, run);

  test('the tables in examples/fleet/partitions.sql are partitioned', async () => {
    const { rows } = await schemas.pool.query(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'p'`,
    );
    expect(rows.map(({ name }) => name).sort()).toEqual(PARTITIONED.split(', ').sort());
  });
});
