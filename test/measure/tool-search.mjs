/*
 * Measures the search for tools and fails if it is worse than the documented results.
 *
 *   node test/measure/tool-search.mjs [FOLDER]   (default: TOOLWRIGHT_SEARCH_SETS; needs `npm run build`)
 *
 * FOLDER contains a file `NAME.json` for each set: `{ tools: [{ name, description, parameters }], queries: [{ query,
 * relevant: [name, …] }] }`; the sets are public and not part of the repository. The results are compared with the
 * rankings of AI SDK 7 and Mastra. Then indexes of 10,000 and 100,000 generated tools are compared with minisearch and
 * orama.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ToolIndex } from '../../dist/src/index.js';
import { aiSdkRanking, mastraRanking } from './search/peer-rankings.mjs';
import { measureScale } from './search/scale.mjs';

/** Minimum recall at 5 of each set, in percent. */
const MIN_RECALL = {
  'metatool-single': 65,
  'metatool-multi': undefined,
  'seal-in-domain': undefined,
  'seal-out-of-domain': 87,
  'livemcpbench-tasks': 40,
  'livemcpbench-steps': undefined,
  'bfcl-half': 87,
};

const failures = [
  ...measureSets(process.argv[2] ?? process.env.TOOLWRIGHT_SEARCH_SETS),
  ...(await measureScale()),
];
for (const line of failures) console.error(line);
process.exitCode = failures.length > 0 ? 1 : 0;

function measureSets(folder) {
  if (!folder || !existsSync(folder)) {
    console.log(
      `tool-search: the sets are skipped because ${folder ? `${folder} does not exist` : 'no folder was given'}`,
    );
    return [];
  }
  console.log('R@5 / nDCG@10'.padEnd(36), 'AI SDK'.padEnd(14), 'Mastra'.padEnd(14), 'toolwright');
  return Object.entries(MIN_RECALL).flatMap(([name, minRecall]) =>
    measureSet(join(folder, `${name}.json`), name, minRecall),
  );
}

function measureSet(file, name, minRecall) {
  if (!existsSync(file)) {
    console.log(`${name.padEnd(36)} does not exist`);
    return [];
  }
  const set = JSON.parse(readFileSync(file, 'utf8'));
  const index = new ToolIndex();
  for (const tool of set.tools) index.add(tool);
  const [aiSdk, mastra, own] = [
    aiSdkRanking(set.tools),
    mastraRanking(set.tools),
    (query) => index.search(query, { limit: 10 }),
  ].map((rank) => evaluate(set.queries, rank));
  const label = `${name} (${set.tools.length}; ${set.queries.length})`;
  console.log(label.padEnd(36), ...[aiSdk, mastra, own].map((figures) => format(figures).padEnd(14)));
  const faults = [];
  if (minRecall !== undefined && own.recall < minRecall)
    faults.push(`${name}: R@5 is ${own.recall.toFixed(1)}, must be at least ${minRecall}`);
  if (own.recall < Math.max(aiSdk.recall, mastra.recall)) faults.push(`${name}: another ranking is better`);
  return faults;
}

function evaluate(queries, rank) {
  let recall = 0;
  let gain = 0;
  for (const { query, relevant } of queries) {
    const found = rank(query).slice(0, 10);
    recall += relevant.filter((name) => found.slice(0, 5).includes(name)).length / relevant.length;
    const queryGain = found.reduce(
      (sum, name, place) => sum + (relevant.includes(name) ? gainAt(place) : 0),
      0,
    );
    const ideal = relevant.slice(0, 10).reduce((sum, _name, place) => sum + gainAt(place), 0);
    gain += queryGain / ideal;
  }
  return { recall: (100 * recall) / queries.length, gain: (100 * gain) / queries.length };
}

function gainAt(place) {
  return 1 / Math.log2(place + 2);
}

function format({ recall, gain }) {
  return `${recall.toFixed(1)} / ${gain.toFixed(1)}`;
}
