import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import type { Budget, ResultKey } from 'toolwright';
import { agentAsTool, Conversations, defineTool, MemoryJobEngine } from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { Schedules } from 'toolwright/toolbox/schedule';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';

type Store = MemoryRunStore | SqliteRunStore | PostgresRunStore;

/** A store, and the whole content of its database as text. */
interface Opened {
  readonly store: Store;
  dump(): string | Promise<string>;
  readonly showsHidden?: boolean;
  advance(ms: number): void | Promise<void>;
  close(): void | Promise<void>;
}

const DAY = 86_400_000;
const CANARY = 'canary-7f3a';
const folder = mkdtempSync(join(tmpdir(), 'toolwright-deleted-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** The model replies with text, or calls the tool of a prompt `use NAME`. */
function open(
  store: Store,
  { budget, ...more }: { readonly takesTurns?: boolean; readonly budget?: Budget } = {},
) {
  const engine = new MemoryJobEngine();
  const begun = Promise.withResolvers<void>();
  const parameters = { type: 'object', properties: { text: { type: 'string' } } } as const;
  const asked: unknown[] = [];
  const provider = {
    chat: async ({ messages }: { readonly messages: readonly { role: string; content: unknown }[] }) => {
      const last = messages.at(-1);
      asked.push(last?.content);
      const [, name] = /^use (\w+)/.exec(String(last?.content)) ?? [];
      if (last?.role !== 'user' || name === undefined)
        return { content: `said ${CANARY}`, toolCalls: [], finishReason: 'stop' as const };
      const call = { id: `call_${messages.length}`, name, arguments: { text: CANARY } };
      return { content: CANARY, toolCalls: [call], finishReason: 'tool_calls' as const };
    },
  };
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    parameters,
    execute: () => CANARY.repeat(20_000),
  });
  const agent = { provider, model: 'm', parameters };
  const research = agentAsTool({
    ...{ ...agent, name: 'research', description: 'Researches' },
    tools: [look],
    prompt: () => 'use look',
  });
  const manage = agentAsTool({
    ...{ ...agent, name: 'manage', description: 'Manages' },
    tools: [research],
    prompt: () => 'use research',
  });
  const tools = [
    defineTool({ name: 'pay', description: 'Pays', parameters, approval: true, execute: () => CANARY }),
    defineTool({
      name: 'mail',
      description: 'Mails',
      parameters,
      background: true,
      execute: () => `sent ${CANARY}`,
    }),
    defineTool({
      name: 'grant',
      description: 'Grants',
      parameters,
      approval: { remember: { scopes: ['run', 'conversation'] } },
      execute: () => CANARY,
    }),
    look,
    research,
    manage,
    defineTool({
      name: 'wait',
      description: 'Waits',
      parameters,
      execute: (_args, { signal }) => {
        begun.resolve();
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      },
    }),
  ];
  const config = { provider, model: 'm', tools, ...(budget === undefined ? {} : { budget }) };
  const conversations = new Conversations({ store, config, engine, pollMs: 50, ...more });
  ends.push(async () => {
    await conversations.close();
    await engine.close();
  });
  const say = async (id: string, text: string) => {
    await conversations.prompt(id, `${text} ${CANARY}`, { owner: 'ann' });
    return conversations.idle(id);
  };
  return { conversations, engine, begun: begun.promise, say, asked };
}

