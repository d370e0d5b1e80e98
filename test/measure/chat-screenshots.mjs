// Writes the screenshots of docs/guides/chat.md from examples/chat with its offline model: npm run screenshots
import { spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { findChromium } from '../browser/find-chromium.mjs';

const root = join(import.meta.dirname, '..', '..');
const folder = join(root, 'docs', 'images');
const MAX_BYTES = 120_000;

/** Starts the example in a child process on a free port. */
function startExample() {
  const env = { ...process.env, PORT: '0', OPENAI_API_KEY: '', OPENAI_BASE_URL: '' };
  const example = spawn(process.execPath, [join(root, 'dist', 'examples', 'chat', 'main.js')], { env });
  const url = new Promise((resolve, reject) => {
    let output = '';
    example.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      const [, address] = /The chat is open at (\S+)/.exec(output) ?? [];
      if (address !== undefined) resolve(address);
    });
    example.once('exit', () => reject(new Error(`the example exited:\n${output}`)));
  });
  return { url, stop: () => example.kill() };
}

async function sendMessage(tab, text) {
  await tab.getByRole('status').getByText('ready').waitFor();
  await tab.getByLabel('Message').fill(text);
  await tab.getByRole('button', { name: 'Send' }).click();
}

async function orderTwoItems(tab) {
  await sendMessage(tab, "Place an order of the item 'lamp'");
  await tab.getByRole('button', { name: 'Approve', exact: true }).click();
  await tab.locator('output').first().waitFor();
  await sendMessage(tab, "Place an order of the item 'vase'");
  await tab.getByRole('button', { name: 'Approve', exact: true }).waitFor();
}

mkdirSync(folder, { recursive: true });
const example = startExample();
const url = await example.url;
const executablePath = findChromium();
const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
const browser = await chromium.launch({ executablePath, args });

async function takeScreenshot(name, page, options) {
  const context = await browser.newContext(options);
  const tab = await context.newPage();
  await tab.goto(`${url}/${page}?chat=${name}`);
  await orderTwoItems(tab);
  const file = join(folder, `chat-${name}.png`);
  await tab.screenshot({ path: file });
  await context.close();
  const { size } = statSync(file);
  process.stdout.write(`${file.slice(root.length + 1)}: ${size} bytes\n`);
  if (size > MAX_BYTES) process.exitCode = 1;
}

const WIDE = { viewport: { width: 900, height: 640 } };
const NARROW = { viewport: { width: 360, height: 640 } };
await takeScreenshot('use-chat', 'use-chat', WIDE);
await takeScreenshot('ag-ui', 'ag-ui', { ...WIDE, colorScheme: 'dark' });
await takeScreenshot('narrow', 'use-chat', NARROW);
await takeScreenshot('ag-ui-narrow', 'ag-ui', { ...NARROW, colorScheme: 'dark' });

await browser.close();
example.stop();
