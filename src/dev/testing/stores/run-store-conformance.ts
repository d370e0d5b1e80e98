import type { RetentionAges, StoreWithRetention } from '../../../core/contract/retention.js';
import type {
  CheckpointStore,
  RunCheckpoint,
  RunEntry,
  RunSummary,
  SeizeLease,
} from '../../../core/contract/run-checkpoint.js';
import type { RunClaim, RunLease, RunState, RunStore } from '../../../core/contract/run-state.js';
import { keepsSchedules, type StoreWithSchedules } from '../../../core/contract/schedule-store.js';
import { keepsApprovals } from '../../../core/contract/standing-approvals.js';
import { BOOLEAN, optionTable } from '../../../core/kernel/options.js';
import { expectSame, expectThat } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import {
  atOnce,
  casesOf,
  expectRefused,
  LEASE_MS,
  MINUTE,
  ODD_NAMES,
  ODD_TEXT,
  type OpenedCases,
  type OpenedStore,
  openedCases,
  suiteRules,
} from './store-bench.js';
import { APPROVAL_CASES, RESULT_CASES, SCHEDULE_CASES } from './store-part-cases.js';

type Opened = OpenedStore<CheckpointStore>;

async function claim(store: RunStore, who: string, runId = 'r') {
  return store.claim(leaseOf(who, runId));
}

async function saveAndClaim(store: RunStore) {
  await store.save(sampleState());
  await claim(store, 'a');
}

async function begin(store: CheckpointStore, who: string, runId = 'r') {
  await store.begin(leaseOf(who, runId), sampleCheckpoint(runId));
}

async function append(store: CheckpointStore, held: RunClaim, ...texts: readonly string[]) {
  return store.append(held, texts.map(sampleStep));
}

async function beginAndAppend(store: CheckpointStore) {
  await begin(store, 'a');
  await append(store, BY_A, 'one');
}

async function claimLost(store: CheckpointStore, who: string) {
  return store.claimLost({ claim: who, leaseMs: LEASE_MS });
}

async function seize(store: CheckpointStore, who: string, from: SeizeLease['from']) {
  return store.seize({ ...leaseOf(who), from });
}

/** Expects that a store refuses all writes of a claim that does not hold. */
async function expectNoClaim(store: RunStore): Promise<void> {
  const results = {
    renew: await store.renew(leaseOf('a')),
    release: await store.release(BY_A),
    releaseWithState: await store.release(BY_A, sampleState('r', 9)),
    remove: await store.remove(BY_A),
  };
  const refused = { renew: false, release: false, releaseWithState: false, remove: false };
  expectSame('the results of the methods with a claim that does not hold', results, refused);
}

/** The same for a store of running runs. */
async function expectNoHolder(store: CheckpointStore): Promise<void> {
  const results = {
    append: await append(store, BY_A, 'late'),
    checkpoint: await store.checkpoint(BY_A, sampleCheckpoint('r', ['late'])),
    end: await store.end(BY_A, [sampleEnd('late')]),
  };
  const refused = { append: false, checkpoint: false, end: false };
  expectSame('the results of the methods for a holder that was replaced', results, refused);
  await expectNoClaim(store);
}

async function revisionKept(store: RunStore) {
  return (await store.load('r'))?.revision;
}

/** The texts of a run's entries, which identify them. */
async function done(store: CheckpointStore, runId = 'r') {
  return textsOf((await store.read(runId))?.entries ?? []);
}

function leaseOf(who: string, runId = 'r', leaseMs = LEASE_MS): RunLease {
  return { runId, claim: who, leaseMs };
}

function heldBy(who: string, runId = 'r'): RunClaim {
  return { runId, claim: who };
}

const BY_A = heldBy('a');

/** A state of a waiting run for a store. */
function sampleState(runId = 'r', revision = 1, texts: readonly string[] = []): RunState {
  return {
    version: 3,
    runId,
    revision,
    messages: texts.map((content) => ({ role: 'user', content })),
    open: { content: '', calls: [] },
    pending: [],
    toolCalls: [],
    iterations: revision,
    usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    retries: { byTool: [], unknown: 0 },
  };
}

/** A checkpoint of a running run for a store. */
function sampleCheckpoint(runId: string, texts: readonly string[] = [], revision = 0): RunCheckpoint {
  const { open: _open, pending: _pending, ...progress } = sampleState(runId, revision, texts);
  return { ...progress, status: 'running' };
}

/** An entry for a step with one call, identified by its text. */
function sampleStep(text: string): RunEntry {
  const call = { status: 'begun', id: 'call_1', name: 'work', arguments: { text } } as const;
  return {
    type: 'step',
    messages: [{ role: 'user', content: text }],
    iterations: 1,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    open: { content: text, calls: [call] },
  };
}

