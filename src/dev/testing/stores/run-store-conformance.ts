import type { StoreWithResults } from '../../../core/contract/result-store.js';
import type { RetentionAges, StoreWithRetention } from '../../../core/contract/retention.js';
import type {
  CheckpointStore,
  RunCheckpoint,
  RunEntry,
  RunSummary,
  SeizeLease,
  TakenRun,
} from '../../../core/contract/run-checkpoint.js';
import type {
  ClaimOutcome,
  RunClaim,
  RunLease,
  RunState,
  RunStore,
} from '../../../core/contract/run-state.js';
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

/** The store of a case, with helpers for its claims. */
class StoreBench<Store extends RunStore = RunStore> {
  readonly store: Store;
  readonly other: Store;
  readonly advance: (ms: number) => Promise<void>;

  constructor({ store, other = store, advance }: OpenedStore<Store>) {
    this.store = store;
    this.other = other;
    this.advance = async (ms) => advance(ms);
  }

  async claim(who: string, runId = 'r', store: RunStore = this.store): Promise<ClaimOutcome> {
    return store.claim(leaseOf(who, runId));
  }

  /** Async, because a store may throw or reject. */
  async save(state: RunState): Promise<void> {
    await this.store.save(state);
  }

  async revisionKept(): Promise<number | undefined> {
    return (await this.store.load('r'))?.revision;
  }

  /** The results of all methods for a claim that may be lost. */
  async attempts({ runId, claim }: RunClaim): Promise<readonly boolean[]> {
    return [
      await this.store.renew({ runId, claim, leaseMs: LEASE_MS }),
      await this.store.release({ runId, claim }),
      await this.store.release({ runId, claim }, sampleState(runId, 9)),
      await this.store.remove({ runId, claim }),
    ];
  }
}

/** Helpers for a store of running runs. */
class CheckpointBench extends StoreBench<CheckpointStore> {
  async begin(who: string, runId = 'r', store: CheckpointStore = this.store): Promise<void> {
    await store.begin(leaseOf(who, runId), sampleCheckpoint(runId));
  }

  async append(claim: RunClaim, ...texts: readonly string[]): Promise<boolean> {
    return this.store.append(claim, texts.map(sampleStep));
  }

  async claimLost(who: string, store: CheckpointStore = this.store): Promise<TakenRun> {
    return store.claimLost({ claim: who, leaseMs: LEASE_MS });
  }

  async seize(who: string, from: SeizeLease['from'], store: CheckpointStore = this.store): Promise<TakenRun> {
    return store.seize({ ...leaseOf(who), from });
  }

  override async attempts(claim: RunClaim): Promise<readonly boolean[]> {
    return [
      await this.append(claim, 'late'),
      await this.store.checkpoint(claim, sampleCheckpoint(claim.runId, ['late'])),
      await this.store.end(claim, [sampleEnd('late')]),
      ...(await super.attempts(claim)),
    ];
  }

  /** The texts of a run's entries, which identify them. */
  async done(runId = 'r'): Promise<readonly string[]> {
    return textsOf((await this.store.read(runId))?.entries ?? []);
  }
}

function leaseOf(who: string, runId = 'r', leaseMs = LEASE_MS): RunLease {
  return { runId, claim: who, leaseMs };
}

function heldBy(who: string, runId = 'r'): RunClaim {
  return { runId, claim: who };
}

