// Writes the screenshots of docs/guides/inspector.md from the real page and example tools: npm run screenshots
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { findChromium } from '../browser/find-chromium.mjs';

const root = join(import.meta.dirname, '..', '..');
const load = (path) => import(pathToFileURL(join(root, 'dist', path)).href);
const { defineTool, runToolLoop, ToolRegistry } = await load('src/index.js');
const { createInspector } = await load('src/surfaces/inspector/index.js');
const { connectMcp, createMcpServer, followMcpTools } = await load('src/surfaces/mcp/index.js');
const { MemoryRunStore } = await load('src/durable/stores/index.js');

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const MAX_BYTES = 150_000;

const item = {
  type: 'object',
  properties: {
    sku: { type: 'string', description: 'Id of the article' },
    amount: { type: 'integer', minimum: 1, default: 1 },
  },
  required: ['sku'],
};
const payment = {
  description: 'How the order is paid',
  oneOf: [
    {
      type: 'object',
      properties: {
        method: { const: 'card' },
        token: { type: 'string', description: 'From the payment form' },
        saveCard: { type: 'boolean' },
      },
      required: ['method', 'token'],
    },
    {
      type: 'object',
      properties: { method: { const: 'invoice' }, dueInDays: { enum: [14, 30, 60] } },
      required: ['method'],
    },
  ],
};
const address = {
  type: 'object',
  properties: { city: { type: 'string' }, country: { enum: ['CH', 'DE', 'FR', 'IT'] } },
  required: ['city', 'country'],
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
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'How many at most' },
      },
      required: ['customerId'],
    },
    execute: async ({ customerId, status = 'paid' }) => {
      await pause(140);
      return [{ id: 'ord_81', customerId, status, items: [{ sku: 'lamp', amount: 2 }], total: 79.9 }];
    },
  }),
  defineTool({
    name: 'check_stock',
    description: 'How many of an article are left, by warehouse',
    annotations: { readOnly: true },
    parameters: {
      type: 'object',
      properties: { sku: { type: 'string', description: 'Id of the article' } },
      required: ['sku'],
    },
    execute: async ({ sku }) => {
      await pause(220);
      return { sku, warehouses: { Basel: 3, Lyon: 0 } };
    },
  }),
  defineTool({
    name: 'place_order',
    description: 'Place an order. The customer pays when it is sent.',
    approval: true,
    parameters: {
      type: 'object',
      properties: {
        items: { type: 'array', items: item, description: 'What is ordered' },
        payment,
        to: { ...address, description: 'Where it is sent' },
      },
      required: ['items', 'payment'],
    },
    execute: async ({ items }, context) => {
      for (const done of [1, 2, 3]) {
        context?.progress({ done, total: 3, message: `Reserving in Basel: ${done} of 3` });
        await pause(60);
      }
      return { order: 'ord_82', items: items.length, total: 79.9 };
    },
  }),
  defineTool({
    name: 'send_mail',
    description: 'Send a mail to a customer',
    annotations: { openWorld: true },
    parameters: {
      type: 'object',
      properties: {
        to: { type: 'string', format: 'email', description: 'Address of the customer' },
        template: { type: 'string' },
        values: { type: 'object' },
      },
      required: ['to', 'template'],
    },
    execute: async ({ to }) => {
      await pause(180);
      throw new Error(`The mail server refused ${to}: mailbox is full`);
    },
  }),
);

const order = {
  items: [{ sku: 'lamp', amount: 2 }],
  payment: { method: 'invoice', dueInDays: 30 },
  to: { city: 'Basel', country: 'CH' },
};
const usage = (inputTokens, outputTokens) => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
});
const REPLIES = [
  {
    content: 'I look up your last order and what is left of it.',
    toolCalls: [
      { name: 'find_orders', arguments: { customerId: 'cus_123', limit: 1 } },
      { name: 'check_stock', arguments: { sku: 'lamp' } },
    ],
    usage: usage(812, 64),
  },
  { content: '', toolCalls: [{ name: 'place_order', arguments: order }], usage: usage(1_014, 71) },
  {
    content: '',
    toolCalls: [{ name: 'send_mail', arguments: { to: 'ann@shop.example', template: 'order' } }],
    usage: usage(1_122, 40),
  },
  {
    content:
      'I ordered **two more lamps** as `ord_82`:\n\n| article | pieces | from |\n|---|---|---|\n| lamp | 2 | Basel |\n\nYou pay by invoice within 30 days. The confirmation could *not* be mailed, because your mailbox is full.',
    toolCalls: [],
    usage: usage(1_215, 88),
  },
];

/** A model with fixed replies at a realistic speed. */
function shopModel() {
  return {
    async chat(request) {
      for await (const part of this.stream(request)) if (part.type === 'response') return part.response;
    },
    async *stream({ messages }) {
      const {
        content,
        toolCalls,
        usage: used,
      } = REPLIES[messages.filter(({ role }) => role === 'assistant').length % REPLIES.length];
      await pause(300);
      for (const text of content.match(/.{1,24}/gs) ?? []) {
        yield { type: 'text-delta', text };
        await pause(20);
      }
      const calls = toolCalls.map((call, index) => ({ id: `call_${messages.length}_${index}`, ...call }));
      const finishReason = calls.length > 0 ? 'tool_calls' : 'stop';
      yield { type: 'response', response: { content, toolCalls: calls, finishReason, usage: used } };
    },
  };
}

