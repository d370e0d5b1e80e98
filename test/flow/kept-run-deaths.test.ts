import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { foldRun } from 'toolwright';
import { SqliteRunStore } from 'toolwright/stores';
import { type BuiltProgram, buildProgram } from '../processes/build-program.js';
import { runs } from '../setup/runs.js';
import type { KeptRunArguments } from './kept-run-program.js';
import { killedStories, live, type Story, stories, World } from './random-lives.js';
import { historyFaults } from './strict-history.js';

test('recoverRuns continues a run wherever its processes crashed, and nothing is lost or done twice', async () => {
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
    { numRuns: runs(120) },
  );
});

function keyAndText(record: ReturnType<typeof foldRun>['toolCalls'][number]) {
  return [record.idempotencyKey, record.result.forLLM];
}

function numbersOf({ replies }: Story): readonly number[] {
  return replies.flat().map((_kind, n) => n);
}

/** Each effect has one key; it happened once, unless it may be repeated or its storing was interrupted. */
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

describe('recoverRuns', () => {
  let program: BuiltProgram;
  let folder: string;

  beforeAll(() => {
    program = buildProgram('test/flow/kept-run-program.ts');
    folder = mkdtempSync(join(tmpdir(), 'toolwright-deaths-'));
  });
  afterAll(() => {
    program.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts processes one after the other until the run has ended; returns how many were killed. */
  async function liveInProcesses(
    story: Story,
    place: Pick<KeptRunArguments, 'file' | 'effects'>,
  ): Promise<number> {
    const deaths = [...story.deaths];
    let killed = 0;
    for (let now = 1_700_000_000_000; ; now += 60_000) {
      const given: KeptRunArguments = { ...place, story, now, death: deaths.shift() };
      const ended = spawnSync(process.execPath, ['--no-warnings', program.file, JSON.stringify(given)], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH },
      });
      if (ended.signal === 'SIGKILL') killed += 1;
      else expect(ended).toMatchObject({ status: 0, stderr: '' });
      using store = new SqliteRunStore({ path: place.file });
      if ((await store.read('r'))?.status === 'ended') return killed;
    }
  }

  test('continues a run whose processes were killed with SIGKILL', async () => {
    let stories = 0;
    let killed = 0;
    await fc.assert(
      fc.asyncProperty(killedStories, async (story) => {
        stories += 1;
        const place = { file: join(folder, `${stories}.sqlite`), effects: join(folder, `${stories}.txt`) };
        writeFileSync(place.effects, '');
        killed += await liveInProcesses(story, place);
        const world = new World((now) => new SqliteRunStore({ path: place.file, now }));
        for (const line of readFileSync(place.effects, 'utf8').trimEnd().split('\n')) {
          const [effect = '', key = ''] = line.split(' ');
          world.happen(effect, key);
        }
        const run = foldRun((await world.store.read('r'))!);
        const undisturbed = foldRun(await live({ ...story, deaths: [] }, new World()));
        expect(run.messages).toEqual(undisturbed.messages);
        expect(run.toolCalls.map(keyAndText)).toEqual(undisturbed.toolCalls.map(keyAndText));
        checkEffects(story, world);
      }),
      { numRuns: runs(3) },
    );
    expect(killed).toBeGreaterThan(stories / 2);
  }, 60_000);
});
