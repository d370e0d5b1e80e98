import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { describeCheckpointStore } from './checkpoint-store-conformance.js';
import { runState } from './run-state.js';
import { describeRunStore } from './run-store-conformance.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-stores-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newPath(): string {
  files += 1;
  return join(folder, `${files}.sqlite`);
}

function openFile(now: () => number) {
  const store = new SqliteRunStore({ path: newPath(), now });
  return { store, close: () => store.close() };
}

const STORES = [
  ['MemoryRunStore', (now: () => number) => ({ store: new MemoryRunStore({ now }), close: () => {} })],
  ['SqliteRunStore', openFile],
] as const;

for (const [name, open] of STORES) {
  describeRunStore(name, open);
  describeCheckpointStore(name, open);
}

describe.each(STORES)('%s', (_name, open) => {
  test('forgets runs that were kept long ago, unless somebody is at them', () => {
    let time = 1000;
    const { store, close } = open(() => time);
    for (const runId of ['old', 'claimed', 'late', 'renewed']) store.save(runState(runId, 1));
    time = 1600;
    store.claim({ runId: 'renewed', claim: 'a', leaseMs: 10 });
    store.release({ runId: 'renewed', claim: 'a' }, runState('renewed', 2));
    store.claim({ runId: 'claimed', claim: 'a', leaseMs: 1000 });
    store.claim({ runId: 'late', claim: 'a', leaseMs: 400 });
    time = 2000;
    expect(store.removeOlderThan(1001)).toBe(0);
    expect(store.removeOlderThan(1000)).toBe(2);
    const left = ['old', 'claimed', 'late', 'renewed'].filter((runId) => store.load(runId) !== undefined);
    expect(left).toEqual(['claimed', 'renewed']);
    close();
  });

  test.each([null, undefined, Number.NaN, '1000', -1])('forgets nothing for the age %j', (age) => {
    const { store, close } = open(() => 1000);
    store.save(runState('kept', 1));
    expect(() => store.removeOlderThan(age as number)).toThrow('removeOlderThan: ageMs is');
    expect(store.load('kept')).toBeDefined();
    close();
  });
});
