/*
 * Measures `toolwright/offline` on real prompts: each row's prompt and tools go through the provider once, and
 * the calls that come back are compared with the calls that are right.
 *
 *   node test/measure/offline-bfcl.mjs [bfcl.jsonl]   (default: in TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * One row a line: `{ id, messages, tools: [{ name, description, parameters }], calls: [{ name, arguments }] }`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

// Dates without a year are read as of 2023, when most of these prompts were written.
const YEAR = 2023;

await main(process.argv[2] ?? inSuites(process.env.TOOLWRIGHT_SUITES));

async function main(file) {
  if (!file || !existsSync(file)) {
    const where = file ? `${file} is absent` : 'no file given and TOOLWRIGHT_SUITES is not set';
    console.log(`offline-bfcl: passed over, ${where}`);
    return;
  }
  const { OfflineProvider } = await import('../../dist/src/models/offline/index.js');
  const provider = new OfflineProvider({ year: YEAR });
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const outcomes = [];
  for (const line of lines) outcomes.push(await measure(provider, JSON.parse(line)));
  print('all', outcomes);
  const kinds = Object.groupBy(outcomes, ({ kind }) => kind);
  for (const [kind, some] of Object.entries(kinds)) print(kind, some);
}

/** One row: whether the right tools were called, as often as wanted, with the right arguments. */
async function measure(provider, { id, messages, tools, calls }) {
  const offered = tools.map((tool) => ({ type: 'function', function: tool }));
  const reply = await provider.chat({ model: 'offline', messages, tools: offered, options: {} });
  const made = reply.toolCalls.map(({ name, arguments: args }) => ({ name, arguments: args }));
  return {
    kind: id.replace(/_\d[\d-]*$/, ''),
    tools: isDeepStrictEqual(new Set(made.map(nameOf)), new Set(calls.map(nameOf))),
    counts: isDeepStrictEqual(made.map(nameOf).sort(), calls.map(nameOf).sort()),
    exact: sameCalls(made, calls),
  };
}

function sameCalls(made, wanted) {
  const left = [...wanted];
  for (const call of made) {
    const at = left.findIndex((one) => isDeepStrictEqual(one, call));
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return left.length === 0;
}

function nameOf({ name }) {
  return name;
}

function inSuites(folder) {
  return folder && join(folder, 'bfcl.jsonl');
}

function print(label, outcomes) {
  const share = (key) =>
    `${((100 * outcomes.filter((one) => one[key]).length) / outcomes.length).toFixed(1)} %`;
  const rows = `${outcomes.length} rows`.padStart(9);
  console.log(
    `${label.padEnd(24)} ${rows}  right tools ${share('tools')}, as often ${share('counts')}, exact calls ${share('exact')}`,
  );
}
