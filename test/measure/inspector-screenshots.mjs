// Writes the screenshots of docs/guides/inspector.md, out of the real page over a small shop: npm run screenshots
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { findChromium } from '../browser/find-chromium.mjs';

const root = join(import.meta.dirname, '..', '..');
const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
const { defineTool, runToolLoop, ToolRegistry } = await load('src/index.js');
const { createInspector } = await load('src/surfaces/inspector/index.js');
const { MemoryRunStore } = await load('src/durable/stores/index.js');
const { ScriptedProvider } = await load('src/dev/testing/index.js');

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const MOST_BYTES = 150_000;

const address = {
  type: 'object',
  properties: {
    street: { type: 'string' },
    city: { type: 'string' },
    country: { enum: ['CH', 'DE', 'FR', 'IT'] },
  },
  required: ['street', 'city', 'country'],
};
const tools = new ToolRegistry().register(
  defineTool({
    name: 'find_orders',
    description: 'Find a customer’s orders, newest first',
    annotations: { readOnly: true },
    parameters: {
      type: 'object',
      properties: {
        customerId: { type: 'string', description: 'Customer id, e.g. cus_123' },
        status: { enum: ['open', 'sent', 'paid'], description: 'Only orders with this status' },
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 10 },
      },
      required: ['customerId'],
    },
    execute: async ({ customerId, status = 'open' }) => {
      await pause(40);
      return [{ id: 'ord_81', customerId, status, total: 79.9 }];
    },
  }),
  defineTool({
    name: 'place_order',
    description: 'Place an order',
    approval: true,
    parameters: {
      type: 'object',
      properties: {
        items: {
          type: 'array',
          items: {
            type: 'object',
            properties: { sku: { type: 'string' }, amount: { type: 'integer', minimum: 1 } },
            required: ['sku', 'amount'],
          },
        },
        to: { anyOf: [address, { type: 'string', title: 'Id of an address' }] },
      },
      required: ['items', 'to'],
    },
    execute: async ({ items }) => {
      await pause(60);
      return `Placed ${items.length} items as ord_82`;
    },
  }),
  defineTool({
    name: 'check_stock',
    description: 'How many of an item are left',
    annotations: { readOnly: true },
    parameters: { type: 'object', properties: { sku: { type: 'string' } }, required: ['sku'] },
    execute: async () => {
      await pause(90);
      return 3;
    },
  }),
);

const inspector = createInspector(tools, { store: new MemoryRunStore(), allowInProduction: true });
const { url } = await inspector.listen();
const page = (path) => `${url.replace(/#.*/, '')}#/${path}`;

/** A model that takes its time. */
function slow(replies) {
  const script = new ScriptedProvider(replies);
  return {
    async chat(request) {
      await pause(120);
      return script.chat(request);
    },
  };
}

const usage = { inputTokens: 812, outputTokens: 64, totalTokens: 876 };
const order = { items: [{ sku: 'lamp', amount: 2 }], to: 'adr_1' };
const run = (replies, content) =>
  runToolLoop({ provider: slow(replies), model: 'gpt-5', tools }, [{ role: 'user', content }]);
const { state: done } = await run(
  [
    {
      toolCalls: [
        { name: 'find_orders', arguments: { customerId: 'cus_123' } },
        { name: 'check_stock', arguments: { sku: 'lamp' } },
      ],
      usage,
    },
    { toolCalls: [{ name: 'place_order', arguments: order }], usage },
    { content: 'I ordered two more lamps: ord_82.', usage },
  ],
  'Order two more of the lamps that I bought last time',
);
await run([{ toolCalls: [{ name: 'place_order', arguments: order }] }], 'And two for my neighbour');

const folder = join(root, 'docs', 'images');
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});

async function shoot(
  name,
  path,
  { width = 1100, height = 760, colorScheme = 'light', act = async () => {} } = {},
) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const tab = await context.newPage();
  await tab.goto(url);
  await tab.goto(page(path));
  await tab.getByRole('heading', { level: 1 }).waitFor();
  await act(tab);
  const file = join(folder, `inspector-${name}.png`);
  await tab.screenshot({ path: file });
  await context.close();
  const { size } = statSync(file);
  process.stdout.write(`${file.slice(root.length + 1)}: ${size} bytes\n`);
  if (size > MOST_BYTES) process.exitCode = 1;
}

await shoot('call', 'tools/find_orders', {
  act: async (tab) => {
    await tab.getByLabel(/customerId/).fill('cus_123');
    await tab.getByRole('button', { name: 'Call', exact: true }).click();
    await tab.getByText('success').waitFor();
    await tab
      .getByRole('heading', { name: 'Call', exact: true })
      .evaluate((heading) => heading.scrollIntoView());
  },
});
await shoot('tool', 'tools/place_order', { act: (tab) => tab.getByText('What is sent').waitFor() });
await shoot('pending', 'pending', {
  height: 900,
  act: (tab) =>
    tab
      .getByRole('button', { name: /Approve/ })
      .first()
      .waitFor(),
});
// Somebody says yes, a while later.
const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
const ask = async (path, body) =>
  (
    await fetch(`${url.replace(/#.*/, '')}api/${path}`, { method: body ? 'POST' : 'GET', headers, body })
  ).json();
const { runs } = await ask('pending');
const { runId, pending } = runs.find((waiting) => waiting.runId === done.runId);
await ask('answers', JSON.stringify({ runId, answers: [{ id: pending[0].id, approved: true }] }));
while ((await ask(`runs/${runId}`)).status !== 'completed') await pause(20);
await shoot('run', `runs/${runId}`, {
  colorScheme: 'dark',
  act: (tab) => tab.getByText('completed').first().waitFor(),
});
await shoot('narrow', 'tools/place_order', {
  width: 360,
  height: 760,
  act: (tab) => tab.getByText('What is sent').waitFor(),
});

await browser.close();
await inspector.close();
