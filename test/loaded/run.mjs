// Runs the tests several times beside busy loops and a program that writes to the same PostgreSQL and Redis.
// Fails if a run fails.
//   npm run test:loaded -- [--runs 3] [--loops 6] [-- arguments for Jest; default: npm test]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { foundServices } from '../services/find-services.mjs';

const { values: options, positionals: paths } = parseArgs({
  options: { runs: { type: 'string', default: '3' }, loops: { type: 'string', default: '6' } },
  allowPositionals: true,
});
const { postgres, redis } = await foundServices();
if (!postgres || !redis)
  console.log(`Load is put only on the services that were found: ${[postgres, redis].join(' ')}`);

const inFolder = (name) => join(import.meta.dirname, name);
const loops = Array.from({ length: Number(options.loops) }, () =>
  spawn(process.execPath, [inFolder('busy-loop.mjs')], { stdio: 'ignore' }),
);
const filler = spawn(process.execPath, [inFolder('fill-services.mjs')], {
  stdio: ['pipe', 'inherit', 'inherit'],
  env: { ...process.env, FILL_POSTGRES: postgres ?? '', FILL_REDIS: redis ?? '' },
});

let running;
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    running?.kill(signal);
    void end(1);
  });

const command = paths.length === 0 ? ['test'] : ['run', '--silent', 'jest', '--', ...paths];
let failed = 0;
for (let run = 1; run <= Number(options.runs); run += 1) {
  const startedAt = performance.now();
  running = spawn('npm', command, { stdio: 'inherit' });
  const [code] = await once(running, 'close');
  if (code !== 0) failed += 1;
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`run ${run} of ${options.runs}: ${code === 0 ? 'passed' : `failed (${code})`} in ${seconds} s`);
}
await end(failed === 0 ? 0 : 1);

/** Ends only the processes that this script started. */
async function end(code) {
  for (const loop of loops) loop.kill();
  if (filler.exitCode === null) {
    const closed = once(filler, 'close');
    filler.stdin.end();
    await closed;
  }
  process.exit(code);
}
