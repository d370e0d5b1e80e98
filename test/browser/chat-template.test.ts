import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { NodeProcess } from '../processes/node-process.js';
import { freePort } from '../setup/loopback.js';
import { TemplateProject } from '../templates/template-project.js';
import { barriers, describeBrowser } from './browser.js';

// The template `chat` of create-toolwright, as a new user runs it without an API key.

/** A model that hangs during its reply if the environment variable HANGS is `model`. */
const HANGING_MODEL = `
import { OfflineProvider } from 'toolwright/offline';
const offline = new OfflineProvider();
const provider = {
  chat: (request) => offline.chat(request),
  async *stream(request) {
    if (process.env.HANGS === 'model') {
      yield { type: 'text-delta', text: 'The first half' };
      await new Promise(() => {});
    }
    const response = await offline.chat(request);
    if (response.content) yield { type: 'text-delta', text: response.content };
    yield { type: 'response', response };
  },
};
export const chooseModel = async () => ({ provider, model: 'offline' });
`;

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

  async function start(hangs = ''): Promise<void> {
    port ??= await freePort();
    server = project.start({ PORT: String(port), HANGS: hangs });
    await server.waitFor(/Chat: http/);
  }

  /** Replaces text in a file of the project. */
  function change(path: string, [from, to]: readonly [string, string]): void {
    const file = join(project.folder, path);
    const before = readFileSync(file, 'utf8');
    const after = before.replace(from, to);
    expect(after).not.toBe(before);
    writeFileSync(file, after);
  }

  async function openChat(hangs?: string) {
    await start(hangs);
    const { page, faults } = await browser.newPage({ viewport: { width: 360, height: 700 } });
    await page.goto(`http://127.0.0.1:${port}/`);
    return { page, faults };
  }

  test('a message calls a tool, a call is approved, and a reload shows the same messages', async () => {
    const { page, faults } = await openChat();
    await send(page, 'Show order "ord_1"');
    await page.getByText('show_order: done').waitFor();
    await send(page, 'Refund order "ord_1"');
    await page.getByText('refund_order: waiting').waitFor();
    expect(await page.getByLabel('Message').isEnabled()).toBe(false);
    expect(await barriers(page)).toEqual([]);
    await page.reload();
    await click(page, 'Approve');
    await page.getByText('refund_order: done').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(await barriers(page)).toEqual([]);
    const before = await texts(page);
    expect(before).toContain('12.5 EUR were refunded (other).');
    await page.reload();
    await page.getByText('refund_order: done').waitFor();
    expect(await texts(page)).toEqual(before);
    expect(faults).toEqual([]);
  });

  test('a call that is refused after a restart is shown as refused', async () => {
    const { page, faults } = await openChat();
    await send(page, 'Refund order "ord_1"');
    await page.getByText('refund_order: waiting').waitFor();
    await server?.kill();
    await start();
    await page.reload();
    await click(page, 'Refuse');
    await page.getByText('refund_order: refused').waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.reload();
    await page.getByText('refund_order: refused').waitFor();
    expect(await page.getByText('were refunded').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('a turn continues after its server was killed, and an interrupted call is unknown until it is answered', async () => {
    change('server/create-server.ts', ['leaseMs: 10_000', 'leaseMs: 3_000']);
    writeFileSync(join(project.folder, 'server/model.ts'), HANGING_MODEL);
    change('server/tools.ts', [
      "order.state = 'refunded';",
      'if (process.env.HANGS) return new Promise(() => {});',
    ]);
    const { page } = await openChat('model');
    await send(page, 'Show order "ord_1"');
    await page.getByText('The first half').waitFor();
    await restart(page, 'tool');
    await page.getByText('show_order: done').waitFor();
    expect(await page.getByText('The first half').count()).toBe(0);

    await send(page, 'Refund order "ord_1"');
    await click(page, 'Approve');
    await page.getByText('refund_order: running').waitFor();
    await restart(page);
    await page.getByText('refund_order: unknown').waitFor();
    expect(await page.getByLabel('Message').isEnabled()).toBe(false);
    expect(await page.getByRole('alert').count()).toBe(0);
    const [id = ''] =
      /\S+(?= +suspended)/.exec(project.toolwright(['runs', 'list', '--store', 'chats.sqlite'])) ?? [];
    project.toolwright([
      'runs',
      'answer',
      id,
      '--done',
      '"12.5 EUR were refunded"',
      '--store',
      'chats.sqlite',
    ]);
    await page.reload();
    await page.getByText('refund_order: done').waitFor();
    expect(await texts(page)).toContain('12.5 EUR were refunded');
  });

  /** Kills the server, starts it again and clicks Reload on the page. */
  async function restart(page: Page, hangs?: string): Promise<void> {
    await server?.kill();
    await page.getByRole('alert').waitFor();
    await start(hangs);
    await click(page, 'Reload');
  }
});

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await click(page, 'Send');
}

function click(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name, exact: true }).click();
}

/** The texts of all messages and call results on the page. */
function texts(page: Page): Promise<readonly string[]> {
  return page.locator('li p, li strong, output').allTextContents();
}