function testsOver(openStore: () => Opened | Promise<Opened>): void {
  const opened = async () => {
    const place = await openStore();
    ends.push(() => place.close());
    return place;
  };

  test('Conversations.delete with erase removes all data of the conversation, and none of others', async () => {
    const { store, dump } = await opened();
    const { conversations, say } = open(store);
    for (const id of ['c', 'c.1']) {
      for (const text of ['use look', 'use mail', 'Hello']) await say(id, text);
      const schedules = new Schedules({ store });
      await schedules.add({ conversationId: id, text: CANARY, owner: 'ann', inMinutes: 1_440 });
    }
    await say('c', 'use pay');
    await settled(async () => (await store.jobs.listJobs({ status: 'completed' })).jobs.length === 2);
    await conversations.idle('c.1');
    expect(await conversations.delete('c.1', { erase: true })).toBe(true);
    expect(await conversations.snapshot('c')).toMatchObject({ status: 'suspended' });
    expect((await store.schedules.listSchedules()).map(({ conversationId }) => conversationId)).toEqual([
      'c',
    ]);
    // Its suspended turn ends first.
    expect(await conversations.delete('c', { erase: true })).toBe(true);
    expect(await dump()).not.toContain(CANARY);
    expect(await conversations.delete('c', { erase: true })).toBe(false);
    expect(await conversations.snapshot('c')).toBeUndefined();
    await say('c', 'Again');
    expect(await conversations.snapshot('c')).toMatchObject({ turns: 1 });
  });

  test('Conversations.delete with erase removes the stored results of agents at any depth and of all owners', async () => {
    const { store, dump } = await opened();
    const kept = watchResults(store);
    const { conversations, say } = open(store);
    for (const id of ['c', 'c.1']) for (const text of ['use research', 'use manage']) await say(id, text);
    await conversations.prompt('c', 'use research', { owner: 'bob' });
    await conversations.idle('c');
    expect(kept).toHaveLength(5);
    expect(kept.at(-1)?.owner).toBe('"bob"');
    const left = () => Promise.all(kept.map((key) => store.results.readResult(key)));
    expect((await left()).map((text) => text?.length)).toEqual(Array(5).fill(CANARY.length * 20_000));
    expect(await conversations.delete('c', { erase: true })).toBe(true);
    expect((await left()).map((text) => text !== undefined)).toEqual([false, false, true, true, false]);
    expect(await conversations.delete('c.1', { erase: true })).toBe(true);
    expect((await left()).every((text) => text === undefined)).toBe(true);
    expect(await dump()).not.toContain(CANARY);
  });

  test('approvals remembered for a conversation or its runs end with the conversation', async () => {
    const { store } = await opened();
    const { conversations, say } = open(store);
    const asked = async (id: string) => {
      await say(id, 'use grant');
      return (await conversations.snapshot(id))?.pending?.map((call) => call.id) ?? [];
    };
    const ids = ['c', 'c.1', 'c"(+'];
    for (const id of ids)
      for (const scope of ['run', 'conversation'] as const) {
        const remember = { scope };
        const answers = (await asked(id)).map((call) => ({ id: call, approved: true, remember }));
        expect(answers).toHaveLength(1);
        await conversations.answer(id, answers, { owner: 'ann' });
        await conversations.idle(id);
      }
    const subjects = async () =>
      (await store.approvals.listApprovals()).map(({ scope, subject }) => `${scope} ${subject}`).toReversed();
    const of = (id: string) => [`run ${id}.1`, `conversation ${id}`];
    expect(await subjects()).toEqual(ids.flatMap(of));
    expect(await asked('c')).toEqual([]);
    for (const [index, how] of [{ erase: true }, {}, { erase: true }].entries()) {
      expect(await conversations.delete(ids[index] ?? '', how)).toBe(true);
      expect(await subjects()).toEqual(ids.slice(index + 1).flatMap(of));
    }
    // A new conversation with the same id starts without them.
    expect(await asked('c')).toHaveLength(1);
  });

  test('Conversations.delete aborts the running turn, and hides the conversation from every method', async () => {
    const { store, dump, showsHidden = false } = await opened();
    const { conversations, begun } = open(store);
    await conversations.prompt('c', `use wait ${CANARY}`, { owner: 'ann' });
    await conversations.prompt('c', `use pay ${CANARY}`, { owner: 'ann' });
    await begun;
    const other = open(store, { takesTurns: false }).conversations;
    await expect(other.delete('c', { owner: 'bob', onlyOwner: true })).rejects.toThrow('another owner');
    expect(await other.delete('c', { owner: 'ann', onlyOwner: true })).toBe(true);
    expect(await other.snapshot('c')).toBeUndefined();
    expect(await other.abort('c')).toBe(false);
    await expect(other.answer('c', [{ id: 'x', approved: true }])).rejects.toThrow();
    expect(await store.conversations.events({ conversationId: 'c', after: 0, limit: 9 })).toEqual([]);
    expect((await store.list()).runs).toEqual([]);
    expect(await store.read('c.1')).toBeUndefined();
    expect(await store.conversations.due(9)).toEqual([]);
    expect((await dump()).includes(CANARY)).toBe(showsHidden);
    expect(await other.delete('c')).toBe(false);
    expect(await other.delete('unknown', { erase: true })).toBe(false);
    // Retention also removes hidden conversations.
    expect(await store.retention({ conversations: 0 })).toMatchObject({ conversations: 1 });
    expect(await dump()).not.toContain(CANARY);
  });

  test('Conversations.delete starts no prompt that waits behind the aborted turn', async () => {
    const { store } = await opened();
    const { conversations, begun, asked } = open(store);
    for (const text of ['use wait', 'second', 'third']) await conversations.prompt('c', text);
    await begun;
    expect(await conversations.delete('c')).toBe(true);
    expect([asked, await conversations.snapshot('c')]).toEqual([['use wait'], undefined]);
    await conversations.prompt('c', 'anew');
    await conversations.idle('c');
    expect(asked).toEqual(['use wait', 'anew']);
  });

  test('Conversations.delete with erase also removes conversations hidden under the same id and owner', async () => {
    const { store, dump } = await opened();
    const { conversations, say } = open(store);
    const lives = [
      ['c', ['use mail', 'Hello']],
      ['c', ['Hello', 'use mail']],
      ['c.1', ['use mail']],
    ] as const;
    for (const [id, texts] of lives) {
      for (const text of texts) await say(id, text);
      await settled(async () => (await store.jobs.listJobs({ status: 'completed' })).jobs.length === 1);
      await conversations.idle(id);
      expect(await conversations.delete(id)).toBe(true);
      expect((await store.jobs.listJobs()).jobs).toEqual([]);
    }
    await say('c', 'Hello');
    const bob = { erase: true, owner: 'bob', onlyOwner: true };
    expect(await conversations.delete('c')).toBe(true);
    expect(await conversations.delete('c', bob)).toBe(false);
    expect(await conversations.delete('c', { ...bob, owner: 'ann' })).toBe(true);
    expect(await conversations.delete('c', { erase: true })).toBe(false);
    // Erasing a visible conversation also erases those hidden under its id.
    await say('c.1', 'Hello');
    expect(await conversations.delete('c.1', { erase: true })).toBe(true);
    expect(await conversations.delete('c.1', { erase: true })).toBe(false);
    expect(await dump()).not.toContain(CANARY);
    expect(await store.retention({ conversations: 0 })).toMatchObject({ conversations: 0 });
  });

  test('a new conversation with the id of a deleted one starts with no spending; others keep theirs', async () => {
    const { store } = await opened();
    const { say, conversations } = open(store, { budget: { conversation: { steps: 100 } } });
    const steps = async (id: string) =>
      (await store.budgets.balance({ key: `conversation:${id}` })).spent.steps;
    for (const how of [{}, { erase: true }]) {
      for (const id of ['c', 'c.1']) await say(id, 'Hello');
      const others = await steps('c.1');
      expect(await steps('c')).toBe(1);
      expect(await conversations.delete('c', how)).toBe(true);
      expect(await steps('c')).toBe(0);
      expect(await steps('c.1')).toBe(others);
    }
  });

  test('Conversations.delete keeps a run that only has an id like that of a turn', async () => {
    const { store } = await opened();
    const { conversations, say } = open(store);
    await store.save({ ...state('d.7'), owner: 'bob' } as never);
    await say('d', 'Hello');
    expect(await conversations.delete('d', { erase: true })).toBe(true);
    expect(await store.load('d.7')).toMatchObject({ runId: 'd.7' });
  });

  test('retention removes old conversations, jobs and events, and none that are open', async () => {
    const { store, advance } = await opened();
    const { conversations, say } = open(store);
    await say('done', 'use mail');
    await settled(async () => (await store.jobs.listJobs({ status: 'completed' })).jobs.length === 1);
    await settled(async () => (await conversations.idle('done'))?.turns === 2);
    await say('open', 'use pay');
    await say('planned', 'Hello');
    const schedules = new Schedules({ store });
    await schedules.add({ conversationId: 'planned', text: 'Hi', owner: 'ann', inMinutes: 14_400 });
    await store.jobs.addJob({ ...job('waits'), scope: { conversationId: 'working' } } as never, {});
    await say('working', 'Hello');
    await advance(2 * DAY);
    await say('young', 'Hello');
    const ages = { runs: DAY, jobs: DAY, events: DAY, conversations: DAY };
    const removed = await store.retention(ages);
    expect(removed).toMatchObject({ conversations: 1, runs: 2, jobs: 0 });
    expect(removed.events).toBeGreaterThan(0);
    const left = await Promise.all(
      ['done', 'open', 'planned', 'working', 'young'].map(
        async (id) => (await conversations.snapshot(id))?.status,
      ),
    );
    expect(left).toEqual([undefined, 'suspended', 'idle', 'idle', 'idle']);
    expect((await store.jobs.listJobs()).jobs.map(({ job: { id } }) => id)).toEqual(['waits']);
    expect((await store.read('open.1'))?.status).toBe('suspended');
    expect(await store.retention(ages)).toEqual({ conversations: 0, runs: 0, jobs: 0, events: 0 });
    await expect((async () => store.retention({ run: 1 } as never))()).rejects.toThrow('run');
  });
}

