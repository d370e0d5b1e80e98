import { expect, test } from '@jest/globals';
import { killedPrograms } from './killed-programs.js';
import type { Told } from './stored-run-process.js';
import { historyFaults } from './strict-history.js';

const INTERRUPTED = /^\[System: async:mail\] .* was interrupted/;

const { start, effects } = killedPrograms('conversation', 'snapshot.json');

/** A process talks, is killed in the middle of its turn, and another one goes on. */
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

test('a process is killed between two requests of a turn: no prompt is lost or doubled, and its work is interrupted once', async () => {
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

test('a process is killed in a call of a turn: the calls of that step are made again, and nothing else is', async () => {
  const told = await killAndRestore('tool');
  // The work that the lost step had started completes as interrupted; the one of its repetition goes on.
  expect(effects().filter((effect) => effect === 'counted')).toHaveLength(2);
  expect(told.taskEnds?.filter(([, code]) => code === 520)).toEqual([['mail', 520]]);
  expect(told.taskEnds).toHaveLength(2);
  expect(saidIn(told).slice(0, 2)).toEqual(['Go', 'And then?']);
  expect(saidIn(told)).toHaveLength(4);
  expect(historyFaults(told.messages ?? [])).toEqual([]);
});
