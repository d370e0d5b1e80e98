import { EventEmitter, once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { type RunClaim, type RunLease, type RunState, type RunStore, resumeStoredRun } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { approveAll, countAndOrder, openShop, resuming, suspendIn } from './stored-run-story.js';

// Short, so that renewals come soon. The clock of the store only moves when a test moves it.
const LEASE = 30;

/** A store with a clock that tests move, renewals that they can await, and failures that they can cause. */
class TroubledStore extends MemoryRunStore {
  readonly #heard = new EventEmitter();
  readonly #clock: { now: number };
  broken: 'renew' | 'release' | 'remove' | undefined;

  constructor(clock = { now: 1000 }) {
    super({ now: () => clock.now });
    this.#clock = clock;
  }

  waitFor(ms: number): void {
    this.#clock.now += ms;
  }

  /** Resolves after the next attempt to renew a claim. */
  async renewal(): Promise<void> {
    await once(this.#heard, 'renewal');
  }

  override renew(lease: RunLease): boolean {
    // Emitted after this call has returned or thrown.
    setImmediate(() => this.#heard.emit('renewal'));
    this.#mayFail('renew');
    return super.renew(lease);
  }

  override release(claim: RunClaim, state?: RunState): boolean {
    this.#mayFail('release');
    return super.release(claim, state);
  }

  override remove(claim: RunClaim): boolean {
    this.#mayFail('remove');
    return super.remove(claim);
  }

  #mayFail(method: TroubledStore['broken']): void {
    if (this.broken === method) throw new Error('the disk is full');
  }
}

/** A store whose first renewal settles only when the run is released or removed, just before that does. */
class SlowStore implements RunStore {
  readonly renewing = Promise.withResolvers<void>();
  readonly #ending = Promise.withResolvers<void>();
  readonly #store = new MemoryRunStore();
  readonly #outcome: () => boolean;
  renewals = 0;

  constructor(outcome: () => boolean) {
    this.#outcome = outcome;
  }

  save = (state: RunState) => this.#store.save(state);
  load = (runId: string) => this.#store.load(runId);
  // The lease of the inner store is long, because no other process claims the run here.
  claim = (lease: RunLease) => this.#store.claim({ ...lease, leaseMs: 60_000 });

  async renew(): Promise<boolean> {
    this.renewals += 1;
    this.renewing.resolve();
    await this.#ending.promise;
    return this.#outcome();
  }

  async release(claim: RunClaim, state?: RunState): Promise<boolean> {
    await this.#renewed();
    return this.#store.release(claim, state);
  }

  async remove(claim: RunClaim): Promise<boolean> {
    await this.#renewed();
    return this.#store.remove(claim);
  }

  async #renewed(): Promise<void> {
    this.#ending.resolve();
    await new Promise(setImmediate);
  }
}

const another = (runId: string): RunLease => ({ runId, claim: 'another', leaseMs: LEASE });

describe('the claim of a running run', () => {
  test('is renewed until the run ends', async () => {
    const store = new TroubledStore();
    const tries: string[] = [];
    const shop = openShop(async () => {
      for (let round = 0; round < 3; round += 1) {
        await store.renewal();
        store.waitFor(LEASE - 1);
        tries.push(store.claim(another(runId)).status);
      }
    });
    const { runId, pending } = await suspendIn(store, shop);
    const config = resuming(shop, { content: 'Ordered.' });
    const run = await resumeStoredRun(config, { store, runId, leaseMs: LEASE }, approveAll(pending));
    expect(run.status).toBe('completed');
    expect(tries).toEqual(['taken', 'taken', 'taken']);
    expect(store.load(runId)).toBeUndefined();
  });

  test('that another process takes over aborts the run, which throws RunClaimed and changes nothing', async () => {
    const store = new TroubledStore();
    let isStopped = false;
    const shop = openShop(async (signal) => {
      store.waitFor(LEASE);
      expect(store.claim(another(runId)).status).toBe('claimed');
      await once(signal, 'abort');
      isStopped = true;
    });
    const { runId, pending, state } = await suspendIn(store, shop);
    const resumed = resumeStoredRun(
      resuming(shop, { content: 'Ordered.' }),
      { store, runId, leaseMs: LEASE },
      approveAll(pending),
    );
    await expect(resumed).rejects.toMatchObject({ name: 'RunClaimed', code: 517 });
    expect(isStopped).toBe(true);
    expect(store.load(runId)).toEqual(state);
    expect(store.release({ runId, claim: 'another' })).toBe(true);
  });

  test('that another process takes over aborts the run, but not the signal of the config', async () => {
    const store = new TroubledStore();
    const shop = openShop(async (signal) => {
      store.waitFor(LEASE);
      store.claim(another(runId));
      await once(signal, 'abort');
    });
    const { runId, pending } = await suspendIn(store, shop);
    const { signal } = new AbortController();
    const config = { ...resuming(shop, { content: 'Ordered.' }), signal };
    const resumed = resumeStoredRun(config, { store, runId, leaseMs: LEASE }, approveAll(pending));
    await expect(resumed).rejects.toMatchObject({ name: 'RunClaimed' });
    expect(signal.aborted).toBe(false);
  });

  test('does not replace the signal of the config', async () => {
    const store = new TroubledStore();
    const controller = new AbortController();
    const shop = openShop(async (signal) => {
      setImmediate(() => controller.abort());
      await once(signal, 'abort');
    });
    const { runId, pending } = await suspendIn(store, shop);
    const config = { ...resuming(shop, { content: 'Ordered.' }), signal: controller.signal };
    const run = await resumeStoredRun(config, { store, runId, leaseMs: 60_000 }, approveAll(pending));
    expect(run.status).toBe('aborted');
    expect(store.load(runId)).toBeUndefined();
  });

  test.each([
    ['reports a lost claim', () => false],
    ['succeeds', () => true],
    [
      'fails',
      () => {
        throw new Error('closed');
      },
    ],
  ])('that was released ignores a pending renewal that %s', async (_what, outcome) => {
    for (const [step, status] of [
      [{ content: 'Ordered.' }, 'completed'],
      [countAndOrder('b'), 'suspended'],
    ] as const) {
      const store = new SlowStore(outcome);
      const shop = openShop(() => store.renewing.promise);
      const { runId, pending } = await suspendIn(store, shop);
      const stored = { store, runId, leaseMs: 3 };
      const run = await resumeStoredRun(resuming(shop, step), stored, approveAll(pending));
      expect(run.status).toBe(status);
      expect(run).not.toHaveProperty('error');
      // The claim is no longer renewed.
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(store.renewals).toBe(1);
    }
  });

  test.each([
    ['has ended', [{ content: 'Ordered.' }]],
    ['is suspended again', [countAndOrder('b')]],
  ])(
    'that was taken over makes the resume throw RunClaimed, even if the run %s first',
    async (_end, steps) => {
      const store = new TroubledStore();
      const shop = openShop(() => {
        store.waitFor(60_000);
        expect(store.claim(another(runId)).status).toBe('claimed');
      });
      const { runId, pending, state } = await suspendIn(store, shop);
      const resumed = resumeStoredRun(
        resuming(shop, ...steps),
        { store, runId, leaseMs: 60_000 },
        approveAll(pending),
      );
      await expect(resumed).rejects.toMatchObject({ name: 'RunClaimed' });
      expect(store.load(runId)).toEqual(state);
      expect(store.renew(another(runId))).toBe(true);
    },
  );

  test('may be renewed late if no other process claims the run', async () => {
    const store = new TroubledStore();
    const shop = openShop(async () => {
      store.waitFor(10 * LEASE);
      await store.renewal();
      expect(store.claim(another(runId)).status).toBe('taken');
      store.waitFor(10 * LEASE);
    });
    const { runId, pending } = await suspendIn(store, shop);
    const config = resuming(shop, { content: 'Ordered.' });
    const run = await resumeStoredRun(config, { store, runId, leaseMs: LEASE }, approveAll(pending));
    expect(run.status).toBe('completed');
    expect(store.load(runId)).toBeUndefined();
  });
});

describe('a store that fails', () => {
  test('temporarily does not end the run', async () => {
    const store = new TroubledStore();
    const shop = openShop(async () => {
      store.broken = 'renew';
      await store.renewal();
      store.broken = undefined;
      await store.renewal();
    });
    const { runId, pending } = await suspendIn(store, shop);
    const config = resuming(shop, { content: 'Ordered.' });
    // Long enough for the second attempt, even on a busy machine.
    const run = await resumeStoredRun(config, { store, runId, leaseMs: 2_000 }, approveAll(pending));
    expect(run.status).toBe('completed');
  });

  test('for longer than the lease ends the run, because another process may have claimed it', async () => {
    const store = new TroubledStore();
    const shop = openShop(async (signal) => {
      store.broken = 'renew';
      await once(signal, 'abort');
    });
    const { runId, pending, state } = await suspendIn(store, shop);
    const resumed = resumeStoredRun(
      resuming(shop, { content: 'Ordered.' }),
      { store, runId, leaseMs: LEASE },
      approveAll(pending),
    );
    await expect(resumed).rejects.toMatchObject({
      name: 'RunStoreFailed',
      cause: new Error('the disk is full'),
    });
    expect(store.load(runId)).toEqual(state);
    store.waitFor(LEASE);
    expect(store.claim(another(runId)).status).toBe('claimed');
  });

  test('when the run is suspended again, leaves the state in the result', async () => {
    const store = new TroubledStore();
    const shop = openShop();
    const { runId, pending } = await suspendIn(store, shop);
    store.broken = 'release';
    const run = await resumeStoredRun(
      resuming(shop, countAndOrder('b')),
      { store, runId },
      approveAll(pending),
    );
    expect(run).toMatchObject({ status: 'failed', error: { name: 'RunStoreFailed' } });
    expect(run.pending).toHaveLength(1);
    expect(run.state?.revision).toBe(2);
    expect(store.load(runId)?.revision).toBe(1);
  });

  test('when the run has ended, does not change the outcome and is reported in its error', async () => {
    const store = new TroubledStore();
    const shop = openShop();
    const { runId, pending } = await suspendIn(store, shop);
    store.broken = 'remove';
    const config = resuming(shop, { content: 'Ordered.' });
    const run = await resumeStoredRun(config, { store, runId }, approveAll(pending));
    expect(run).toMatchObject({ status: 'completed', content: 'Ordered.' });
    expect(run.error).toMatchObject({ name: 'RunStoreFailed', cause: new Error('the disk is full') });
    expect(run.error?.message).toContain('(completed)');
  });

  test('when invalid answers are refused, does not hide that error', async () => {
    const store = new TroubledStore();
    const shop = openShop();
    const { runId } = await suspendIn(store, shop);
    store.broken = 'release';
    const resumed = resumeStoredRun(resuming(shop), { store, runId }, [{ id: 'nobody', approved: true }]);
    await expect(resumed).rejects.toMatchObject({ name: 'InvalidAnswer' });
  });
});
