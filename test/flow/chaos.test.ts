import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

const SCRIPT = join(ROOT, 'test', 'chaos', 'run.mjs');
/** Reached only if the script hangs. */
const LIMIT_MS = 900_000;

test(
  'Conversations recover from ten seconds of killed workers, Redis restarts and lost connections',
  () => {
    builtFile('dist/src/index.js');
    const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
    const size = ['--seconds', '10', '--runs', '16', '--workers', '2'];
    const place = ['--store', 'sqlite', '--engine', hasRedis ? 'bullmq' : 'none'];
    const { exitCode, stdout, stderr } = runNode([SCRIPT, ...size, ...place], {
      folder: ROOT,
      limitMs: LIMIT_MS,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/workers killed \| [1-9]/);
    if (hasRedis) expect(stdout).toMatch(/services restarted \| Redis/);
  },
  LIMIT_MS,
);
