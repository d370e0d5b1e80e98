// Measures the import of each entry point of the toolbox: files, bytes, and time compared with a start of Node alone.
// npm run measure:imports
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROUNDS = 15;
const root = join(import.meta.dirname, '../..');
const { exports: entryPoints } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const names = Object.keys(entryPoints)
  .filter((entryPoint) => entryPoint.startsWith('./toolbox/'))
  .sort();
const imports = ['', 'toolwright', ...names.map((name) => name.replace('.', 'toolwright'))];

/** Counts the modules that are loaded, including CommonJS, and their bytes. */
const COUNTING = `
  import { registerHooks } from 'node:module';
  import { statSync } from 'node:fs';
  import { fileURLToPath } from 'node:url';
  const loaded = { own: [0, 0], others: [0, 0] };
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) {
        const total = loaded[url.includes('/node_modules/') ? 'others' : 'own'];
        total[0] += 1;
        total[1] += statSync(fileURLToPath(url)).size;
      }
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(JSON.stringify(loaded));
`;

const times = new Map(imports.map((name) => [name, []]));
// Alternating, so that all imports run under the same load.
for (let round = 0; round < ROUNDS; round += 1)
  for (const name of imports) times.get(name).push(timeOf(name === '' ? '' : `import '${name}'`));

const baseline = median(times.get(''));
console.log(
  `Node ${process.version} without imports starts in ${baseline.toFixed(0)} ms (median of ${ROUNDS}).\n`,
);
console.log('| entry point | own files | files of other packages | additional time |');
console.log('| --- | --- | --- | --- |');
for (const name of imports.slice(1)) {
  const { own, others } = JSON.parse(run(COUNTING, name));
  const difference = median(times.get(name)) - baseline;
  console.log(`| \`${name}\` | ${sizeOf(own)} | ${sizeOf(others)} | ${difference.toFixed(0)} ms |`);
}

function timeOf(program) {
  const start = performance.now();
  run(program);
  return performance.now() - start;
}

function run(program, ...programArguments) {
  return execFileSync(process.execPath, ['--input-type=module', '-e', program, ...programArguments], {
    cwd: root,
    encoding: 'utf8',
  });
}

function sizeOf([files, bytes]) {
  return files === 0 ? 'none' : `${files}, ${Math.round(bytes / 1_000).toLocaleString('en')} kB`;
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
