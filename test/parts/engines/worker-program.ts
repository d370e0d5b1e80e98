// A worker in a separate process that takes jobs and never ends them. It is killed.
import { createPostgresBackend } from 'bullmq';
import type { JobEngine } from 'toolwright';
import { holdJobs } from '../../../src/dev/testing/index.js';
import { bullmqEngine } from '../../../src/durable/bullmq/index.js';
import { pgBossEngine } from '../../../src/durable/pg-boss/index.js';

const [kind, address = '', queue = '', schema = ''] = process.argv.slice(2);

function open(): JobEngine {
  const { hostname, port } = new URL(address);
  if (kind === 'redis')
    return bullmqEngine({ connection: { host: hostname, port: Number(port) }, queue, leaseMs: 3000 });
  if (kind === 'pg-boss') return pgBossEngine({ connection: address, schema, queue, heartbeatSeconds: 10 });
  const connection = { connectionString: address, schema, max: 3 };
  return bullmqEngine({ connection, backend: createPostgresBackend, queue, leaseMs: 3000 });
}

await holdJobs(open());
process.send?.('ready');
