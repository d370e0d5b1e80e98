import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCommand } from '../parts/cli/run-command.js';
import { listFiles, ROOT, readText } from '../structure/repository.js';

/** Examples that declare tools. */
const EXAMPLES = readdirSync(join(ROOT, 'examples'))
  .map((name) => `examples/${name}`)
  .filter((example) => listFiles(example).some((path) => /^\s*@Tool\(/m.test(readText(path))));

test.each(EXAMPLES)('the generated file of %s is up to date', async (example) => {
  // If this fails: npm run generate
  expect(await runCommand(['generate', '--project', example, '--check'], ROOT)).toEqual({
    code: 0,
    out: '',
    error: '',
  });
});
