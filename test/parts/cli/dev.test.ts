import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { runNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');

/** A project with a module of TypeScript that only tsx can load. */
function projectOf(name: string, type = 'module') {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-dev-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }));
  write(folder, name);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

function write(folder: string, name: string): void {
  const code = `
    enum Answer { Yes = 'yes' }
    export const tool = { name: '${name}', description: 'One', parameters: { type: 'object' }, execute: () => Answer.Yes };`;
  writeFileSync(join(folder, 'tools.ts'), code);
}

test.each(['module', 'commonjs'])('commands load TypeScript by the tsx of a %s project', (type) => {
  using project = projectOf('first', type);
  expect(runNode([MAIN, 'call', 'tools.ts', 'first'], project)).toMatchObject({
    exitCode: 0,
    stdout: 'yes\n',
    stderr: '',
  });
  const { stdout } = runNode([MAIN, 'list', 'tools.ts', '--schema'], project);
  expect(JSON.parse(stdout)).toMatchObject([{ type: 'function', function: { name: 'first' } }]);
});

test('toolwright dev serves the inspector again when a file has changed, under the same address', async () => {
  using project = projectOf('first');
  await using process = new NodeProcess([MAIN, 'dev', 'tools.ts', '--port', '0'], {
    folder: project.folder,
    environment: { TOOLWRIGHT_INSPECTOR_TOKEN: 'a-token-of-this-test' },
  });
  const [url] = await process.said(/http:\/\/127\.0\.0\.1:\d+\/#token=a-token-of-this-test/);
  expect(await namesAt(url)).toEqual(['first']);
  const before = process.stdout.length;
  write(project.folder, 'second');
  let next: string | undefined;
  while (next === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    next = /http:\/\/127\.0\.0\.1:\d+\/#token=a-token-of-this-test/.exec(process.stdout.slice(before))?.[0];
  }
  expect(await namesAt(next)).toEqual(['second']);
  process.send('SIGINT');
  expect((await process.ended()).exitCode).toBe(0);
});

test.each(['inspect', 'dev'])('toolwright %s ends with one line if its port is taken', async (command) => {
  using project = projectOf('first');
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  try {
    await using process = new NodeProcess([MAIN, command, 'tools.ts', '--port', String(port)], project);
    expect(await process.ended()).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `toolwright: --port ${port}: another program uses this port: give another one, or 0 for any free port\n`,
    });
  } finally {
    taken.close();
  }
});

async function namesAt(url: string): Promise<readonly string[]> {
  const [address = '', token = ''] = url.split('#token=');
  const response = await fetch(`${address}api/tools`, { headers: { authorization: `Bearer ${token}` } });
  const { tools } = (await response.json()) as { readonly tools: readonly { readonly name: string }[] };
  return tools.map(({ name }) => name);
}
