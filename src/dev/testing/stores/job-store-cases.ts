import type { ConversationLog, NewInboxEntry } from '../../../core/contract/conversation-log.js';
import type { Job } from '../../../core/contract/job-engine.js';
import type { JobStore, StoredJob } from '../../../core/contract/job-store.js';
import type { StoredResult } from '../../../core/contract/run-state.js';
import { optionTable } from '../../../core/kernel/options.js';
import { expectSame } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';
import {
  expectRefused,
  LEASE_MS,
  MINUTE,
  ODD_TEXT,
  type OpenedCases,
  openedCases,
  suiteRules,
} from './store-bench.js';

/** An empty job store under test. */
export interface OpenedJobStore {
  readonly jobs: JobStore;
  /** The same store through another connection. Without it, concurrent operations use `jobs` only. */
  readonly other?: JobStore;
  /** Conversations of the same store, if it has any: results may enter them. */
  readonly conversations?: ConversationLog;
  /** Advances the time by this many milliseconds: sets the clock forward, or all stored times back. */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Options of {@link jobStoreConformance}. */
export interface JobStoreConformanceOptions {
  /** The store's name in titles: `MyRunStore.jobs`. */
  readonly name: string;
  /** Opens an empty store for each case. */
  readonly open: () => OpenedJobStore | Promise<OpenedJobStore>;
}

const OPTIONS = optionTable<JobStoreConformanceOptions>(
  'jobStoreConformance',
  suiteRules('{ jobs: new MyRunStore().jobs, advance: (ms) => … }'),
);

const RESULT: StoredResult = { forLLM: 'sent', silent: false, isError: false, async: false };
const JOB_OPTIONS = { attempts: 3, backoff: { type: 'fixed', delay: 5 } } as const;

function sampleJob(id: string): Job {
  return {
    id,
    tool: 'send_mail',
    arguments: { to: 'ada@example.org', text: ODD_TEXT },
    scope: { channel: 'web', owner: { user: ODD_TEXT } },
    fingerprint: 'f.1',
    idempotencyKey: `key of ${id}`,
    callId: 'call_1',
    runId: 'run-1',
  };
}

async function add(jobs: JobStore, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) expectSame(`addJob of ${id}`, await jobs.addJob(sampleJob(id), {}), true);
}

function idsOf(jobs: readonly StoredJob[]): readonly string[] {
  return jobs.map(({ job }) => job.id);
}

/** A stored job without its times. */
async function standing(jobs: JobStore, id: string): Promise<unknown> {
  const { status, attempt, result } = (await jobs.job(id)) ?? {};
  return { status, attempt, result };
}

function entryOf(text: string, { key = 'completion a', conversationId = 'c1' } = {}): NewInboxEntry {
  const content = { kind: 'completion', tool: 'send_mail', callId: 'call_1', text } as const;
  return { conversationId, key, content, onlyKnown: true };
}