const provider = shopModel();
const config = { provider, model: 'gpt-5', tools };
const inspector = createInspector(tools, {
  ...{ provider, model: 'gpt-5', store: new MemoryRunStore(), allowInProduction: true },
});
const { url } = await inspector.listen();
const page = (path) => `${url.replace(/#.*/, '')}#/${path}`;

const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
const requestApi = async (path, body) =>
  (
    await fetch(`${url.replace(/#.*/, '')}api/${path}`, {
      method: body ? 'POST' : 'GET',
      headers,
      body: body && JSON.stringify(body),
    })
  ).json();

/** Approves the pending call of a run and waits until the run has completed. */
async function approve(runId) {
  const { runs } = await requestApi('pending');
  const { pending } = runs.find((waiting) => waiting.runId === runId);
  await requestApi('answers', { runId, answers: [{ id: pending[0].id, approved: true }] });
  while ((await requestApi(`runs/${runId}`)).status !== 'completed') await pause(20);
}

const PROMPT = 'Order two more of the lamps that I bought last time';
const run = async (content) => (await runToolLoop(config, [{ role: 'user', content }])).state.runId;
const runId = await run(PROMPT);
await pause(4_000);
await approve(runId);
await run('And two for my neighbour, please');
await approve(await run('Two lamps for the office'));

const folder = join(root, 'docs', 'images');
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});

async function takeScreenshot(name, path, { width = 1200, height = 800, colorScheme = 'light', act } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const tab = await context.newPage();
  await tab.goto(url);
  await tab.goto(page(path));
  await tab.getByRole('heading', { level: 1 }).first().waitFor();
  await act(tab);
  // The page loads its content in several requests.
  await pause(300);
  const file = join(folder, `inspector-${name}.png`);
  await tab.screenshot({ path: file });
  await context.close();
  const { size } = statSync(file);
  process.stdout.write(`${file.slice(root.length + 1)}: ${size} bytes\n`);
  if (size > MAX_BYTES) process.exitCode = 1;
}

/** Chats until the approval is requested. */
async function requestOrder(tab) {
  await tab.getByLabel('Message', { exact: true }).fill(PROMPT);
  await tab.getByRole('button', { name: 'Send' }).click();
  await tab.getByRole('button', { name: 'Approve place_order' }).waitFor();
}

async function completeOrder(tab) {
  await requestOrder(tab);
  await tab.getByRole('button', { name: 'Approve place_order' }).click();
  await tab.getByText('completed').waitFor();
}

async function fillOrder(tab) {
  const items = [...order.items, { sku: 'shade', amount: 1 }];
  await tab.getByLabel('Arguments as text').fill(JSON.stringify({ ...order, items }, null, 2));
  await tab.getByLabel('sku required').nth(1).waitFor();
  await tab.evaluate('document.activeElement.blur(), scrollTo(0, 0)');
}

async function call(tab) {
  await tab.getByLabel(/customerId/).fill('cus_123');
  await tab.getByRole('button', { name: 'Call', exact: true }).click();
  await tab.getByText('success').waitFor();
}

const NARROW = { width: 360, height: 760 };

await takeScreenshot('tool', 'tools/place_order', { act: fillOrder });
await takeScreenshot('call', 'tools/find_orders', { height: 960, act: call, colorScheme: 'dark' });
await takeScreenshot('run', `runs/${runId}`, {
  colorScheme: 'dark',
  act: (tab) => tab.getByRole('button', { name: /send_mail/ }).click(),
});
await takeScreenshot('pending', 'pending', {
  act: async (tab) => {
    await tab.getByRole('button', { name: 'Edit arguments' }).click();
    await tab.getByLabel('sku required').waitFor();
  },
});
await takeScreenshot('chat', 'chat', { act: requestOrder });
await takeScreenshot('chat-dark', 'chat', { act: completeOrder, colorScheme: 'dark' });
await takeScreenshot('narrow', 'tools/place_order', { ...NARROW, act: fillOrder });
await takeScreenshot('chat-narrow', 'chat', { ...NARROW, act: requestOrder });
await takeScreenshot('run-narrow', `runs/${runId}`, {
  ...NARROW,
  colorScheme: 'dark',
  act: (tab) => tab.getByText('Timeline').waitFor(),
});

// Tools of two MCP servers, the second of which is stopped.
const mcpServers = await Promise.all(
  ['carrier', 'accounting'].map(async (prefix) => {
    const look = defineTool({
      name: 'look_up',
      description: `Look up a record of the ${prefix}`,
      execute: () => '',
    });
    const mcp = createMcpServer(new ToolRegistry().register(look), { name: prefix });
    const server = createServer(mcp.node).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const connect = connectMcp({ url: `http://127.0.0.1:${server.address().port}/mcp` });
    const connection = await followMcpTools(tools, connect, { prefix });
    return { connection, close: () => mcp.close().finally(() => server.close()) };
  }),
);
const [, accounting] = mcpServers;
await accounting.close();
await accounting.connection.refresh().catch(() => {});
await takeScreenshot('connections', 'tools', {
  act: (tab) => tab.getByRole('list', { name: 'Connections' }).waitFor(),
});

await browser.close();
for (const { connection, close } of mcpServers) await Promise.all([connection.close(), close()]);
await inspector.close();
