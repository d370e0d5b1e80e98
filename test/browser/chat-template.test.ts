import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { NodeProcess } from '../processes/node-process.js';
import { freePort } from '../setup/loopback.js';
import { TemplateProject } from '../templates/template-project.js';
import { describeBrowser } from './browser.js';

// The template `chat` of create-toolwright as a stranger runs it, without a key.

describeBrowser('the template chat', (browser) => {
  let project: TemplateProject;
  let port: number;
  let server: NodeProcess | undefined;

  beforeAll(async () => {
    project = new TemplateProject('chat');
    await project.build();
  });
  afterEach(() => server?.kill());
  afterAll(() => project?.[Symbol.dispose]());

  async function start(): Promise<void> {
    port ??= await freePort();
    server = project.start({ PORT: String(port) });
    await server.said(/Chat: http/);
  }

  async function openChat() {
    await start();
    const { page, faults } = await browser.newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    return { page, faults };
  }

  test('a message is answered by a tool, a call is approved, and a reload shows the same', async () => {
    const { page, faults } = await openChat();
    await say(page, 'Show order "ord_1"');
    await page.getByText('show_order: done').waitFor();
    await say(page, 'Refund order "ord_1"');
    await page.getByText('refund_order: waiting').waitFor();
    expect(await page.getByLabel('Message').isEnabled()).toBe(false);
    await page.reload();
    await click(page, 'Approve');
    await page.getByText('refund_order: done').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    const before = await texts(page);
    expect(before).toContain('12.5 EUR were refunded (other).');
    await page.reload();
    await page.getByText('refund_order: done').waitFor();
    expect(await texts(page)).toEqual(before);
    expect(faults).toEqual([]);
  });

  test('a call that is refused, also after a restart, is shown as refused', async () => {
    const { page, faults } = await openChat();
    await say(page, 'Refund order "ord_1"');
    await page.getByText('refund_order: waiting').waitFor();
    await server?.kill();
    await start();
    await page.reload();
    await click(page, 'Refuse');
    await page.getByText('refund_order: refused').waitFor();
    await page.reload();
    await page.getByText('refund_order: refused').waitFor();
    expect(await page.getByText('were refunded').count()).toBe(0);
    expect(faults).toEqual([]);
  });
});

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await click(page, 'Send');
}

function click(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name, exact: true }).click();
}

/** Everything on the page that was said or came of a call. */
function texts(page: Page): Promise<readonly string[]> {
  return page.locator('li p, li strong, output').allTextContents();
}
