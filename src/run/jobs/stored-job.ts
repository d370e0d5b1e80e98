import type { Job } from '../../core/contract/job-engine.js';

/**
 * A job as queues in databases can keep it: PostgreSQL refuses a text with the character of code 0, or with half of a
 * surrogate pair, within JSON that it reads, and models write such texts.
 */
export type StorableJob = Job | { readonly id: string; readonly json: string };

/** Escapes that PostgreSQL does not take, as `JSON.stringify` writes them. */
const REFUSED = /\\u(?:0000|d[89a-f][\da-f]{2})/i;

/** A job as it is, or as a text of its own where a database would refuse it. */
export function storableJob(job: Job): StorableJob {
  const json = JSON.stringify(job);
  return REFUSED.test(json) ? { id: job.id, json } : job;
}

/** The job that was kept. */
export function jobOf(kept: StorableJob): Job {
  return 'json' in kept ? (JSON.parse(kept.json) as Job) : kept;
}
