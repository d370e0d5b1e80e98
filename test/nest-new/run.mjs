// `npm run test:nest-new`: a project as `nest new` of NestJS 11 and of NestJS 12 makes it gets the packed package, what
// `toolwright init` writes, and a module with tools; then its own commands run. Nothing that npm has not locked here
// is installed. Words choose the versions: `npm run test:nest-new -- 12`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newProject } from './new-project.mjs';
import { npm } from './processes.mjs';
import { serves } from './serves.mjs';

const VERSIONS = ['11', '12'];
const STEPS = [
  ['npm test', (folder) => npm(folder, ['test'])],
  ['npm run test:e2e', (folder) => npm(folder, ['run', 'test:e2e'])],
  ['npm run build', (folder) => npm(folder, ['run', 'build'])],
  ['node dist/main', serves],
  ['npm run lint', (folder) => npm(folder, ['run', 'lint'])],
];

const words = process.argv.slice(2);
const counts = { passed: 0, failed: 0 };
for (const version of VERSIONS.filter((one) => words.length === 0 || words.includes(one)))
  await tryVersion(version);
console.log(`\n${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;

async function tryVersion(version) {
  const base = mkdtempSync(join(tmpdir(), 'toolwright-nest-new-'));
  try {
    const folder = await step(`NestJS ${version}: nest new, npm install, toolwright init`, () =>
      newProject(base, version),
    );
    if (folder === undefined) return;
    for (const [name, run] of STEPS) await step(`NestJS ${version}: ${name}`, () => run(folder));
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** What the step gives; nothing where it failed, after what it complained of was printed. */
async function step(name, run) {
  const started = performance.now();
  const seconds = () => `(${((performance.now() - started) / 1_000).toFixed(1)} s)`;
  try {
    const given = await run();
    counts.passed += 1;
    console.log(`✓ ${name} ${seconds()}${testCounts(given)}`);
    return given;
  } catch (error) {
    counts.failed += 1;
    console.log(`✗ ${name} ${seconds()}\n${error.message.replaceAll(/^/gm, '    ')}`);
    return undefined;
  }
}

/** How many tests Jest or Vitest say that there were. */
function testCounts(output) {
  const [, counted] = /^ *Tests:? +(.*)$/m.exec(output) ?? [];
  return counted === undefined ? '' : `: tests ${counted}`;
}
