import type { StoreWithResults } from '../../contract/result-store.js';
import type { RunStore } from '../../contract/run-state.js';
import { expectSame } from '../conformance/expectations.js';
import { ODD_TEXT, type OpenedCase } from './opened-cases.js';
import { MINUTE, type OpenedStore } from './store-bench.js';

type Opened = OpenedStore<RunStore & StoreWithResults>;

const OWNER = '{"user":"u1"}';
const ODD = `${ODD_TEXT} ${'long '.repeat(20_000)}`;

/** What a store of large results has to do. */
export const RESULT_CASES: readonly OpenedCase<Opened>[] = [
  {
    title: 'results.readResult gives a result as it was kept, also through another connection',
    async run({ store, other = store }) {
      await store.results.keepResult({ handle: 'h', runId: 'r', owner: OWNER, text: ODD, lifeMs: MINUTE });
      await store.results.keepResult({ handle: 'e', runId: 'r', text: '', lifeMs: MINUTE });
      expectSame('the text', await other.results.readResult({ handle: 'h', runId: 'r', owner: OWNER }), ODD);
      expectSame('an empty text', await other.results.readResult({ handle: 'e', runId: 'r' }), '');
    },
  },
  {
    title: 'results.readResult finds nothing under another run, another owner or another handle',
    async run({ store: { results } }) {
      await results.keepResult({ handle: 'h', runId: 'r', owner: OWNER, text: 'owned', lifeMs: MINUTE });
      await results.keepResult({ handle: 'f', runId: 'r', text: 'free', lifeMs: MINUTE });
      const foreign = [
        { handle: 'h', runId: 'other', owner: OWNER },
        { handle: 'h', runId: 'r', owner: '{"user":"u2"}' },
        { handle: 'h', runId: 'r' },
        { handle: 'f', runId: 'r', owner: OWNER },
        { handle: 'H', runId: 'r', owner: OWNER },
      ];
      for (const key of foreign) expectSame(JSON.stringify(key), await results.readResult(key), undefined);
      await results.keepResult({ handle: 'h', runId: 'other', text: 'theirs', lifeMs: MINUTE });
      expectSame('the first', await results.readResult({ handle: 'h', runId: 'r', owner: OWNER }), 'owned');
    },
  },
  {
    title: 'results.keepResult replaces what the same run kept under the same handle',
    async run({ store: { results } }) {
      await results.keepResult({ handle: 'h', runId: 'r', text: 'one', lifeMs: MINUTE });
      await results.keepResult({ handle: 'h', runId: 'r', text: 'two', lifeMs: MINUTE });
      expectSame('the text', await results.readResult({ handle: 'h', runId: 'r' }), 'two');
    },
  },
  {
    title: 'results.removeExpiredResults forgets those whose time is over, which are not found before either',
    async run({ store: { results }, advance }) {
      await results.keepResult({ handle: 'long', runId: 'r', text: 'long', lifeMs: 60 * MINUTE });
      await results.keepResult({ handle: 'short', runId: 'r', text: 'short', lifeMs: MINUTE });
      await advance(10 * MINUTE);
      expectSame(
        'the one that is over',
        await results.readResult({ handle: 'short', runId: 'r' }),
        undefined,
      );
      expectSame('the other one', await results.readResult({ handle: 'long', runId: 'r' }), 'long');
      expectSame('how many were forgotten', await results.removeExpiredResults(), 1);
      expectSame('how many were left', await results.removeExpiredResults(), 0);
      expectSame(
        'the other one afterwards',
        await results.readResult({ handle: 'long', runId: 'r' }),
        'long',
      );
    },
  },
];
