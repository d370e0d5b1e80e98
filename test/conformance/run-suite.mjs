// Runs the official suite and reads the files with the checks of each scenario.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(
  new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);

const NOTHING_CHECKED = { id: 'nothing was checked', status: 'FAILURE' };

/** The failed checks and warnings of each scenario that ran. */
export async function runSuite(args) {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-conformance-'));
  try {
    await run([COMMAND, ...args, '--output-dir', folder]);
    const problems = new Map();
    for (const name of readdirSync(folder, { recursive: true })) {
      if (!name.endsWith('checks.json')) continue;
      // server-tools-list-2026-11-22T01-39-46-249Z/checks.json
      const scenario = name.replace(/-\d{4}-\d\d-\d\dT.*$/, '').replace(/^(server|client)-(?=.)/, '');
      const checks = JSON.parse(readFileSync(join(folder, name), 'utf8'));
      const found = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
      // A scenario without a successful check proves nothing.
      if (!checks.some(({ status }) => status === 'SUCCESS')) found.push(NOTHING_CHECKED);
      problems.set(scenario, found);
    }
    return problems;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ignores the exit code, because the written files contain the result of each check. */
function run(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    child.on('error', reject);
    child.on('close', resolve);
  });
}
