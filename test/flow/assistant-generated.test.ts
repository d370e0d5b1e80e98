import { expect, test } from '@jest/globals';
import { ROOT } from '../house/repository.js';
import { runCommand } from '../rooms/cli/run-command.js';

test.each(['examples/assistant'])(
  'the generated file of %s is what its types say',
  async (example) => {
    // Out of date: npm run generate
    expect(await runCommand(['generate', '--project', example, '--check'], ROOT)).toEqual({
      code: 0,
      out: '',
      error: '',
    });
  },
  60_000,
);
