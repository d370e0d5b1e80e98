/*
 * Measures toolwright and its peers.
 *
 *   npm run bench                       all sections, some minutes
 *   npm run bench -- --quick            a short run that checks that all candidates work
 *   npm run bench -- --write            also writes the tables into test/bench/results.md
 *   npm run bench -- calls loop         only these sections: calls options nest mcp listing dto loop turns many imports
 *   npm run bench -- --check            fails if a ratio is worse than in test/bench/results.md
 *   npm run bench -- --beside DIR       compares with the build of another checkout; row names may follow
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
  options: async () => (await import('./sections/calls.mjs')).measureOptions,
  nest: async () => (await import('./sections/bridges.mjs')).measureNest,
  mcp: async () => (await import('./sections/bridges.mjs')).measureMcp,
  listing: async () => (await import('./sections/listing.mjs')).measureListing,
  dto: async () => (await import('./sections/dto-growth.mjs')).measureDtoGrowth,
  loop: async () => (await import('./sections/loop.mjs')).measureLoop,
  turns: async () => (await import('./sections/loop.mjs')).measureTurns,
  many: async () => (await import('./sections/many-tools.mjs')).measureManyTools,
  imports: async () => (await import('./sections/imports.mjs')).measureImports,
};

/** Set in the child process of a section. */
const SECTION_ONLY = 'TOOLWRIGHT_BENCH_SECTION';

try {
  await main();
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
}
// Peers leave open timers and connections.
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
      `unknown section ${unknown.join(', ')}; the sections are ${Object.keys(SECTIONS).join(', ')}`,
    );
  if (values.write && positionals.length > 0)
    throw new Error('--write requires all sections; remove their names');
  if (process.env[SECTION_ONLY] !== undefined) return printSection(positionals[0], values);
  prepare();
  console.log(describeRun(values));
  const results = values.check ? tablesIn(readResults()) : [];
  const tables = [];
  const worse = [];
  for (const name of positionals.length > 0 ? positionals : Object.keys(SECTIONS)) {
    const measure = () => measureSection(name, values);
    const measuredTables = measure();
    for (const table of measuredTables) console.log(`\n${table}`);
    tables.push(...measuredTables);
    if (values.check) worse.push(...worseFigures(measuredTables, results, measure));
  }
  if (values.write) writeResults(values, tables);
  if (worse.length > 0) throw new Error(`worse than in test/bench/results.md:\n${worse.join('\n')}`);
}

async function printBeside({ beside, quick }, only) {
  for (const table of await measureBeside(beside, { quick, only })) console.log(`${toMarkdown(table)}\n`);
}

/** Runs a section in its own process, because peers install hooks and fill caches that would slow other sections. */
function measureSection(name, { quick }) {
  const args = [fileURLToPath(import.meta.url), name, ...(quick ? ['--quick'] : [])];
  const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, ...args], {
    encoding: 'utf8',
    env: { ...process.env, [SECTION_ONLY]: '1' },
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`the section ${name} exited with code ${status}`);
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