/** A state for a store, of a run that waits. */
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
const CLAIM_CASES: OpenedCases<StoreBench> = {
  'load gives nothing for a run that was never kept, and no claim of it holds': async (bench) => {
    expectSame('load', await bench.store.load('r'), undefined);
    expectSame('claim', await bench.claim('a'), { status: 'missing' });
    expectSame(
      'what the methods return for a claim',
      await bench.attempts(heldBy('a')),
      Array(4).fill(false),
    );
    expectSame('load', await bench.store.load('r'), undefined);
  },
  'load gives a state back as it was saved, whatever is in its texts': async (bench) => {
    const state = sampleState('r', 1, ODD_TEXTS);
    await bench.save(state);
    expectSame('load', await bench.store.load('r'), state);
    expectSame('claim', await bench.claim('a'), { status: 'claimed', state });
  },
  'save keeps what was given and not what became of it, and load gives out copies': async (bench) => {
    const state = sampleState('r', 1, ['as given']);
    await bench.save(state);
    (state.messages as unknown[]).push('changed');
    const given = await bench.store.load('r');
    (given?.messages as unknown[] | undefined)?.push('changed');
    const kept = await bench.store.load('r');
    expectSame('messages', kept?.messages, [{ role: 'user', content: 'as given' }]);
  },
  'save keeps runs of odd names apart': async (bench) => {
    for (const name of ['', ' ', ...ODD_NAMES]) await bench.save(sampleState(name, 1, [name]));
    for (const name of ['', ' ', ...ODD_NAMES]) {
      expectSame('load', await bench.store.load(name), sampleState(name, 1, [name]));
      expectStatus('claim', await bench.claim('a', name), 'claimed');
    }
  },
  'claim gives a run to the first, and to nobody else before the lease has ended': async (bench) => {
    await bench.save(sampleState());
    expectStatus('claim', await bench.claim('a'), 'claimed');
    for (const who of ['b', 'a']) expectSame('claim', await bench.claim(who), { status: 'taken' });
    await bench.advance(LEASE_MS - MINUTE);
    expectSame('claim before the lease has ended', await bench.claim('b'), { status: 'taken' });
    await bench.advance(MINUTE);
    const state = sampleState();
    expectSame('claim after the lease has ended', await bench.claim('b'), { status: 'claimed', state });
  },
  'claim gives a run to one of many who want it at once, over both connections': async (bench) => {
    await bench.save(sampleState());
    const outcomes = await atOnce(20, [bench.store, bench.other], (store, index) =>
      bench.claim(`c${index}`, 'r', store),
    );
    const statuses = outcomes.map(({ status }) => status).sort();
    expectSame('claims', statuses, ['claimed', ...Array(19).fill('taken')]);
  },
  'load shows a claimed run as it was before': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    expectSame('load', await bench.store.load('r'), sampleState());
  },
  'renew counts a lease from then on': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    await bench.advance(LEASE_MS - MINUTE);
    expectSame('renew', await bench.store.renew(leaseOf('a', 'r', 3 * LEASE_MS)), true);
    await bench.advance(3 * LEASE_MS - MINUTE);
    expectSame('claim', await bench.claim('b'), { status: 'taken' });
    await bench.advance(MINUTE);
    expectStatus('claim', await bench.claim('b'), 'claimed');
  },
  'release frees a run at once, as it was or with its new state': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    expectSame('release', await bench.store.release(heldBy('a')), true);
    expectSame('claim', await bench.claim('b'), { status: 'claimed', state: sampleState() });
    expectSame('release', await bench.store.release(heldBy('b'), sampleState('r', 2)), true);
    expectSame('claim', await bench.claim('c'), { status: 'claimed', state: sampleState('r', 2) });
  },
  'remove forgets a run, and no other': async (bench) => {
    for (const name of ['r', 's']) await bench.save(sampleState(name, 1));
    await bench.claim('a');
    expectSame('remove of another run', await bench.store.remove(heldBy('a', 's')), false);
    expectSame('remove', await bench.store.remove(heldBy('a')), true);
    expectSame('load', await bench.store.load('r'), undefined);
    expectSame('claim', await bench.claim('b'), { status: 'missing' });
    expectSame('load of the other', await bench.store.load('s'), sampleState('s', 1));
  },
  'release ends a claim, which does nothing any more': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    await bench.store.release(heldBy('a'));
    expectSame('what the claim gets', await bench.attempts(heldBy('a')), Array(4).fill(false));
    expectSame('revision', await bench.revisionKept(), 1);
    expectStatus('claim', await bench.claim('b'), 'claimed');
  },
  'claim takes a run from a late holder, whose writes are refused from then on': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    await bench.advance(LEASE_MS);
    await bench.claim('b', 'r', bench.other);
    expectSame('what the old claim gets', await bench.attempts(heldBy('a')), Array(4).fill(false));
    expectSame('claim', await bench.claim('c'), { status: 'taken' });
    expectSame('release', await bench.other.release(heldBy('b'), sampleState('r', 2)), true);
    expectSame('revision', await bench.revisionKept(), 2);
  },
  'renew and release let one who is late, but whom nobody has replaced, go on': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    await bench.advance(10 * LEASE_MS);
    expectSame('renew', await bench.store.renew(leaseOf('a')), true);
    expectSame('claim', await bench.claim('b'), { status: 'taken' });
    await bench.advance(10 * LEASE_MS);
    expectSame('release', await bench.store.release(heldBy('a'), sampleState('r', 2)), true);
    expectSame('revision', await bench.revisionKept(), 2);
  },
  'save takes a later state of a free run, and the same again': async (bench) => {
    await bench.save(sampleState());
    await bench.save(sampleState('r', 2, ['one']));
    await bench.save(sampleState('r', 2, ['one']));
    expectSame('load', await bench.store.load('r'), sampleState('r', 2, ['one']));
    expectStatus('claim', await bench.claim('a'), 'claimed');
  },
  'save takes no earlier state than is kept, and no other state of the same revision': async (bench) => {
    const state = sampleState('r', 2, ['one']);
    await bench.save(state);
    await expectRefused('an earlier state', () => bench.save(sampleState()), 'RunClaimed');
    const other = sampleState('r', 2, ['other']);
    await expectRefused('another state of the revision', () => bench.save(other), 'RunClaimed');
    expectSame('load', await bench.store.load('r'), state);
  },
  'save takes no state of a claimed run, as long as the lease lasts': async (bench) => {
    await bench.save(sampleState());
    await bench.claim('a');
    await expectRefused('a state of a claimed run', () => bench.save(sampleState('r', 2)), 'RunClaimed');
    expectSame('claim', await bench.claim('b'), { status: 'taken' });
    expectSame('revision', await bench.revisionKept(), 1);
    await bench.advance(LEASE_MS);
    await bench.save(sampleState('r', 2));
    expectSame('what the old claim gets', await bench.attempts(heldBy('a')), Array(4).fill(false));
    expectSame('claim', await bench.claim('b'), { status: 'claimed', state: sampleState('r', 2) });
  },
  'save and release leave a run as it was where the new state is not JSON': async (bench) => {
    await bench.save(sampleState());
    const broken = { ...sampleState('r', 2), iterations: NO_JSON };
    await expectRefused('a state that is not JSON', () => bench.save(broken));
    await bench.claim('a');
    await expectRefused('a state that is not JSON', () => bench.store.release(heldBy('a'), broken));
    expectSame('claim', await bench.claim('b'), { status: 'taken' });
    expectSame('release', await bench.store.release(heldBy('a')), true);
    expectSame('revision', await bench.revisionKept(), 1);
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
    ...casesOf(CLAIM_CASES, (opened: OpenedStore) => new StoreBench<RunStore>(opened)),
    ...(results && casesOf(RESULT_CASES, (opened) => opened as OpenedStore<RunStore & StoreWithResults>)),
    ...(checkpoints && {
      ...casesOf(
        { ...STATE_CASES, ...LIST_CASES, ...CONCURRENT_CASES },
        (opened) => new CheckpointBench(opened as OpenedStore<CheckpointStore>),
      ),
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
const CONCURRENT_CASES: OpenedCases<CheckpointBench> = {
  'begin accepts one of two simultaneous runs with the same id': async (bench) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const id = `r${round}`;
      const began = await Promise.allSettled([bench.begin('a', id), bench.begin('b', id, bench.other)]);
      const statuses = began.map(({ status }) => status).sort();
      expectSame('the beginnings', statuses, ['fulfilled', 'rejected']);
      const winner = began[0]?.status === 'fulfilled' ? 'a' : 'b';
      expectSame('append of who began', await bench.append(heldBy(winner, id), 'one'), true);
    }
  },
  'claimLost gives each lost run to one of many who look for one at once': async (bench) => {
    for (const runId of ['r', 's', 't']) await bench.begin('a', runId);
    await bench.advance(LEASE_MS);
    const taken = await atOnce(10, [bench.store, bench.other], (store, index) =>
      bench.claimLost(`c${index}`, store),
    );
    const runIds = taken.flatMap((outcome) => (outcome.status === 'claimed' ? [outcome.run.runId] : []));
    expectSame('the runs', runIds.sort(), ['r', 's', 't']);
  },
  'seize returns every entry that the holder has appended, and refuses its later writes': async (bench) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runId = `r${round}`;
      await bench.begin('a', runId);
      const lease = { runId, claim: 'b', leaseMs: LEASE_MS, from: 'anybody' } as const;
      const appended: string[] = [];
      const appending = (async () => {
        for (let index = 0; index < 5; index += 1) {
          if (!(await bench.store.append(heldBy('a', runId), [sampleStep(`${index}`)]))) return;
          appended.push(`${index}`);
        }
      })();
      const [taken] = await Promise.all([bench.other.seize(lease), appending]);
      const seen = taken.status === 'claimed' ? textsOf(taken.run.entries) : [];
      expectSame('what who seized it sees', seen, appended);
      expectSame('what is stored', await bench.done(runId), appended);
    }
  },
  'append, end and release of a replaced holder are refused at the moment of the claim, or kept before it':
    async (bench) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const runId = `r${round}`;
        await bench.begin('a', runId);
        await bench.advance(LEASE_MS);
        const [isEnded, taken] = await Promise.all([
          bench.store.end(heldBy('a', runId), [sampleEnd('ended')]),
          bench.claimLost('b', bench.other),
        ]);
        expectSame('whether one of the two has it', isEnded, taken.status !== 'claimed');
        const { status } = (await bench.store.read(runId)) ?? {};
        expectSame('status', status, isEnded ? 'ended' : 'running');
        if (!isEnded) await bench.other.end(heldBy('b', runId), []);
      }
    },
  'checkpoint goes on from a suspended run for one of two who claim it at once': async (bench) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const runId = `r${round}`;
      await bench.save(sampleState(runId, 1));
      const continueRun = async (store: CheckpointStore, who: string) =>
        (await bench.claim(who, runId, store)).status === 'claimed' &&
        (await store.checkpoint(heldBy(who, runId), sampleCheckpoint(runId, [who], 1)));
      const went = await Promise.all([continueRun(bench.store, 'a'), continueRun(bench.other, 'b')]);
      expectSame('who goes on', [...went].sort(), [false, true]);
      expectSame('whose claim holds', await bench.append(heldBy(went[0] ? 'a' : 'b', runId), 'on'), true);
    }
  },
  'removeOlderThan counts each run once where two forget at once': async (bench) => {
    for (let index = 0; index < 30; index += 1) await bench.save(sampleState(`r${index}`, 1));
    await bench.advance(LEASE_MS);
    const counts = await Promise.all([
      bench.store.removeOlderThan(LEASE_MS),
      bench.other.removeOlderThan(LEASE_MS),
    ]);
    expectSame('the runs forgotten', counts[0] + counts[1], 30);
    expectSame('what is left', (await bench.store.list()).runs, []);
  },
};

