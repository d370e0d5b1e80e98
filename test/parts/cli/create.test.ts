import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';

test.each(['nestjs', ''])(
  'npm create toolwright refuses the template %j, and names those that exist',
  (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolwright-create-'));
    try {
      const run = runNode([join(ROOT, 'create/index.mjs'), 'shop', '--template', name], { folder });
      expect(run).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `create-toolwright: there is no template "${name}"; use one of basic, nest, mcp, chat, agent\n`,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
