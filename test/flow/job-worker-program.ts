// A worker whose tool starts, prints its key, and never ends, until the process is killed.

import { bullmqEngine } from '../../src/durable/bullmq/index.js';
import { PostgresRunStore } from '../../src/durable/postgres/index.js';
import { defineTool, runJobs } from '../../src/index.js';

const [redis = '', postgres = '', queue = '', schema = ''] = process.argv.slice(2);
const { hostname, port } = new URL(redis);
const engine = bullmqEngine({ connection: { host: hostname, port: Number(port) }, queue, leaseMs: 1000 });
const store = new PostgresRunStore({ connectionString: postgres, schema });
const pay = defineTool({
  name: 'pay',
  description: 'Pays',
  background: true,
  execute: (_args, { idempotencyKey, attempt }) => {
    console.log(`attempt ${attempt} under ${idempotencyKey}.`);
    return new Promise(() => {});
  },
});
await runJobs({ engine, store, tools: [pay] });
console.log('working.');
