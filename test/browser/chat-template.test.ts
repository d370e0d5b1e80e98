import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { type Installation, installBuilt } from '../packed/installation.js';
import { NodeProcess } from '../processes/node-process.js';
import { outputOfNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';
import { describeBrowser } from './browser.js';

// The template as `create-toolwright` writes it, with the offline model. esbuild makes its page instead of Vite.

let installation: Installation;
let project: string;

beforeAll(async () => {
  installation = installBuilt();
  const create = join(ROOT, 'create', 'index.mjs');
  outputOfNode([create, 'my-chat', '--template', 'chat'], { folder: installation.folder });
  project = join(installation.folder, 'my-chat');
  await build({
    entryPoints: [join(project, 'web', 'main.tsx')],
    outdir: join(project, 'dist'),
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  const html = readFileSync(join(project, 'web', 'index.html'), 'utf8');
  const links = '<link rel="stylesheet" href="/main.css" /><link rel="icon" href="data:," /></head>';
  const page = html.replace('./main.tsx', '/main.js').replace('</head>', links);
  writeFileSync(join(project, 'dist', 'index.html'), page);
});
afterAll(() => installation?.remove());

function startChat(port = '0'): NodeProcess {
  const { PATH } = process.env;
  const tsx = join(ROOT, 'node_modules', 'tsx', 'dist', 'cli.mjs');
  return new NodeProcess([tsx, 'server/main.ts'], { folder: project, environment: { PATH, PORT: port } });
}

async function urlOf(chat: NodeProcess): Promise<string> {
  const [, url = ''] = await chat.said(/Chat: (http:\S+)\n/);
  return url;
}

function statusOf(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { path }, (response) => resolve(response.resume().statusCode))
      .once('error', reject)
      .end();
  });
}

test('an address that is no URL is not found, and the chat template serves on', async () => {
  await using chat = startChat();
  const url = await urlOf(chat);
  expect(await statusOf(url, '//')).toBe(404);
  expect(await statusOf(url, '/')).toBe(200);
});

test('the chat template reports a port that is taken in one line', async () => {
  await using chat = startChat();
  const { port } = new URL(await urlOf(chat));
  await using second = startChat(port);
  const { exitCode, stderr } = await second.ended();
  expect(stderr).toMatch(/^Chat: .*EADDRINUSE.*PORT.*\n$/);
  expect(exitCode).toBe(1);
});

describeBrowser('the page of the chat template', (browser) => {
  test('a call that waits for an approval outlives the server, and its buttons go with the answer', async () => {
    await using first = startChat();
    const url = await urlOf(first);
    const { page, faults } = await browser.newPage();
    await page.goto(url);
    const ask = async () => {
      await page.getByLabel('Message').fill('Refund order "ord_1"');
      await page.getByRole('button', { name: 'Send' }).click();
    };
    const calls = page.getByRole('region', { name: 'refund_order' });
    const waiting = page.locator('[data-state="approval-requested"]');
    await ask();
    await waiting.waitFor();
    await first.kill();
    await using second = startChat(new URL(url).port);
    await urlOf(second);
    await page.reload();
    await waiting.getByRole('button', { name: 'Approve' }).click();
    await page.locator('[data-state="output-available"]').getByText('12.5 EUR were refunded').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await ask();
    await waiting.getByRole('button', { name: 'Refuse' }).click();
    await page.locator('[data-state="output-denied"]').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(await calls.count()).toBe(2);
    expect(await calls.getByRole('button').count()).toBe(0);
    expect(faults).toEqual([]);
  });
});
