import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, expect, test } from '@jest/globals';
import {
  type Answer,
  defineTool,
  type LLMProvider,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolLoopResult,
  ToolwrightError,
} from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';
import { MemoryRunStore } from 'toolwright/stores';
import { describeBrowser } from './browser.js';

// Runs the HTML page that docs/guides/approvals-web.md contains.

const guide = readFileSync('docs/guides/approvals-web.md', 'utf8');
const html = /```html\n(.*?)```/s.exec(guide)?.[1] ?? '';

const NEVER = new Promise<never>(() => {});

class Shop {
  readonly store = new MemoryRunStore({ now: () => this.now });
  readonly refunds: unknown[] = [];
  now = Date.now();
  hangs = false;
  broken: { provider?: LLMProvider } = {};
  server: Server | undefined;

  readonly config = {
    provider: new OfflineProvider(),
    model: 'offline',
    store: this.store,
    checkpoint: 'step',
    tools: [
      defineTool({
        name: 'refund_order',
        description: 'Refund an order',
        parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
        approval: true,
        execute: ({ order }) => {
          if (this.hangs) return NEVER;
          this.refunds.push(order);
          return `${order} is refunded`;
        },
      }),
    ],
  } as const;

  async open(): Promise<string> {
    this.server = createServer(async (request, response) => {
      if (request.method === 'GET') return response.setHeader('content-type', 'text/html').end(html);
      try {
        const { runId, status, content, pending } = await this.answer(request.url ?? '', await json(request));
        response.end(JSON.stringify({ runId, status, content, pending }));
      } catch (error) {
        response.statusCode = (ToolwrightError.is(error) && error.statusCode) || 500;
        response.end(JSON.stringify({ message: (error as Error).message }));
      }
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => this.server?.once('listening', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  answer(path: string, body: unknown): Promise<ToolLoopResult> {
    const { config, store } = this;
    const [, , runId, answers] = path.split('/');
    if (answers === undefined)
      return runToolLoop({ ...config, ...this.broken }, [
        { role: 'user', content: (body as { text: string }).text },
      ]);
    return resumeStoredRun(config, { store, runId: String(runId) }, body as readonly Answer[]);
  }
}

let openShop: Shop | undefined;
afterEach(() => {
  openShop?.server?.closeAllConnections();
  openShop?.server?.close();
});

describeBrowser('the approval page of the guide', (browser) => {
  /** Opens the page of a shop in which a call waits for approval. */
  async function openWaitingPage() {
    const shop = new Shop();
    openShop = shop;
    const url = await shop.open();
    const { page } = await browser.newPage();
    const click = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await page.goto(url);
    await click('Send');
    await page.getByText('refund_order').waitFor();
    return { shop, page, click };
  }

  test('a call is approved once after a reload, and an interrupted call is not repeated', async () => {
    const { shop, page, click } = await openWaitingPage();
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).dblclick();
    await page.locator('section').waitFor({ state: 'detached' });
    expect(shop.refunds).toEqual(['ord_1']);
    expect(await page.locator('output').textContent()).not.toContain('no suspended run');

    shop.hangs = true;
    await click('Send');
    await click('Approve');
    const runId = new URL(page.url()).hash.slice(1);
    while ((await shop.store.read(runId))?.status !== 'running') await new Promise(setImmediate);
    await page.reload();
    await page.getByText('is being continued by another process').waitFor();
    shop.now += 60_000;
    shop.hangs = false;
    await recoverRuns({ store: shop.store, config: shop.config });
    await page.reload();
    await click('It was done');
    await page.locator('section').waitFor({ state: 'detached' });
    expect(shop.refunds).toEqual(['ord_1']);
    expect((await shop.store.read(runId))?.status).toBe('ended');
  });

  test('the page shows that a run failed', async () => {
    const { shop, page, click } = await openWaitingPage();
    shop.broken = { provider: { chat: () => Promise.reject(new Error('down')) } };
    await click('Send');
    await page.getByText('The run did not complete: failed.').waitFor();
  });

  test('the page shows that the server is unreachable, and removes a call that was answered elsewhere', async () => {
    const { shop, page, click } = await openWaitingPage();
    await page.route('**/answers', (route) => route.abort(), { times: 1 });
    await click('Approve');
    await page.getByText('No server. Try again.').waitFor();
    expect(shop.refunds).toEqual([]);

    const runId = new URL(page.url()).hash.slice(1);
    const [pending] = (await shop.store.load(runId))?.pending ?? [];
    const elsewhere = [{ id: pending?.id ?? '', approved: false }];
    await resumeStoredRun(shop.config, { store: shop.store, runId }, elsewhere);
    await click('Approve');
    await page.locator('section').waitFor({ state: 'detached' });
    await page.getByText(runId).waitFor();
    expect(shop.refunds).toEqual([]);
  });
});
