// `npm run runtimes`: runs a toolset in each runtime and bundler, where the results must be identical, and a part of
// the flow tests in one bundled file. Fails if a table in docs/guides/runtimes.md differs; `-- --write` updates the
// tables, and other arguments choose rows by parts of their names.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FLOW_ROWS, flowOutcome } from './flow-rows.mjs';
import { prepare } from './prepare.mjs';
import { ROWS } from './rows.mjs';

const PAGE = new URL('../../docs/guides/runtimes.md', import.meta.url);
const TABLE = /(?<=<!-- rows -->\n)[\s\S]*(?=\n<!-- \/rows -->)/;
const FLOW_TABLE = /(?<=<!-- flow rows -->\n)[\s\S]*(?=\n<!-- \/flow rows -->)/;

const chosen = process.argv.slice(2).filter((argument) => argument !== '--write');
const [first, ...others] = ROWS;
const isChosen = ({ name }) => chosen.length === 0 || chosen.some((part) => name.includes(part));
const base = mkdtempSync(join(tmpdir(), 'toolwright-runtimes-'));
const lines = [];
const flowLines = [];
try {
  const folders = prepare(base);
  const expected = (await first.run(folders)).trim();
  for (const row of [first, ...others.filter(isChosen)]) lines.push(await tryRow(row, { folders, expected }));
  console.log('\nFlow tests in one file');
  for (const row of FLOW_ROWS.filter(isChosen)) flowLines.push(await tryFlowRow(row, folders));
} finally {
  rmSync(base, { recursive: true, force: true });
}
const page = readFileSync(PAGE, 'utf8');
if (process.argv.includes('--write')) {
  writeFileSync(
    PAGE,
    page.replace(TABLE, () => table(lines)).replace(FLOW_TABLE, () => table(flowLines)),
  );
} else {
  const all = [...lines, ...flowLines];
  const failed = all.filter((line) => !page.includes(line));
  console.log(`\n${all.length - failed.length} passed, ${failed.length} failed`);
  if (failed.length > 0) console.log(`docs/guides/runtimes.md differs from:\n${failed.join('\n')}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function table(rows) {
  return ['', '| runtime | command | result |', '| --- | --- | --- |', ...rows, ''].join('\n');
}

/** Runs a row of the flow tests, prints the result and returns the line of the table. */
async function tryFlowRow(row, folders) {
  const started = performance.now();
  const { counts, problem } = await flowOutcome(row, folders).catch(({ message }) => ({
    counts: 'did not run',
    problem: message,
  }));
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  console.log(`${problem === undefined ? '✓' : '✗'} ${row.name}: ${counts} (${seconds} s)`);
  if (problem !== undefined) console.log(indented(problem));
  const works =
    row.expectedFailures.length === 0 ? 'all pass' : `all but ${row.expectedFailures.length} pass`;
  return `| ${row.name} | ${row.command} | ${problem === undefined ? works : 'some fail'} |`;
}

/** Runs a row, prints the result and returns the line of the table. */
async function tryRow({ name, command, setting, run }, { folders, expected }) {
  const started = performance.now();
  const problem = await problemOf(() => run(folders), expected);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  console.log(
    problem === undefined ? `✓ ${name} (${seconds} s)` : `✗ ${name} (${seconds} s)\n${indented(problem)}`,
  );
  const works = setting === undefined ? 'works' : `works with ${setting}`;
  return `| ${name} | ${command} | ${problem === undefined ? works : 'does not work yet'} |`;
}

/** `undefined` if the report equals the expected report. */
async function problemOf(run, expected) {
  try {
    const report = (await run()).trim();
    return report === expected ? undefined : firstDifference(report, expected);
  } catch (error) {
    return error.message;
  }
}

function firstDifference(report, expected) {
  let at = 0;
  while (report[at] === expected[at]) at += 1;
  const around = (text) => text.slice(Math.max(0, at - 60), at + 100);
  return `actual:   ${around(report)}\nexpected: ${around(expected)}`;
}

function indented(text) {
  const shown = text.split('\n').slice(0, 24);
  return shown.map((line) => `    ${line.slice(0, 300)}`).join('\n');
}
