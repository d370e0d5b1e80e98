import { test } from '@jest/globals';
import type { Job } from 'toolwright';
import { type JobEngineBackend, jobEngineConformance } from 'toolwright/testing';

/** Every test that an engine must pass. */
export function testAll(name: string, backend: JobEngineBackend): void {
  for (const { title, run } of jobEngineConformance(backend)) test(`${name} ${title}`, run);
}

/** Any job. */
export const JOB: Job = {
  id: 'task_1',
  tool: 'send_mail',
  arguments: { to: 'ada@example.org' },
  scope: {},
  fingerprint: 'f1',
  idempotencyKey: 'key-1',
  callId: 'call_1',
};
