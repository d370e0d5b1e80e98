import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { jobStoreConformance } from 'toolwright/testing';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-jobs-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function clock(): { readonly now: () => number; readonly advance: (ms: number) => void } {
  let time = 1_700_000_000_000;
  return {
    now: () => time,
    advance: (ms) => {
      time += ms;
    },
  };
}

const SUITES = [
  jobStoreConformance({
    name: 'MemoryRunStore.jobs',
    open() {
      const { now, advance } = clock();
      const { jobs, conversations } = new MemoryRunStore({ now });
      return { jobs, conversations, advance };
    },
  }),
  jobStoreConformance({
    name: 'SqliteRunStore.jobs',
    open() {
      const { now, advance } = clock();
      files += 1;
      const path = join(folder, `${files}.sqlite`);
      const [store, other] = [new SqliteRunStore({ path, now }), new SqliteRunStore({ path, now })];
      const { jobs, conversations } = store;
      return {
        ...{ jobs, other: other.jobs, conversations, advance },
        close() {
          store.close();
          other.close();
        },
      };
    },
  }),
];
for (const { title, run } of SUITES.flat()) test(title, run);

test('SqliteRunStore.jobs stores jobs for other processes', async () => {
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
  await one.jobs.addJob(job, {});
  expect(await other.jobs.job('a')).toMatchObject({ job });
});