const CASES: OpenedCases<OpenedJobStore> = {
  'addJob stores a job once, and job returns it unchanged': async ({ jobs, other = jobs }) => {
    const job = sampleJob('a:1');
    expectSame('adding', await jobs.addJob(job, JOB_OPTIONS), true);
    expectSame('adding again', await other.addJob({ ...job, tool: 'other' }, {}), false);
    const { addedAt, changedAt, ...kept } = (await other.job('a:1')) ?? {};
    expectSame('job', kept, { job, options: JOB_OPTIONS, status: 'waiting', attempt: 0 });
    expectSame('changedAt', changedAt, addedAt);
    expectSame('another', await jobs.job('b'), undefined);
  },
  'unsentJobs returns jobs that were not sent, or were sent and then did not change': async ({
    jobs,
    advance,
  }) => {
    const unsent = async (): Promise<readonly string[]> => {
      const query = { olderThanMs: MINUTE, silentForMs: LEASE_MS, limit: 10 };
      return [...idsOf(await jobs.unsentJobs(query))].sort();
    };
    await add(jobs, 'added', 'begun', 'done', 'sent');
    expectSame('at first', await unsent(), []);
    await jobs.jobSent('sent');
    await jobs.beginJob('begun', 1);
    await jobs.completeJob('done', RESULT);
    await advance(MINUTE);
    expectSame('after a while', await unsent(), ['added']);
    await advance(LEASE_MS);
    expectSame('after a silence', await unsent(), ['added', 'begun', 'sent']);
    const all = await jobs.unsentJobs({ olderThanMs: 0, silentForMs: 0, limit: 2 });
    expectSame('the length of a page', all.length, 2);
    for (const id of ['added', 'begun', 'sent', 'none']) await jobs.jobSent(id);
    expectSame('after all were sent', await unsent(), []);
  },
  'beginJob starts a job until it has its result, and returns missing for an unknown job': async ({
    jobs,
    other = jobs,
  }) => {
    expectSame('an unknown job', await jobs.beginJob('none', 1), { status: 'missing' });
    expectSame('its result', await jobs.completeJob('none', RESULT), false);
    await add(jobs, 'a');
    expectSame('the first attempt', await jobs.beginJob('a', 1), { status: 'run' });
    expectSame('the second', await other.beginJob('a', 2), { status: 'run' });
    expectSame('the first attempt again, late', await jobs.beginJob('a', 1), { status: 'run' });
    expectSame('job', await standing(jobs, 'a'), { status: 'running', attempt: 2 });
    expectSame('completing', await jobs.completeJob('a', RESULT), true);
    expectSame('one more', await other.beginJob('a', 3), { status: 'settled', result: RESULT });
    expectSame('job', await standing(other, 'a'), { status: 'completed', attempt: 2, result: RESULT });
    await jobs.jobSent('a');
    expectSame('sent late', await standing(other, 'a'), {
      status: 'completed',
      attempt: 2,
      result: RESULT,
    });
  },
  'addJob and completeJob accept one of several simultaneous calls, and job returns the result unchanged':
    async ({ jobs, other = jobs }) => {
      for (let round = 0; round < 10; round += 1) {
        const id = `job ${round}`;
        const added = await Promise.all([jobs, other].map(async (one) => one.addJob(sampleJob(id), {})));
        expectSame('the number of accepted jobs', added.filter(Boolean).length, 1);
        const results = Array.from({ length: 4 }, (_, index) => ({
          ...{ ...RESULT, forLLM: `${index} ${ODD_TEXT}`, details: { rows: [1, null, ODD_TEXT] } },
          content: [{ type: 'text' as const, content: ODD_TEXT }],
        }));
        const taken = await Promise.all(
          results.map(async (result, index) => (index % 2 === 0 ? jobs : other).completeJob(id, result)),
        );
        expectSame('the number of accepted results', taken.filter(Boolean).length, 1);
        expectSame('the result', (await other.job(id))?.result, results[taken.indexOf(true)]);
      }
    },
  'completeJob enters only the first result into the conversation, once': async ({
    jobs,
    other = jobs,
    conversations,
  }) => {
    if (conversations === undefined) return;
    const content = { kind: 'prompt', content: 'Hi' } as const;
    await conversations.enter({ conversationId: 'c1', key: 'k', content });
    await add(jobs, 'a', 'b', 'c');
    const texts = ['one', 'two', 'three'];
    const taken = await Promise.all(
      texts.map(async (text, index) =>
        (index === 0 ? jobs : other).completeJob('a', { ...RESULT, forLLM: text }, { entry: entryOf(text) }),
      ),
    );
    const wanted = entryOf(texts[taken.indexOf(true)] ?? '').content;
    const inbox = async () => (await conversations.read('c1'))?.inbox.slice(1);
    expectSame('the inbox', await inbox(), [{ position: 2, key: 'completion a', content: wanted }]);
    const same = await jobs.completeJob('b', RESULT, { entry: entryOf('again') });
    expectSame('a result whose entry has a used key', same, true);
    const lost = entryOf('lost', { key: 'completion c', conversationId: 'c2' });
    expectSame(
      'a result for an unknown conversation',
      await jobs.completeJob('c', RESULT, { entry: lost }),
      true,
    );
    const none = entryOf('none', { key: 'completion none' });
    expectSame('a result of an unknown job', await jobs.completeJob('none', RESULT, { entry: none }), false);
    expectSame('the number of entries', (await inbox())?.length, 1);
    expectSame('the other conversation', await conversations.read('c2'), undefined);
    expectSame('the due conversations', await conversations.due(10), ['c1']);
  },
  'listJobs returns jobs in pages, the latest change first': async ({ jobs, advance }) => {
    for (const id of ['a', 'b', 'c', 'd']) {
      await add(jobs, id);
      await advance(MINUTE);
    }
    await jobs.completeJob('b', RESULT);
    const first = await jobs.listJobs({ limit: 2 });
    const second = await jobs.listJobs({ limit: 2, after: first.next });
    expectSame('the first page', idsOf(first.jobs), ['b', 'd']);
    expectSame('the second page', [idsOf(second.jobs), second.next], [['c', 'a'], undefined]);
    expectSame('the waiting jobs', idsOf((await jobs.listJobs({ status: 'waiting' })).jobs), ['d', 'c', 'a']);
    await expectRefused('a limit of 0', () => jobs.listJobs({ limit: 0 }));
    await expectRefused('an after that no page has returned', () => jobs.listJobs({ after: 'x' }));
  },
  'removeJobsOlderThan removes only jobs that were completed long ago': async ({ jobs, advance }) => {
    await add(jobs, 'open', 'old', 'new');
    await jobs.completeJob('old', RESULT);
    await advance(2 * LEASE_MS);
    await jobs.completeJob('new', RESULT);
    expectSame('removed jobs', await jobs.removeJobsOlderThan(LEASE_MS), 1);
    expectSame('the remaining jobs', [...idsOf((await jobs.listJobs()).jobs)].sort(), ['new', 'open']);
    expectSame('a late start', await jobs.beginJob('old', 2), { status: 'missing' });
    await expectRefused('an age that is not a number', () => jobs.removeJobsOlderThan(Number.NaN));
  },
};

/**
 * The contract of `JobStore` as cases for any test runner: the outbox, attempts, results that are stored once and enter
 * a conversation together with it, pages and removal.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const cases = jobStoreConformance({
 *   name: 'MemoryRunStore.jobs',
 *   open() {
 *     let time = Date.now();
 *     const { jobs, conversations } = new MemoryRunStore({ now: () => time });
 *     return {
 *       jobs,
 *       conversations,
 *       advance(ms) {
 *         time += ms;
 *       },
 *     };
 *   },
 * });
 * for (const { title, run } of cases) test(title, run);
 * ```
 */
export function jobStoreConformance(options: JobStoreConformanceOptions): readonly ConformanceCase[] {
  return openedCases(options, OPTIONS, () => CASES);
}
