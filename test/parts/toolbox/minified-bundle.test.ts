import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { buildSync } from 'esbuild';
import { toolboxParameters } from './toolbox-parameters.js';

/** Runs a program that is bundled with the built package and minified, and returns its output. */
function minifiedOutput(contents: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-minified-'));
  const outfile = join(folder, 'program.mjs');
  try {
    buildSync({
      stdin: { contents, loader: 'ts', resolveDir: resolve('test/parts/toolbox') },
      bundle: true,
      minify: true,
      platform: 'node',
      format: 'esm',
      // Without the paths of tsconfig.json, which lead to the sources.
      tsconfigRaw: {},
      banner: {
        js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
      },
      logLevel: 'error',
      outfile,
    });
    return execFileSync(process.execPath, [outfile], {
      encoding: 'utf8',
      env: { ...process.env, NODE_ENV: 'production' },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('the tools of all toolsets have the same parameters in a minified bundle', () => {
  const output = minifiedOutput(`
    import { toolboxParameters } from './toolbox-parameters.js';
    console.log(JSON.stringify(toolboxParameters()));
  `);
  expect(JSON.parse(output)).toEqual(JSON.parse(JSON.stringify(toolboxParameters())));
});
