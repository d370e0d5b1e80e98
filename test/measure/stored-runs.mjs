// Measures a PostgresRunStore with a million runs: times, query plans, and a saved step compared with an INSERT.
// npm run measure:stores [-- <number of runs>]; uses the database of the tests.
import pg from 'pg';
import { PostgresRunStore } from '../../dist/src/durable/postgres/index.js';
import findServices from '../services/find-services.mjs';
import stopServices from '../services/stop-services.mjs';

const RUNS = Number(process.argv[2] ?? 1_000_000);
const DAY = 86_400_000;
let suspended = [];
let listPosition = [];
const schema = `toolwright_measure_${process.pid}`;

await findServices();
// One connection, so that the store and the plain INSERT use the same connection.
const pool = new pg.Pool({ connectionString: process.env.TOOLWRIGHT_TEST_POSTGRES, max: 1 });
const store = new PostgresRunStore({ pool, schema, statementTimeoutMs: 600_000 });
async function measure() {
  await store.migrate();
  const { rows } = await pool.query('SHOW server_version');
  console.log(
    `PostgreSQL ${rows[0].server_version}, Node ${process.versions.node}, one connection on loopback\n`,
  );
  const seconds = await timeOf(fill);
  console.log(
    `${RUNS.toLocaleString('en')} runs with an entry each created in ${(seconds / 1000).toFixed(0)} s\n`,
  );
  await prepareQueries();
  await showPlans();
  await report('append, one step', await compareAppend());
  await report('claim and release of a suspended run', await timesOf(500, claimAndRelease));
  await report(
    'claimLost',
    await timesOf(500, (index) => store.claimLost({ claim: `lost ${index}`, leaseMs: DAY })),
  );
  await report(
    'expiredRuns, limit 100',
    await timesOf(200, () => store.expiredRuns({ of: 'others', limit: 100 })),
  );
  await report('list, first page of 100 runs', await timesOf(200, () => store.list()));
  await report(
    'list, page of 100 runs in the middle',
    await timesOf(200, () => store.list({ after: middle() })),
  );
  for (const status of ['running', 'suspended', 'ended'])
    await report(
      `list of ${status} runs, page in the middle`,
      await timesOf(200, () => store.list({ status, after: middle() })),
    );
  let removed = 0;
  const ms = await timeOf(async () => {
    removed = await store.removeOlderThan(29 * DAY);
  });
  console.log(
    `removeOlderThan: ${removed.toLocaleString('en')} runs in ${ms.toFixed(0)} ms, ${((1000 * ms) / removed).toFixed(0)} µs per run`,
  );
  await report('removeOlderThan without old runs', await timesOf(100, () => store.removeOlderThan(40 * DAY)));
}

/**
 * 89 % of the runs have ended, 10 % are suspended, and 1 % are running, half of them with an expired lease. Half
 * of the suspended runs wait for an answer that expires; 1 in 50 of those has expired.
 */
async function fill() {
  const state = JSON.stringify({ version: 3, text: 'x'.repeat(600) });
  await pool.query(
    `INSERT INTO ${schema}.runs (run_id, status, revision, state, created_at, changed_at, claim, lease_end, expires_at)
     SELECT md5(n::text), CASE WHEN n % 100 = 0 THEN 'running' WHEN n % 10 = 1 THEN 'suspended' ELSE 'ended' END,
       1, $1, changed - 1000, changed,
       CASE WHEN n % 100 = 0 THEN 'held' END,
       CASE WHEN n % 200 = 0 THEN changed WHEN n % 100 = 0 THEN changed + 60 * ${DAY}::bigint END,
       CASE WHEN n % 1000 = 11 THEN changed WHEN n % 20 = 11 THEN changed + 60 * ${DAY}::bigint END
     FROM (
       SELECT n, (extract(epoch FROM now()) * 1000)::bigint - (n::bigint * 30 * ${DAY} / $2::bigint) AS changed
       FROM generate_series(1, $2) AS n
     ) AS numbered`,
    [state, RUNS],
  );
  await pool.query(
    `INSERT INTO ${schema}.run_entries (run_id, write_id, entries)
     SELECT run_id, gen_random_uuid(), '[{"type":"end"}]' FROM ${schema}.runs`,
  );
  await pool.query(
    `CREATE TABLE ${schema}.plain (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id text, entries text)`,
  );
  await pool.query(`VACUUM ANALYZE ${schema}.runs`);
  await pool.query(`VACUUM ANALYZE ${schema}.run_entries`);
}

