// `npm run release -- <version>`: checks that a version can be published, and prints what would change. With `--write`
// it changes the version and the changelog, commits and tags; the tag starts `.github/workflows/release.yml`.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const LIMITS = { packed: 1_200_000, unpacked: 5_000_000 };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
});
const [version] = positionals;

try {
  release();
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

function release() {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
  checkVersion(manifest.version);
  const changelog = datedChangelog(readFileSync('CHANGELOG.md', 'utf8'));
  checkPackage();
  if (!values.write) {
    console.log(`${version} can be released. Nothing was changed; --write changes, commits and tags it.`);
    return;
  }
  if (run('git', ['status', '--porcelain']) !== '') throw new Error('there are uncommitted changes');
  for (const folder of ['.', 'create'])
    run('npm', ['version', version, '--no-git-tag-version', '--allow-same-version', '--prefix', folder]);
  for (const template of readdirSync('create/templates')) setDependency(template);
  writeFileSync('CHANGELOG.md', changelog);
  run('git', ['commit', '--all', '--message', `Version ${version}`]);
  run('git', ['tag', `v${version}`]);
  console.log(`Committed and tagged v${version}. Publish it: git push --follow-tags`);
}

function checkVersion(current) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version ?? '')) throw new Error('usage: npm run release -- 1.2.3');
  const numbers = (text) => text.split(/[.-]/).slice(0, 3).map(Number);
  const difference = numbers(version).map((number, index) => number - numbers(current)[index]);
  if ((difference.find((number) => number !== 0) ?? 0) < 0)
    throw new Error(`${version} is older than ${current}`);
}

/** The changelog with the unreleased changes under this version; a tagged commit already has this form. */
function datedChangelog(text) {
  if (text.includes(`\n## ${version} (`)) return text;
  const [, changes] = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(text) ?? [];
  if (!changes?.trim()) throw new Error('CHANGELOG.md has no changes under "Unreleased"');
  const today = new Date().toISOString().slice(0, 10);
  return text.replace('## Unreleased', `## Unreleased\n\n## ${version} (${today})`);
}

/** Packs the package as npm does, and checks its size, its manifest and its types. */
function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  try {
    const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder]));
    const file = join(folder, readdirSync(folder)[0]);
    const sizes = { packed: statSync(file).size, unpacked: packed.unpackedSize };
    for (const [name, limit] of Object.entries(LIMITS)) {
      console.log(`${name}: ${sizes[name].toLocaleString('en')} of ${limit.toLocaleString('en')} bytes`);
      if (sizes[name] > limit) throw new Error(`the ${name} package is too large`);
    }
    run('npx', ['--no-install', 'publint', '--strict', file]);
    run('npx', ['--no-install', 'attw', '--profile', 'esm-only', '--quiet', file]);
    console.log('publint and attw report no problems');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** New projects use the version that creates them. */
function setDependency(template) {
  const path = join('create/templates', template, 'package.json');
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/"toolwright": "[^"]+"/, `"toolwright": "^${version}"`));
}

function run(program, args) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}\n${error.stdout ?? ''}${error.stderr ?? ''}`);
  }
}
