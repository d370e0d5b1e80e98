import { spawnSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { ROOT } from '../structure/repository.js';

test.each([
  [[], 'usage: npm run release -- 1.2.3'],
  [['next'], 'usage: npm run release -- 1.2.3'],
  [['0.0.1'], '0.0.1 is older than'],
])('release.mjs refuses the version %p with one line', (versions, expected) => {
  const { status, stderr } = spawnSync(process.execPath, ['release.mjs', ...versions], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([expect.stringContaining(expected)]);
});
