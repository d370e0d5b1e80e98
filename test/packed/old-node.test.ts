import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { oldNode } from '../../src/core/kernel/node-version.js';
import { builtFile } from '../processes/built-file.js';
import { ROOT } from '../structure/repository.js';

const { engines, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, `./dist/${string}` | './agent.schema.json'>>;
};

/** A Node in PATH that is too old for the package. npm scripts add the Node of the repository, which is skipped. */
const OLD = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .map((folder) => join(folder, 'node'))
  .find((path) => existsSync(path) && oldNode(run(path, ['--version']).out.trim().slice(1)) !== undefined);

test('the oldest supported Node is that of package.json', () => {
  const oldest = engines.node.replace('>=', '');
  expect(oldNode(`${oldest}.0`)).toBeUndefined();
  expect(oldNode('22.12.9')).toBe(`toolwright needs Node ${oldest} or newer; this is 22.12.9`);
  expect(oldNode('20.20.2')).toBeDefined();
  expect(oldNode('24.0.0')).toBeUndefined();
});

const describeOldNode = OLD === undefined ? describe.skip : describe;

describeOldNode('an older Node [needs OldNode]', () => {
  const version = OLD === undefined ? '' : run(OLD, ['--version']).out.trim().slice(1);
  const line = `toolwright needs Node 22.13 or newer; this is ${version}`;

  test.each([['--version'], ['generate'], ['list', 'tools.js']])(
    'the command %s exits with a one-line error',
    (...args) => {
      const { code, out, error } = run(OLD ?? '', [builtFile('dist/src/dev/cli/main.js'), ...args]);
      expect({ code, out, error }).toEqual({ code: 1, out: '', error: `${line}\n` });
    },
  );

  const entryPoints = Object.values(exports).filter((path) => path.endsWith('.js'));
  test('importing an entry point throws an error with the required version', () => {
    const code = `for (const entryPoint of ${JSON.stringify(entryPoints.map((path) => join(ROOT, path)))})
      await import(entryPoint).then(() => console.log(entryPoint), (error) => error.message === ${JSON.stringify(line)} || console.log(entryPoint, error));`;
    const { out, error } = run(OLD ?? '', ['--input-type=module', '--eval', code]);
    expect({ out, error }).toEqual({ out: '', error: '' });
  });
});

function run(node: string, args: readonly string[]) {
  try {
    const out = execFileSync(node, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    return { code: 0, out, error: '' };
  } catch (failure) {
    const { status, stdout, stderr } = failure as { status: number; stdout: string; stderr: string };
    return { code: status, out: stdout, error: stderr };
  }
}
