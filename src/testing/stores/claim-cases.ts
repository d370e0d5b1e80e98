import { expectSame } from '../conformance/expectations.js';
import {
  expectRefused,
  expectStatus,
  heldBy,
  LEASE,
  leaseOf,
  MINUTE,
  NO_JSON,
  type OpenedCase,
  type StoreBench,
  sampleState,
} from './store-bench.js';

const ODD_TEXTS = ['', '\u0000', '"\'\\', '\u2028', '👩‍🚀', '\ud800', "'); DROP TABLE toolwright_runs; --"];
const ODD_NAMES = [
  '',
  ' ',
  'r',
  'R',
  'r ',
  '__proto__',
  'constructor',
  '1',
  '01',
  "a'b",
  'é',
  'e\u0301',
  '\\',
];

/** What every `RunStore` does. */
export const CLAIM_CASES: readonly OpenedCase<StoreBench>[] = [
  {
    title: 'load gives nothing for a run that was never kept, and no claim of it holds',
    async run(bench) {
      expectSame('load', await bench.store.load('r'), undefined);
      expectSame('claim', await bench.claim('a'), { status: 'missing' });
      expectSame('what a claim is told', await bench.attempts(heldBy('a')), Array(4).fill(false));
      expectSame('load', await bench.store.load('r'), undefined);
    },
  },
  {
    title: 'load gives a state back as it was saved, whatever is in its texts',
    async run(bench) {
      const state = sampleState('r', 1, ODD_TEXTS);
      await bench.save(state);
      expectSame('load', await bench.store.load('r'), state);
      expectSame('claim', await bench.claim('a'), { status: 'claimed', state });
    },
  },
  {
    title: 'save keeps what was given and not what became of it, and load gives out copies',
    async run(bench) {
      const state = sampleState('r', 1, ['as given']);
      await bench.save(state);
      (state.messages as unknown[]).push('changed');
      const given = await bench.store.load('r');
      (given?.messages as unknown[] | undefined)?.push('changed');
      const kept = await bench.store.load('r');
      expectSame('messages', kept?.messages, [{ role: 'user', content: 'as given' }]);
    },
  },
  {
    title: 'save keeps runs of odd names apart',
    async run(bench) {
      for (const name of ODD_NAMES) await bench.save(sampleState(name, 1, [name]));
      for (const name of ODD_NAMES) {
        expectSame('load', await bench.store.load(name), sampleState(name, 1, [name]));
        expectStatus('claim', await bench.claim('a', name), 'claimed');
      }
    },
  },
  {
    title: 'claim gives a run to the first, and to nobody else before the lease has ended',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      expectStatus('claim', await bench.claim('a'), 'claimed');
      for (const who of ['b', 'a']) expectSame('claim', await bench.claim(who), { status: 'taken' });
      await bench.advance(LEASE - MINUTE);
      expectSame('claim before the lease has ended', await bench.claim('b'), { status: 'taken' });
      await bench.advance(MINUTE);
      const state = sampleState('r', 1);
      expectSame('claim after the lease has ended', await bench.claim('b'), { status: 'claimed', state });
    },
  },
  {
    title: 'claim gives a run to one of many who want it at once, over both connections',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          bench.claim(`c${index}`, 'r', index % 2 === 0 ? bench.store : bench.other),
        ),
      );
      const statuses = outcomes.map(({ status }) => status).sort();
      expectSame('claims', statuses, ['claimed', ...Array(19).fill('taken')]);
    },
  },
  {
    title: 'load shows a claimed run as it was before',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      expectSame('load', await bench.store.load('r'), sampleState('r', 1));
    },
  },
  {
    title: 'renew counts a lease from then on',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      await bench.advance(LEASE - MINUTE);
      expectSame('renew', await bench.store.renew(leaseOf('a', 'r', 3 * LEASE)), true);
      await bench.advance(3 * LEASE - MINUTE);
      expectSame('claim', await bench.claim('b'), { status: 'taken' });
      await bench.advance(MINUTE);
      expectStatus('claim', await bench.claim('b'), 'claimed');
    },
  },
  {
    title: 'release frees a run at once, as it was or with its new state',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      expectSame('release', await bench.store.release(heldBy('a')), true);
      expectSame('claim', await bench.claim('b'), { status: 'claimed', state: sampleState('r', 1) });
      expectSame('release', await bench.store.release(heldBy('b'), sampleState('r', 2)), true);
      expectSame('claim', await bench.claim('c'), { status: 'claimed', state: sampleState('r', 2) });
    },
  },
  {
    title: 'remove forgets a run, and no other',
    async run(bench) {
      for (const name of ['r', 's']) await bench.save(sampleState(name, 1));
      await bench.claim('a');
      expectSame('remove of another run', await bench.store.remove(heldBy('a', 's')), false);
      expectSame('remove', await bench.store.remove(heldBy('a')), true);
      expectSame('load', await bench.store.load('r'), undefined);
      expectSame('claim', await bench.claim('b'), { status: 'missing' });
      expectSame('load of the other', await bench.store.load('s'), sampleState('s', 1));
    },
  },
  {
    title: 'release ends a claim, which does nothing any more',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      await bench.store.release(heldBy('a'));
      expectSame('what the claim is told', await bench.attempts(heldBy('a')), Array(4).fill(false));
      expectSame('revision', await bench.revisionKept(), 1);
      expectStatus('claim', await bench.claim('b'), 'claimed');
    },
  },
  {
    title:
      'claim takes a run from who was late: the old claim does nothing any more and leaves the new one alone',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      await bench.advance(LEASE);
      await bench.claim('b', 'r', bench.other);
      expectSame('what the old claim is told', await bench.attempts(heldBy('a')), Array(4).fill(false));
      expectSame('claim', await bench.claim('c'), { status: 'taken' });
      expectSame('release', await bench.other.release(heldBy('b'), sampleState('r', 2)), true);
      expectSame('revision', await bench.revisionKept(), 2);
    },
  },
  {
    title: 'renew and release let one who is late, but whom nobody has replaced, go on',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      await bench.advance(10 * LEASE);
      expectSame('renew', await bench.store.renew(leaseOf('a')), true);
      expectSame('claim', await bench.claim('b'), { status: 'taken' });
      await bench.advance(10 * LEASE);
      expectSame('release', await bench.store.release(heldBy('a'), sampleState('r', 2)), true);
      expectSame('revision', await bench.revisionKept(), 2);
    },
  },
  {
    title: 'save takes a later state of a free run, and the same again',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.save(sampleState('r', 2, ['one']));
      await bench.save(sampleState('r', 2, ['other']));
      expectSame('load', await bench.store.load('r'), sampleState('r', 2, ['other']));
      expectStatus('claim', await bench.claim('a'), 'claimed');
    },
  },
  {
    title: 'save takes no earlier state than is kept',
    async run(bench) {
      await bench.save(sampleState('r', 2));
      await expectRefused('an earlier state', () => bench.save(sampleState('r', 1)), 'RunClaimed');
      expectSame('revision', await bench.revisionKept(), 2);
    },
  },
  {
    title: 'save takes no state of a claimed run, as long as the lease lasts',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      await bench.claim('a');
      await expectRefused('a state of a claimed run', () => bench.save(sampleState('r', 2)), 'RunClaimed');
      expectSame('claim', await bench.claim('b'), { status: 'taken' });
      expectSame('revision', await bench.revisionKept(), 1);
      await bench.advance(LEASE);
      await bench.save(sampleState('r', 2));
      expectSame('what the old claim is told', await bench.attempts(heldBy('a')), Array(4).fill(false));
      expectSame('claim', await bench.claim('b'), { status: 'claimed', state: sampleState('r', 2) });
    },
  },
  {
    title: 'save and release leave a run as it was where the new state is no JSON',
    async run(bench) {
      await bench.save(sampleState('r', 1));
      const broken = { ...sampleState('r', 2), iterations: NO_JSON };
      await expectRefused('a state that is no JSON', () => bench.save(broken));
      await bench.claim('a');
      await expectRefused('a state that is no JSON', () => bench.store.release(heldBy('a'), broken));
      expectSame('claim', await bench.claim('b'), { status: 'taken' });
      expectSame('release', await bench.store.release(heldBy('a')), true);
      expectSame('revision', await bench.revisionKept(), 1);
    },
  },
];
