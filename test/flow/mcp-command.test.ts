import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ERAS } from '../parts/mcp/mcp-connections.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';
import { PROCESS_ENVIRONMENT } from '../processes/run-node.js';

const COMMAND = builtFile('dist/src/dev/cli/main.js');
const ENTRY_POINT = JSON.stringify(builtFile('dist/src/index.js'));

/** A module of a user that writes to standard output, which belongs to the protocol. */
const NOISY = `
import { defineTool, ToolRegistry } from ${ENTRY_POINT};
console.log('loading');
export const tools = new ToolRegistry().register(
  defineTool({ name: 'add', description: 'Adds', parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    execute: ({ a, b }) => { console.log('adding'); return a + b; } }),
  defineTool({ name: 'secret', description: 'Hidden', execute: () => 'hidden' }),
);
setInterval(() => {}, 1_000_000);
`;
const LOOSE = `
import { defineTool } from ${ENTRY_POINT};
export const one = defineTool({ name: 'one', description: 'One', execute: () => 1 });
export const others = [defineTool({ name: 'two', description: 'Two', execute: () => 2 })];
`;
const WORDY = `
import { defineTool } from ${ENTRY_POINT};
export const talk = defineTool({ name: 'talk', description: 'Talks', execute: () => 'x'.repeat(100_000) });
`;