/** Selects suspended runs to claim, and a position in the middle of the list. */
async function prepareQueries() {
  const { rows: selected } = await pool.query(
    `SELECT run_id FROM ${schema}.runs WHERE status = 'suspended' LIMIT 500`,
  );
  suspended = selected.map(({ run_id }) => run_id);
  const { rows } = await pool.query(
    `SELECT changed_at, run_id FROM ${schema}.runs ORDER BY changed_at DESC, run_id LIMIT 1 OFFSET ${Math.floor(RUNS / 2)}`,
  );
  listPosition = [Number(rows[0].changed_at), rows[0].run_id];
}

function middle() {
  return JSON.stringify(listPosition);
}

/** Alternates append and INSERT, so that both run under the same load. */
async function compareAppend() {
  const zero = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
  const claim = { runId: 'measured', claim: 'a' };
  await store.begin(
    { ...claim, leaseMs: DAY },
    { version: 3, status: 'running', runId: 'measured', revision: 0 },
  );
  const call = { status: 'begun', id: 'call_1', name: 'work', arguments: { text: 'x'.repeat(300) } };
  const step = () => [
    { type: 'step', messages: [], iterations: 1, usage: zero, open: { content: '', calls: [call] } },
  ];
  const text = `INSERT INTO ${schema}.plain (run_id, entries) VALUES ($1, $2) RETURNING seq`;
  const insert = () => pool.query({ name: 'plain', text, values: ['measured', JSON.stringify(step())] });
  const append = () => store.append(claim, step());
  await timesOf(300, insert);
  await timesOf(300, append);
  const [appendTimes, insertTimes] = [[], []];
  for (let index = 0; index < 3000; index += 1) {
    appendTimes.push(await timeOf(append));
    insertTimes.push(await timeOf(insert));
  }
  await report('INSERT … RETURNING', insertTimes);
  console.log(
    `append takes ${(median(appendTimes) / median(insertTimes)).toFixed(2)} times as long as INSERT`,
  );
  return appendTimes;
}

async function claimAndRelease(index) {
  const runId = suspended[index % suspended.length];
  await store.claim({ runId, claim: `c${index}`, leaseMs: DAY });
  await store.release({ runId, claim: `c${index}` });
}

/** Prints the query plans: executes each operation once and then explains its statements with the same values. */
async function showPlans() {
  const planned = { version: 3, status: 'running', runId: 'planned', revision: 0 };
  const claim = { runId: 'planned', claim: 'plan' };
  await store.begin({ ...claim, leaseMs: DAY }, planned);
  const operations = {
    claim: () => claimAndRelease(0),
    claimLost: () => store.claimLost({ claim: 'plan', leaseMs: DAY }),
    append: () => store.append(claim, []),
    read: () => store.read(suspended[0]),
    list: () => store.list({ after: middle() }),
    'list by status': () => store.list({ after: middle(), status: 'suspended' }),
    // Leaves half of the old runs for the measurement of `removeOlderThan`.
    removeOlderThan: () => store.removeOlderThan(29.5 * DAY),
  };
  for (const [name, operation] of Object.entries(operations)) {
    const sent = await statementsOf(operation);
    for (const { text, values } of sent.filter(({ text }) =>
      /^\s*(SELECT|UPDATE|INSERT|DELETE|WITH)/i.test(text),
    )) {
      await pool.query('BEGIN');
      const { rows } = await pool.query({ text: `EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) ${text}`, values });
      await pool.query('ROLLBACK');
      console.log(`${name}:\n${rows.map((row) => `  ${row['QUERY PLAN']}`).join('\n')}\n`);
    }
  }
}

/** Returns the statements that an operation sends. */
async function statementsOf(operation) {
  const sent = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (statement, values, ...others) {
    const { text = statement, values: parameters = values } = Object(statement);
    sent.push({ text: String(text), values: parameters });
    return query.call(this, statement, values, ...others);
  };
  try {
    await operation();
  } finally {
    pg.Client.prototype.query = query;
  }
  return sent;
}

async function timeOf(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function timesOf(count, work) {
  const times = [];
  for (let index = 0; index < count; index += 1) times.push(await timeOf(() => work(index)));
  return times;
}

function median(times) {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

function report(name, times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor(share * (sorted.length - 1))].toFixed(2);
  console.log(`${name}: median ${at(0.5)} ms, 99th percentile ${at(0.99)} ms (${times.length} times)`);
}

try {
  await measure();
} finally {
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await pool.end();
  await stopServices();
}
