import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { runNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';
import { smallProject } from '../typegen/small-project.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');

/** A project with a TypeScript module that only tsx can load. */
function projectOf(name: string, type = 'module') {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-dev-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }));
  write(folder, name);
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

function write(folder: string, name: string, file = 'tools.ts'): void {
  const code = `
    enum Answer { Yes = 'yes' }
    export const tool = { name: '${name}', description: 'One', parameters: { type: 'object' }, execute: () => Answer.Yes };`;
  writeFileSync(join(folder, file), code);
}

test.each(['module', 'commonjs'])('commands load TypeScript with the tsx of a %s project', (type) => {
  using project = projectOf('first', type);
  expect(runNode([MAIN, 'call', 'tools.ts', 'first'], project)).toMatchObject({
    exitCode: 0,
    stdout: 'yes\n',
    stderr: '',
  });
  const { stdout } = runNode([MAIN, 'list', 'tools.ts', '--schema'], project);
  expect(JSON.parse(stdout)).toMatchObject([{ type: 'function', function: { name: 'first' } }]);
});

const ADDRESS = /http:\/\/127\.0\.0\.1:\d+\/#token=a-token-of-this-test/;
const TOKEN = { TOOLWRIGHT_INSPECTOR_TOKEN: 'a-token-of-this-test' };

function startDev(folder: string) {
  return new NodeProcess([MAIN, 'dev', 'tools.ts', '--port', '0'], { folder, environment: TOKEN });
}

async function until<Value>(look: () => Value | undefined | false): Promise<Value> {
  for (;;) {
    const seen = look();
    if (seen !== undefined && seen !== false) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The URL of the inspector that starts after a change. */
async function addressAfter(process: NodeProcess, change: () => void): Promise<string> {
  const before = process.stdout.length;
  change();
  return await until(() => ADDRESS.exec(process.stdout.slice(before))?.[0]);
}

test('toolwright dev restarts the inspector if a file was changed or replaced, also after an error', async () => {
  using project = projectOf('first');
  await using process = startDev(project.folder);
  const [url] = await process.waitFor(ADDRESS);
  expect(await namesAt(url)).toEqual(['first']);
  const changed = await addressAfter(process, () => write(project.folder, 'second'));
  expect(await namesAt(changed)).toEqual(['second']);
  for (const name of ['third', 'fourth']) {
    const replaced = await addressAfter(process, () => {
      write(project.folder, name, 'tools.ts.new');
      renameSync(join(project.folder, 'tools.ts.new'), join(project.folder, 'tools.ts'));
    });
    expect(await namesAt(replaced)).toEqual([name]);
  }
  writeFileSync(join(project.folder, 'tools.ts'), 'export const = 1;');
  await until(() => process.stderr.includes('starts again when a source changes'));
  const repaired = await addressAfter(process, () => write(project.folder, 'fifth'));
  expect(await namesAt(repaired)).toEqual(['fifth']);
  process.send('SIGINT');
  expect((await process.ended()).exitCode).toBe(0);
  await expect(namesAt(repaired)).rejects.toThrow('fetch failed');
});

test('toolwright dev generates the schemas before it restarts, with the same import ending', async () => {
  const declare = (type: string) =>
    `import { Tool } from 'toolwright';
export class Orders { @Tool('Find an order') find(id: ${type}) { return String(id); } }`;
  using project = smallProject({ 'src/orders.ts': declare('string') });
  write(project.folder, 'first');
  expect(runNode([MAIN, 'generate', '--import-ending', 'ts'], project)).toMatchObject({ exitCode: 0 });
  const file = join(project.folder, 'src/toolwright.gen.ts');
  const before = readFileSync(file, 'utf8');
  await using process = startDev(project.folder);
  await process.waitFor(ADDRESS);
  await addressAfter(process, () => project.write('src/orders.ts', declare('number')));
  const after = readFileSync(file, 'utf8');
  expect(after).not.toBe(before);
  expect(after).toContain("from './orders.ts'");
});

test('the inspector exits when toolwright dev is killed', async () => {
  using project = projectOf('first');
  await using process = startDev(project.folder);
  const [url] = await process.waitFor(ADDRESS);
  expect(await namesAt(url)).toEqual(['first']);
  // Resolves when the inspector, which shares the outputs, has exited too.
  await process.kill();
  await expect(namesAt(url)).rejects.toThrow('fetch failed');
});

test.each(['inspect', 'dev'])('toolwright %s refuses to run in production, in one line', (command) => {
  using project = projectOf('first');
  const { folder } = project;
  expect(
    runNode([MAIN, command, 'tools.ts'], { folder, environment: { NODE_ENV: 'production' } }),
  ).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(/^toolwright: NODE_ENV is production, [^\n]+ --allow-in-production\n$/),
  });
});

test.each(['inspect', 'dev'])('toolwright %s exits with one line if its port is taken', async (command) => {
  using project = projectOf('first');
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  try {
    await using process = new NodeProcess([MAIN, command, 'tools.ts', '--port', String(port)], project);
    expect(await process.ended()).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: `toolwright: --port ${port}: another program uses this port: give another port, or 0 for any free port\n`,
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
