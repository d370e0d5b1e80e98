import { expect, test } from '@jest/globals';
import { killedPrograms } from './killed-programs.js';
import type { Told } from './stored-run-process.js';
import { historyFaults } from './strict-history.js';

const INTERRUPTED = /^\[System: async:mail\] .* was interrupted/;

const { start, effects } = killedPrograms('conversation', 'snapshot.json');

/** Kills a process during its turn, and restores the conversation in another one. */
async function killAndRestore(stopIn: 'tool' | 'model'): Promise<Told> {
  const first = await start();
  first.order({ do: 'talk', stopIn });
  expect((await first.hear()).told).toBe('stopped');
  await first.kill();
  const second = await start();
  second.order({ do: 'restore' });
  const told = await second.hear();
  expect(told.told).toBe('quiet');
  return told;
}

function saidIn({ messages = [] }: Told): readonly unknown[] {
  return messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
}

test('after a kill between two requests of a turn, no prompt is lost or repeated', async () => {
  const told = await killAndRestore('model');
  expect(effects()).toEqual(['counted', 'mailing']);
  expect(told.taskEnds).toEqual([['mail', 520]]);
  expect(saidIn(told)).toEqual(['Go', 'And then?', expect.stringMatching(INTERRUPTED)]);
  expect(told.turnEnds).toEqual([
    'Heard: 3 left',
    'Heard: And then?',
    expect.stringContaining('interrupted'),
  ]);
  expect(historyFaults(told.messages ?? [])).toEqual([]);
});

test('after a kill during a call, only the calls of that step run again', async () => {
  const told = await killAndRestore('tool');
  // The work of the lost step completes as interrupted, and that of the repetition is cancelled.
  expect(effects().filter((effect) => effect === 'counted')).toHaveLength(2);
  expect(told.taskEnds?.filter(([, code]) => code === 520)).toEqual([['mail', 520]]);
  expect(told.taskEnds).toHaveLength(2);
  expect(saidIn(told).slice(0, 2)).toEqual(['Go', 'And then?']);
  expect(saidIn(told)).toHaveLength(4);
  expect(historyFaults(told.messages ?? [])).toEqual([]);
});
