import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import {
  Conversations,
  type ConversationsOptions,
  defineTool,
  type LLMProvider,
  recoverRuns,
  runToolLoop,
} from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';

type Store = ConversationsOptions['store'] & AsyncDisposable;

const hello = [{ role: 'user', content: 'Pay' }] as const;

const SOON = 1;
const HOUR = 3_600_000;

/** A model that calls two tools and repeats their results; each approval expires after the given time. */
function configOf(within: { readonly pay: number; readonly order: number }) {
  const ran: string[] = [];
  const approved = (name: string, approval: object) =>
    defineTool({
      name,
      description: 'Acts',
      approval,
      execute: () => {
        ran.push(name);
        return 'done';
      },
    });
  const provider: LLMProvider = {
    chat: async ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool');
      const toolCalls = ['pay', 'order'].map((name) => ({ id: name, name, arguments: {} }));
      return results.length === 0
        ? { content: '', toolCalls, finishReason: 'tool_calls' }
        : {
            content: results.map(({ content }) => content).join(' | '),
            toolCalls: [],
            finishReason: 'stop',
          };
    },
  };
  const tools = [
    approved('pay', { expiresInMs: within.pay }),
    approved('order', { expiresInMs: within.order }),
  ];
  return { config: { provider, model: 'm', tools }, ran };
}

function describeExpiries(name: string, open: () => Store): void {
  describe(`${name}: expired approvals`, () => {
    test('recoverRuns continues without expired answers, and the run still waits for the others', async () => {
      await using store = open();
      const later = { ...configOf({ pay: HOUR, order: HOUR }).config, store, checkpoint: 'step' } as const;
      const { config, ran } = configOf({ pay: SOON, order: HOUR });
      const kept = { ...config, store, checkpoint: 'step' } as const;
      await runToolLoop({ ...later, runId: 'later' }, hello);
      for (const runId of ['a', 'b'])
        await runToolLoop({ ...kept, runId }, hello, { owner: { user: runId } });
      await pause(50);
      const recovered = await recoverRuns({ store, config: kept });
      expect(recovered.map(({ runId }) => runId).sort()).toEqual(['a', 'b']);
      for (const item of recovered)
        expect(item).toMatchObject({ result: { status: 'suspended', pending: [{ tool: 'order' }] } });
      expect(await recoverRuns({ store, config: kept })).toEqual([]);
      expect(ran).toEqual([]);
    });

    test('recoverRuns completes a run whose approvals have all expired, and informs the model', async () => {
      await using store = open();
      const { config, ran } = configOf({ pay: SOON, order: SOON });
      await runToolLoop({ ...config, store, runId: 'a' }, hello, { owner: { user: 'u1' } });
      await pause(50);
      expect(await recoverRuns({ store, config })).toMatchObject([
        {
          result: {
            status: 'completed',
            content: expect.stringMatching(/it was not approved until .* \| .*it was not approved until/),
          },
        },
      ]);
      expect((await store.read('a'))?.status).toBe('ended');
      expect(ran).toEqual([]);
    });

    test('recoverRuns leaves a run pending if its config function throws', async () => {
      await using store = open();
      const { config } = configOf({ pay: SOON, order: SOON });
      const run = await runToolLoop({ ...config, store, checkpoint: 'step', runId: 'a' }, hello);
      await pause(50);
      const fails = () => {
        throw new Error('no key');
      };
      expect(await recoverRuns({ store, config: fails })).toMatchObject([
        { runId: 'a', error: { message: 'no key' } },
      ]);
      expect(await store.claim({ runId: 'a', claim: 'x', leaseMs: 1000 })).toMatchObject({
        status: 'claimed',
        state: { pending: run.pending ?? [] },
      });
    });

    test('a conversation whose process is gone continues without expired answers', async () => {
      await using store = open();
      // Long enough that the first process closes before the expiry, and does not handle it.
      const within = 2_000;
      const { config, ran } = configOf({ pay: within, order: within });
      const options = { store, config, pollMs: 20 };
      const first = new Conversations(options);
      await first.prompt('c1', 'Pay');
      await first.idle('c1');
      await first.close();
      await pause(within);
      // recoverRuns does not resume runs of a conversation.
      expect(await recoverRuns({ store, config })).toEqual([]);
      const second = new Conversations(options);
      for await (const { event } of second.events('c1')) if (event.type === 'turn-end') break;
      expect(await second.snapshot('c1')).toMatchObject({
        status: 'idle',
        turns: 1,
        messages: { 4: { content: expect.stringMatching(/it was not approved until/) } },
      });
      expect(ran).toEqual([]);
      await second.close();
    });
  });
}

describeExpiries('MemoryRunStore', () =>
  Object.assign(new MemoryRunStore(), { [Symbol.asyncDispose]: async () => {} }),
);

const folder = mkdtempSync(join(tmpdir(), 'toolwright-expired-'));
let files = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeExpiries('SqliteRunStore', () => {
  files += 1;
  const store = new SqliteRunStore({ path: join(folder, `${files}.sqlite`) });
  return Object.assign(store, { [Symbol.asyncDispose]: async () => store.close() });
});

describePostgres('in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  describeExpiries(
    'PostgresRunStore',
    () => new PostgresRunStore({ connectionString: service.url, schema: schemas.newSchema() }),
  );
});
