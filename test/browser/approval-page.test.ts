import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, expect, test } from '@jest/globals';
import {
  type Answer,
  defineTool,
  recoverRuns,
  resumeStoredRun,
  runToolLoop,
  type ToolLoopResult,
  ToolwrightError,
} from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';
import { MemoryRunStore } from 'toolwright/stores';
import { describeBrowser } from './browser.js';

// The page of docs/guides/approvals-web.md, as it is printed there.

const guide = readFileSync('docs/guides/approvals-web.md', 'utf8');
const html = /```html\n(.*?)```/s.exec(guide)?.[1] ?? '';

const NEVER = new Promise<never>(() => {});

class Shop {
  readonly store = new MemoryRunStore({ now: () => this.now });
  readonly refunded: unknown[] = [];
  now = Date.now();
  dies = false;
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
          if (this.dies) return NEVER;
          this.refunded.push(order);
          return `${order} is refunded`;
        },
      }),
    ],
  } as const;

  async open(): Promise<string> {
    this.server = createServer(async (request, response) => {
      if (request.method === 'GET') return response.setHeader('content-type', 'text/html').end(html);
      try {
        const { runId, content, pending } = await this.answer(request.url ?? '', await json(request));
        response.end(JSON.stringify({ runId, content, pending }));
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
      return runToolLoop(config, [{ role: 'user', content: (body as { text: string }).text }]);
    return resumeStoredRun(config, { store, runId: String(runId) }, body as readonly Answer[]);
  }
}

let opened: Shop | undefined;
afterEach(() => {
  opened?.server?.closeAllConnections();
  opened?.server?.close();
});

describeBrowser('the approval page of the guide', (browser) => {
  /** The page of a shop, with a call that waits. */
  async function waitingPage() {
    const shop = new Shop();
    opened = shop;
    const url = await shop.open();
    const { page } = await browser.newPage();
    const click = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await page.goto(url);
    await click('Send');
    await page.getByText('refund_order').waitFor();
    return { shop, page, click };
  }

  test('approves a call after a reload, and a call that was interrupted is not made again', async () => {
    const { shop, page, click } = await waitingPage();
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).dblclick();
    await page.locator('section').waitFor({ state: 'detached' });
    expect(shop.refunded).toEqual(['ord_1']);
    expect(await page.locator('output').textContent()).not.toContain('no suspended run');

    shop.dies = true;
    await click('Send');
    await click('Approve');
    const runId = new URL(page.url()).hash.slice(1);
    while ((await shop.store.read(runId))?.status !== 'running') await new Promise(setImmediate);
    await page.reload();
    await page.getByText('is continued elsewhere now').waitFor();
    shop.now += 60_000;
    shop.dies = false;
    await recoverRuns({ store: shop.store, config: shop.config });
    await page.reload();
    await click('It was done');
    await page.locator('section').waitFor({ state: 'detached' });
    expect(shop.refunded).toEqual(['ord_1']);
    expect((await shop.store.read(runId))?.status).toBe('ended');
  });

  test('says that the server is away, and shows what still waits after an answer was refused', async () => {
    const { shop, page, click } = await waitingPage();
    await page.route('**/answers', (route) => route.abort(), { times: 1 });
    await click('Approve');
    await page.getByText('No server. Try again.').waitFor();
    expect(shop.refunded).toEqual([]);

    const runId = new URL(page.url()).hash.slice(1);
    const [pending] = (await shop.store.load(runId))?.pending ?? [];
    const elsewhere = [{ id: pending?.id ?? '', approved: false }];
    await resumeStoredRun(shop.config, { store: shop.store, runId }, elsewhere);
    await click('Approve');
    await page.locator('section').waitFor({ state: 'detached' });
    await page.getByText(runId).waitFor();
    expect(shop.refunded).toEqual([]);
  });
});