/** Checks a time from the store: not before another time, and not much later. */
function expectSoonAfter(what: string, given: number | undefined, before: number): void {
  expectThat(
    given !== undefined && given >= before && given < before + MINUTE,
    `${what} is ${given}, and should be about ${before}`,
  );
}

/** Cases about the states of runs. */
const STATE_CASES: OpenedCases<CheckpointBench> = {
  'begin keeps a run, held by who began it': async (bench) => {
    await bench.store.begin(leaseOf('a'), sampleCheckpoint('r', ['hello']));
    const kept = await bench.store.read('r');
    const { createdAt = 0, changedAt, leaseEnd, ...rest } = kept ?? {};
    expectSame('read', rest, {
      ...{ runId: 'r', status: 'running', generation: 1, entries: [] },
      state: sampleCheckpoint('r', ['hello']),
    });
    expectSoonAfter('changedAt', changedAt, createdAt);
    expectSoonAfter('leaseEnd', leaseEnd, createdAt + LEASE_MS);
    expectSame('load', await bench.store.load('r'), undefined);
    expectSame('claim', await bench.claim('b'), { status: 'taken' });
    expectSame('read of another', await bench.store.read('s'), undefined);
  },
  ...eachCase(
    ['running', 'suspended', 'ended'] as const,
    (status) => `begin refuses an id that a ${status} run has`,
    async (status, bench: CheckpointBench) => {
      await bench.begin('a');
      if (status === 'suspended') await bench.store.release(heldBy('a'), sampleState());
      if (status === 'ended') await bench.store.end(heldBy('a'), []);
      const before = await bench.store.read('r');
      await expectRefused('a second beginning', () => bench.begin('b'), 'RunClaimed');
      expectSame('read', await bench.store.read('r'), before);
    },
  ),
  'append adds entries in their order, as they were given': async (bench) => {
    await bench.begin('a');
    for (const texts of [['one', 'two'], [], [ODD_TEXT]])
      expectSame('append', await bench.append(heldBy('a'), ...texts), true);
    const wanted = ['one', 'two', ODD_TEXT].map(sampleStep);
    expectSame('entries', (await bench.store.read('r'))?.entries, wanted);
  },
  'append and end add all entries or none': async (bench) => {
    await bench.begin('a');
    const entries = [sampleStep('one'), { ...sampleStep('two'), iterations: NO_JSON }];
    await expectRefused('an entry that is not JSON', () => bench.store.append(heldBy('a'), entries));
    await expectRefused('an entry that is not JSON', () => bench.store.end(heldBy('a'), entries));
    expectSame('entries', await bench.done(), []);
    expectSame('status', (await bench.store.read('r'))?.status, 'running');
  },
  'claimLost replaces the holder, whose every write is refused and leaves the run alone': async (bench) => {
    await bench.begin('a');
    await bench.append(heldBy('a'), 'one');
    await bench.advance(LEASE_MS);
    expectStatus('claimLost', await bench.claimLost('b', bench.other), 'claimed');
    const before = await bench.store.read('r');
    expectSame('what the old claim gets', await bench.attempts(heldBy('a')), Array(7).fill(false));
    expectSame('read', await bench.store.read('r'), before);
    expectSame('append', await bench.append(heldBy('b'), 'two'), true);
    expectSame('entries', await bench.done(), ['one', 'two']);
  },
  'append lets a holder who is late, but whom nobody has replaced, go on': async (bench) => {
    await bench.begin('a');
    await bench.advance(10 * LEASE_MS);
    expectSame('append', await bench.append(heldBy('a'), 'one'), true);
    expectSame('renew', await bench.store.renew(leaseOf('a')), true);
    expectStatus('claimLost', await bench.claimLost('b'), 'missing');
  },
  'append and all other writes are refused for a run that is not there': async (bench) => {
    expectSame('what the claim gets', await bench.attempts(heldBy('a')), Array(7).fill(false));
    expectSame('seize', await bench.seize('a', 'anybody'), { status: 'missing' });
    expectSame('read', await bench.store.read('r'), undefined);
  },
  'claim gives no lost run to who wants a suspended one': async (bench) => {
    await bench.begin('a');
    await bench.advance(LEASE_MS);
    expectSame('claim', await bench.claim('b'), { status: 'lost' });
    expectSame('append', await bench.append(heldBy('a'), 'one'), true);
  },
  'claimLost gives out the run that was lost first, with what it had done': async (bench) => {
    await bench.begin('a', 'later');
    await bench.store.renew(leaseOf('a', 'later', 3 * LEASE_MS));
    await bench.begin('b', 'first');
    await bench.append(heldBy('b', 'first'), 'one');
    await bench.begin('c', 'alive');
    await bench.save(sampleState('suspended', 1));
    expectStatus('claimLost', await bench.claimLost('x'), 'missing');
    await bench.advance(3 * LEASE_MS);
    await bench.store.renew(leaseOf('c', 'alive'));
    const first = await bench.claimLost('x');
    const run = await bench.store.read('first');
    expectSame('claimLost', first, { status: 'claimed', run });
    expectSame('what it had done', textsOf(run?.entries ?? []), ['one']);
    expectSame('generation', run?.generation, 2);
    const second = await bench.claimLost('y');
    expectSame('claimLost', second.status === 'claimed' && second.run.runId, 'later');
    expectSame('claimLost', await bench.claimLost('z'), { status: 'missing' });
  },
  'release makes a running run suspended, without what it had done': async (bench) => {
    await bench.begin('a');
    await bench.append(heldBy('a'), 'one');
    await bench.advance(MINUTE);
    expectSame('release', await bench.store.release(heldBy('a'), sampleState()), true);
    const { createdAt = 0, changedAt, ...rest } = (await bench.store.read('r')) ?? {};
    expectSame('read', rest, {
      ...{ runId: 'r', status: 'suspended', generation: 1, entries: [] },
      state: sampleState(),
    });
    expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
    expectSame('load', await bench.store.load('r'), sampleState());
    expectSame('append', await bench.append(heldBy('a'), 'two'), false);
  },
  'checkpoint lets a suspended run go on from there': async (bench) => {
    await bench.save(sampleState());
    expectStatus('claim', await bench.claim('a'), 'claimed');
    const checkpoint = sampleCheckpoint('r', ['again'], 1);
    expectSame('checkpoint', await bench.store.checkpoint(heldBy('a'), checkpoint), true);
    expectSame('append', await bench.append(heldBy('a'), 'one'), true);
    const kept = await bench.store.read('r');
    expectSame('read', [kept?.status, kept?.generation, kept?.state], ['running', 1, checkpoint]);
    expectSame('entries', await bench.done(), ['one']);
    expectSame('load', await bench.store.load('r'), undefined);
  },
  'checkpoint takes the place of what was kept before': async (bench) => {
    await bench.begin('a');
    await bench.append(heldBy('a'), 'one');
    await bench.store.checkpoint(heldBy('a'), sampleCheckpoint('r', ['on']));
    expectSame('entries', await bench.done(), []);
    await bench.append(heldBy('a'), 'two');
    expectSame('entries', await bench.done(), ['two']);
  },
  'claimLost finds a running run at once that its holder gave back': async (bench) => {
    await bench.begin('a');
    expectSame('release', await bench.store.release(heldBy('a')), true);
    expectStatus('claimLost', await bench.claimLost('b'), 'claimed');
    expectSame('generation', (await bench.store.read('r'))?.generation, 2);
  },
  'end keeps a run with all that it did, and lets nobody go on with it': async (bench) => {
    await bench.begin('a');
    await bench.append(heldBy('a'), 'one');
    await bench.advance(MINUTE);
    expectSame('end', await bench.store.end(heldBy('a'), [sampleEnd('done')]), true);
    const { createdAt = 0, changedAt, entries = [], ...rest } = (await bench.store.read('r')) ?? {};
    const state = sampleCheckpoint('r');
    expectSame('read', rest, { runId: 'r', status: 'ended', generation: 1, state });
    expectSame('entries', textsOf(entries), ['one', 'done']);
    expectSoonAfter('changedAt', changedAt, createdAt + MINUTE);
    expectSame('load', await bench.store.load('r'), undefined);
    expectSame('claim', await bench.claim('b'), { status: 'missing' });
    await bench.advance(LEASE_MS);
    expectSame('claimLost', await bench.claimLost('b'), { status: 'missing' });
    await expectRefused('a state of it', () => bench.save(sampleState('r', 9)), 'RunClaimed');
  },
  'save takes no state of a run that is under way, held or lost': async (bench) => {
    await bench.begin('a');
    for (const ms of [0, LEASE_MS]) {
      await bench.advance(ms);
      await expectRefused('a state', () => bench.save(sampleState('r', 9)), 'RunClaimed');
    }
    expectSame('append', await bench.append(heldBy('a')), true);
  },
  'seize hands over a run of any status, and from its holder where that is wanted': async (bench) => {
    await bench.begin('a');
    expectSame('seize', await bench.seize('b', 'nobody'), { status: 'taken' });
    expectStatus('seize', await bench.seize('b', 'anybody', bench.other), 'claimed');
    expectSame('append', await bench.append(heldBy('a'), 'one'), false);
    await bench.advance(LEASE_MS);
    expectStatus('seize', await bench.seize('c', 'nobody'), 'claimed');
    expectSame('generation', (await bench.store.read('r'))?.generation, 3);
    await bench.store.end(heldBy('c'), [sampleEnd('stopped')]);
    const ended = await bench.seize('d', 'nobody');
    expectSame('seize', ended.status === 'claimed' && ended.run.status, 'ended');
    expectSame('append', await bench.append(heldBy('d'), 'two'), true);
    expectSame('end', await bench.store.end(heldBy('d'), []), true);
    expectSame('entries', await bench.done(), ['stopped', 'two']);
  },
  'expiredRuns gives the suspended runs that wait for an answer too late, turns apart from others': async (
    bench,
  ) => {
    const { store } = bench;
    // The method is optional.
    if (store.expiredRuns === undefined) return;
    const expired = async (of: 'turns' | 'others' = 'others', limit = 10) =>
      store.expiredRuns?.({ of, limit });
    await bench.save(sampleState('forever', 1));
    const now = (await store.read('forever'))?.changedAt ?? 0;
    const waiting = (runId: string, ...inMs: readonly number[]) => ({
      ...sampleState(runId, 1),
      pending: inMs.map((ms) => ({
        ...{ id: `${ms}`, callId: 'call_1', kind: 'approval' as const, tool: 'work', arguments: {} },
        expiresAt: new Date(now + ms).toISOString(),
      })),
    });
    await bench.save(waiting('later', 3 * LEASE_MS, 2 * LEASE_MS));
    await bench.save(waiting('first', LEASE_MS, 5 * LEASE_MS));
    await bench.save({ ...waiting('turn', LEASE_MS), turnOf: 'c' });
    for (const runId of ['held', 'over', 'on']) {
      await bench.begin(runId, runId);
      // A millisecond later, because runs that expire at the same time have no order.
      await store.release(heldBy(runId, runId), waiting(runId, LEASE_MS + 1));
      await bench.claim(runId, runId);
    }
    await store.end(heldBy('over', 'over'), []);
    await store.checkpoint(heldBy('on', 'on'), sampleCheckpoint('on'));
    await store.release(heldBy('on', 'on'));
    expectSame('at first', [await expired(), await expired('turns')], [[], []]);
    await bench.advance(LEASE_MS - MINUTE);
    await store.renew(leaseOf('held', 'held'));
    await bench.advance(2 * MINUTE);
    expectSame('what expired', await expired(), [{ runId: 'first' }]);
    expectSame('the turns', await expired('turns'), [{ runId: 'turn', conversationId: 'c' }]);
    await bench.advance(LEASE_MS);
    const all = [{ runId: 'first' }, { runId: 'held' }, { runId: 'later' }];
    expectSame('what expired then', await expired(), all);
    expectSame('no more than wanted', await expired('others', 1), all.slice(0, 1));
  },
  'remove forgets a running run': async (bench) => {
    await bench.begin('a');
    await bench.append(heldBy('a'), 'one');
    expectSame('remove', await bench.store.remove(heldBy('a')), true);
    expectSame('read', await bench.store.read('r'), undefined);
    await bench.begin('b');
    const kept = await bench.store.read('r');
    expectSame('read', [kept?.generation, kept?.entries], [1, []]);
  },
};

