/* The cost of declaring, discovering and offering many tools. */
import { pathToFileURL } from 'node:url';
import { measureInChild } from '../children/child.mjs';
import { median, rotated } from '../measure.mjs';
import { generatedFile } from '../prepare.mjs';
import { formatNumber } from '../table.mjs';

const CANDIDATES = [
  { name: '**toolwright**, 1,000 tools', framework: 'toolwright', count: 1_000 },
  { name: 'AI SDK with zod, 1,000 tools', framework: 'ai-sdk', count: 1_000 },
  { name: '**toolwright**, 10,000 tools', framework: 'toolwright', count: 10_000 },
  { name: 'AI SDK with zod, 10,000 tools', framework: 'ai-sdk', count: 10_000 },
];

/** Milliseconds of each stage; medians of several processes. */
export async function measureManyTools({ quick }) {
  const runs = CANDIDATES.map((candidate) => ({ ...candidate, stages: [] }));
  for (let round = 0; round < (quick ? 1 : 7); round += 1) {
    for (const { framework, count, stages } of rotated(runs, round)) {
      const file = pathToFileURL(generatedFile(framework, count)).href;
      const stage = await measureInChild('many-tools.mjs', framework, file);
      if (stage.count !== count) throw new Error(`${framework}: ${stage.count} tools instead of ${count}`);
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
      'total',
      'definitions, second call',
      'same object',
    ],
    rows: runs.map(({ name, stages }) => {
      const medianOf = (key) => median(stages.map((stage) => stage[key]));
      const { isSame } = stages[0];
      return [
        name,
        formatNumber(medianOf('declared')),
        formatNumber(medianOf('discovered')),
        formatNumber(medianOf('defined')),
        formatNumber(medianOf('declared') + medianOf('discovered') + medianOf('defined')),
        formatNumber(medianOf('again')),
        isSame ? 'yes' : 'no',
      ];
    }),
  };
}