/** Collects the keys under which a store saves large results. */
function watchResults(store: Store): readonly ResultKey[] {
  const { results } = store;
  const keep = results.keepResult.bind(results);
  const keys: ResultKey[] = [];
  results.keepResult = ({ text, lifeMs, ...key }) => {
    keys.push(key);
    return keep({ ...key, text, lifeMs });
  };
  return keys;
}

/** Polls until the condition is true. */
async function settled(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

function state(runId: string) {
  return { version: 1, runId, revision: 1, messages: [], pending: [] };
}

function job(id: string) {
  return { id, tool: 'mail', arguments: {}, callId: 'c', idempotencyKey: id };
}

describe('in memory', () => {
  testsOver(() => {
    let ahead = 0;
    const store = new MemoryRunStore({ now: () => Date.now() + ahead });
    return {
      store,
      dump: async () => JSON.stringify(await givenBy(store, ['c', 'c.1'])),
      advance(ms) {
        ahead += ms;
      },
      close() {},
    };
  });
});

/** Everything that a store returns for conversations; hidden ones are not included. */
async function givenBy(store: Store, ids: readonly string[]): Promise<readonly unknown[]> {
  const { runs } = await store.list();
  return Promise.all([
    ...runs.map(({ runId }) => store.read(runId)),
    store.jobs.listJobs(),
    store.schedules.listSchedules(),
    ...ids.flatMap((conversationId) => [
      store.conversations.read(conversationId),
      store.conversations.events({ conversationId, after: 0, limit: 1_000 }),
    ]),
  ]);
}

describe('in SQLite', () => {
  let files = 0;
  testsOver(() => {
    files += 1;
    const path = join(folder, `${files}.sqlite`);
    let ahead = 0;
    const store = new SqliteRunStore({ path, now: () => Date.now() + ahead });
    return {
      store,
      showsHidden: true,
      dump() {
        const database = new DatabaseSync(path, { readOnly: true });
        const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
        const rows = tables.map(({ name }) => database.prepare(`SELECT * FROM "${name}"`).all());
        database.close();
        return JSON.stringify(rows);
      },
      advance(ms) {
        ahead += ms;
      },
      close: () => store.close(),
    };
  });
});

describePostgres('in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);

  testsOver(async () => {
    const schema = schemas.newSchema();
    const store = new PostgresRunStore({ connectionString: service.url, schema });
    await store.migrate();
    return {
      store,
      showsHidden: true,
      async dump() {
        const named = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = $1';
        const { rows: tables } = await schemas.pool.query<{ name: string }>(named, [schema]);
        const rows = tables.map(({ name }) => schemas.pool.query(`SELECT * FROM ${schema}.${name}`));
        return JSON.stringify((await Promise.all(rows)).map((found) => found.rows));
      },
      async advance(ms) {
        await schemas.age(schema, ms);
        await schemas.ageJobs(schema, ms);
        await schemas.ageConversations(schema, ms);
      },
      close: () => store.close(),
    };
  });
});
