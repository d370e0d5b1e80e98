import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, run } from './processes.mjs';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..', '..');
const NEST = join('node_modules', '@nestjs', 'cli', 'bin', 'nest.js');

/** The folder of a new application of that version, in which everything that a user does has been done. */
export function newProject(base, version) {
  installLocked(base, version);
  run(base, process.execPath, [NEST, 'new', 'shop', '--skip-install', '--skip-git', '-p', 'npm']);
  const folder = join(base, 'shop');
  for (const name of ['node_modules', 'package-lock.json']) renameSync(join(base, name), join(folder, name));
  const locked = lockedVersions(join(HERE, version, 'package-lock.json'));
  const named = ['class-validator', 'class-transformer'].map(
    (name) => `${name}@${locked.get(`node_modules/${name}`)}`,
  );
  npm(folder, ['install', '--prefer-offline', pack(base), ...named]);
  checkVersions(folder, { version, locked });
  run(folder, process.execPath, [NEST, 'generate', 'module', 'orders']);
  addTools(folder);
  run(folder, process.execPath, [
    join('node_modules', 'toolwright', 'dist', 'src', 'dev', 'cli', 'main.js'),
    'init',
  ]);
  return folder;
}

function installLocked(base, version) {
  for (const name of ['package.json', 'package-lock.json'])
    cpSync(join(HERE, version, name), join(base, name));
  npm(base, ['ci']);
}

/** What would be published. */
function pack(base) {
  const folder = join(base, 'packed');
  mkdirSync(folder);
  npm(ROOT, ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]);
  return join(folder, readdirSync(folder)[0]);
}

/** Every package is of the version that was locked. */
function checkVersions(folder, { version, locked }) {
  const installed = lockedVersions(join(folder, 'package-lock.json'));
  const others = [...installed].filter(
    ([place, its]) => place !== 'node_modules/toolwright' && locked.get(place) !== its,
  );
  if (others.length > 0)
    throw new Error(`not in the lock file of ${version}: ${others.map(([place]) => place).join(', ')}`);
}

/** The versions of a lock file, by where their packages are. */
function lockedVersions(path) {
  const { packages } = JSON.parse(readFileSync(path, 'utf8'));
  const places = Object.entries(packages).filter(([place]) => place !== '');
  return new Map(places.map(([place, { version }]) => [place, version]));
}

/** The service, the tools, the module and their tests, and the module of toolwright in the root module. */
function addTools(folder) {
  const { type } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const written = (text) => (type === 'module' ? text : withoutEndings(text));
  const source = join(HERE, 'project');
  const files = readdirSync(source, { recursive: true }).filter((path) => path.endsWith('.ts'));
  for (const path of files)
    writeFileSync(join(folder, path), written(readFileSync(join(source, path), 'utf8')));
  const root = join(folder, 'src', 'app.module.ts');
  const before = readFileSync(root, 'utf8');
  if (!before.includes('imports: [OrdersModule]'))
    throw new Error(`the CLI has written another app.module.ts:\n${before}`);
  const imports = "import { ToolwrightModule } from 'toolwright/nestjs';\nimport './toolwright.gen.js';\n";
  const after = before.replace('imports: [', 'imports: [ToolwrightModule.forRoot(), ');
  writeFileSync(root, written(imports + after));
}

/** As CommonJS of `nest new` writes its imports. */
function withoutEndings(text) {
  return text.replaceAll(/(?<=(?:from|import) '(?:\.{1,2}|supertest)\/[^']+)\.js(?=')/g, '');
}
