// Measures the minified size of each entry point and of the smallest program, without other packages.
// Fails if an entry point exceeds its limit.
// npm run measure:imports
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** In kB, minified: about 5 % above the size when the limit was set. */
const LIMITS = {
  'defineTool, runToolLoop': 395,
  toolwright: 580,
  'toolwright/decorators': 12,
  'toolwright/openai': 110,
  'toolwright/offline': 43,
  'toolwright/winston': 37,
  'toolwright/testing': 445,
  'toolwright/builtin': 100,
  'toolwright/dto': 31,
  'toolwright/tsyringe': 30,
  'toolwright/satellite': 265,
  'toolwright/stores': 80,
  'toolwright/hooks': 47,
  'toolwright/bullmq': 55,
  'toolwright/pg-boss': 55,
  'toolwright/postgres': 95,
  'toolwright/mcp': 500,
  'toolwright/ai-sdk': 285,
  'toolwright/chat': 490,
  'toolwright/opentelemetry': 57,
  'toolwright/inspector': 550,
  'toolwright/nestjs': 755,
  'toolwright/toolbox/files': 250,
  'toolwright/toolbox/openapi': 110,
  'toolwright/agent': 1035,
  'toolwright/toolbox/agents': 495,
  'toolwright/toolbox/schedule': 205,
  'toolwright/toolbox/tasks': 195,
  'toolwright/toolbox/skills': 100,
  'toolwright/toolbox/web': 205,
  'toolwright/toolbox/permissions': 53,
  'toolwright/toolbox/shell': 215,
  'toolwright/toolbox/sandbox': 59,
  'toolwright/toolbox/virtual-shell': 44,
  'toolwright/plugin': 80,
  'toolwright/jest': 75,
};

const root = join(import.meta.dirname, '../..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entryPoints = Object.entries(exports).filter(([, path]) => path.endsWith('.js'));
const programs = [
  ['defineTool, runToolLoop', "export { defineTool, runToolLoop } from './dist/src/index.js';"],
  ...entryPoints.map(([subpath, path]) => [
    subpath.replace('.', 'toolwright'),
    `export * as all from '${path}';`,
  ]),
];
const rows = await Promise.all(
  programs.map(async ([name, contents]) => {
    const bundled = { bundle: true, minify: true, format: 'esm', platform: 'node', packages: 'external' };
    const { outputFiles } = await build({
      ...bundled,
      stdin: { contents, resolveDir: root },
      write: false,
    });
    const [{ contents: code }] = outputFiles;
    return { name, kB: code.length / 1_000, gzip: gzipSync(code).length / 1_000, limit: LIMITS[name] };
  }),
);

console.log('| entry point | minified | gzip | limit |');
console.log('| --- | --- | --- | --- |');
for (const { name, kB, gzip, limit } of rows)
  console.log(`| \`${name}\` | ${kB.toFixed(1)} kB | ${gzip.toFixed(1)} kB | ${limit ?? 'none'} |`);

const failed = rows.filter(({ kB, limit }) => kB > limit);
for (const { name, limit } of failed) console.error(`${name} exceeds ${limit} kB.`);
if (failed.length > 0) process.exitCode = 1;
