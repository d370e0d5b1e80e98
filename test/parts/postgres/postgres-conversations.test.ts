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

  test('PostgresRunStore: stores that share a pool share one connection for notifications', async () => {
    const pool = new pg.Pool({ connectionString: service.url, max: 2 });
    const provider = new ScriptedProvider(['a', 'b', 'c', 'd'].map((content) => ({ content })));
    const [schema, ...others] = [1, 2, 3].map(() => schemas.newSchema());
    // Two of them also share the channel.
    const stores = [schema, schema, ...others].map((schema) => new PostgresRunStore({ pool, schema }));
    const opened = stores.map((store) => new Conversations({ store, config: { provider, model: 'm' } }));
    const take = async (index: number, key: string) => {
      await opened[index]?.prompt(`c${index}`, 'Hi', { key });
      return (await opened[index]?.idle(`c${index}`))?.status;
    };
    expect(await Promise.all(stores.map((_, index) => take(index, '1')))).toEqual(Array(4).fill('idle'));
    // The notifications of the others continue.
    await opened[0]?.close();
    await stores[0]?.close();
    const news = Promise.withResolvers<ConversationNews>();
    const end = stores[1]?.conversations.watch(
      (given) => given.conversationId === 'x' && news.resolve(given),
    );
    const content = { kind: 'prompt', content: 'Hi' } as const;
    await stores[0]?.conversations.enter({ conversationId: 'x', key: '1', content });
    expect(await news.promise).toEqual({ about: 'inbox', conversationId: 'x' });
    end?.();
    for (const conversations of opened.slice(1)) await conversations.close();
    for (const store of stores.slice(1)) await store.close();
    expect(pool.idleCount).toBe(pool.totalCount);
    await pool.end();
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
