/* (C) Declaring, discovering and offering many tools. */
import { pathToFileURL } from 'node:url';
import { measureApart } from '../children/child.mjs';
import { median, rotated } from '../measure.mjs';
import { generatedFile } from '../prepare.mjs';
import { amount } from '../table.mjs';

const CANDIDATES = [
  { name: '**toolwright**, 1,000 tools', whose: 'ours', count: 1_000 },
  { name: 'AI SDK with zod, 1,000 tools', whose: 'ai', count: 1_000 },
  { name: '**toolwright**, 10,000 tools', whose: 'ours', count: 10_000 },
  { name: 'AI SDK with zod, 10,000 tools', whose: 'ai', count: 10_000 },
];

/** Milliseconds of each stage; medians over processes of their own. */
export async function measureManyTools({ quick }) {
  const runs = CANDIDATES.map((candidate) => ({ ...candidate, stages: [] }));
  for (let round = 0; round < (quick ? 1 : 7); round += 1) {
    for (const { whose, count, stages } of rotated(runs, round)) {
      const file = pathToFileURL(generatedFile(whose, count)).href;
      const stage = await measureApart('many-tools.mjs', whose, file);
      if (stage.count !== count) throw new Error(`${whose}: ${stage.count} tools instead of ${count}`);
      stages.push(stage);
    }
  }
  return {
    title: 'Many tools, ms',
    head: [
      '',
      'declare (load the module)',
      'discover',
      'definitions',
      'all of it',
      'definitions again',
      'the same object',
    ],
    rows: runs.map(({ name, stages }) => {
      const of = (key) => median(stages.map((stage) => stage[key]));
      const { isSame } = stages[0];
      return [
        name,
        amount(of('declared')),
        amount(of('discovered')),
        amount(of('defined')),
        amount(of('declared') + of('discovered') + of('defined')),
        amount(of('again')),
        isSame ? 'yes' : 'no',
      ];
    }),
  };
}
