import { expect, test } from '@jest/globals';
import pg from 'pg';
import { type ConversationNews, Conversations } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { conversationLogConformance, ScriptedProvider } from 'toolwright/testing';
import { describePostgres } from '../../services/services.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

describePostgres('conversations in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const open = (schema = schemas.newSchema()) =>
    new PostgresRunStore({ connectionString: service.url, schema });

  const shared = schemas.newSchema();
  const cases = conversationLogConformance({
    name: 'PostgresRunStore.conversations',
    async open() {
      const [store, other] = [open(shared), open(shared)];
      await store.migrate();
      await schemas.empty(shared);
      return {
        ...{ log: store.conversations, other: other.conversations },
        advance: (ms) => schemas.ageConversations(shared, ms),
        async close() {
          await store.close();
          await other.close();
        },
      };
    },
  });
  for (const { title, run } of cases) test(title, run);

  test('PostgresRunStore: new entries of one process are reported to another, even after a lost connection', async () => {
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

  test('Conversations: a wait continues after its notifications were lost with the connection', async () => {
    const schema = schemas.newSchema();
    await using proxy = await LosingProxy.before(service.url);
    await using store = open(schema);
    await using cut = new PostgresRunStore({ connectionString: proxy.through(service.url), schema });
    const provider = new ScriptedProvider([{ content: 'Hello' }]);
    const config = { provider, model: 'm' };
    const front = new Conversations({ store: cut, config, takesTurns: false });
    await front.prompt('c', 'Hi', { key: '1' });
    const listens = Promise.withResolvers<void>();
    const end = cut.conversations.watch(() => listens.resolve());
    await listens.promise;
    const looked = seen(cut);
    const idle = front.idle('c');
    await looked;
    proxy.refuse();
    const worker = new Conversations({ store, config });
    await worker.idle('c');
    proxy.accept();
    expect(await idle).toMatchObject({ status: 'idle', turns: 1 });
    end();
    await worker.close();
    await front.close();
  });
});

/** Resolves when a conversation has been read. */
function seen({ conversations }: PostgresRunStore): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const read = conversations.read.bind(conversations);
  conversations.read = async (id) => {
    const kept = await read(id);
    resolve();
    return kept;
  };
  return promise;
}
