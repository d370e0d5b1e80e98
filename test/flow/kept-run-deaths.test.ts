import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { foldRun } from 'toolwright';
import { runs } from '../setup/runs.js';
import { live, type Story, stories, World } from './random-lives.js';
import { historyFaults } from './strict-history.js';

test('recoverRuns goes on with a run wherever its processes died, and nothing is lost or done twice', async () => {
  await fc.assert(
    fc.asyncProperty(stories, async (story) => {
      const world = new World();
      const run = foldRun(await live(story, world));
      const undisturbed = foldRun(await live({ ...story, deaths: [] }, new World()));
      expect(world.faults).toEqual([]);
      expect(run.end).toMatchObject({ status: 'completed', content: 'Done.' });
      expect(run.messages).toEqual(undisturbed.messages);
      expect(historyFaults(run.messages)).toEqual([]);
      expect(run.toolCalls.map((record) => record.arguments?.n)).toEqual(numbersOf(story));
      expect(run.toolCalls.map(keyAndText)).toEqual(undisturbed.toolCalls.map(keyAndText));
      checkEffects(story, world);
    }),
    { numRuns: runs(300) },
  );
});

function keyAndText(record: ReturnType<typeof foldRun>['toolCalls'][number]) {
  return [record.idempotencyKey, record.result.forLLM];
}

function numbersOf({ replies }: Story): readonly number[] {
  return replies.flat().map((_kind, n) => n);
}

/** Each effect took place, under one key; and once, unless it may be repeated or was about to be kept. */
function checkEffects({ replies }: Story, { effects }: World): void {
  const keys = new Set<string>();
  for (const [n, kind] of replies.flat().entries()) {
    const parts = kind === 'parts' ? [`${n}a`, `${n}b`] : [`${n}`];
    for (const part of parts) {
      const asked = effects.get(part) ?? [];
      expect({ part, kind, keys: new Set(asked).size }).toEqual({ part, kind, keys: 1 });
      keys.add(asked[0] ?? '');
      if (!['read', 'same', 'parts'].includes(kind))
        expect({ part, kind, asked }).toMatchObject({ asked: [asked[0]] });
    }
  }
  expect(keys.size).toBe(replies.flat().length + replies.flat().filter((kind) => kind === 'parts').length);
}
