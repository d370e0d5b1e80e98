import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { ROOT } from '../../structure/repository.js';

const MAIN = builtFile('dist/src/dev/cli/main.js');
const MODULE = 'test/parts/cli/fixtures/chatted-tools.mjs';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

async function ask(url: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const [address = '', token = ''] = url.split('#token=');
  const response = await fetch(`${address}api/${path}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

test('toolwright inspect serves the tools of a module until it receives a signal', async () => {
  const tests = mkdtempSync(join(tmpdir(), 'inspect-'));
  folders.push(tests);
  await using process = new NodeProcess([MAIN, 'inspect', MODULE, '--tests', tests], { folder: ROOT });
  const [url] = await process.waitFor(/http:\/\/127\.0\.0\.1:\d+\/#token=\S+/);
  const page = await (await fetch(url)).text();
  expect(page).toContain('<div id="page">');
  expect(await ask(url, 'tools/pay')).toMatchObject({
    place: { file: MODULE, line: expect.any(Number) },
    marks: ['needs approval'],
  });
  const call = await ask(url, 'calls', { tool: 'copy_files', arguments: {} });
  expect(call).toMatchObject({ status: 'success', forLLM: expect.stringContaining('copied') });
  const { path } = await ask(url, 'tests', { key: call.key, save: true });
  expect(readFileSync(String(path), 'utf8')).toMatch(/import \{ tools \} from '\.\..*chatted-tools\.mjs'/);
  process.send('SIGINT');
  expect((await process.ended()).exitCode).toBe(0);
});

test('toolwright inspect refuses NODE_ENV=production, unless --allow-in-production is given', async () => {
  const place = { folder: ROOT, environment: { NODE_ENV: 'production' } };
  await using refused = new NodeProcess([MAIN, 'inspect', MODULE], place);
  expect(await refused.ended()).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('NODE_ENV is production'),
  });
  const elsewhere = { folder: ROOT, environment: { NODE_ENV: '' } };
  await using unnamed = new NodeProcess([MAIN, 'inspect', MODULE], elsewhere);
  await unnamed.waitFor(/#token=/);
  unnamed.send('SIGTERM');
  expect((await unnamed.ended()).exitCode).toBe(0);
  await using allowed = new NodeProcess([MAIN, 'inspect', MODULE, '--allow-in-production'], place);
  await allowed.waitFor(/#token=/);
  allowed.send('SIGTERM');
  expect((await allowed.ended()).exitCode).toBe(0);
});

test('toolwright inspect reports errors of its command line', async () => {
  const run = async (...args: readonly string[]) => {
    await using process = new NodeProcess([MAIN, 'inspect', ...args], { folder: ROOT });
    return await process.ended();
  };
  expect(await run()).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('inspect takes one module'),
  });
  expect(await run(MODULE, '--port', 'x')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--port'),
  });
  expect(await run('gone.js')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('gone.js') });
});
