// `npm run conformance`: runs the official suite of the Model Context Protocol against a registry over streamable HTTP
// and against `mcpTools`, then third-party clients and servers. Fails if a listed scenario fails.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { runSuite } from './run-suite.mjs';
import {
  CLIENT_2025_11_25,
  CLIENT_2026_07_28,
  SERVER_2025_11_25,
  SERVER_2026_07_28,
  TASKS,
} from './scenarios.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const client = ['client', '--command', `"${process.execPath}" "${here}client.mjs"`];

if (!existsSync(new URL('node_modules', import.meta.url)))
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: here, stdio: 'inherit' });
// Its packages may have been installed only now.
const { thirdPartyPrograms } = await import('./third-party-programs.mjs');

const server = spawn(process.execPath, [`${here}serve.mjs`], { stdio: ['ignore', 'pipe', 'inherit'] });
let allPassed = true;
try {
  const url = await firstLine(server);
  const serverChecks = (revision) => runSuite(['server', '--url', url, '--requirements', revision]);
  report('Server, 2025-11-25', SERVER_2025_11_25, await serverChecks('2025-11-25'));
  report('Client, 2025-11-25', CLIENT_2025_11_25, await clientChecks(CLIENT_2025_11_25, '2025-11-25'));
  report('Server, 2026-07-28', SERVER_2026_07_28, await serverChecks('2026-07-28'));
  report('Server, tasks', TASKS, await eachOf(TASKS, ['server', '--url', url, '--force']));
  report('Client, 2026-07-28', CLIENT_2026_07_28, await clientChecks(CLIENT_2026_07_28, '2026-07-28'));
  allPassed &&= await tryThirdPartyPrograms(url);
} finally {
  server.kill();
}
process.exitCode = allPassed ? 0 : 1;

function clientChecks(scenarios, revision) {
  return eachOf(scenarios, [...client, '--spec-version', revision]);
}

async function eachOf(scenarios, command) {
  const results = new Map();
  for (const scenario of scenarios) {
    const found = await runSuite([...command, '--scenario', scenario]);
    for (const [name, problems] of found) results.set(name, problems);
  }
  return results;
}

/** Prints the result of each third-party program; returns whether all of them work. */
async function tryThirdPartyPrograms(url) {
  const entries = Object.entries(thirdPartyPrograms(url));
  console.log('\nThird-party programs');
  let passed = 0;
  for (const [name, use] of entries) {
    const problem = await use().then(
      () => undefined,
      (error) => error,
    );
    console.log(`  ${problem === undefined ? '✓' : '✗'} ${name}`);
    if (problem === undefined) passed += 1;
    else console.log(`      ${problem.message}`);
  }
  return passed === entries.length;
}

/** Prints each scenario with its failures and warnings. A warning is not a failure. */
function report(title, scenarios, results) {
  const problemsOf = (name) => results.get(name) ?? [{ id: 'the scenario did not run', status: 'FAILURE' }];
  const passes = (name) => problemsOf(name).every(({ status }) => status === 'WARNING');
  const passed = scenarios.filter(passes);
  console.log(`\n${title}: ${passed.length} of ${scenarios.length}`);
  for (const name of scenarios) {
    console.log(`  ${passes(name) ? '✓' : '✗'} ${name}`);
    for (const { id, status, errorMessage = '' } of problemsOf(name))
      console.log(`      ${status.toLowerCase()}: ${id} ${errorMessage}`.trimEnd());
  }
  const others = [...results.keys()].filter((name) => !scenarios.includes(name) && !passes(name));
  if (others.length > 0) console.log(`  not listed: ${others.sort().join(', ')}`);
  allPassed &&= passed.length === scenarios.length;
}

async function firstLine(child) {
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('The server did not start.');
}