/** The entry for the end of a run. */
function sampleEnd(content: string): RunEntry {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  return { type: 'end', messages: [], status: 'completed', content, iterations: 1, usage };
}

function textsOf(entries: readonly RunEntry[]): readonly string[] {
  return entries.map((entry) => {
    if (entry.type === 'step') return entry.open.content;
    return entry.type === 'end' ? entry.content : entry.type;
  });
}

/** A value that JSON cannot represent, typed as a number. */
const NO_JSON = 1n as unknown as number;

/** Compares only the status of an outcome. */
function expectStatus(what: string, { status }: { readonly status: string }, wanted: string): void {
  expectSame(what, status, wanted);
}

/** A case for each of some values. */
function eachCase<Value, Opened>(
  values: readonly Value[],
  titleOf: (value: Value) => string,
  run: (value: Value, opened: Opened) => Promise<void>,
): OpenedCases<Opened> {
  return Object.fromEntries(
    values.map((value) => [titleOf(value), (opened: Opened) => run(value, opened)] as const),
  );
}

const ODD_TEXTS = ['', '\u0000', '"\'\\', '\u2028', '👩‍🚀', '\ud800', "'); DROP TABLE toolwright_runs; --"];
/** Cases of `RunStore`. */
const CLAIM_CASES: OpenedCases<OpenedStore> = {
  'load returns undefined for an unknown run, and its claims are refused': async ({ store }) => {
    expectSame('load', await store.load('r'), undefined);
    expectSame('claim', await claim(store, 'a'), { status: 'missing' });
    await expectNoClaim(store);
    expectSame('load', await store.load('r'), undefined);
  },
  'load returns a state unchanged, whatever its texts contain': async ({ store }) => {
    const state = sampleState('r', 1, ODD_TEXTS);
    await store.save(state);
    expectSame('load', await store.load('r'), state);
    expectSame('claim', await claim(store, 'a'), { status: 'claimed', state });
  },
  'save stores a copy of the state, and load returns copies': async ({ store }) => {
    const state = sampleState('r', 1, ['as given']);
    await store.save(state);
    (state.messages as unknown[]).push('changed');
    const given = await store.load('r');
    (given?.messages as unknown[] | undefined)?.push('changed');
    const kept = await store.load('r');
    expectSame('messages', kept?.messages, [{ role: 'user', content: 'as given' }]);
  },
  'save keeps runs with similar ids separate': async ({ store }) => {
    for (const name of ['', ' ', ...ODD_NAMES]) await store.save(sampleState(name, 1, [name]));
    for (const name of ['', ' ', ...ODD_NAMES]) {
      expectSame('load', await store.load(name), sampleState(name, 1, [name]));
      expectStatus('claim', await claim(store, 'a', name), 'claimed');
    }
  },
  'claim gives a run to the first caller, and to no other caller before the lease has ended': async ({
    store,
    advance,
  }) => {
    await store.save(sampleState());
    expectStatus('claim', await claim(store, 'a'), 'claimed');
    for (const who of ['b', 'a']) expectSame('claim', await claim(store, who), { status: 'taken' });
    await advance(LEASE_MS - MINUTE);
    expectSame('claim before the lease has ended', await claim(store, 'b'), { status: 'taken' });
    await advance(MINUTE);
    const state = sampleState();
    expectSame('claim after the lease has ended', await claim(store, 'b'), { status: 'claimed', state });
  },
  'claim succeeds for one of many simultaneous callers over both connections': async ({
    store,
    other = store,
  }) => {
    await store.save(sampleState());
    const outcomes = await atOnce(20, [store, other], (store, index) => claim(store, `c${index}`));
    const statuses = outcomes.map(({ status }) => status).sort();
    expectSame('claims', statuses, ['claimed', ...Array(19).fill('taken')]);
  },
  'load returns a claimed run unchanged': async ({ store }) => {
    await saveAndClaim(store);
    expectSame('load', await store.load('r'), sampleState());
  },
  'renew starts a new lease at the time of the call': async ({ store, advance }) => {
    await saveAndClaim(store);
    await advance(LEASE_MS - MINUTE);
    expectSame('renew', await store.renew(leaseOf('a', 'r', 3 * LEASE_MS)), true);
    await advance(3 * LEASE_MS - MINUTE);
    expectSame('claim', await claim(store, 'b'), { status: 'taken' });
    await advance(MINUTE);
    expectStatus('claim', await claim(store, 'b'), 'claimed');
  },
  'release frees a run immediately, unchanged or with its new state': async ({ store }) => {
    await saveAndClaim(store);
    expectSame('release', await store.release(BY_A), true);
    expectSame('claim', await claim(store, 'b'), { status: 'claimed', state: sampleState() });
    expectSame('release', await store.release(heldBy('b'), sampleState('r', 2)), true);
    expectSame('claim', await claim(store, 'c'), { status: 'claimed', state: sampleState('r', 2) });
  },
  'remove removes only the claimed run': async ({ store }) => {
    for (const name of ['r', 's']) await store.save(sampleState(name, 1));
    await claim(store, 'a');
    expectSame('remove of another run', await store.remove(heldBy('a', 's')), false);
    expectSame('remove', await store.remove(BY_A), true);
    expectSame('load', await store.load('r'), undefined);
    expectSame('claim', await claim(store, 'b'), { status: 'missing' });
    expectSame('load of another run', await store.load('s'), sampleState('s', 1));
  },
  'release ends a claim, whose later writes are refused': async ({ store }) => {
    await saveAndClaim(store);
    await store.release(BY_A);
    await expectNoClaim(store);
    expectSame('revision', await revisionKept(store), 1);
    expectStatus('claim', await claim(store, 'b'), 'claimed');
  },
  'claim replaces a holder whose lease has ended, and refuses the late writes of the old holder': async ({
    store,
    other = store,
    advance,
  }) => {
    await saveAndClaim(store);
    await advance(LEASE_MS);
    await claim(other, 'b');
    await expectNoClaim(store);
    expectSame('claim', await claim(store, 'c'), { status: 'taken' });
    expectSame('release', await other.release(heldBy('b'), sampleState('r', 2)), true);
    expectSame('revision', await revisionKept(store), 2);
  },
  'renew and release accept a late holder that was not replaced': async ({ store, advance }) => {
    await saveAndClaim(store);
    await advance(10 * LEASE_MS);
    expectSame('renew', await store.renew(leaseOf('a')), true);
    expectSame('claim', await claim(store, 'b'), { status: 'taken' });
    await advance(10 * LEASE_MS);
    expectSame('release', await store.release(BY_A, sampleState('r', 2)), true);
    expectSame('revision', await revisionKept(store), 2);
  },
  'save accepts a later state of a free run, and the same state again': async ({ store }) => {
    await store.save(sampleState());
    await store.save(sampleState('r', 2, ['one']));
    await store.save(sampleState('r', 2, ['one']));
    expectSame('load', await store.load('r'), sampleState('r', 2, ['one']));
    expectStatus('claim', await claim(store, 'a'), 'claimed');
  },
  'save refuses an earlier state, and another state of the same revision': async ({ store }) => {
    const state = sampleState('r', 2, ['one']);
    await store.save(state);
    await expectRefused('an earlier state', () => store.save(sampleState()), 'RunClaimed');
    const other = sampleState('r', 2, ['other']);
    await expectRefused('another state of the same revision', () => store.save(other), 'RunClaimed');
    expectSame('load', await store.load('r'), state);
  },
  'save refuses a state of a claimed run until the lease ends': async ({ store, advance }) => {
    await saveAndClaim(store);
    await expectRefused('a state of a claimed run', () => store.save(sampleState('r', 2)), 'RunClaimed');
    expectSame('claim', await claim(store, 'b'), { status: 'taken' });
    expectSame('revision', await revisionKept(store), 1);
    await advance(LEASE_MS);
    await store.save(sampleState('r', 2));
    await expectNoClaim(store);
    expectSame('claim', await claim(store, 'b'), { status: 'claimed', state: sampleState('r', 2) });
  },
  'save and release leave a run unchanged if the new state is not JSON': async ({ store }) => {
    await store.save(sampleState());
    const broken = { ...sampleState('r', 2), iterations: NO_JSON };
    await expectRefused('a state that is not JSON', () => store.save(broken));
    await claim(store, 'a');
    await expectRefused('a state that is not JSON', () => store.release(BY_A, broken));
    expectSame('claim', await claim(store, 'b'), { status: 'taken' });
    expectSame('release', await store.release(BY_A), true);
    expectSame('revision', await revisionKept(store), 1);
  },
};

