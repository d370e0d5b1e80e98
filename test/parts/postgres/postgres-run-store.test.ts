import { afterAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { RunEntry } from 'toolwright';
import { Conversations, InvalidOptionsError, runToolLoop } from 'toolwright';
import { PostgresConversationStore, type PostgresOptions, PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { buildProgram } from '../../processes/build-program.js';
import { NodeProcess } from '../../processes/node-process.js';
import { describePostgres } from '../../services/services.js';
import { runs } from '../../setup/runs.js';
import { describeRunStore } from '../stores/describe-run-store.js';
import { endEntry, runCheckpoint, stepEntry } from '../stores/run-checkpoint.js';
import { expiredState, runState } from '../stores/run-state.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

const LEASE = 60_000;
const lease = (claim: string, runId = 'r') => ({ runId, claim, leaseMs: LEASE });
const NO_AMOUNTS = { tokens: 0, cost: 0, calls: 0, steps: 0, timeMs: 0 };
const held = (claim: string, runId = 'r') => ({ runId, claim });

function contents(entries: readonly RunEntry[] = []): readonly string[] {
  return entries.map((entry) => (entry.type === 'step' ? entry.open.content : entry.type));
}

test.each<[PostgresOptions, string]>([
  [{}, 'neither pool nor connectionString is given'],
  [{ connectionString: 'postgres://h/d', pool: {} as never }, 'pool is {}'],
  [{ connectionString: 'postgres://h/d', schema: 'My Schema' }, "schema is 'My Schema'"],
])('PostgresRunStore refuses the options %j', (options, problem) => {
  expect(() => new PostgresRunStore(options)).toThrow(problem);
});

test('PostgresRunStore refuses a pool of one connection, which notifications would occupy', () => {
  const pool = new pg.Pool({ max: 1 });
  expect(() => new PostgresRunStore({ pool })).toThrow('max of 2 or more');
});

test('PostgresRunStore reports an invalid connection string without showing it', () => {
  const open = () => new PostgresRunStore({ connectionString: 7 as never });
  expect(open).toThrow(InvalidOptionsError);
  expect(open).toThrow('connectionString is a number');
});

test.each(['hello there', 'shop', 'postgress://u:pass@h/d', 'postgres:/h/d', 'postgres://u:pa#ss@h/d'])(
  'PostgresRunStore refuses the address %j without showing it',
  (connectionString) => {
    const problem = "Write instead: connectionString: 'postgres://user@host:5432/database'";
    const open = () => new PostgresRunStore({ connectionString });
    expect(open).toThrow(InvalidOptionsError);
    expect(open).toThrow(problem);
    expect(open).not.toThrow(connectionString);
  },
);

test.each([
  ['postgres://u:12#34@h/d', "connectionString has a '#' before its host: in a password, '#' is written %23"],
  ['postgres://u:pa ss@h:99999/d', 'connectionString has the port 99999; the highest port is 65535'],
  ['postgress://h/d', 'connectionString must begin with postgres:// or postgresql://, not with postgress://'],
  ['', 'connectionString is empty'],
])('PostgresRunStore reports the error in the address %j', (connectionString, problem) => {
  expect(() => new PostgresRunStore({ connectionString })).toThrow(problem);
});

test.each([
  'postgres://h/d',
  'postgres://h:5432/d?application_name=shop@1',
  'postgresql://u:p%20w@h:5432/d?sslmode=disable',
  'postgres://u@/d?host=/run/postgresql',
  'postgres:///d',
  'postgres://%2Frun%2Fpostgresql/d',
  '/run/postgresql d',
  'socket:/run/postgresql?db=d',
])('PostgresRunStore accepts the address %s', async (connectionString) => {
  await using store = new PostgresRunStore({ connectionString });
  expect(store).toBeInstanceOf(PostgresRunStore);
});

test('PostgresRunStore rejects with ECONNREFUSED if no server answers within reconnectMs', async () => {
  await using store = new PostgresRunStore({
    connectionString: 'postgres://x@127.0.0.1:1/x',
    reconnectMs: 50,
  });
  await expect(store.load('r')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

describePostgres('with PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  const shared = schemas.newSchema();
  const open = (options: Partial<PostgresOptions> = {}) =>
    new PostgresRunStore({ connectionString: service.url, schema: schemas.newSchema(), ...options });
  const [one, other] = [open({ schema: shared }), open({ schema: shared })];
  const program = buildProgram('test/parts/postgres/store-program.ts');

  afterAll(async () => {
    program.remove();
    await one.close();
    await other.close();
  });

  /** Runs a command in a separate process, whose clock may be wrong, and returns its output. */
  async function askProcess(what: string, { schema = shared, aheadMs = 0, at = 0 } = {}) {
    const clock = `const now = Date.now; Date.now = () => now() + ${aheadMs}`;
    const flags = [`--import=data:text/javascript,${encodeURIComponent(clock)}`];
    const place = { folder: process.cwd(), environment: { PATH: process.env.PATH } };
    await using child = new NodeProcess([...flags, program.file, service.url, schema, what, `${at}`], place);
    const { exitCode, stdout, stderr } = await child.ended();
    if (exitCode !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as { readonly clock: number; readonly outcome?: { readonly status: string } };
  }

  describeRunStore(
    'PostgresRunStore',
    async () => {
      await Promise.all([one.migrate(), other.migrate()]);
      await schemas.pool.query(`
        DELETE FROM ${shared}.runs; DELETE FROM ${shared}.approvals; DELETE FROM ${shared}.kept_results;
        DELETE FROM ${shared}.schedules`);
      return { store: one, other, advance: (ms) => schemas.age(shared, ms) };
    },
    runs(40),
  );

  test('PostgresRunStore and PostgresConversationStore have no rows of an id with U+0000, as other stores', async () => {
    const id = 'a\u0000b';
    const [claim, hold] = [held('a', id), { conversationId: id, claim: 'a' }];
    const ask = async (store: PostgresRunStore | SqliteRunStore | MemoryRunStore) => [
      await Promise.all([
        store.load(id),
        store.read(id),
        store.claim(lease('a', id)),
        store.renew(lease('a', id)),
      ]),
      await store.seize({ ...lease('a', id), from: 'nobody' }),
      await Promise.all([store.release(claim), store.release(claim, runState(id, 1)), store.remove(claim)]),
      await Promise.all([store.checkpoint(claim, runCheckpoint(id)), store.end(claim, [])]),
      await Promise.all([
        store.jobs.job(id),
        store.budgets.balance({ key: id }),
        store.cache.cachedResult(id),
      ]),
      await Promise.all([store.approvals.revokeApproval(id), store.schedules.cancelSchedule(id)]),
      await Promise.all([store.results.readResult({ handle: 'r', runId: id })]),
      await store.schedules.listSchedules({ conversationId: id }),
      await store.conversations.events({ conversationId: id, after: 0, limit: 1 }),
      await Promise.all([
        store.conversations.read(id),
        store.conversations.hold({ ...hold, leaseMs: LEASE }),
      ]),
      await Promise.all([store.conversations.askAbort(id), store.conversations.tell(hold, [{ type: 'a' }])]),
      await store.conversations.remove?.(hold, 'erase'),
    ];
    using file = new SqliteRunStore({ path: ':memory:' });
    const expected = await ask(new MemoryRunStore());
    expect([await ask(file), await ask(one)]).toEqual([expected, expected]);
    await using chats = new PostgresConversationStore({ connectionString: service.url, schema: shared });
    expect(await chats.load(id)).toBeUndefined();
    for (const write of [
      () => one.save(runState(id, 1)),
      () => one.begin(lease('a', id), runCheckpoint(id)),
      () =>
        one.budgets.reserve({
          id: 'r',
          accounts: [{ key: id, limits: {} }],
          amounts: NO_AMOUNTS,
          leaseMs: LEASE,
        }),
      () => chats.append(id, { id: 't', after: undefined, messages: [], finishReason: 'stop' }),
    ])
      await expect(write()).rejects.toThrow('PostgreSQL cannot store an id that contains U+0000');
  });

  describe('a run whose PostgresRunStore fails lastingly ends at once, with the fix', () => {
    /** The error of a run, and what was logged. */
    const failing = async (store: PostgresRunStore) => {
      const logged: string[] = [];
      const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void logged.push(line) };
      const provider = new ScriptedProvider([{ content: 'Done.' }]);
      const config = { provider, model: 'm', tools: [], store, checkpoint: 'step', logger } as const;
      const run = runToolLoop(config, [{ role: 'user', content: 'Hi' }]);
      const error = await run.then(
        () => undefined,
        (cause: Error) => cause,
      );
      return [error?.message.replace(/'[\w-]{36}'/, 'r'), logged];
    };
    const addressed = (change: (url: URL) => void) => {
      const url = new URL(service.url);
      change(url);
      return { connectionString: url.href, place: `${url.host}${url.pathname}` };
    };

    test('without the database', async () => {
      const { place, ...options } = addressed((url) => {
        url.pathname = '/no_such_database';
      });
      await using store = open(options);
      const fix = 'Create the database, or correct its name in the options of the store.';
      expect(await failing(store)).toEqual([
        `The store could not save run r: database "no_such_database" does not exist (PostgreSQL at ${place}). ${fix}`,
        [],
      ]);
    });

    test('without the role, or without its rights', async () => {
      const [schema, role] = [shared, service.newName()];
      await one.migrate();
      const { place: _, ...options } = addressed((url) => {
        url.username = role;
        url.password = 'x';
      });
      await using store = open({ schema, ...options });
      expect(await failing(store)).toEqual([
        expect.stringMatching(/Correct the user and the password of the store\.$/),
        [],
      ]);
      await schemas.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`);
      const denied = `The store could not save run r: permission denied for schema ${schema}`;
      expect(await failing(store)).toEqual([
        expect.stringMatching(`^${denied}.*and the rights of the role: migrate\\(\\) creates`),
        [],
      ]);
      await schemas.pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
      expect(await failing(store)).toEqual([undefined, []]);
      await schemas.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });

    test('with tables of a newer version', async () => {
      const schema = schemas.newSchema();
      await using store = open({ schema });
      await store.migrate();
      await schemas.pool.query(`INSERT INTO ${schema}.migrations (version) VALUES (99)`);
      await using older = open({ schema });
      expect(await failing(older)).toEqual([expect.stringContaining('has version 99'), []]);
    });

    test('after close', async () => {
      const store = open();
      await store.close();
      expect(await failing(store)).toEqual([
        expect.stringContaining('The store, or its pool, is closed.'),
        [],
      ]);
    });
  });

  describe('PostgresRunStore.migrate', () => {
    /** Whether each version was applied, and only once. */
    const isMade = async (schema: string) => {
      const text = `SELECT count(*) > 0 AND count(*) = max(version) AS made FROM ${schema}.migrations`;
      return (await schemas.pool.query(text)).rows[0]?.made as boolean;
    };

    test('creates the tables once, however many stores of one process start at the same time', async () => {
      const schema = schemas.newSchema();
      const stores = Array.from({ length: 8 }, () => open({ schema }));
      await Promise.all(stores.map((store, index) => store.save(runState(`r${index}`, 1))));
      expect(await stores[0]?.list()).toMatchObject({ runs: { length: 8 } });
      expect(await isMade(schema)).toBe(true);
      await Promise.all(stores.map((store) => store.close()));
    });

    test('creates the tables once if two processes start at the same time', async () => {
      for (let round = 0; round < 3; round += 1) {
        const schema = schemas.newSchema();
        const at = Date.now() + 1_000;
        const told = await Promise.all([1, 2].map(() => askProcess('migrate', { schema, at })));
        expect(told).toHaveLength(2);
        expect(await isMade(schema)).toBe(true);
      }
    });

    test('rolls back a failed migration, and succeeds after the cause is removed', async () => {
      const schema = schemas.newSchema();
      await schemas.pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.run_entries (id int)`);
      const store = open({ schema });
      await expect(store.migrate()).rejects.toThrow('"run_entries" already exists');
      const { rows } = await schemas.pool.query('SELECT to_regclass($1) AS runs', [`${schema}.runs`]);
      expect(rows).toEqual([{ runs: null }]);
      await schemas.pool.query(`DROP TABLE ${schema}.run_entries`);
      await store.save(runState('r', 1));
      await store.close();
    });

    test('needs no permission to create tables that exist', async () => {
      const [schema, role] = [schemas.newSchema(), service.newName()];
      await using owner = open({ schema });
      await owner.migrate();
      await schemas.pool.query(`
        CREATE ROLE ${role} LOGIN PASSWORD 'x';
        GRANT USAGE ON SCHEMA ${schema} TO ${role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role};`);
      const url = new URL(service.url);
      url.username = role;
      url.password = 'x';
      const store = open({ schema, connectionString: url.href });
      await store.begin(lease('a'), runCheckpoint('r'));
      expect(await store.append(held('a'), [stepEntry('one')])).toBe(true);
      await store.close();
      await schemas.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });

    test('finds expired answers in runs of version 9', async () => {
      const schema = schemas.newSchema();
      {
        await using store = open({ schema });
        for (const state of [expiredState('r'), expiredState('c.1', 'c'), runState('s', 1)])
          await store.save(state);
      }
      await schemas.pool.query(`
        ALTER TABLE ${schema}.runs DROP COLUMN expires_at, DROP COLUMN turn_of;
        INSERT INTO ${schema}.runs (run_id, status, revision, state, created_at, changed_at)
        VALUES ('broken', 'suspended', 1, '{"expiresAt":"2020', 1, 1);
        DELETE FROM ${schema}.migrations WHERE version > 9`);
      await using store = open({ schema });
      expect(await store.expiredRuns({ of: 'others', limit: 9 })).toEqual([{ runId: 'r' }]);
      expect(await store.expiredRuns({ of: 'turns', limit: 9 })).toEqual([
        { runId: 'c.1', conversationId: 'c' },
      ]);
      const { rows } = await schemas.pool.query(`SELECT min(expires_at) AS at FROM ${schema}.runs`);
      expect(Number(rows[0]?.at)).toBe(Date.parse('2020-01-01T00:00:00.500Z'));
    });

    test('refuses tables of a newer version', async () => {
      const schema = schemas.newSchema();
      await using store = open({ schema });
      await store.migrate();
      await schemas.pool.query(`INSERT INTO ${schema}.migrations (version) VALUES (99)`);
      await using older = open({ schema });
      await expect(older.load('r')).rejects.toThrow(
        `The schema '${schema}' has version 99, and this version`,
      );
    });
  });

  describe('PostgresRunStore and a lost connection', () => {
    test('appends every entry once and in order while its connections are ended', async () => {
      const name = service.newName();
      const url = new URL(service.url);
      url.searchParams.set('application_name', name);
      await using store = open({ connectionString: url.href });
      await store.begin(lease('a'), runCheckpoint('r'));
      const end = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1';
      const texts = Array.from({ length: 100 }, (_, index) => `${index}`);
      let ended = 0;
      for (const text of texts) {
        const isLost = Number(text) % 5 === 0;
        // At the same time: before it is sent, while it is executed, or after.
        const [told, { rowCount }] = await Promise.all([
          store.append(held('a'), [stepEntry(text)]),
          isLost ? schemas.pool.query(end, [name]) : { rowCount: 0 },
        ]);
        ended += rowCount ?? 0;
        expect(told).toBe(true);
      }
      expect(ended).toBeGreaterThan(10);
      expect(contents((await store.read('r'))?.entries)).toEqual(texts);
    });

    test('returns the correct result of every method whose response was lost', async () => {
      await using proxy = await LosingProxy.before(service.url);
      await using store = open({ connectionString: proxy.through(service.url) });
      await store.migrate();
      let expected = 0;
      const lost = async <Value>(work: () => Promise<Value>): Promise<Value> => {
        proxy.loseNextAnswer();
        const value = await work();
        expected += 1;
        expect(proxy.lost).toBe(expected);
        return value;
      };
      await lost(() => store.save(runState('r', 1)));
      expect(await lost(() => store.load('r'))).toEqual(runState('r', 1));
      expect(await lost(() => store.claim(lease('a')))).toEqual({
        status: 'claimed',
        state: runState('r', 1),
      });
      expect(await store.claim(lease('a'))).toEqual({ status: 'taken' });
      expect(await lost(() => store.renew(lease('a')))).toBe(true);
      expect(await lost(() => store.release(held('a'), runState('r', 2)))).toBe(true);
      expect(await lost(() => store.release(held('a')))).toBe(true);
      expect(await store.release(held('a'))).toBe(false);
      await store.claim(lease('b'));
      expect(await lost(() => store.checkpoint(held('b'), runCheckpoint('r')))).toBe(true);
      expect(await lost(() => store.append(held('b'), [stepEntry('one')]))).toBe(true);
      expect(await lost(() => store.end(held('b'), [endEntry('done')]))).toBe(true);
      expect(contents((await store.read('r'))?.entries)).toEqual(['one', 'end']);
      const seized = await lost(() => store.seize({ ...lease('c'), from: 'nobody' }));
      expect(seized).toMatchObject({ status: 'claimed', run: { status: 'ended' } });
      expect(await lost(() => store.remove(held('c')))).toBe(true);
      expect(await store.remove(held('c'))).toBe(false);
      await lost(() => store.begin(lease('a', 's'), runCheckpoint('s')));
      await expect(store.begin(lease('a', 's'), runCheckpoint('s'))).rejects.toMatchObject({
        name: 'RunClaimed',
      });
      expect(await lost(() => store.append(held('b', 's'), [stepEntry('stale')]))).toBe(false);
      expect(await lost(() => store.list())).toMatchObject({ runs: [{ runId: 's', generation: 1 }] });
      expect(await lost(() => store.removeOlderThan(0))).toBe(0);
    });

    test('accepts the same entries again after a failure as the same write', async () => {
      await using proxy = await LosingProxy.before(service.url);
      await using store = open({ connectionString: proxy.through(service.url), reconnectMs: 0 });
      await store.begin(lease('a'), runCheckpoint('r'));
      const entries = [stepEntry('one')];
      proxy.loseNextAnswer();
      await expect(store.append(held('a'), entries)).rejects.toThrow('Connection terminated');
      expect(await store.append(held('a'), entries)).toBe(true);
      expect(contents((await store.read('r'))?.entries)).toEqual(['one']);
      proxy.loseNextAnswer();
      await expect(store.end(held('a'), [])).rejects.toThrow('Connection terminated');
      expect(await store.end(held('a'), [])).toBe(true);
    });

    test('cancels a statement that takes too long, and continues to work', async () => {
      const schema = schemas.newSchema();
      await using store = open({ schema, statementTimeoutMs: 300 });
      await store.begin(lease('a'), runCheckpoint('r'));
      const blocker = await schemas.pool.connect();
      await blocker.query(`BEGIN; SELECT 1 FROM ${schema}.runs FOR UPDATE`);
      await expect(store.append(held('a'), [stepEntry('one')])).rejects.toThrow('statement timeout');
      await blocker.query('ROLLBACK');
      blocker.release();
      expect(await store.append(held('a'), [stepEntry('two')])).toBe(true);
      expect(contents((await store.read('r'))?.entries)).toEqual(['two']);
    });
  });

  describe('PostgresRunStore and a pool of the application', () => {
    test('uses it and never ends it', async () => {
      const pool = new pg.Pool({ connectionString: service.url, max: 2 });
      const schema = schemas.newSchema();
      const store = new PostgresRunStore({ pool, schema });
      await store.save(runState('r', 1));
      await store.close();
      expect(pool.ended).toBe(false);
      expect((await pool.query(`SELECT run_id FROM ${schema}.runs`)).rows).toEqual([{ run_id: 'r' }]);
      expect(pool.idleCount).toBe(pool.totalCount);
      await pool.end();
    });

    test.each(['serializable', 'repeatable read'])(
      'works without conflicts if the default isolation level of the database is %s',
      async (level) => {
        const url = new URL(service.url);
        url.searchParams.set('options', `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`);
        const schema = schemas.newSchema();
        const pool = new pg.Pool({ connectionString: url.href, max: 10 });
        await using first = open({ schema, connectionString: url.href, reconnectMs: 0 });
        await using second = open({ schema, connectionString: undefined, pool, reconnectMs: 0 });
        await Promise.all([first.migrate(), second.migrate()]);
        const each = <Value>(work: (store: PostgresRunStore, index: number) => Value) =>
          Promise.all(Array.from({ length: 20 }, (_, index) => work(index % 2 ? first : second, index)));
        const content = { kind: 'prompt', content: 'Hi' } as const;
        await each((store, index) =>
          store.conversations.enter({ conversationId: 'c', key: `${index}`, content }),
        );
        expect((await first.conversations.read('c'))?.inbox).toHaveLength(20);
        const amounts = { ...NO_AMOUNTS, calls: 1 };
        await each((store, index) =>
          store.budgets.reserve({
            id: `${index}`,
            accounts: [{ key: 'k', limits: {} }],
            amounts,
            leaseMs: LEASE,
          }),
        );
        await each((store, index) => store.budgets.settle(`${index}`, amounts));
        expect((await second.budgets.balance({ key: 'k' })).spent.calls).toBe(20);
        await first.save(runState('r', 1));
        const claims = await each((store, index) => store.claim(lease(`${index}`)));
        expect(claims.filter(({ status }) => status === 'claimed')).toHaveLength(1);
        await pool.end();
      },
    );

    test('reads its rows correctly, whatever parsers of types the application has set', async () => {
      const types = [16, 20, 23, 25, 114, 1184, 2950, 3802];
      const parsers = types.map((type) => pg.types.getTypeParser(type));
      for (const type of types) pg.types.setTypeParser(type, (text) => ({ text }));
      const pool = new pg.Pool({ connectionString: service.url, max: 3 });
      try {
        const schema = schemas.newSchema();
        await open({ connectionString: undefined, pool, schema }).migrate();
        await using store = open({ connectionString: undefined, pool, schema });
        const provider = new ScriptedProvider([{ content: 'Done.' }]);
        const conversations = new Conversations({ store, config: { provider, model: 'm', tools: [] } });
        await conversations.prompt('c', 'Hi');
        await conversations.idle('c');
        await conversations.close();
        expect(await store.read('c.1')).toMatchObject({ status: 'ended', generation: 1 });
        expect(await store.conversations.read('c')).toMatchObject({
          turns: 1,
          isHeld: false,
          messages: [{}, {}],
        });
        await store.begin(lease('a'), runCheckpoint('r'));
        expect(await store.seize({ ...lease('b'), from: 'nobody' })).toEqual({ status: 'taken' });
        const job = { id: 'j', tool: 't' } as never;
        expect([await store.jobs.addJob(job, {}), await store.jobs.addJob(job, {})]).toEqual([true, false]);
      } finally {
        types.map((type, index) => pg.types.setTypeParser(type, parsers[index] as never));
        await pool.end();
      }
    });

    test('can share it between several schemas', async () => {
      const pool = new pg.Pool({ connectionString: service.url, max: 2 });
      const stores = [1, 2].map(() => new PostgresRunStore({ pool, schema: schemas.newSchema() }));
      await Promise.all(stores.map((store, index) => store.save(runState('r', index + 1))));
      const kept = await Promise.all(stores.map((store) => store.load('r')));
      expect(kept.map((state) => state?.revision)).toEqual([1, 2]);
      await pool.end();
    });
  });

  describe('PostgresRunStore and processes', () => {
    test('a closed store that is watched does not keep its process alive', async () => {
      expect(await askProcess('watch')).toMatchObject({ clock: expect.any(Number) });
    });

    test('end leases by the clock of the server, whatever clock a process has', async () => {
      const schema = schemas.newSchema();
      await using store = open({ schema });
      await store.save(runState('suspended', 1));
      await store.claim(lease('a', 'suspended'));
      await store.begin(lease('a'), runCheckpoint('r'));
      const hour = 3_600_000;
      const ahead = await askProcess('claimLost', { schema, aheadMs: hour });
      expect(ahead.clock).toBeGreaterThan(Date.now() + hour / 2);
      expect(ahead.outcome).toEqual({ status: 'missing' });
      expect((await askProcess('claim', { schema, aheadMs: hour })).outcome).toEqual({ status: 'taken' });
      await schemas.age(schema, LEASE);
      const behind = await askProcess('claimLost', { schema, aheadMs: -hour });
      expect(behind.outcome).toMatchObject({ status: 'claimed', run: { runId: 'r', generation: 2 } });
      await askProcess('begun', { schema, aheadMs: -hour });
      const [begun, first] = [await store.read('begun'), await store.read('r')];
      expect(begun?.createdAt).toBeGreaterThanOrEqual(first?.createdAt ?? 0);
      expect((begun?.leaseEnd ?? 0) - (begun?.createdAt ?? 0)).toBeGreaterThanOrEqual(LEASE);
      expect((begun?.leaseEnd ?? 0) - (begun?.createdAt ?? 0)).toBeLessThan(LEASE + 30_000);
    });

    test('claim each lost run in only one of two processes', async () => {
      const schema = schemas.newSchema();
      await using store = open({ schema });
      await store.begin(lease('a'), runCheckpoint('r'));
      await schemas.age(schema, LEASE);
      const at = Date.now() + 1_000;
      const told = await Promise.all([1, 2].map(() => askProcess('claimLost', { schema, at })));
      expect(told.map(({ outcome }) => outcome?.status).sort()).toEqual(['claimed', 'missing']);
    });
  });
});
