// `npm run conformance`: the official suite of the Model Context Protocol, scenario by scenario, against a registry over
// streamable HTTP and against `mcpTools`, and other clients and servers. Fails if a scenario of the lists fails.
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
// What they need is there only now.
const { peers } = await import('./peers.mjs');

const server = spawn(process.execPath, [`${here}serve.mjs`], { stdio: ['ignore', 'pipe', 'inherit'] });
let isAllWell = true;
try {
  const url = await firstLine(server);
  const serverChecks = (revision) => runSuite(['server', '--url', url, '--requirements', revision]);
  report('Server, 2025-11-25', SERVER_2025_11_25, await serverChecks('2025-11-25'));
  report('Client, 2025-11-25', CLIENT_2025_11_25, await clientChecks(CLIENT_2025_11_25, '2025-11-25'));
  report('Server, 2026-07-28', SERVER_2026_07_28, await serverChecks('2026-07-28'));
  report('Server, tasks', TASKS, await eachOf(TASKS, ['server', '--url', url, '--force']));
  report('Client, 2026-07-28', CLIENT_2026_07_28, await clientChecks(CLIENT_2026_07_28, '2026-07-28'));
  isAllWell &&= await tryPeers(url);
} finally {
  server.kill();
}
process.exitCode = isAllWell ? 0 : 1;

function clientChecks(scenarios, revision) {
  return eachOf(scenarios, [...client, '--spec-version', revision]);
}

async function eachOf(scenarios, command) {
  const results = new Map();
  for (const scenario of scenarios) {
    const found = await runSuite([...command, '--scenario', scenario]);
    for (const [name, complaints] of found) results.set(name, complaints);
  }
  return results;
}

/** Prints each of the others' programs and what was wrong with it; whether all was well. */
async function tryPeers(url) {
  const entries = Object.entries(peers(url));
  console.log('\nOthers’ programs');
  let managed = 0;
  for (const [name, use] of entries) {
    const problem = await use().then(
      () => undefined,
      (error) => error,
    );
    console.log(`  ${problem === undefined ? '✓' : '✗'} ${name}`);
    if (problem === undefined) managed += 1;
    else console.log(`      ${problem.message}`);
  }
  return managed === entries.length;
}

/** Prints each scenario and what the suite has to say of it. A warning is not a failure. */
function report(title, scenarios, results) {
  const complaintsOf = (name) => results.get(name) ?? [{ id: 'it did not run', status: 'FAILURE' }];
  const passes = (name) => complaintsOf(name).every(({ status }) => status === 'WARNING');
  const fine = scenarios.filter(passes);
  console.log(`\n${title}: ${fine.length} of ${scenarios.length}`);
  for (const name of scenarios) {
    console.log(`  ${passes(name) ? '✓' : '✗'} ${name}`);
    for (const { id, status, errorMessage = '' } of complaintsOf(name))
      console.log(`      ${status.toLowerCase()}: ${id} ${errorMessage}`.trimEnd());
  }
  const others = [...results.keys()].filter((name) => !scenarios.includes(name) && !passes(name));
  if (others.length > 0) console.log(`  not served: ${others.sort().join(', ')}`);
  isAllWell &&= fine.length === scenarios.length;
}

async function firstLine(child) {
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('The server did not start.');
}
