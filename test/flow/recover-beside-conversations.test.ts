import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import {
  Conversations,
  type ConversationsOptions,
  type LLMProvider,
  recoverRuns,
  runToolLoop,
} from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { runCheckpoint } from '../parts/stores/run-checkpoint.js';
import { describePostgres } from '../services/services.js';
import { seenBy } from './dying-store.js';

type Store = ConversationsOptions['store'];

const LEASE = 50;

const provider: LLMProvider = {
  chat: async ({ messages }) => ({
    content: `heard: ${messages.at(-1)?.content}`,
    toolCalls: [],
    finishReason: 'stop',
  }),
};
const config = { provider, model: 'm' };

/** A process begins a turn of a conversation and dies before the model replies. */
async function leaveTurn(store: Store, conversationId: string): Promise<void> {
  let isAlive = true;
  const asked = Promise.withResolvers<void>();
  const chat = () => {
    asked.resolve();
    return new Promise<never>(() => {});
  };
  const process = new Conversations({
    store: seenBy(store, () => isAlive),
    config: { provider: { chat }, model: 'm' },
    leaseMs: LEASE,
  });
  await process.prompt(conversationId, 'Hello');
  await asked.promise;
  isAlive = false;
}

function describeRecovery(
  name: string,
  open: () => Store,
  close: (store: Store) => void | Promise<void>,
): void {
  describe(`${name}, which also stores conversations`, () => {
    let store: Store;
    afterEach(() => close(store));

    test('recoverRuns recovers all runs except those of open conversation turns', async () => {
      store = open();
      await leaveTurn(store, 'c1');
      const others = ['c1.', 'c1.01', 'c1.2', 'c10.1', 'c2.1', 'r'];
      for (const runId of others)
        await store.begin({ runId, claim: 'died', leaseMs: 1 }, runCheckpoint(runId, ['Hi']));
      await pause(4 * LEASE);
      const recovered = await recoverRuns({ store, config: { ...config, store, checkpoint: 'step' } });
      expect(recovered.map(({ runId }) => runId).sort()).toEqual(others);
      const alive = new Conversations({ store, config, leaseMs: LEASE, pollMs: 10 });
      expect(await alive.idle('c1')).toMatchObject({ status: 'idle', turns: 1 });
      const events = await store.conversations.events({ conversationId: 'c1', after: 0, limit: 100 });
      expect(events.filter(({ event }) => event.type === 'turn-end')).toMatchObject([
        { event: { status: 'completed', content: 'heard: Hello' } },
      ]);
      await alive.close();
    });
  });
}

describeRecovery(
  'MemoryRunStore',
  () => new MemoryRunStore(),
  () => {},
);

const folder = mkdtempSync(join(tmpdir(), 'toolwright-recover-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
describeRecovery(
  'SqliteRunStore',
  () => new SqliteRunStore({ path: join(folder, 'runs.sqlite') }),
  (store) => (store as SqliteRunStore).close(),
);

describePostgres('recovery in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  describeRecovery(
    'PostgresRunStore',
    () => new PostgresRunStore({ connectionString: service.url, schema: schemas.newSchema() }),
    (store) => (store as PostgresRunStore).close(),
  );
});

test('runToolLoop immediately refuses a run id that some stores cannot store', async () => {
  const store = new MemoryRunStore();
  for (const runId of ['', 'a\0b', 'a\ud800']) {
    const run = runToolLoop({ ...config, store, checkpoint: 'step', runId }, [
      { role: 'user', content: 'Hi' },
    ]);
    await expect(run).rejects.toMatchObject({ code: 521, message: expect.stringContaining('runId') });
  }
  expect(store.list().runs).toEqual([]);
});