/** Node exports its registry twice, as `default` and as `module.exports`. */
const STRICT = `
const { defineTool, ToolRegistry } = require(${ENTRY_POINT});
module.exports = new ToolRegistry({ policy: () => false }).register(
  defineTool({ name: 'no', description: 'Refused', execute: () => 'ran' }));
`;
/** Two declaration faults, found while the module is loaded, or later by the command. */
const broken = (isLoading: boolean) => `
import { defineTool, discoverTools, Tool, ToolRegistry } from ${ENTRY_POINT};
console.log('loading');
export class Broken {
  first({ a }) {}
  second({ b }) {}
}
for (const method of ['first', 'second'])
  Tool('Broken')(Broken.prototype, method, Object.getOwnPropertyDescriptor(Broken.prototype, method));
${isLoading ? 'export const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Broken] }));' : ''}
`;
/** TypeScript that Node cannot strip. */
const TYPED = `
const Tool = () => () => {};
export class Shop {
  @Tool()
  find(id: number) {}
}
`;
const SLOW = `
import { agentTool, defineTool } from ${ENTRY_POINT};
export const deaf = defineTool({ name: 'deaf', description: 'Goes on', execute: () => { console.log('running'); return new Promise(() => {}); } });
export const wind_up = agentTool({ name: 'wind_up', label: 'Wind up', description: 'Needs a moment', parameters: { type: 'object' },
  execute: (_id, _args, signal) => new Promise((resolve) => {
    console.log('running');
    signal.addEventListener('abort', () => setTimeout(() => resolve({ content: [{ type: 'text', content: 'half done' }] }), 100));
  }) });
setInterval(() => {}, 1_000_000);
`;
/** A NestJS application that is created when the module is loaded, and prints when it is closed. */
const NEST = `
import { Module } from ${JSON.stringify(createRequire(import.meta.url).resolve('@nestjs/common'))};
import { defineTool } from ${ENTRY_POINT};
import { ToolwrightModule } from ${JSON.stringify(builtFile('dist/src/surfaces/nestjs/index.js'))};
class AppModule {
  onModuleDestroy() { console.log('destroyed'); }
}
Module({})(AppModule);
const tools = [defineTool({ name: 'add', description: 'Adds', execute: () => 3 })];
export const app = { module: AppModule, imports: [ToolwrightModule.forRoot({ tools })] };
`;
const TWO = `
import { ToolRegistry } from ${ENTRY_POINT};
export const [one, other] = [new ToolRegistry(), new ToolRegistry()];
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-mcp-'));
  writeFileSync(join(folder, 'noisy.mjs'), NOISY);
  writeFileSync(join(folder, 'loose.mjs'), LOOSE);
  writeFileSync(join(folder, 'wordy.mjs'), WORDY);
  writeFileSync(join(folder, 'strict.cjs'), STRICT);
  writeFileSync(join(folder, 'two.mjs'), TWO);
  writeFileSync(join(folder, 'nest.mjs'), NEST);
  writeFileSync(join(folder, 'broken.mjs'), broken(true));
  writeFileSync(join(folder, 'found.mjs'), broken(false));
  writeFileSync(join(folder, 'typo.mjs'), 'export const = 1;');
  writeFileSync(join(folder, 'empty.mjs'), 'export const nothing = 1;');
  writeFileSync(join(folder, 'typed.ts'), TYPED);
  writeFileSync(join(folder, 'slow.mjs'), SLOW);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function connect(args: readonly string[], options: ClientOptions = {}) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [COMMAND, 'mcp', ...args],
    cwd: folder,
    env: { ...PROCESS_ENVIRONMENT },
    stderr: 'pipe',
  });
  const client = new Client({ name: 'a-desktop', version: '1.0.0' }, options);
  let log = '';
  transport.stderr?.on('data', (piece) => {
    log += String(piece);
  });
  await client.connect(transport);
  return { client, log: () => log };
}

async function run(args: readonly string[]) {
  await using command = new NodeProcess([COMMAND, ...args], { folder });
  command.endInput();
  return await command.ended();
}

describe.each(Object.entries(ERAS))('toolwright mcp with a client of %s', (_era, options) => {
  test('serves a registry, and writes what its tools print to the log', async () => {
    const { client, log } = await connect(['noisy.mjs', '--deny', 'sec*', '--name', 'sums'], options);
    expect(client.getServerVersion()?.name).toBe('sums');
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['add']);
    const { content } = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    expect(content).toEqual([{ type: 'text', text: '3' }]);
    await client.close();
    expect(log()).toContain('loading');
    expect(log()).toContain('adding');
    expect(log()).toContain('1 tool of noisy.mjs over stdio');
  });
});

test('toolwright mcp reports name and version of the package of the module', async () => {
  const dist = join(folder, 'shop', 'dist');
  mkdirSync(dist, { recursive: true });
  writeFileSync(join(folder, 'shop', 'package.json'), '{ "name": "@acme/shop", "version": "3.2.1" }');
  writeFileSync(join(dist, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(dist, 'tools.js'), LOOSE);
  const identityOf = async (...args: readonly string[]) => {
    const { client } = await connect(args);
    const identity = client.getServerVersion();
    await client.close();
    return identity;
  };
  expect(await identityOf('shop/dist/tools.js')).toMatchObject({ name: '@acme/shop', version: '3.2.1' });
  expect(await identityOf('shop/dist/tools.js', '--name', 'sums')).toMatchObject({
    name: 'sums',
    version: '3.2.1',
  });
  expect(await identityOf('loose.mjs')).toMatchObject({ name: 'loose', version: '0.0.0' });
});

test('toolwright mcp serves the tools that a module exports', async () => {
  const { client } = await connect(['loose.mjs']);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['one', 'two']);
  await client.close();
});

test('toolwright mcp serves the tools of a NestJS application, and closes it with the client', async () => {
  const { client, log } = await connect(['nest.mjs']);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['add']);
  expect(await client.callTool({ name: 'add' })).toMatchObject({ content: [{ text: '3' }] });
  await client.close();
  expect(log()).toContain('destroyed');
});

test('toolwright mcp answers many large calls without a warning in the log', async () => {
  const { client, log } = await connect(['wordy.mjs']);
  const results = await Promise.all(Array.from({ length: 50 }, () => client.callTool({ name: 'talk' })));
  expect(JSON.stringify(results).length).toBeGreaterThan(50 * 100_000);
  await client.close();
  expect(log()).not.toContain('Warning');
});

test('toolwright mcp exits when its client disconnects, even if a timer is left', async () => {
  const { exitCode, stdout } = await run(['mcp', 'noisy.mjs']);
  expect([exitCode, stdout]).toEqual([0, '']);
});

test.each([
  [['mcp'], 2, 'toolwright: mcp takes one module: toolwright mcp dist/tools.js\n'],
  [['mcp', 'missing.mjs'], 1, 'toolwright: there is no module missing.mjs\n'],
  [['mcp', 'typo.mjs'], 1, "toolwright: typo.mjs cannot be loaded: Unexpected token '='\n"],
  [
    ['mcp', 'empty.mjs'],
    1,
    'toolwright: empty.mjs exports no ToolRegistry, no toolset class, no tool and no NestJS module\n',
  ],
  [
    ['mcp', 'typed.ts'],
    1,
    'toolwright: typed.ts cannot be loaded: Invalid or unexpected token (install tsx in the project to load TypeScript, or give the JavaScript file that the compiler writes)\n',
  ],
  [
    ['mcp', 'loose.mjs', '--deny', 'tow'],
    2,
    "toolwright: --deny 'tow' matches no tool; the tools are one, two\n",
  ],
  [
    ['mcp', 'loose.mjs', '--allow', 'o*', '--allow', 'zzz*', '--deny', 'two', '--deny', 'tow'],
    2,
    "toolwright: --allow 'zzz*' and --deny 'tow' match no tool; the tools are one, two\n",
  ],
])('toolwright %j exits with %d and one line', async (args, exitCode, stderr) => {
  expect(await run(args)).toEqual({ stdout: '', stderr, exitCode });
});

const ENDS = {
  SIGTERM: (command: NodeProcess) => command.send('SIGTERM'),
  'the end of the input': (command: NodeProcess) => command.endInput(),
};
test.each(Object.entries(ENDS))(
  '%s during calls: the calls are answered, and the process exits',
  async (_name, end) => {
    await using command = new NodeProcess([COMMAND, 'mcp', 'slow.mjs'], { folder });
    const write = (message: object) => command.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    write({ id: 1, method: 'initialize', params });
    write({ id: 2, method: 'tools/call', params: { name: 'wind_up' } });
    write({ id: 3, method: 'tools/call', params: { name: 'deaf' } });
    await command.waitFor(/running[\s\S]*running/);
    end(command);
    const { exitCode, stdout } = await command.ended();
    expect(exitCode).toBe(0);
    const answers = new Map(
      stdout
        .trim()
        .split('\n')
        .map((line) => [JSON.parse(line).id, JSON.parse(line)]),
    );
    expect(answers.get(2)).toMatchObject({ result: { content: [{ text: 'half done' }] } });
    expect(answers.get(3)).toMatchObject({ result: { isError: true } });
  },
);

test('the policy of a registry applies, even if its module exports it under two names', async () => {
  const { client } = await connect(['strict.cjs']);
  expect(await client.callTool({ name: 'no' })).toMatchObject({ isError: true });
  await client.close();
});

test('a module that exports two registries is rejected', async () => {
  const { stderr, exitCode } = await run(['mcp', 'two.mjs']);
  expect(stderr).toContain('exports several registries');
  expect(exitCode).toBe(1);
});

test.each([
  ['mcp', 'broken.mjs'],
  ['mcp', 'found.mjs'],
  ['list', 'broken.mjs'],
])('toolwright %s prints all declaration faults of %s, without a stack', async (command, module) => {
  const { stdout, stderr, exitCode } = await run([command, module]);
  expect(stderr).toContain('2 mistakes in tool declarations:');
  expect(stderr).toMatch(/\n1\. Broken\.first.*\n2\. Broken\.second/s);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(exitCode).toBe(1);
  if (command === 'mcp') expect(stdout).toBe('');
});
