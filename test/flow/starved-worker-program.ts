// A worker process. Its first attempt waits until it is aborted; or, with a file name, it blocks the event
// loop until that file exists and then runs for longer than a lease. Later attempts succeed.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { PostgresRunStore } from '../../src/durable/postgres/index.js';
import { defineTool, runJobs } from '../../src/index.js';
import { BULLMQ_LEASE_MS, openStarvedEngine, type StarvedPlace } from './starved-engines.js';

const [place = '', storeAddress = '', schema = '', awaited = ''] = process.argv.slice(2);
const engine = openStarvedEngine(JSON.parse(place) as StarvedPlace);
const store = new PostgresRunStore({ connectionString: storeAddress, schema });
const cell = new Int32Array(new SharedArrayBuffer(4));

const pay = defineTool({
  name: 'pay',
  description: 'Pays',
  background: true,
  execute: async (_args, { attempt, signal }) => {
    console.log(`attempt ${attempt}.`);
    if (attempt > 1) return 'paid';
    while (awaited !== '' && !existsSync(awaited)) Atomics.wait(cell, 0, 0, 20);
    try {
      await pause(awaited === '' ? 2 ** 30 : 3 * BULLMQ_LEASE_MS, undefined, { signal });
    } catch {
      console.log('aborted.');
      throw signal.reason;
    }
    return 'paid';
  },
});
const onAsyncResult = ({ result }: { readonly result: { readonly forLLM: string } }) =>
  console.log(`completed: ${result.forLLM}.`);
await runJobs({ engine, store, tools: [pay], onAsyncResult });
console.log('working.');
