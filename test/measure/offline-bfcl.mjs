/*
 * Measures `toolwright/offline` on real prompts: sends the prompt and tools of each row to the provider once and
 * compares the calls of the reply with the expected calls.
 *
 *   node test/measure/offline-bfcl.mjs [bfcl.jsonl]   (default: in TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * Each line is a row: `{ id, messages, tools: [{ name, description, parameters }], calls: [{ name, arguments }] }`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

// Most of these prompts were written in 2023, so dates without a year are in 2023.
const YEAR = 2023;

await main(process.argv[2] ?? pathIn(process.env.TOOLWRIGHT_SUITES));

async function main(file) {
  if (!file || !existsSync(file)) {
    const reason = file ? `${file} does not exist` : 'no file was given and TOOLWRIGHT_SUITES is not set';
    console.log(`offline-bfcl: skipped because ${reason}`);
    return;
  }
  const { OfflineProvider } = await import('../../dist/src/models/offline/index.js');
  const provider = new OfflineProvider({ year: YEAR });
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const outcomes = [];
  for (const line of lines) outcomes.push(await measure(provider, JSON.parse(line)));
  print('all', outcomes);
  const kinds = Object.groupBy(outcomes, ({ kind }) => kind);
  for (const [kind, members] of Object.entries(kinds)) print(kind, members);
}

/** Returns whether the expected tools were called, as often as expected, and with the expected arguments. */
async function measure(provider, { id, messages, tools, calls }) {
  const offered = tools.map((tool) => ({ type: 'function', function: tool }));
  const reply = await provider.chat({ model: 'offline', messages, tools: offered, options: {} });
  const actual = reply.toolCalls.map(({ name, arguments: args }) => ({ name, arguments: args }));
  return {
    kind: id.replace(/_\d[\d-]*$/, ''),
    tools: isDeepStrictEqual(new Set(actual.map(nameOf)), new Set(calls.map(nameOf))),
    counts: isDeepStrictEqual(actual.map(nameOf).sort(), calls.map(nameOf).sort()),
    exact: sameCalls(actual, calls),
  };
}

function sameCalls(actual, expected) {
  const remaining = [...expected];
  for (const call of actual) {
    const at = remaining.findIndex((candidate) => isDeepStrictEqual(candidate, call));
    if (at < 0) return false;
    remaining.splice(at, 1);
  }
  return remaining.length === 0;
}

function nameOf({ name }) {
  return name;
}

function pathIn(folder) {
  return folder && join(folder, 'bfcl.jsonl');
}

function print(label, outcomes) {
  const share = (key) =>
    `${((100 * outcomes.filter((outcome) => outcome[key]).length) / outcomes.length).toFixed(1)} %`;
  const rows = `${outcomes.length} rows`.padStart(9);
  console.log(
    `${label.padEnd(24)} ${rows}  correct tools ${share('tools')}, ` +
      `correct counts ${share('counts')}, exact calls ${share('exact')}`,
  );
}
