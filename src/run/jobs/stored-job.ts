import type { Job } from '../../core/contract/job-engine.js';

/**
 * A job in a form that database queues can store. PostgreSQL refuses JSON with U+0000 or lone surrogates, and models
 * write such texts.
 */
export type StorableJob = Job | { readonly id: string; readonly json: string };

/** Escapes that PostgreSQL refuses, as `JSON.stringify` writes them. */
const REFUSED = /\\u(?:0000|d[89a-f][\da-f]{2})/i;

/** The job itself, or its JSON text if a database would refuse it. */
export function storableJob(job: Job): StorableJob {
  const json = JSON.stringify(job);
  return REFUSED.test(json) ? { id: job.id, json } : job;
}

/** The stored job. */
export function jobOf(kept: StorableJob): Job {
  return 'json' in kept ? (JSON.parse(kept.json) as Job) : kept;
}
