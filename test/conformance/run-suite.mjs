// Runs the official suite's command and reads the checks that it wrote, scenario by scenario.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(
  new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

const NOTHING_CHECKED = { id: 'nothing was checked', status: 'FAILURE' };

/** Scenario → its checks that failed or warn, for every scenario that ran. */
export async function runSuite(args) {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-conformance-'));
  try {
    await run([COMMAND, ...args, '--output-dir', folder]);
    const complaints = new Map();
    for (const name of readdirSync(folder, { recursive: true })) {
      if (!name.endsWith('checks.json')) continue;
      // server-tools-list-2026-11-22T01-39-46-249Z/checks.json
      const scenario = name.replace(/-\d{4}-\d\d-\d\dT.*$/, '').replace(/^(server|client)-(?=.)/, '');
      const checks = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      const found = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
      // A scenario that passes over all of its checks has shown nothing.
      if (!checks.some(({ status }) => status === 'SUCCESS')) found.push(NOTHING_CHECKED);
      complaints.set(scenario, found);
    }
    return complaints;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The suite says by its exit code whether all of it passed; what did is read from what it wrote. */
function run(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    child.on('error', reject);
    child.on('close', resolve);
  });
}
