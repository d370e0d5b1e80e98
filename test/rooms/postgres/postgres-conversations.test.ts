import { expect, test } from '@jest/globals';
import pg from 'pg';
import type { ConversationNews } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { describePostgres } from '../../services/services.js';
import { describeConversationLog } from '../stores/conversation-log-conformance.js';
import { TestSchemas } from './test-schema.js';

describePostgres('conversations in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const open = (schema = schemas.newSchema()) =>
    new PostgresRunStore({ connectionString: service.url, schema });

  describeConversationLog('PostgresRunStore', () => {
    const schema = schemas.newSchema();
    const store = open(schema);
    const pool = new pg.Pool({ connectionString: service.url });
    const close = async () => {
      await store.close();
      await pool.end();
    };
    // The clock is the server's: what was written is made older instead.
    const pass = async (ms: number) => {
      const older = (column: string) => `${column} = ${column} - ${Math.ceil(ms)}`;
      await pool.query(`
        UPDATE ${schema}.fleet_conversations SET ${older('lease_end')}, ${older('changed_at')};
        UPDATE ${schema}.fleet_inbox SET ${older('done_at')};
        UPDATE ${schema}.fleet_events SET ${older('kept_at')}`);
    };
    return { log: store.conversations, pass, close };
  });

  test('PostgresRunStore: what one process enters, another is told of, also after its connection was lost', async () => {
    const schema = schemas.newSchema();
    await using one = open(schema);
    await using other = open(schema);
    const heard: ConversationNews[] = [];
    const end = other.conversations.watch((news) => heard.push(news));
    const enterUntilHeard = async (conversationId: string) => {
      for (let key = 0; !heard.some((news) => news.conversationId === conversationId); key += 1) {
        await one.conversations.enter({
          conversationId,
          key: `${key}`,
          content: { kind: 'prompt', content: 'Hi' },
        });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await enterUntilHeard('before');
    const client = new pg.Client({ connectionString: service.url });
    await client.connect();
    const { rowCount } = await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN "${schema}.fleet_conversations"'`,
    );
    expect(rowCount).toBeGreaterThan(0);
    await client.end();
    await enterUntilHeard('after');
    end();
  });

  test('PostgresRunStore: of many who enter with the same key at once, one is new', async () => {
    const schema = schemas.newSchema();
    const stores = [open(schema), open(schema), open(schema)];
    const entered = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        stores[index % 3]?.conversations.enter({
          conversationId: 'c1',
          key: `k${index % 2}`,
          content: { kind: 'prompt', content: 'Hi' },
        }),
      ),
    );
    expect(entered.filter((entry) => entry?.isNew)).toHaveLength(2);
    expect(new Set(entered.map((entry) => entry?.position))).toEqual(new Set([1, 2]));
    await Promise.all(stores.map((store) => store.close()));
  });
});