/** Options of {@link runStoreConformance}. */
export interface RunStoreConformanceOptions {
  /** The store's name in titles: `MyRunStore`. */
  readonly name: string;
  /** Opens an empty store for each case. */
  readonly open: () => OpenedStore | Promise<OpenedStore>;
  /** Whether it also stores running runs: a `CheckpointStore`. Default: true. */
  readonly checkpoints?: boolean;
  /** Whether it also stores large results: a `StoreWithResults`. Default: false. */
  readonly results?: boolean;
}

const OPTIONS = optionTable<RunStoreConformanceOptions>('runStoreConformance', {
  ...suiteRules('{ store: new MyRunStore(), advance: (ms) => … }'),
  checkpoints: BOOLEAN,
  results: BOOLEAN,
});

/**
 * The contracts of `RunStore` and `CheckpointStore` as cases for any test runner: claims and leases, late writes,
 * concurrent operations, pages and removal.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = runStoreConformance({
 *   name: 'MemoryRunStore',
 *   open() {
 *     let time = Date.now();
 *     return {
 *       store: new MemoryRunStore({ now: () => time }),
 *       advance(ms) {
 *         time += ms;
 *       },
 *     };
 *   },
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function runStoreConformance(options: RunStoreConformanceOptions): readonly ConformanceCase[] {
  return openedCases(options, OPTIONS, ({ checkpoints = true, results = false }) => ({
    ...CLAIM_CASES,
    ...(results && (RESULT_CASES as OpenedCases<OpenedStore>)),
    ...(checkpoints && {
      ...({ ...STATE_CASES, ...LIST_CASES, ...CONCURRENT_CASES } as OpenedCases<OpenedStore>),
      // These parts of a store are optional.
      ...casesOf(APPROVAL_CASES, ({ store }) => (keepsApprovals(store) ? { store } : undefined)),
      ...casesOf(SCHEDULE_CASES, (opened) =>
        keepsSchedules(opened.store) ? (opened as OpenedStore<RunStore & StoreWithSchedules>) : undefined,
      ),
    }),
  }));
}

const ROUNDS = 20;

/** Cases about concurrent operations over two connections. */
const CONCURRENT_CASES: OpenedCases<Opened> = {
  'begin accepts one of two simultaneous runs with the same id': async ({ store, other = store }) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const id = `r${round}`;
      const began = await Promise.allSettled([begin(store, 'a', id), begin(other, 'b', id)]);
      const statuses = began.map(({ status }) => status).sort();
      expectSame('the beginnings', statuses, ['fulfilled', 'rejected']);
      const winner = began[0]?.status === 'fulfilled' ? 'a' : 'b';
      expectSame('append by the holder', await append(store, heldBy(winner, id), 'one'), true);
    }
  },
  'claimLost gives each lost run to one of many simultaneous callers': async ({
    store,
    other = store,
    advance,
  }) => {
    for (const runId of ['r', 's', 't']) await begin(store, 'a', runId);
    await advance(LEASE_MS);
    const taken = await atOnce(10, [store, other], (store, index) => claimLost(store, `c${index}`));
    const runIds = taken.flatMap((outcome) => (outcome.status === 'claimed' ? [outcome.run.runId] : []));
    expectSame('the runs', runIds.sort(), ['r', 's', 't']);
  },
  'seize returns every entry that the holder has appended, and refuses its later writes': async ({
    store,
    other = store,
  }) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runId = `r${round}`;
      await begin(store, 'a', runId);
      const lease = { runId, claim: 'b', leaseMs: LEASE_MS, from: 'anybody' } as const;
      const appended: string[] = [];
      const appending = (async () => {
        for (let index = 0; index < 5; index += 1) {
          if (!(await store.append(heldBy('a', runId), [sampleStep(`${index}`)]))) return;
          appended.push(`${index}`);
        }
      })();
      const [taken] = await Promise.all([other.seize(lease), appending]);
      const seen = taken.status === 'claimed' ? textsOf(taken.run.entries) : [];
      expectSame('the entries that seize returned', seen, appended);
      expectSame('the stored entries', await done(store, runId), appended);
    }
  },
  'append, end and release of a replaced holder are refused after the claim, or stored before it': async ({
    store,
    other = store,
    advance,
  }) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runId = `r${round}`;
      await begin(store, 'a', runId);
      await advance(LEASE_MS);
      const [isEnded, taken] = await Promise.all([
        store.end(heldBy('a', runId), [sampleEnd('ended')]),
        claimLost(other, 'b'),
      ]);
      expectSame('whether exactly one of end and claimLost succeeded', isEnded, taken.status !== 'claimed');
      const { status } = (await store.read(runId)) ?? {};
      expectSame('status', status, isEnded ? 'ended' : 'running');
      if (!isEnded) await other.end(heldBy('b', runId), []);
    }
  },
  'checkpoint continues a suspended run for one of two simultaneous claims': async ({
    store,
    other = store,
  }) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runId = `r${round}`;
      await store.save(sampleState(runId, 1));
      const continueRun = async (store: CheckpointStore, who: string) =>
        (await claim(store, who, runId)).status === 'claimed' &&
        (await store.checkpoint(heldBy(who, runId), sampleCheckpoint(runId, [who], 1)));
      const went = await Promise.all([continueRun(store, 'a'), continueRun(other, 'b')]);
      expectSame('the accepted checkpoints', [...went].sort(), [false, true]);
      expectSame('whose claim holds', await append(store, heldBy(went[0] ? 'a' : 'b', runId), 'on'), true);
    }
  },
  'removeOlderThan counts each run once in two simultaneous calls': async ({
    store,
    other = store,
    advance,
  }) => {
    for (let index = 0; index < 30; index += 1) await store.save(sampleState(`r${index}`, 1));
    await advance(LEASE_MS);
    const counts = await Promise.all([store.removeOlderThan(LEASE_MS), other.removeOlderThan(LEASE_MS)]);
    expectSame('the removed runs', counts[0] + counts[1], 30);
    expectSame('the remaining runs', (await store.list()).runs, []);
  },
};

