import { expect, test } from '@jest/globals';
import { SqliteRunStore } from 'toolwright/stores';
import { killedPrograms } from './killed-programs.js';
import { approveAll } from './stored-run-story.js';
import { historyFaults } from './strict-history.js';

const LEASE_MS = 60_000;

const { start, effects, file } = killedPrograms('stored-run', 'runs.sqlite');

test('after a kill of a suspended run, another process resumes it, and no sibling call runs twice', async () => {
  const first = await start();
  first.order({ do: 'suspend' });
  const { runId = '', pending, run } = await first.hear();
  await first.kill();
  expect(effects()).toEqual([`counted ${run}`]);
  const second = await start();
  second.order({ do: 'resume', runId, answers: approveAll(pending), at: 0, stopIn: 'nowhere' });
  const { told, messages = [] } = await second.hear();
  expect(told).toBe('completed');
  expect(effects()).toEqual([`counted ${run}`, `placed ${run}`]);
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
  expect(historyFaults(messages)).toEqual([]);
});

test.each([
  ['in an approved call, which then runs again', 'tool'],
  ['after its calls, of which only the answered ones run again', 'model'],
] as const)('after a kill during a resume, another process resumes the run (%s)', async (_what, stopIn) => {
  const first = await start();
  first.order({ do: 'suspend' });
  const { runId = '', pending, run } = await first.hear();
  const resume = { do: 'resume', runId, answers: approveAll(pending), at: 0 } as const;
  first.order({ ...resume, stopIn });
  expect((await first.hear()).told).toBe('stopped');
  await first.kill();
  const second = await start();
  // The claim of the killed process holds until its lease expires.
  second.order({ ...resume, stopIn: 'nowhere' });
  expect((await second.hear()).told).toBe('RunClaimed');
  second.order({ ...resume, stopIn: 'nowhere', aheadMs: LEASE_MS });
  const { told, messages = [] } = await second.hear();
  expect(told).toBe('completed');
  expect(effects()).toEqual([`counted ${run}`, `placed ${run}`, `placed ${run}`]);
  expect(historyFaults(messages)).toEqual([]);
});

test.each([
  ['inside `once`', 'once'],
  ['after `once`, before the call has its answer', 'tool'],
] as const)(
  'after a kill %s, only that work may be repeated, and not the work before the suspension',
  async (_when, stopIn) => {
    const first = await start();
    first.order({ do: 'suspend', at: 'book' });
    const { runId = '', pending = [], run } = await first.hear();
    expect(pending).toMatchObject([{ kind: 'question', message: 'Sure?' }]);
    const answers = pending.map(({ id }) => ({ id, value: 'yes' }));
    const resume = { do: 'resume', runId, answers, at: 0 } as const;
    first.order({ ...resume, stopIn });
    expect((await first.hear()).told).toBe('stopped');
    await first.kill();
    const second = await start();
    second.order({ ...resume, stopIn: 'nowhere', aheadMs: LEASE_MS });
    const { told, messages = [] } = await second.hear();
    expect(told).toBe('completed');
    expect(effects()).toEqual([`counted ${run}`, `priced ${run}`, `charged ${run}`, `charged ${run}`]);
    expect(historyFaults(messages)).toEqual([]);
  },
);

test('every run that was reported before a kill is in the store after it', async () => {
  const kept: string[] = [];
  for (const count of [1, 4, 9]) {
    const one = await start();
    for (let run = 0; run < count + 5; run += 1) one.order({ do: 'suspend' });
    for (let run = 0; run < count; run += 1) kept.push((await one.hear()).runId ?? 'none');
    await one.kill();
  }
  const store = new SqliteRunStore({ path: file() });
  const states = await Promise.all(kept.map((runId) => store.load(runId)));
  const lost = kept.filter((_, index) => states[index]?.pending.length !== 1);
  store.close();
  expect(lost).toEqual([]);
  expect(kept).toHaveLength(14);
});
