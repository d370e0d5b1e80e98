// Creates projects with `nest new` of NestJS 11 and 12, installs the packed package, runs `toolwright init`, adds a
// module with tools, and runs the commands of the project. All installed versions are locked here.
// npm run test:nest-new -- [versions, such as 12]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkServer } from './check-server.mjs';
import { createProject } from './new-project.mjs';
import { npm } from './processes.mjs';

const VERSIONS = ['11', '12'];
const STEPS = [
  ['npm test', (folder) => npm(folder, ['test'])],
  ['npm run test:e2e', (folder) => npm(folder, ['run', 'test:e2e'])],
  ['npm run build', (folder) => npm(folder, ['run', 'build'])],
  ['node dist/main', checkServer],
  ['npm run lint', (folder) => npm(folder, ['run', 'lint'])],
];

const requested = process.argv.slice(2);
const counts = { passed: 0, failed: 0 };
for (const version of VERSIONS.filter((name) => requested.length === 0 || requested.includes(name)))
  await testVersion(version);
console.log(`\n${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;

async function testVersion(version) {
  const base = mkdtempSync(join(tmpdir(), 'toolwright-nest-new-'));
  try {
    const folder = await runStep(`NestJS ${version}: nest new, npm install, toolwright init`, () =>
      createProject(base, version),
    );
    if (folder === undefined) return;
    for (const [name, run] of STEPS) await runStep(`NestJS ${version}: ${name}`, () => run(folder));
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** Returns the result of a step; if it fails, prints the error and returns `undefined`. */
async function runStep(name, run) {
  const started = performance.now();
  const seconds = () => `(${((performance.now() - started) / 1_000).toFixed(1)} s)`;
  try {
    const result = await run();
    counts.passed += 1;
    console.log(`✓ ${name} ${seconds()}${testCounts(result)}`);
    return result;
  } catch (error) {
    counts.failed += 1;
    console.log(`✗ ${name} ${seconds()}\n${error.message.replaceAll(/^/gm, '    ')}`);
    return undefined;
  }
}

/** Returns the number of tests that Jest or Vitest reports. */
function testCounts(output) {
  const [, summary] = /^ *Tests:? +(.*)$/m.exec(output) ?? [];
  return summary === undefined ? '' : `: tests ${summary}`;
}
