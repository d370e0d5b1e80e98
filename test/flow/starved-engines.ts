import { createPostgresBackend } from 'bullmq';
import { bullmqEngine } from '../../src/durable/bullmq/index.js';
import { pgBossEngine } from '../../src/durable/pg-boss/index.js';
import type { JobEngine } from '../../src/index.js';

/** The engine, and where its jobs are stored. */
export interface StarvedPlace {
  readonly name: 'BullMQ on Redis' | 'BullMQ on PostgreSQL' | 'pg-boss';
  readonly url: string;
  readonly queue: string;
  /** The PostgreSQL schema. */
  readonly schema: string;
}

export const BULLMQ_LEASE_MS = 1000;

/** An engine with the shortest leases that it allows. */
export function openStarvedEngine({ name, url, queue, schema }: StarvedPlace): JobEngine {
  if (name === 'pg-boss') return pgBossEngine({ connection: url, schema, queue, heartbeatSeconds: 10 });
  if (name === 'BullMQ on Redis') return bullmqEngine({ connection: url, queue, leaseMs: BULLMQ_LEASE_MS });
  const connection = { connectionString: url, schema, max: 3 };
  return bullmqEngine({ connection, backend: createPostgresBackend, queue, leaseMs: BULLMQ_LEASE_MS });
}
