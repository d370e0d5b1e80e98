import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { barriers, describeBrowser, type TestBrowser } from './browser.js';
import { type ChatServer, openChatServer } from './chat-server.js';

// The pages of examples/chat in a browser with a real server: `useChat` and `HttpAgent` have the same behaviour.

let server: ChatServer;
let chats = 0;

beforeAll(async () => {
  server = await openChatServer();
});
afterAll(async () => server?.close());

/** A user of a page. */
class User {
  readonly page: Page;
  readonly chatId: string;
  readonly faults: readonly string[];

  constructor({ page, chatId, faults }: Pick<User, 'page' | 'chatId' | 'faults'>) {
    this.page = page;
    this.chatId = chatId;
    this.faults = faults;
  }

  static async open(
    browser: TestBrowser,
    name: string,
    options?: Parameters<TestBrowser['newPage']>[0],
  ): Promise<User> {
    chats += 1;
    const chatId = `${name}-${chats}`;
    const { page, faults } = await browser.newPage(options);
    await page.goto(`${server.url}/${name}?chat=${chatId}`);
    await page.getByRole('status').getByText('ready').waitFor();
    return new User({ page, chatId, faults });
  }

  async send(text: string): Promise<void> {
    await this.page.getByLabel('Message').fill(text);
    await this.page.getByRole('button', { name: 'Send' }).click();
  }

  async click(name: string, nth = 0): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).nth(nth).click();
  }

  async waitForText(text: string): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  /** The texts of all messages and call results on the page. */
  async texts(): Promise<readonly string[]> {
    return this.page.locator('li p, output').allTextContents();
  }

  view() {
    return server.conversations.idle(this.chatId);
  }
}

