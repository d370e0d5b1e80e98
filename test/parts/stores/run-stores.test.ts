import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { describeRunStore } from './describe-run-store.js';

const folder = mkdtempSync(join(tmpdir(), 'toolwright-stores-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newPath(): string {
  files += 1;
  return join(folder, `${files}.sqlite`);
}

/** A clock that only the test advances. */
class Clock {
  time = 1_700_000_000_000;
  readonly now = (): number => this.time;
  readonly advance = (ms: number): void => {
    this.time += ms;
  };
}

describeRunStore('MemoryRunStore', () => {
  const { now, advance } = new Clock();
  return { store: new MemoryRunStore({ now }), advance };
});

describeRunStore('SqliteRunStore', () => {
  const { now, advance } = new Clock();
  const path = newPath();
  const [store, other] = [new SqliteRunStore({ path, now }), new SqliteRunStore({ path, now })];
  return {
    ...{ store, other, advance },
    close() {
      store.close();
      other.close();
    },
  };
});