/** Checks a time from the store: not before another time, and not much later. */
function expectSoonAfter(what: string, given: number | undefined, before: number): void {
  expectThat(
    given !== undefined && given >= before && given < before + MINUTE,
    `${what} is ${given}, but should be about ${before}`,
  );
}

/** Cases about the states of runs. */
const STATE_CASES: OpenedCases<Opened> = {
  'begin stores a run that its caller holds': async ({ store }) => {
    await store.begin(leaseOf('a'), sampleCheckpoint('r', ['hello']));
    const kept = await store.read('r');
    const { createdAt = 0, changedAt, leaseEnd, ...rest } = kept ?? {};
    expectSame('read', rest, {
      ...{ runId: 'r', status: 'running', generation: 1, entries: [] },
      state: sampleCheckpoint('r', ['hello']),
    });
    expectSoonAfter('changedAt', changedAt, createdAt);
    expectSoonAfter('leaseEnd', leaseEnd, createdAt + LEASE_MS);
    expectSame('load', await store.load('r'), undefined);
    expectSame('claim', await claim(store, 'b'), { status: 'taken' });
    expectSame('read of another', await store.read('s'), undefined);
  },
  ...eachCase(
    ['running', 'suspended', 'ended'] as const,
    (status) => `begin refuses the id of a ${status} run`,
    async (status, { store }: Opened) => {
      await begin(store, 'a');
      if (status === 'suspended') await store.release(BY_A, sampleState());
      if (status === 'ended') await store.end(BY_A, []);
      const before = await store.read('r');
      await expectRefused('a second beginning', () => begin(store, 'b'), 'RunClaimed');
      expectSame('read', await store.read('r'), before);
    },
  ),
  'append adds entries in order and unchanged': async ({ store }) => {
    await begin(store, 'a');
    for (const texts of [['one', 'two'], [], [ODD_TEXT]])
      expectSame('append', await append(store, BY_A, ...texts), true);
    const wanted = ['one', 'two', ODD_TEXT].map(sampleStep);
    expectSame('entries', (await store.read('r'))?.entries, wanted);
  },
  'append and end add all entries or no entry': async ({ store }) => {
    await begin(store, 'a');
    const entries = [sampleStep('one'), { ...sampleStep('two'), iterations: NO_JSON }];
    await expectRefused('an entry that is not JSON', () => store.append(BY_A, entries));
    await expectRefused('an entry that is not JSON', () => store.end(BY_A, entries));
    expectSame('entries', await done(store), []);
    expectSame('status', (await store.read('r'))?.status, 'running');
  },
  'claimLost replaces the holder, whose writes are refused and do not change the run': async ({
    store,
    other = store,
    advance,
  }) => {
    await beginAndAppend(store);
    await advance(LEASE_MS);
    expectStatus('claimLost', await claimLost(other, 'b'), 'claimed');
    const before = await store.read('r');
    await expectNoHolder(store);
    expectSame('read', await store.read('r'), before);
    expectSame('append', await append(store, heldBy('b'), 'two'), true);
    expectSame('entries', await done(store), ['one', 'two']);
  },
  'append accepts a late holder that was not replaced': async ({ store, advance }) => {
    await begin(store, 'a');
    await advance(10 * LEASE_MS);
    expectSame('append', await append(store, BY_A, 'one'), true);
    expectSame('renew', await store.renew(leaseOf('a')), true);
    expectStatus('claimLost', await claimLost(store, 'b'), 'missing');
  },
  'append and all other writes are refused for a missing run': async ({ store }) => {
    await expectNoHolder(store);
    expectSame('seize', await seize(store, 'a', 'anybody'), { status: 'missing' });
    expectSame('read', await store.read('r'), undefined);
  },
  'claim does not return a lost run': async ({ store, advance }) => {
    await begin(store, 'a');
    await advance(LEASE_MS);
    expectSame('claim', await claim(store, 'b'), { status: 'lost' });
    expectSame('append', await append(store, BY_A, 'one'), true);
  },
  'claimLost returns the run that was lost first, with its entries': async ({ store, advance }) => {
    await begin(store, 'a', 'later');
    await store.renew(leaseOf('a', 'later', 3 * LEASE_MS));
    await begin(store, 'b', 'first');
    await append(store, heldBy('b', 'first'), 'one');
    await begin(store, 'c', 'alive');
    await store.save(sampleState('suspended', 1));
    expectStatus('claimLost', await claimLost(store, 'x'), 'missing');
    await advance(3 * LEASE_MS);
    await store.renew(leaseOf('c', 'alive'));
    const first = await claimLost(store, 'x');
    const run = await store.read('first');
    expectSame('claimLost', first, { status: 'claimed', run });
    expectSame('its entries', textsOf(run?.entries ?? []), ['one']);
    expectSame('generation', run?.generation, 2);
    const second = await claimLost(store, 'y');
    expectSame('claimLost', second.status === 'claimed' && second.run.runId, 'later');
    expectSame('claimLost', await claimLost(store, 'z'), { status: 'missing' });
  },
  'release suspends a running run and removes its entries': async ({ store, advance }) => {
    await beginAndAppend(store);
    await advance(MINUTE);
    expectSame('release', await store.release(BY_A, sampleState()), true);
    const { createdAt = 0, changedAt, ...rest } = (await store.read('r')) ?? {};
    expectSame('read', rest, {
      ...{ runId: 'r', status: 'suspended', generation: 1, entries: [] },
      state: sampleState(),
    });
    expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
    expectSame('load', await store.load('r'), sampleState());
    expectSame('append', await append(store, BY_A, 'two'), false);
  },
  'checkpoint continues a suspended run from that state': async ({ store }) => {
    await store.save(sampleState());
    expectStatus('claim', await claim(store, 'a'), 'claimed');
    const checkpoint = sampleCheckpoint('r', ['again'], 1);
    expectSame('checkpoint', await store.checkpoint(BY_A, checkpoint), true);
    expectSame('append', await append(store, BY_A, 'one'), true);
    const kept = await store.read('r');
    expectSame('read', [kept?.status, kept?.generation, kept?.state], ['running', 1, checkpoint]);
    expectSame('entries', await done(store), ['one']);
    expectSame('load', await store.load('r'), undefined);
  },
  'checkpoint replaces the state and the entries before it': async ({ store }) => {
    await beginAndAppend(store);
    await store.checkpoint(BY_A, sampleCheckpoint('r', ['on']));
    expectSame('entries', await done(store), []);
    await append(store, BY_A, 'two');
    expectSame('entries', await done(store), ['two']);
  },
  'claimLost immediately finds a running run that its holder released': async ({ store }) => {
    await begin(store, 'a');
    expectSame('release', await store.release(BY_A), true);
    expectStatus('claimLost', await claimLost(store, 'b'), 'claimed');
    expectSame('generation', (await store.read('r'))?.generation, 2);
  },
  'end stores a run with all its entries, and it cannot be continued': async ({ store, advance }) => {
    await beginAndAppend(store);
    await advance(MINUTE);
    expectSame('end', await store.end(BY_A, [sampleEnd('done')]), true);
    const { createdAt = 0, changedAt, entries = [], ...rest } = (await store.read('r')) ?? {};
    const state = sampleCheckpoint('r');
    expectSame('read', rest, { runId: 'r', status: 'ended', generation: 1, state });
    expectSame('entries', textsOf(entries), ['one', 'done']);
    expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
    expectSame('load', await store.load('r'), undefined);
    expectSame('claim', await claim(store, 'b'), { status: 'missing' });
    await advance(LEASE_MS);
    expectSame('claimLost', await claimLost(store, 'b'), { status: 'missing' });
    await expectRefused('a state of an ended run', () => store.save(sampleState('r', 9)), 'RunClaimed');
  },
  'save refuses a state of a running run, held or lost': async ({ store, advance }) => {
    await begin(store, 'a');
    for (const ms of [0, LEASE_MS]) {
      await advance(ms);
      await expectRefused('a state', () => store.save(sampleState('r', 9)), 'RunClaimed');
    }
    expectSame('append', await append(store, BY_A), true);
  },
  'seize takes over a run of any status, and with `anybody` also from its holder': async ({
    store,
    other = store,
    advance,
  }) => {
    await begin(store, 'a');
    expectSame('seize', await seize(store, 'b', 'nobody'), { status: 'taken' });
    expectStatus('seize', await seize(other, 'b', 'anybody'), 'claimed');
    expectSame('append', await append(store, BY_A, 'one'), false);
    await advance(LEASE_MS);
    expectStatus('seize', await seize(store, 'c', 'nobody'), 'claimed');
    expectSame('generation', (await store.read('r'))?.generation, 3);
    await store.end(heldBy('c'), [sampleEnd('stopped')]);
    const ended = await seize(store, 'd', 'nobody');
    expectSame('seize', ended.status === 'claimed' && ended.run.status, 'ended');
    expectSame('append', await append(store, heldBy('d'), 'two'), true);
    expectSame('end', await store.end(heldBy('d'), []), true);
    expectSame('entries', await done(store), ['stopped', 'two']);
  },
  'expiredRuns returns suspended runs with an expired question, turns separately from other runs': async ({
    store,
    advance,
  }) => {
    // The method is optional.
    if (store.expiredRuns === undefined) return;
    const expired = async (of: 'turns' | 'others' = 'others', limit = 10) =>
      store.expiredRuns?.({ of, limit });
    await store.save(sampleState('forever', 1));
    const now = (await store.read('forever'))?.changedAt ?? 0;
    const waiting = (runId: string, ...inMs: readonly number[]) => ({
      ...sampleState(runId, 1),
      pending: inMs.map((ms) => ({
        ...{ id: `${ms}`, callId: 'call_1', kind: 'approval' as const, tool: 'work', arguments: {} },
        expiresAt: new Date(now + ms).toISOString(),
      })),
    });
    await store.save(waiting('later', 3 * LEASE_MS, 2 * LEASE_MS));
    await store.save(waiting('first', LEASE_MS, 5 * LEASE_MS));
    await store.save({ ...waiting('turn', LEASE_MS), turnOf: 'c' });
    for (const runId of ['held', 'over', 'on']) {
      await begin(store, runId, runId);
      // A millisecond later, because runs that expire at the same time have no order.
      await store.release(heldBy(runId, runId), waiting(runId, LEASE_MS + 1));
      await claim(store, runId, runId);
    }
    await store.end(heldBy('over', 'over'), []);
    await store.checkpoint(heldBy('on', 'on'), sampleCheckpoint('on'));
    await store.release(heldBy('on', 'on'));
    expectSame('at first', [await expired(), await expired('turns')], [[], []]);
    await advance(LEASE_MS - MINUTE);
    await store.renew(leaseOf('held', 'held'));
    await advance(2 * MINUTE);
    expectSame('the expired runs', await expired(), [{ runId: 'first' }]);
    expectSame('the turns', await expired('turns'), [{ runId: 'turn', conversationId: 'c' }]);
    await advance(LEASE_MS);
    const all = [{ runId: 'first' }, { runId: 'held' }, { runId: 'later' }];
    expectSame('the expired runs later', await expired(), all);
    expectSame('the limit', await expired('others', 1), all.slice(0, 1));
  },
  'remove removes a running run': async ({ store }) => {
    await beginAndAppend(store);
    expectSame('remove', await store.remove(BY_A), true);
    expectSame('read', await store.read('r'), undefined);
    await begin(store, 'b');
    const kept = await store.read('r');
    expectSame('read', [kept?.generation, kept?.entries], [1, []]);
  },
};

