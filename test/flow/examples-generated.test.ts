import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { ROOT } from '../house/repository.js';
import { runCommand } from '../rooms/cli/run-command.js';

const EXAMPLES = readdirSync(join(ROOT, 'examples')).map((name) => `examples/${name}`);

test.each(EXAMPLES)('the generated file of %s is what its types say', async (example) => {
  // Out of date: npm run generate
  expect(await runCommand(['generate', '--project', example, '--check'], ROOT)).toEqual({
    code: 0,
    out: '',
    error: '',
  });
});
