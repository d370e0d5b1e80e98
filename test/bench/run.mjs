/*
 * Measures toolwright beside its peers.
 *
 *   npm run bench                       everything, some minutes
 *   npm run bench -- --quick            a short run, to see that all candidates still work
 *   npm run bench -- --write            also writes the tables into test/bench/results.md
 *   npm run bench -- calls loop         only these sections: calls additions nest mcp listing dto loop turns many imports
 *   npm run bench -- --check            fails where a figure is worse than in test/bench/results.md by more than its spread
 *   npm run bench -- --beside DIR       this build beside the one in another checkout; names of rows may follow
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureBeside } from './beside.mjs';
import { tablesIn, worseFigures } from './check.mjs';
import { prepare } from './prepare.mjs';
import { toMarkdown } from './table.mjs';
import { describeRun, readResults, writeResults } from './write-results.mjs';

const SECTIONS = {
  calls: async () => (await import('./sections/calls.mjs')).measureCalls,
  additions: async () => (await import('./sections/calls.mjs')).measureAdditions,
  nest: async () => (await import('./sections/bridges.mjs')).measureNest,
  mcp: async () => (await import('./sections/bridges.mjs')).measureMcp,
  listing: async () => (await import('./sections/listing.mjs')).measureListing,
  dto: async () => (await import('./sections/dto-growth.mjs')).measureDtoGrowth,
  loop: async () => (await import('./sections/loop.mjs')).measureLoop,
  turns: async () => (await import('./sections/loop.mjs')).measureTurns,
  many: async () => (await import('./sections/many-tools.mjs')).measureManyTools,
  imports: async () => (await import('./sections/imports.mjs')).measureImports,
};

/** Set in the process of one section. */
const SECTION_ONLY = 'TOOLWRIGHT_BENCH_SECTION';

try {
  await main();
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
}
// Peers leave timers and connections behind.
process.exit();

async function main() {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      beside: { type: 'string' },
    },
    allowPositionals: true,
  });
  if (values.beside !== undefined) return printBeside(values, positionals);
  const unknown = positionals.filter((name) => !Object.hasOwn(SECTIONS, name));
  if (unknown.length > 0)
    throw new Error(
      `there is no section ${unknown.join(', ')}; there are ${Object.keys(SECTIONS).join(', ')}`,
    );
  if (values.write && positionals.length > 0) throw new Error('--write needs a run of all sections');
  if (process.env[SECTION_ONLY] !== undefined) return printSection(positionals[0], values);
  prepare();
  console.log(describeRun(values));
  const docs = values.check ? tablesIn(readResults()) : [];
  const tables = [];
  const worse = [];
  for (const name of positionals.length > 0 ? positionals : Object.keys(SECTIONS)) {
    const measure = () => measured(name, values);
    const made = measure();
    for (const table of made) console.log(`\n${table}`);
    tables.push(...made);
    if (values.check) worse.push(...worseFigures(made, docs, measure));
  }
  if (values.write) writeResults(values, tables);
  if (worse.length > 0) throw new Error(`worse than in test/bench/results.md:\n${worse.join('\n')}`);
}

async function printBeside({ beside, quick }, only) {
  for (const table of await measureBeside(beside, { quick, only })) console.log(`${toMarkdown(table)}\n`);
}

/** In a process of its own: peers of one section switch on hooks and wear out caches that the next would pay for. */
function measured(name, { quick }) {
  const args = [fileURLToPath(import.meta.url), name, ...(quick ? ['--quick'] : [])];
  const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, ...args], {
    encoding: 'utf8',
    env: { ...process.env, [SECTION_ONLY]: '1' },
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`the section ${name} ended with ${status}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

async function printSection(name, { quick }) {
  const options = quick
    ? { quick, rounds: 3, roundMs: 5, warmUpMs: 60 }
    : { quick, rounds: 25, roundMs: 20, warmUpMs: 500 };
  const measure = await SECTIONS[name]();
  const tables = [await measure(options)].flat().map(toMarkdown);
  process.stdout.write(`${JSON.stringify(tables)}\n`);
}
