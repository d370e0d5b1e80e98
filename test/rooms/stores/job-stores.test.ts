import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { testJobs } from './job-store-cases.js';

function clock(): { readonly now: () => number; readonly wait: (ms: number) => void } {
  let time = 1_700_000_000_000;
  return {
    now: () => time,
    wait: (ms) => {
      time += ms;
    },
  };
}

testJobs('MemoryRunStore.jobs', () => {
  const { now, wait } = clock();
  const { jobs, conversations } = new MemoryRunStore({ now });
  return { jobs, conversations, wait };
});

testJobs('SqliteRunStore.jobs', () => {
  const { now, wait } = clock();
  const store = new SqliteRunStore({ path: ':memory:', now });
  const { jobs, conversations } = store;
  return { jobs, conversations, wait, close: () => store.close() };
});

test('SqliteRunStore.jobs keeps jobs for other processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'jobs-'));
  const path = join(folder, 'runs.sqlite');
  const job = {
    id: 'a',
    tool: 't',
    arguments: {},
    scope: {},
    fingerprint: 'f',
    idempotencyKey: 'k',
    callId: 'c',
  };
  using one = new SqliteRunStore({ path });
  using other = new SqliteRunStore({ path });
  one.jobs.addJob(job, {});
  expect(other.jobs.job('a')).toMatchObject({ job });
  rmSync(folder, { recursive: true });
});
