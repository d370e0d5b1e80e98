import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, run } from './processes.mjs';

const FOLDER = import.meta.dirname;
const ROOT = join(FOLDER, '..', '..');
const NEST = join('node_modules', '@nestjs', 'cli', 'bin', 'nest.js');

/** Creates an application with this version of NestJS and all steps of a user; returns its folder. */
export function createProject(base, version) {
  installLocked(base, version);
  run(base, process.execPath, [NEST, 'new', 'shop', '--skip-install', '--skip-git', '-p', 'npm']);
  const folder = join(base, 'shop');
  for (const name of ['node_modules', 'package-lock.json']) renameSync(join(base, name), join(folder, name));
  const locked = lockedVersions(join(FOLDER, version, 'package-lock.json'));
  const peers = ['class-validator', 'class-transformer'].map(
    (name) => `${name}@${locked.get(`node_modules/${name}`)}`,
  );
  npm(folder, ['install', '--prefer-offline', pack(base), ...peers]);
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
    cpSync(join(FOLDER, version, name), join(base, name));
  npm(base, ['ci']);
}

/** Packs the package as it would be published; returns the path of the tarball. */
function pack(base) {
  const folder = join(base, 'packed');
  mkdirSync(folder);
  npm(ROOT, ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]);
  return join(folder, readdirSync(folder)[0]);
}

/** Checks that every installed package has its locked version. */
function checkVersions(folder, { version, locked }) {
  const installed = lockedVersions(join(folder, 'package-lock.json'));
  const changed = [...installed].filter(
    ([path, installedVersion]) => path !== 'node_modules/toolwright' && locked.get(path) !== installedVersion,
  );
  if (changed.length > 0)
    throw new Error(`not in the lock file of ${version}: ${changed.map(([path]) => path).join(', ')}`);
}

/** Returns the versions of a lock file by the paths of the packages. */
function lockedVersions(path) {
  const { packages } = JSON.parse(readFileSync(path, 'utf8'));
  const installed = Object.entries(packages).filter(([path]) => path !== '');
  return new Map(installed.map(([path, { version }]) => [path, version]));
}

/** Copies the service, tools, module and tests, and imports the module of toolwright in the root module. */
function addTools(folder) {
  const { type } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const adapt = (text) => (type === 'module' ? text : withoutEndings(text));
  const source = join(FOLDER, 'project');
  const files = readdirSync(source, { recursive: true }).filter((path) => path.endsWith('.ts'));
  for (const path of files)
    writeFileSync(join(folder, path), adapt(readFileSync(join(source, path), 'utf8')));
  const root = join(folder, 'src', 'app.module.ts');
  const before = readFileSync(root, 'utf8');
  if (!before.includes('imports: [OrdersModule]'))
    throw new Error(`the Nest CLI wrote an unexpected app.module.ts:\n${before}`);
  const imports = "import { ToolwrightModule } from 'toolwright/nestjs';\nimport './toolwright.gen.js';\n";
  const after = before.replace('imports: [', 'imports: [ToolwrightModule.forRoot(), ');
  writeFileSync(root, adapt(imports + after));
}

/** In CommonJS, `nest new` writes relative imports without `.js`. */
function withoutEndings(text) {
  return text.replaceAll(/(?<=(?:from|import) '(?:\.{1,2}|supertest)\/[^']+)\.js(?=')/g, '');
}
