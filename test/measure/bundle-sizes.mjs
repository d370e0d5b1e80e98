// The size of each entry point in a bundle: our code, minified, other packages left out. Fails above a limit.
// npm run measure:doors
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** kB, minified: about 5 % above what was measured when they were set. */
const LIMITS = {
  toolwright: 610,
  'toolwright/decorators': 12,
  'toolwright/openai': 330,
  'toolwright/offline': 270,
  'toolwright/winston': 265,
  'toolwright/testing': 480,
  'toolwright/builtin': 270,
  'toolwright/dto': 265,
  'toolwright/tsyringe': 265,
  'toolwright/satellite': 285,
  'toolwright/stores': 80,
  'toolwright/hooks': 275,
  'toolwright/bullmq': 280,
  'toolwright/pg-boss': 280,
  'toolwright/postgres': 325,
  'toolwright/mcp': 500,
  'toolwright/ai-sdk': 320,
  'toolwright/chat': 510,
  'toolwright/opentelemetry': 285,
  'toolwright/inspector': 565,
  'toolwright/nestjs': 760,
  'toolwright/toolbox/files': 415,
  'toolwright/toolbox/openapi': 285,
  'toolwright/agent': 1035,
  'toolwright/toolbox/agents': 525,
  'toolwright/toolbox/schedule': 370,
  'toolwright/toolbox/tasks': 360,
  'toolwright/toolbox/skills': 270,
  'toolwright/toolbox/web': 370,
  'toolwright/toolbox/permissions': 280,
  'toolwright/toolbox/shell': 380,
  'toolwright/toolbox/sandbox': 285,
  'toolwright/toolbox/virtual-shell': 270,
  'toolwright/plugin': 90,
  'toolwright/jest': 80,
};

const root = join(import.meta.dirname, '../..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const doors = Object.entries(exports).filter(([, path]) => path.endsWith('.js'));
const rows = await Promise.all(
  doors.map(async ([subpath, path]) => {
    const bundled = { bundle: true, minify: true, format: 'esm', platform: 'node', packages: 'external' };
    const { outputFiles } = await build({
      ...bundled,
      absWorkingDir: root,
      entryPoints: [path],
      write: false,
    });
    const { contents } = outputFiles[0];
    const name = subpath.replace('.', 'toolwright');
    return {
      name,
      kB: contents.length / 1_000,
      gzip: gzipSync(contents).length / 1_000,
      limit: LIMITS[name],
    };
  }),
);

console.log('| entry point | minified | gzip | limit |');
console.log('| --- | --- | --- | --- |');
for (const { name, kB, gzip, limit } of rows)
  console.log(`| \`${name}\` | ${kB.toFixed(1)} kB | ${gzip.toFixed(1)} kB | ${limit ?? 'none'} |`);

const wrong = rows.filter(({ kB, limit }) => limit === undefined || kB > limit);
for (const { name, limit } of wrong)
  console.error(limit === undefined ? `${name} has no limit.` : `${name} is larger than ${limit} kB.`);
if (wrong.length > 0) process.exitCode = 1;
