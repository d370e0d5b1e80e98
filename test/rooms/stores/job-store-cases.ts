import { expect, test } from '@jest/globals';
import { asyncResult, type ConversationLog, type Job, type JobStore, toolResult } from 'toolwright';

/** A store of jobs, and its clock. */
export interface OpenedJobs {
  readonly jobs: JobStore;
  /** Those of the same store. */
  readonly conversations: ConversationLog;
  /** Lets so many milliseconds go by. */
  wait(ms: number): Promise<void> | void;
  close?(): Promise<void> | void;
}

const RESULT = { forLLM: 'sent', silent: false, isError: false, async: false };

function jobCalled(id: string): Job {
  return {
    id,
    tool: 'send_mail',
    arguments: { to: 'ada@example.org', text: 'ä "quoted" 😀' },
    scope: { channel: 'web', owner: { user: 'u1' } },
    fingerprint: 'f.1',
    idempotencyKey: `key of ${id}`,
    callId: 'call_1',
    runId: 'run-1',
  };
}

const OPTIONS = { attempts: 3, backoff: { type: 'fixed', delay: 5 } } as const;

/** What every store of jobs does. */
export function testJobs(name: string, open: () => OpenedJobs | Promise<OpenedJobs>): void {
  const on = (title: string, run: (opened: OpenedJobs) => Promise<void>): void =>
    test(`${name} ${title}`, async () => {
      const opened = await open();
      try {
        await run(opened);
      } finally {
        await opened.close?.();
      }
    });

  on('keeps a job once, and gives it as it was added', async ({ jobs }) => {
    const job = jobCalled('a:1');
    expect(await jobs.addJob(job, OPTIONS)).toBe(true);
    expect(await jobs.addJob({ ...job, tool: 'other' }, {})).toBe(false);
    const stored = await jobs.job('a:1');
    expect(stored).toMatchObject({ job, options: OPTIONS, status: 'waiting', attempt: 0 });
    expect(stored?.addedAt).toBe(stored?.changedAt);
    expect(await jobs.job('b')).toBeUndefined();
  });

  on('lists jobs that nobody has sent, and those of which nothing was heard', async ({ jobs, wait }) => {
    const unsent = async (): Promise<readonly string[]> => {
      const found = await jobs.unsentJobs({ olderThanMs: 1000, silentForMs: 60_000, limit: 10 });
      return found.map(({ job }) => job.id).sort();
    };
    for (const id of ['added', 'begun', 'done', 'sent']) await jobs.addJob(jobCalled(id), {});
    expect(await unsent()).toEqual([]);
    await jobs.jobSent('sent');
    await jobs.beginJob('begun', 1);
    await jobs.completeJob('done', RESULT);
    await wait(1000);
    expect(await unsent()).toEqual(['added']);
    await wait(60_000);
    expect(await unsent()).toEqual(['added', 'begun', 'sent']);
    expect(await jobs.unsentJobs({ olderThanMs: 0, silentForMs: 0, limit: 2 })).toHaveLength(2);
    for (const id of ['added', 'begun', 'sent', 'none']) await jobs.jobSent(id);
    expect(await unsent()).toEqual([]);
  });

  on('records one result of a job, and lets it begin until then', async ({ jobs }) => {
    await jobs.addJob(jobCalled('a'), {});
    expect(await jobs.beginJob('a', 1)).toEqual({ status: 'run' });
    expect(await jobs.beginJob('a', 2)).toEqual({ status: 'run' });
    expect(await jobs.job('a')).toMatchObject({ status: 'running', attempt: 2 });
    const results = await Promise.all(
      ['one', 'two', 'three'].map((forLLM) => jobs.completeJob('a', { ...RESULT, forLLM })),
    );
    expect(results.filter(Boolean)).toHaveLength(1);
    const forLLM = ['one', 'two', 'three'][results.indexOf(true)];
    expect(await jobs.beginJob('a', 3)).toEqual({ status: 'settled', result: { ...RESULT, forLLM } });
    expect(await jobs.job('a')).toMatchObject({ status: 'completed', attempt: 2, result: { forLLM } });
    await jobs.jobSent('a');
    expect(await jobs.job('a')).toMatchObject({ status: 'completed' });
  });

  on('lets a conversation hear of the first result, once, and of no other', async (opened) => {
    const { jobs, conversations } = opened;
    await conversations.enter({ conversationId: 'c1', key: 'k', content: { kind: 'prompt', content: 'Hi' } });
    for (const id of ['a', 'b', 'c']) await jobs.addJob(jobCalled(id), {});
    const news: unknown[] = [];
    const unwatch = conversations.watch((told) => news.push(told));
    const entry = (text: string, key = 'completion a', conversationId = 'c1') => ({
      conversationId,
      key,
      content: { kind: 'completion' as const, tool: 'send_mail', callId: 'call_1', text },
      onlyKnown: true,
    });
    const told = ['one', 'two', 'three'];
    const results = await Promise.all(
      told.map((text) => jobs.completeJob('a', { ...RESULT, forLLM: text }, { entry: entry(text) })),
    );
    const text = told[results.indexOf(true)];
    const inbox = async () => (await conversations.read('c1'))?.inbox.slice(1);
    expect(await inbox()).toEqual([{ position: 2, key: 'completion a', content: entry(text ?? '').content }]);
    // Of the same key, and of a conversation that is not there.
    expect(await jobs.completeJob('b', RESULT, { entry: entry('again') })).toBe(true);
    expect(await jobs.completeJob('c', RESULT, { entry: entry('lost', 'completion c', 'c2') })).toBe(true);
    expect(await inbox()).toHaveLength(1);
    expect(await conversations.read('c2')).toBeUndefined();
    expect(await jobs.completeJob('none', RESULT, { entry: entry('none', 'completion none') })).toBe(false);
    expect(await inbox()).toHaveLength(1);
    // Of the entry, or that some may have been missed.
    while (news.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    unwatch();
    expect(await conversations.due(10)).toEqual(['c1']);
  });

  on('knows no job that was not added', async ({ jobs }) => {
    expect(await jobs.beginJob('none', 1)).toEqual({ status: 'missing' });
    expect(await jobs.completeJob('none', RESULT)).toBe(false);
  });

  on('lists jobs in pages, the latest change first', async ({ jobs, wait }) => {
    for (const id of ['a', 'b', 'c', 'd']) {
      await jobs.addJob(jobCalled(id), {});
      await wait(10);
    }
    await jobs.completeJob('b', {
      ...RESULT,
      details: toolResult('x').toJSON(),
      content: asyncResult('y').content,
    });
    const first = await jobs.listJobs({ limit: 2 });
    const second = await jobs.listJobs({ limit: 2, after: first.next });
    expect([first, second].map((page) => page.jobs.map(({ job }) => job.id))).toEqual([
      ['b', 'd'],
      ['c', 'a'],
    ]);
    expect(second.next).toBeUndefined();
    const waiting = await jobs.listJobs({ status: 'waiting' });
    expect(waiting.jobs.map(({ job }) => job.id)).toEqual(['d', 'c', 'a']);
    await expect(async () => jobs.listJobs({ limit: 0 })).rejects.toThrow(/limit/);
    await expect(async () => jobs.listJobs({ after: 'x' })).rejects.toThrow(/after/);
  });

  on('forgets jobs that were completed long ago, and no others', async ({ jobs, wait }) => {
    for (const id of ['open', 'old', 'new']) await jobs.addJob(jobCalled(id), {});
    await jobs.completeJob('old', RESULT);
    await wait(5000);
    await jobs.completeJob('new', RESULT);
    expect(await jobs.removeJobsOlderThan(3000)).toBe(1);
    expect((await jobs.listJobs()).jobs.map(({ job }) => job.id).sort()).toEqual(['new', 'open']);
    await expect(async () => jobs.removeJobsOlderThan(Number.NaN)).rejects.toThrow(/ageMs/);
  });
}
