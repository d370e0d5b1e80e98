import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../house/repository.js';
import { builtFile } from '../processes/built-file.js';
import { runNode } from '../processes/run-node.js';
import { describePostgres } from '../services/services.js';

const SCRIPT = join(ROOT, 'test', 'chaos', 'run.mjs');

describePostgres('npm run chaos', () => {
  test('Conversations: for ten seconds workers are killed, services are restarted and connections are cut, and all ends well', () => {
    builtFile('dist/src/index.js');
    const engine = spawnSync('redis-server', ['--version']).status === 0 ? 'bullmq' : 'pg-boss';
    const bounds = ['--seconds', '10', '--runs', '20', '--grace', '90', '--engine', engine];
    const { exitCode, stdout, stderr } = runNode([SCRIPT, ...bounds], { folder: ROOT });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/services restarted \| PostgreSQL/);
    expect(stdout).toMatch(/workers killed[^|]*\| [1-9]/);
  });
});
