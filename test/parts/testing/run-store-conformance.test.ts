import { expect, test } from '@jest/globals';
import type { RunClaim, RunEntry, RunLease, RunQuery, RunState } from 'toolwright';
import { MemoryRunStore, type MemoryRunStoreOptions } from 'toolwright/stores';
import { runStoreConformance } from 'toolwright/testing';

type StoreClass = new (options: MemoryRunStoreOptions) => MemoryRunStore;

/** The titles of the cases that fail for a store. */
async function failed(Store: StoreClass): Promise<readonly string[]> {
  const cases = runStoreConformance({
    name: 'S',
    open() {
      let time = 1_700_000_000_000;
      const advance = (ms: number) => {
        time += ms;
      };
      return { store: new Store({ now: () => time }), advance };
    },
  });
  const outcomes = await Promise.allSettled(cases.map(({ run }) => run()));
  return cases.filter((_case, index) => outcomes[index]?.status === 'rejected').map(({ title }) => title);
}

class Faultless extends MemoryRunStore {}

class AppendsWithoutFence extends MemoryRunStore {
  override append(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    super.append(claim, entries);
    return this.read(claim.runId) !== undefined;
  }
}

class ForgetsAllAges extends MemoryRunStore {
  override removeOlderThan(ageMs: number): number {
    return super.removeOlderThan(ageMs / 2);
  }
}

class SuspendsHeldRuns extends MemoryRunStore {
  override save(state: RunState): void {
    try {
      super.save(state);
    } catch {}
  }
}

class AgesNoLease extends MemoryRunStore {
  override renew(lease: RunLease): boolean {
    return super.renew({ ...lease, leaseMs: 10 * lease.leaseMs });
  }
}

class HalfAppends extends MemoryRunStore {
  override append(claim: RunClaim, entries: readonly RunEntry[]): boolean {
    return entries.length === 0
      ? super.append(claim, [])
      : entries.map((entry) => super.append(claim, [entry])).every(Boolean);
  }
}

class LosesPages extends MemoryRunStore {
  override list(query?: RunQuery) {
    const page = super.list(query);
    return { runs: page.runs };
  }
}

class KeepsNoRevision extends MemoryRunStore {
  override release(claim: RunClaim, state?: RunState): boolean {
    return state === undefined ? super.release(claim) : super.release(claim, { ...state, revision: 1 });
  }
}

test('runStoreConformance reports nothing for a correct store', async () => {
  expect(await failed(Faultless)).toEqual([]);
});

test.each<[StoreClass, string]>([
  [
    AppendsWithoutFence,
    'S.claimLost replaces the holder, whose writes are refused and do not change the run',
  ],
  [
    ForgetsAllAges,
    'S.removeOlderThan removes suspended and ended runs without a holder that changed long ago',
  ],
  [SuspendsHeldRuns, 'S.save refuses a state of a claimed run until the lease ends'],
  [AgesNoLease, 'S.renew starts a new lease at the time of the call'],
  [HalfAppends, 'S.append and end add all entries or no entry'],
  [LosesPages, 'S.list returns runs by status in pages, the latest change first'],
  [KeepsNoRevision, 'S.release frees a run immediately, unchanged or with its new state'],
])('runStoreConformance reports the error of %p: %s', async (Store, title) => {
  expect((await failed(Store)).filter((told) => told.startsWith(title))).toHaveLength(1);
});