function ids(runs: readonly RunSummary[]): readonly string[] {
  return runs.map(({ runId }) => runId);
}

/** Cases about finding and removing runs. */
const LIST_CASES: OpenedCases<Opened> = {
  'list returns runs by status in pages, the latest change first': async ({ store, advance }) => {
    const change = async (work: () => unknown): Promise<void> => {
      await advance(MINUTE);
      await work();
    };
    for (const runId of ['e1', 'e2', 's1', 'r1', 'r2', 'r3']) await change(() => begin(store, 'a', runId));
    for (const runId of ['e2', 'e1']) await change(() => store.end(heldBy('a', runId), []));
    await change(() => store.release(heldBy('a', 's1'), sampleState('s1', 1)));
    await change(() => append(store, heldBy('a', 'r1'), 'its place does not change'));
    expectSame('list', ids((await store.list()).runs), ['s1', 'e1', 'e2', 'r3', 'r2', 'r1']);
    expectSame('ended', ids((await store.list({ status: 'ended' })).runs), ['e1', 'e2']);
    const first = await store.list({ status: 'running', limit: 2 });
    expectSame('the first page', ids(first.runs), ['r3', 'r2']);
    const second = await store.list({ status: 'running', limit: 2, after: first.next ?? '' });
    expectSame('the second page', [ids(second.runs), second.next], [['r1'], undefined]);
    const { state: _state, entries: _entries, ...summary } = (await store.read('r1')) ?? {};
    expectSame('a run in a list', second.runs[0], summary);
  },
  'list returns each run once over all pages, sorted by id if runs changed at the same time': async ({
    store,
  }) => {
    const wanted = ['Z', 'a', 'b', 'c', 'd', 'é'];
    await Promise.all([...wanted].reverse().map((runId) => begin(store, 'a', runId)));
    const found: RunSummary[] = [];
    let after: string | undefined;
    do {
      const page = await store.list({ limit: 1, ...(after === undefined ? {} : { after }) });
      found.push(...page.runs);
      after = page.next;
    } while (after !== undefined && found.length <= wanted.length);
    expectSame('the runs', [...ids(found)].sort(), wanted);
    const inOrder = [...found].sort(
      (one, other) => other.changedAt - one.changedAt || (one.runId < other.runId ? -1 : 1),
    );
    expectSame('their order', ids(found), ids(inOrder));
  },
  ...eachCase(
    [{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { status: 'lost' }, { after: 'r1' }, { page: 2 }],
    (query) => `list refuses the query ${JSON.stringify(query)}`,
    async (query, { store }: Opened) => {
      await expectRefused('the query', () => store.list(query as never), 'InvalidOptions');
    },
  ),
  'removeOlderThan removes suspended and ended runs without a holder that changed long ago': async ({
    store,
    advance,
  }) => {
    for (const runId of ['running', 'lost', 'ended', 'suspended', 'claimed', 'late'])
      await begin(store, 'a', runId);
    await append(store, heldBy('a', 'ended'), 'one');
    await store.end(heldBy('a', 'ended'), []);
    for (const runId of ['suspended', 'claimed'])
      await store.release(heldBy('a', runId), sampleState(runId, 1));
    await advance(LEASE_MS);
    await store.renew(leaseOf('a', 'running'));
    await claim(store, 'b', 'claimed');
    await store.end(heldBy('a', 'late'), []);
    expectSame('removeOlderThan', await store.removeOlderThan(2 * LEASE_MS), 0);
    expectSame('removeOlderThan', await store.removeOlderThan(LEASE_MS), 2);
    const left = [...ids((await store.list()).runs)].sort();
    expectSame('the remaining runs', left, ['claimed', 'late', 'lost', 'running']);
  },
  'retention removes runs that ended long ago, and keeps waiting, running and held runs': async ({
    store,
    advance,
  }) => {
    const { retention } = store as Partial<StoreWithRetention>;
    // The method is optional.
    if (retention === undefined) return;
    const remove = (ages: RetentionAges) => retention.call(store, ages);
    for (const runId of ['running', 'ended', 'suspended', 'late', 'held']) await begin(store, 'a', runId);
    for (const runId of ['ended', 'held']) await store.end(heldBy('a', runId), []);
    await store.release(heldBy('a', 'suspended'), sampleState('suspended', 1));
    await advance(LEASE_MS);
    await store.end(heldBy('a', 'late'), []);
    await store.seize({ ...leaseOf('b', 'held'), from: 'nobody' });
    const nothing = { runs: 0, jobs: 0, events: 0, conversations: 0 };
    expectSame('without an age', await remove({}), nothing);
    expectSame('too early', await remove({ runs: 2 * LEASE_MS }), nothing);
    expectSame(
      'removed',
      await remove({ runs: LEASE_MS, jobs: LEASE_MS, events: LEASE_MS, conversations: LEASE_MS }),
      {
        ...nothing,
        runs: 1,
      },
    );
    const left = [...ids((await store.list()).runs)].sort();
    expectSame('the remaining runs', left, ['held', 'late', 'running', 'suspended']);
    for (const age of [-1, '1', Number.NaN])
      await expectRefused('the age', () => remove({ runs: age as number }), 'InvalidOptions');
  },
  ...eachCase(
    [null, undefined, Number.NaN, '1000', -1],
    (age) => `removeOlderThan removes nothing for the age ${String(age)}`,
    async (age, { store }: Opened) => {
      await store.save(sampleState());
      const remove = () => store.removeOlderThan(age as number);
      await expectRefused('the age', remove, 'InvalidOptions');
      expectSame('revision', await revisionKept(store), 1);
    },
  ),
};
