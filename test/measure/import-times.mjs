// The cost of importing each entry point of the toolbox: files, bytes, and time compared with a bare start of Node.
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

/** Tells of every module that is read, CommonJS included, and how many bytes it has. */
const COUNTING = `
  import { registerHooks } from 'node:module';
  import { statSync } from 'node:fs';
  import { fileURLToPath } from 'node:url';
  const told = { own: [0, 0], others: [0, 0] };
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) {
        const of = told[url.includes('/node_modules/') ? 'others' : 'own'];
        of[0] += 1;
        of[1] += statSync(fileURLToPath(url)).size;
      }
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log(JSON.stringify(told));
`;

const times = new Map(imports.map((name) => [name, []]));
// Turn by turn, so that whatever else the machine does is the same for all.
for (let round = 0; round < ROUNDS; round += 1)
  for (const name of imports) times.get(name).push(timeOf(name === '' ? '' : `import '${name}'`));

const bare = median(times.get(''));
console.log(`A bare start of Node ${process.version}: ${bare.toFixed(0)} ms (median of ${ROUNDS}).\n`);
console.log('| entry point | files of ours | of other packages | time beside a bare start |');
console.log('| --- | --- | --- | --- |');
for (const name of imports.slice(1)) {
  const { own, others } = JSON.parse(run(COUNTING, name));
  const more = median(times.get(name)) - bare;
  console.log(`| \`${name}\` | ${sizeOf(own)} | ${sizeOf(others)} | ${more.toFixed(0)} ms more |`);
}

function timeOf(program) {
  const start = performance.now();
  run(program);
  return performance.now() - start;
}

function run(program, ...words) {
  return execFileSync(process.execPath, ['--input-type=module', '-e', program, ...words], {
    cwd: root,
    encoding: 'utf8',
  });
}

function sizeOf([files, bytes]) {
  return files === 0 ? 'none' : `${files}, ${Math.round(bytes / 1_000).toLocaleString('en')} kB`;
}

function median(values) {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
}