for (const name of ['use-chat', 'ag-ui'])
  describeBrowser(`the page ${name}`, (browser) => {
    test('an approved call runs once, and a refused call does not run', async () => {
      const user = await User.open(browser, name);
      const before = server.executed.length;
      await user.send('call place_order');
      await user.click('Approve');
      await user.waitForText('reply');
      await user.waitForText('placed 1 lamp');
      expect(server.executed.slice(before)).toEqual([{ item: 'lamp', quantity: 1 }]);
      await user.send('call place_order');
      await user.click('Refuse');
      await user.page.getByText('not approved').first().waitFor();
      expect(server.executed.length).toBe(before + 1);
      expect(user.faults).toEqual([]);
    });

    test('an approval shows the arguments of the call with defaults', async () => {
      const user = await User.open(browser, name);
      await user.send('call place_order');
      const card = user.page.getByRole('region', { name: 'place_order' });
      await card.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      expect(await card.locator('dl div').allTextContents()).toEqual(['item"lamp"', 'quantity1']);
      await user.page.reload();
      await card.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      expect(await card.locator('dl div').allTextContents()).toEqual(['item"lamp"', 'quantity1']);
      expect(user.faults).toEqual([]);
    });

    test('a call runs with the arguments that were changed in the approval', async () => {
      const user = await User.open(browser, name);
      await user.send('call place_order');
      await user.click('Edit arguments');
      await user.page.getByLabel('Arguments of place_order').fill('{"item":"vase","quantity":7}');
      await user.click('Approve with changes');
      await user.waitForText('placed 7 vase');
      expect(server.executed.at(-1)).toEqual({ item: 'vase', quantity: 7 });
      expect(user.faults).toEqual([]);
    });

    test('the page executes a client tool and returns its result', async () => {
      const user = await User.open(browser, name);
      await user.send('call where_am_i');
      await user.waitForText('reply');
      const view = await user.view();
      expect(view?.messages.find(({ role }) => role === 'tool')?.content).toContain('timeZone');
      expect(user.faults).toEqual([]);
    });

    test('a question is shown to the user, and the tool receives the answer', async () => {
      const user = await User.open(browser, name);
      await user.send('call wrap_order');
      await user.page.getByLabel('Which colour?').fill('red');
      await user.click('Answer');
      await user.waitForText('wrapped in red');
      expect(user.faults).toEqual([]);
    });

    test('approvals in a message are answered separately, and the turn continues after the last answer', async () => {
      const user = await User.open(browser, name);
      const before = server.executed.length;
      await user.send('call place_order where_am_i place_order');
      await user.page.getByRole('button', { name: 'Approve', exact: true }).nth(1).waitFor();
      await user.click('Refuse', 0);
      expect((await user.view())?.status).toBe('suspended');
      await user.click('Approve');
      await user.waitForText('reply');
      expect(server.executed.length).toBe(before + 1);
      const results = (await user.view())?.messages.filter(({ role }) => role === 'tool');
      expect(results?.map(({ content }) => content)).toEqual([
        expect.stringContaining('not approved'),
        expect.stringContaining('timeZone'),
        'placed 1 lamp',
      ]);
      expect(user.faults).toEqual([]);
    });

    test('a page that is reloaded during a turn shows its text so far and continues', async () => {
      const user = await User.open(browser, name);
      await user.send('Hello');
      await user.waitForText('reply');
      await user.send('slowly');
      await user.waitForText('The first half');
      await user.page.reload();
      await user.waitForText('Hello');
      await user.waitForText('The first half');
      server.resume();
      await user.waitForText('The first half, and the second');
      await user.page.getByRole('status').getByText('ready').waitFor();
      await user.send('call place_order');
      await user.page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      await user.page.reload();
      await user.click('Approve');
      await user.waitForText('placed 1 lamp');
      const texts = await user.texts();
      expect(texts.filter((text) => text === 'The first half, and the second')).toHaveLength(1);
      expect(texts.filter((text) => text === 'placed 1 lamp')).toHaveLength(1);
      expect(user.faults).toEqual([]);
    });

    test('Enter sends the message, and Shift+Enter adds a line', async () => {
      const user = await User.open(browser, name);
      const message = user.page.getByLabel('Message');
      await message.pressSequentially('one');
      await message.press('Shift+Enter');
      await message.pressSequentially('two');
      await message.press('Enter');
      await user.page.getByText(/reply \d+: one/).waitFor();
      expect((await user.texts())[0]).toBe('one\ntwo');
      expect(await message.inputValue()).toBe('');
      expect(user.faults).toEqual([]);
    });

    test.each([
      ['light', 1200],
      ['dark', 1200],
      ['light', 360],
      ['dark', 360],
    ] as const)('the page is accessible in %s mode at %i px', async (colorScheme, width) => {
      const user = await User.open(browser, name, { colorScheme, viewport: { width, height: 700 } });
      await user.send('Hello');
      await user.waitForText('reply');
      await user.send('call place_order wrap_order where_am_i');
      await user.click('Edit arguments');
      await user.page.getByLabel('Which colour?').waitFor();
      expect(await barriers(user.page)).toEqual([]);
      await user.click('Refuse');
      await user.page.getByLabel('Which colour?').fill('red');
      await user.click('Answer');
      await user.waitForText('wrapped in red');
      expect(await barriers(user.page)).toEqual([]);
    });

    test('a stopped turn ends, and the next turn is processed', async () => {
      const user = await User.open(browser, name);
      await user.send('slowly');
      await user.waitForText('The first half');
      await user.click('Stop');
      expect((await user.view())?.status).toBe('idle');
      await user.page.getByRole('status').getByText('ready').waitFor();
      await user.send('Hello again');
      await user.waitForText('Hello again');
      await user.page.getByText(/reply \d+: Hello again/).waitFor();
      expect(await user.texts()).not.toContain('The first half, and the second');
      expect(user.faults).toEqual([]);
    });
  });

describeBrowser('the page use-chat', (browser) => {
  test('regenerating an answer and editing a message replace the messages on the server', async () => {
    const user = await User.open(browser, 'use-chat');
    await user.send('Hello');
    await user.page.getByText(/reply \d+: Hello/).waitFor();
    const [, first] = await user.texts();
    await user.click('Answer anew');
    await user.page.getByText(String(first)).waitFor({ state: 'detached' });
    await user.page.getByText(/reply \d+: Hello/).waitFor();
    await user.click('Edit');
    expect(await user.page.getByLabel('Message').inputValue()).toBe('Hello');
    await user.send('Good evening');
    await user.page.getByText(/reply \d+: Good evening/).waitFor();
    expect((await user.view())?.messages.map(({ content }) => content)).toEqual([
      'Good evening',
      expect.stringContaining('Good evening'),
    ]);
    expect(user.faults).toEqual([]);
  });
});
