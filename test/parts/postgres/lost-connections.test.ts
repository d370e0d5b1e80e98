import { expect, test } from '@jest/globals';
import pg from 'pg';
import type { OpenTurn } from 'toolwright';
import { type PostgresOptions, PostgresRunStore } from 'toolwright/postgres';
import { describePostgres } from '../../services/services.js';
import { runCheckpoint, stepEntry } from '../stores/run-checkpoint.js';
import { runState } from '../stores/run-state.js';
import { LosingProxy } from './losing-proxy.js';
import { TestSchemas } from './test-schema.js';

const RESERVATION = {
  id: 'r1',
  accounts: [{ key: 'k', limits: {} }],
  amounts: { calls: 0, cost: 0, steps: 0, timeMs: 0, tokens: 1 },
  leaseMs: 1000,
};

describePostgres('PostgresRunStore', (service) => {
  const schemas = new TestSchemas(service);

  test('PostgresRunStore repeats a transaction whose connection was cut', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: proxy.through(service.url), schema });
    await store.migrate();
    proxy.loseNextAnswer();
    const reserved = await store.budgets.reserve(RESERVATION);
    expect(reserved).toEqual({ status: 'reserved' });
    expect(proxy.lost).toBe(1);
  });

  test('PostgresRunStore survives a connection that ends as soon as it is ready', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const connectionString = proxy.through(service.url);
    const schema = schemas.newSchema();
    const pool = new pg.Pool({ connectionString });
    // As applications do, in case an idle connection is lost.
    pool.on('error', () => {});
    for (const place of [{ connectionString }, { pool }]) {
      await using store = new PostgresRunStore({ ...place, schema });
      await store.migrate();
      proxy.cut();
      const held = proxy.holdUntilEnded();
      const reserved = store.budgets.reserve(RESERVATION);
      await schemas.pool.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port = $1',
        [await held],
      );
      expect(await reserved).toEqual({ status: 'reserved' });
    }
    await pool.end();
  });

  /** A store, and a function that repeats its last write, as a retry after a lost connection may. */
  function copied(schema = schemas.newSchema()) {
    type Pool = NonNullable<PostgresOptions['pool']>;
    let last: Parameters<Pool['query']>[0] | undefined;
    const pool: Pool = {
      connect: () => schemas.pool.connect(),
      query: (query) => {
        if (/UPDATE|INSERT/.test(query.text)) last = query;
        return schemas.pool.query(query);
      },
    };
    const copyOfLast = () => {
      const again = last;
      return async () => void (again && (await schemas.pool.query(again)));
    };
    return { store: new PostgresRunStore({ pool, schema }), schema, copyOfLast };
  }

  /** A conversation with a holder. */
  async function held(inSchema = schemas.newSchema()) {
    const { store, schema, copyOfLast } = copied(inSchema);
    const { conversations: log } = store;
    const hold = { conversationId: 'c1', claim: 'x' };
    await log.enter({ conversationId: 'c1', key: 'k1', content: { kind: 'prompt', content: 'Hi' } });
    await log.hold({ ...hold, leaseMs: 60_000 });
    const told = async () => {
      const events = await log.events({ conversationId: 'c1', after: 0, limit: 100 });
      return events.map(({ event }) => event.type);
    };
    return { log, hold, schema, copyOfLast, told };
  }

  const message = (content: string) => ({ role: 'assistant' as const, content });

  test('PostgresRunStore stores events once if a copy of the write arrives after the next write', async () => {
    const { log, hold, copyOfLast, told } = await held();
    expect(await log.tell(hold, [{ type: 'a' }])).toBe(1);
    const late = copyOfLast();
    expect(await log.tell(hold, [{ type: 'b' }])).toBe(2);
    await late();
    expect(await told()).toEqual(['a', 'b']);
    await log.commit(hold, { events: [{ type: 'c' }] });
    await late();
    expect(await log.tell(hold, [{ type: 'd' }])).toBe(4);
    expect(await told()).toEqual(['a', 'b', 'c', 'd']);
  });

  test('PostgresRunStore commits once if a copy of the commit arrives after the next commit', async () => {
    const { log, hold, copyOfLast, told } = await held();
    await log.commit(hold, {
      history: { keep: 0, messages: [message('first')] },
      events: [{ type: 'a' }],
    });
    const late = copyOfLast();
    const history = { keep: 0, messages: [message('second'), message('third')] };
    expect(await log.commit(hold, { history, done: [1], events: [{ type: 'b' }] })).toBe(true);
    await late();
    expect((await log.read('c1'))?.messages).toEqual(history.messages);
    expect(await told()).toEqual(['a', 'b']);
  });

  test('PostgresRunStore stores all concurrent writes of a holder in the order of its calls', async () => {
    const { log, hold, told } = await held();
    const names = Array.from({ length: 20 }, (_, index) => `e${index}`);
    const answers = names.map((type, index) =>
      index % 3 === 0 ? log.commit(hold, { events: [{ type }] }) : log.tell(hold, [{ type }]),
    );
    const expected = names.map((_, index) => (index % 3 === 0 ? true : index + 1));
    expect(await Promise.all(answers)).toEqual(expected);
    expect(await told()).toEqual(names);
  });

  test('PostgresRunStore accepts writes of a new holder, whatever the id of the last write before', async () => {
    const { log, hold, schema, copyOfLast, told } = await held();
    await log.tell(hold, [{ type: 'a' }]);
    const late = copyOfLast();
    const latest = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    await schemas.pool.query(`UPDATE ${schema}.fleet_conversations SET last_write = $1`, [latest]);
    await log.letGo(hold, 1);
    const next = { ...hold, claim: 'y' };
    await log.hold({ ...next, leaseMs: 60_000 });
    expect(await log.tell(next, [{ type: 'b' }])).toBe(2);
    await late();
    // Acquiring again with the same claim must not reset the last write.
    await log.hold({ ...next, leaseMs: 60_000 });
    expect(await log.commit(next, { events: [{ type: 'c' }] })).toBe(true);
    expect(await told()).toEqual(['a', 'b', 'c']);
  });

  test('PostgresRunStore aborts only the open turn if a copy of the abort arrives in a later turn', async () => {
    const { log, hold, copyOfLast } = await held();
    const [entry] = (await log.read('c1'))?.inbox ?? [];
    const turn = (number: number) => ({ number, entry, runId: `c1.${number}` }) as OpenTurn;
    await log.commit(hold, { turn: turn(1) });
    expect(await log.askAbort('c1')).toBe(true);
    const late = copyOfLast();
    const asked = await log.read('c1');
    await late();
    expect(await log.read('c1')).toEqual(asked);
    expect(await log.askAbort('c1')).toBe(true);
    await log.commit(hold, { turn: null });
    await log.commit(hold, { turn: turn(2) });
    const before = await log.read('c1');
    await late();
    expect(await log.read('c1')).toEqual(before);
    expect(before?.isAbortAsked).toBe(false);
  });

  test('PostgresRunStore does not acquire a conversation for a copy that arrives after the release', async () => {
    const { log, hold, copyOfLast } = await held();
    const again = { ...hold, claim: 'y', leaseMs: 60_000 };
    await log.letGo(hold, 1);
    expect(await log.hold(again)).toMatchObject({ status: 'held' });
    const late = copyOfLast();
    await late();
    expect(await log.tell(again, [{ type: 'a' }])).toBe(1);
    await log.letGo(again, 1);
    await late();
    expect((await log.read('c1'))?.isHeld).toBe(false);
    const third = { ...again, claim: 'z' };
    await log.hold(third);
    await log.letGo(third, 1);
    await late();
    expect((await log.read('c1'))?.isHeld).toBe(false);
  });

  const leaseOf = (claim: string, runId = 'r') => ({ runId, claim, leaseMs: 60_000 });

  test('PostgresRunStore does not claim a run for a copy of a claim, however many holders it has had since', async () => {
    const { store, copyOfLast } = copied();
    await store.save(runState('r', 0));
    expect(await store.claim(leaseOf('a'))).toMatchObject({ status: 'claimed' });
    const late = copyOfLast();
    await late();
    expect(await store.read('r')).toMatchObject({ generation: 1 });
    for (const claim of ['a', 'b', 'c']) {
      if (claim !== 'a') expect(await store.claim(leaseOf(claim))).toMatchObject({ status: 'claimed' });
      expect(await store.release(leaseOf(claim))).toBe(true);
      const before = await store.read('r');
      await late();
      expect(await store.read('r')).toEqual(before);
    }
  });

  test('PostgresRunStore does not take over a run for a copy of seize', async () => {
    const { store, copyOfLast } = copied();
    await store.begin(leaseOf('a'), runCheckpoint('r'));
    expect(await store.seize({ ...leaseOf('b'), from: 'anybody' })).toMatchObject({ status: 'claimed' });
    const late = copyOfLast();
    expect(await store.release(leaseOf('b'))).toBe(true);
    await late();
    expect((await store.read('r'))?.leaseEnd).toBeUndefined();
    expect(await store.seize({ ...leaseOf('c'), from: 'nobody' })).toMatchObject({ status: 'claimed' });
    await late();
    expect(await store.append(leaseOf('c'), [])).toBe(true);
  });

  test('PostgresRunStore claims no other lost run for a copy of claimLost', async () => {
    const { store, copyOfLast } = copied();
    for (const runId of ['r1', 'r2']) {
      await store.begin(leaseOf('a', runId), runCheckpoint(runId));
      await store.release(leaseOf('a', runId));
    }
    const taken = await store.claimLost({ claim: 'b', leaseMs: 60_000 });
    const late = copyOfLast();
    await late();
    const [first, second] =
      taken.status === 'claimed' && taken.run.runId === 'r1' ? ['r1', 'r2'] : ['r2', 'r1'];
    expect((await store.read(second))?.leaseEnd).toBeUndefined();
    await store.release(leaseOf('b', first));
    await late();
    expect((await store.read(first))?.leaseEnd).toBeUndefined();
  });

  test('PostgresRunStore leaves a suspended run unchanged after a copy of save', async () => {
    const { store, schema, copyOfLast } = copied();
    await store.save(runState('r', 0));
    const late = copyOfLast();
    await store.claim(leaseOf('a'));
    await schemas.age(schema, 120_000);
    const before = await store.read('r');
    await late();
    expect(await store.read('r')).toEqual(before);
    // The holder is still the same.
    expect(await store.release(leaseOf('a'), runState('r', 1))).toBe(true);
    await late();
    expect((await store.load('r'))?.revision).toBe(1);
  });

  test('PostgresRunStore keeps the steps of a run after a copy of its checkpoint', async () => {
    const { store, copyOfLast } = copied();
    await store.save(runState('r', 0));
    await store.claim(leaseOf('a'));
    expect(await store.checkpoint(leaseOf('a'), runCheckpoint('r', ['on'], 1))).toBe(true);
    const late = copyOfLast();
    expect(await store.append(leaseOf('a'), [stepEntry('done')])).toBe(true);
    const before = await store.read('r');
    await late();
    expect(await store.read('r')).toEqual(before);
    expect(before?.entries).toHaveLength(1);
  });

  test('PostgresRunStore returns the correct result of a claim whose response was lost', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const schema = schemas.newSchema();
    await using store = new PostgresRunStore({ connectionString: proxy.through(service.url), schema });
    await store.save(runState('r', 0));
    for (const answers of [0, 1, 2]) {
      const lease = leaseOf(`claim${answers}`);
      proxy.loseAnswerAfter(answers);
      expect(await store.claim(lease)).toMatchObject({ status: 'claimed', state: { runId: 'r' } });
      expect(await store.claim(leaseOf('other'))).toEqual({ status: 'taken' });
      expect(await store.release(lease)).toBe(true);
      const seizure = { ...leaseOf(`seize${answers}`), from: 'nobody' as const };
      proxy.loseAnswerAfter(answers);
      expect(await store.seize(seizure)).toMatchObject({ status: 'claimed', run: { runId: 'r' } });
      expect(await store.release(seizure)).toBe(true);
    }
    for (const runId of ['r1', 'r2', 'r3']) {
      await store.begin(leaseOf('a', runId), runCheckpoint(runId));
      await store.release(leaseOf('a', runId));
    }
    const taken = new Set<string>();
    for (const answers of [0, 1, 2]) {
      proxy.loseAnswerAfter(answers);
      const lost = await store.claimLost({ claim: `lost${answers}`, leaseMs: 60_000 });
      if (lost.status === 'claimed') taken.add(lost.run.runId);
    }
    expect([...taken].sort()).toEqual(['r1', 'r2', 'r3']);
  });

  test('PostgresRunStore returns the correct result of a hold and an abort whose response was lost', async () => {
    await using proxy = await LosingProxy.before(service.url);
    const schema = schemas.newSchema();
    const { log, hold } = await held(schema);
    const [entry] = (await log.read('c1'))?.inbox ?? [];
    await log.commit(hold, { turn: { number: 1, entry, runId: 'c1.1' } as OpenTurn });
    await log.letGo(hold, 1);
    await using store = new PostgresRunStore({ connectionString: proxy.through(service.url), schema });
    await store.migrate();
    const cut = store.conversations;
    for (const answers of [0, 1, 2]) {
      const next = { ...hold, claim: `cut${answers}`, leaseMs: 60_000 };
      proxy.loseAnswerAfter(answers);
      expect(await cut.hold(next)).toMatchObject({ status: 'held', conversation: { isHeld: true } });
      proxy.loseAnswerAfter(answers);
      expect(await cut.askAbort('c1')).toBe(true);
      expect(await cut.renew(next)).toEqual({ holds: true, isAbortAsked: true });
      expect(await log.hold({ ...next, claim: 'other' })).toEqual({ status: 'taken' });
      expect(await cut.letGo(next, 1)).toBe(true);
    }
    expect(proxy.lost).toBeGreaterThan(2);
  });

  test('PostgresRunStore does not report an entry of another process as new after an error without an effect', async () => {
    const schema = schemas.newSchema();
    await using other = new PostgresRunStore({ pool: schemas.pool, schema });
    const entry = { conversationId: 'c1', key: 'k1', content: { kind: 'prompt', content: 'Hi' } } as const;
    await other.conversations.enter(entry);
    for (const code of ['53300', '57P03', '40001', '40P01', 'ECONNREFUSED']) {
      let isAway = false;
      const pool: NonNullable<PostgresOptions['pool']> = {
        connect: () => schemas.pool.connect(),
        async query(query) {
          if (!isAway) return schemas.pool.query(query);
          isAway = false;
          throw Object.assign(new Error('No connection'), { code });
        },
      };
      await using store = new PostgresRunStore({ pool, schema });
      await store.migrate();
      isAway = true;
      expect(await store.conversations.enter(entry)).toEqual({ position: 1, isNew: false });
      expect(isAway).toBe(false);
    }
  });
});
