/* The cost of importing a package, compared with an empty process. */
import { measureInChild } from '../children/child.mjs';
import { median, rotated } from '../measure.mjs';
import { formatNumber } from '../table.mjs';

const IMPORTS = [
  ['empty process', 'nothing'],
  ['**toolwright**', '#toolwright'],
  ['**toolwright/decorators**', '#decorators'],
  ['ai', 'ai'],
  ['@langchain/core/tools', '@langchain/core/tools'],
  ['@openai/agents', '@openai/agents'],
  ['@strands-agents/sdk', '@strands-agents/sdk'],
  ['@mastra/core/tools', '@mastra/core/tools'],
  ['class-validator', 'class-validator'],
];

/** Milliseconds of the import and the memory afterwards; medians of several processes. */
export async function measureImports({ quick }) {
  const runs = IMPORTS.map(([name, specifier]) => ({ name, specifier, times: [], sizes: [] }));
  for (let round = 0; round < (quick ? 3 : 11); round += 1) {
    for (const { specifier, times, sizes } of rotated(runs, round)) {
      const { ms, rss } = await measureInChild('import.mjs', specifier);
      times.push(ms);
      sizes.push(rss);
    }
  }
  const empty = median(runs[0].sizes);
  return {
    title: 'Importing',
    head: ['', 'ms', 'MB of RSS more than an empty process'],
    rows: runs.map(({ name, times, sizes }) => [
      name,
      formatNumber(median(times)),
      formatNumber(median(sizes) - empty),
    ]),
  };
}
