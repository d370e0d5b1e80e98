/*
 * Measures the search for tools, and fails where it falls behind what the documentation says.
 *
 *   node test/measure/tool-search.mjs [FOLDER]   (default: TOOLWRIGHT_SEARCH_SETS; needs `npm run build`)
 *
 * FOLDER has a file `NAME.json` for each set: `{ tools: [{ name, description, parameters }], queries: [{ query,
 * relevant: [name, …] }] }`; the sets are public and no part of the repository. Each is asked its own users' words,
 * beside the rankings of AI SDK 7 and of Mastra's tool search. Then 10,000 and 100,000 made-up tools are indexed and
 * asked, beside minisearch and orama.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ToolIndex } from '../../dist/src/index.js';
import { aiSdkRanking, mastraRanking } from './search/peer-rankings.mjs';
import { measureScale } from './search/scale.mjs';

/** Recall at 5 that each set must reach, in percent. */
const GATES = {
  'metatool-single': 65,
  'metatool-multi': undefined,
  'seal-in-domain': undefined,
  'seal-out-of-domain': 87,
  'livemcpbench-tasks': 40,
  'livemcpbench-steps': undefined,
  'bfcl-half': 87,
};

const missed = [
  ...measureSets(process.argv[2] ?? process.env.TOOLWRIGHT_SEARCH_SETS),
  ...(await measureScale()),
];
for (const line of missed) console.error(line);
process.exitCode = missed.length > 0 ? 1 : 0;

function measureSets(folder) {
  if (!folder || !existsSync(folder)) {
    console.log(
      `tool-search: the sets are passed over, ${folder ? `${folder} is not there` : 'no folder was given'}`,
    );
    return [];
  }
  console.log('R@5 / nDCG@10'.padEnd(36), 'AI SDK'.padEnd(14), 'Mastra'.padEnd(14), 'toolwright');
  return Object.entries(GATES).flatMap(([name, gate]) =>
    measureSet(join(folder, `${name}.json`), name, gate),
  );
}

function measureSet(file, name, gate) {
  if (!existsSync(file)) {
    console.log(`${name.padEnd(36)} not there`);
    return [];
  }
  const set = JSON.parse(readFileSync(file, 'utf8'));
  const index = new ToolIndex();
  for (const tool of set.tools) index.add(tool);
  const [aiSdk, mastra, own] = [
    aiSdkRanking(set.tools),
    mastraRanking(set.tools),
    (query) => index.search(query, { limit: 10 }),
  ].map((rank) => judge(set.queries, rank));
  const label = `${name} (${set.tools.length}; ${set.queries.length})`;
  console.log(label.padEnd(36), ...[aiSdk, mastra, own].map((figures) => shown(figures).padEnd(14)));
  const faults = [];
  if (gate !== undefined && own.recall < gate)
    faults.push(`${name}: R@5 is ${own.recall.toFixed(1)}, and must be ${gate}`);
  if (own.recall < Math.max(aiSdk.recall, mastra.recall)) faults.push(`${name}: another ranking is better`);
  return faults;
}

function judge(queries, rank) {
  let recall = 0;
  let gain = 0;
  for (const { query, relevant } of queries) {
    const found = rank(query).slice(0, 10);
    recall += relevant.filter((name) => found.slice(0, 5).includes(name)).length / relevant.length;
    const gained = found.reduce((sum, name, place) => sum + (relevant.includes(name) ? worth(place) : 0), 0);
    const ideal = relevant.slice(0, 10).reduce((sum, _name, place) => sum + worth(place), 0);
    gain += gained / ideal;
  }
  return { recall: (100 * recall) / queries.length, gain: (100 * gain) / queries.length };
}

function worth(place) {
  return 1 / Math.log2(place + 2);
}

function shown({ recall, gain }) {
  return `${recall.toFixed(1)} / ${gain.toFixed(1)}`;
}