function ids(runs: readonly RunSummary[]): readonly string[] {
  return runs.map(({ runId }) => runId);
}

/** Cases about finding and removing runs. */
const LIST_CASES: OpenedCases<CheckpointBench> = {
  'list gives runs by status in pages, the latest change first': async (bench) => {
    const change = async (work: () => unknown): Promise<void> => {
      await bench.advance(MINUTE);
      await work();
    };
    for (const runId of ['e1', 'e2', 's1', 'r1', 'r2', 'r3']) await change(() => bench.begin('a', runId));
    for (const runId of ['e2', 'e1']) await change(() => bench.store.end(heldBy('a', runId), []));
    await change(() => bench.store.release(heldBy('a', 's1'), sampleState('s1', 1)));
    await change(() => bench.append(heldBy('a', 'r1'), 'no change of its place'));
    expectSame('list', ids((await bench.store.list()).runs), ['s1', 'e1', 'e2', 'r3', 'r2', 'r1']);
    expectSame('ended', ids((await bench.store.list({ status: 'ended' })).runs), ['e1', 'e2']);
    const first = await bench.store.list({ status: 'running', limit: 2 });
    expectSame('the first page', ids(first.runs), ['r3', 'r2']);
    const second = await bench.store.list({ status: 'running', limit: 2, after: first.next ?? '' });
    expectSame('the second page', [ids(second.runs), second.next], [['r1'], undefined]);
    const { state: _state, entries: _entries, ...summary } = (await bench.store.read('r1')) ?? {};
    expectSame('a run in a list', second.runs[0], summary);
  },
  'list gives each run once, page by page, by their ids where they changed at one moment': async (bench) => {
    const wanted = ['Z', 'a', 'b', 'c', 'd', 'é'];
    await Promise.all([...wanted].reverse().map((runId) => bench.begin('a', runId)));
    const found: RunSummary[] = [];
    let after: string | undefined;
    do {
      const page = await bench.store.list({ limit: 1, ...(after === undefined ? {} : { after }) });
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
    async (query, bench: CheckpointBench) => {
      await expectRefused('the query', () => bench.store.list(query as never), 'InvalidOptions');
    },
  ),
  'removeOlderThan forgets suspended and ended runs that nobody holds and that changed long ago': async (
    bench,
  ) => {
    for (const runId of ['running', 'lost', 'ended', 'suspended', 'claimed', 'late'])
      await bench.begin('a', runId);
    await bench.append(heldBy('a', 'ended'), 'one');
    await bench.store.end(heldBy('a', 'ended'), []);
    for (const runId of ['suspended', 'claimed'])
      await bench.store.release(heldBy('a', runId), sampleState(runId, 1));
    await bench.advance(LEASE_MS);
    await bench.store.renew(leaseOf('a', 'running'));
    await bench.claim('b', 'claimed');
    await bench.store.end(heldBy('a', 'late'), []);
    expectSame('removeOlderThan', await bench.store.removeOlderThan(2 * LEASE_MS), 0);
    expectSame('removeOlderThan', await bench.store.removeOlderThan(LEASE_MS), 2);
    const left = [...ids((await bench.store.list()).runs)].sort();
    expectSame('what is left', left, ['claimed', 'late', 'lost', 'running']);
  },
  'retention removes runs that ended long ago, and none that waits, is under way or is held': async (
    bench,
  ) => {
    const { retention } = bench.store as Partial<StoreWithRetention>;
    // The method is optional.
    if (retention === undefined) return;
    const remove = (ages: RetentionAges) => retention.call(bench.store, ages);
    for (const runId of ['running', 'ended', 'suspended', 'late', 'held']) await bench.begin('a', runId);
    for (const runId of ['ended', 'held']) await bench.store.end(heldBy('a', runId), []);
    await bench.store.release(heldBy('a', 'suspended'), sampleState('suspended', 1));
    await bench.advance(LEASE_MS);
    await bench.store.end(heldBy('a', 'late'), []);
    await bench.store.seize({ ...leaseOf('b', 'held'), from: 'nobody' });
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
    const left = [...ids((await bench.store.list()).runs)].sort();
    expectSame('what is left', left, ['held', 'late', 'running', 'suspended']);
    for (const age of [-1, '1', Number.NaN])
      await expectRefused('the age', () => remove({ runs: age as number }), 'InvalidOptions');
  },
  ...eachCase(
    [null, undefined, Number.NaN, '1000', -1],
    (age) => `removeOlderThan forgets nothing for the age ${String(age)}`,
    async (age, bench: CheckpointBench) => {
      await bench.save(sampleState());
      const remove = () => bench.store.removeOlderThan(age as number);
      await expectRefused('the age', remove, 'InvalidOptions');
      expectSame('revision', await bench.revisionKept(), 1);
    },
  ),
};
