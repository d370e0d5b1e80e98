import { PostgresRunStore } from '../../../src/durable/postgres/index.js';

/** Runs one operation on a store and prints its result as JSON. */
const [url = '', schema = '', what = '', at = '0'] = process.argv.slice(2);
await using store = new PostgresRunStore({ connectionString: url, schema });
const lease = { claim: `of ${process.pid}`, leaseMs: 60_000 };
const zero = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** Busy-waits for the clock: with timers, two processes would not start at the same moment. */
while (performance.timeOrigin + performance.now() < Number(at));

async function work(): Promise<unknown> {
  if (what === 'migrate') return store.migrate();
  if (what === 'watch') {
    store.conversations.watch(() => {});
    await store.close();
    return store.conversations.watch(() => {});
  }
  if (what === 'claimLost') return store.claimLost(lease);
  if (what === 'claim') return store.claim({ ...lease, runId: 'suspended' });
  const progress = {
    messages: [],
    toolCalls: [],
    iterations: 0,
    usage: zero,
    retries: { byTool: [], unknown: 0 },
  };
  const checkpoint = { ...progress, version: 3, status: 'running', runId: what, revision: 0 } as const;
  return store.begin({ ...lease, runId: what }, checkpoint);
}

console.log(JSON.stringify({ clock: Date.now(), outcome: await work() }));
