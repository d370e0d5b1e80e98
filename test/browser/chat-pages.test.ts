import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { barriers, describeBrowser, type TestBrowser } from './browser.js';
import { type ChatServer, openChatServer } from './chat-server.js';

// The pages of examples/chat, in a real browser, against a real server: `useChat` and `HttpAgent` hold the same
// conversations.

let server: ChatServer;
let chats = 0;

beforeAll(async () => {
  server = await openChatServer();
});
afterAll(async () => server?.close());

/** A person at a page. */
class Person {
  readonly page: Page;
  readonly chatId: string;
  readonly faults: readonly string[];

  constructor({ page, chatId, faults }: Pick<Person, 'page' | 'chatId' | 'faults'>) {
    this.page = page;
    this.chatId = chatId;
    this.faults = faults;
  }

  static async open(
    browser: TestBrowser,
    name: string,
    options?: Parameters<TestBrowser['newPage']>[0],
  ): Promise<Person> {
    chats += 1;
    const chatId = `${name}-${chats}`;
    const { page, faults } = await browser.newPage(options);
    await page.goto(`${server.url}/${name}?chat=${chatId}`);
    await page.getByRole('status').getByText('ready').waitFor();
    return new Person({ page, chatId, faults });
  }

  async say(text: string): Promise<void> {
    await this.page.getByLabel('Message').fill(text);
    await this.page.getByRole('button', { name: 'Send' }).click();
  }

  async click(name: string, nth = 0): Promise<void> {
    await this.page.getByRole('button', { name, exact: true }).nth(nth).click();
  }

  async sees(text: string): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  /** Everything on the page that was said or came of a call. */
  async texts(): Promise<readonly string[]> {
    return this.page.locator('li p, output').allTextContents();
  }

  view() {
    return server.conversations.idle(this.chatId);
  }
}

for (const name of ['use-chat', 'ag-ui'])
  describeBrowser(`the page ${name}`, (browser) => {
    test('a call that is approved runs once, and one that is refused does not', async () => {
      const ada = await Person.open(browser, name);
      const before = server.ran.length;
      await ada.say('call place_order');
      await ada.click('Approve');
      await ada.sees('heard');
      await ada.sees('placed 1 lamp');
      expect(server.ran.slice(before)).toEqual([{ item: 'lamp', quantity: 1 }]);
      await ada.say('call place_order');
      await ada.click('Refuse');
      await ada.page.getByText('not approved').first().waitFor();
      expect(server.ran.length).toBe(before + 1);
      expect(ada.faults).toEqual([]);
    });

    test('an approval shows the arguments that will run, with defaults', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('call place_order');
      const card = ada.page.getByRole('region', { name: 'place_order' });
      await card.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      expect(await card.locator('dl div').allTextContents()).toEqual(['item"lamp"', 'quantity1']);
      await ada.page.reload();
      await card.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      expect(await card.locator('dl div').allTextContents()).toEqual(['item"lamp"', 'quantity1']);
      expect(ada.faults).toEqual([]);
    });

    test('arguments that are changed with an approval are those that run', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('call place_order');
      await ada.click('Edit arguments');
      await ada.page.getByLabel('Arguments of place_order').fill('{"item":"vase","quantity":7}');
      await ada.click('Approve with changes');
      await ada.sees('placed 7 vase');
      expect(server.ran.at(-1)).toEqual({ item: 'vase', quantity: 7 });
      expect(ada.faults).toEqual([]);
    });

    test('a call that the browser executes is answered by it', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('call where_am_i');
      await ada.sees('heard');
      const view = await ada.view();
      expect(view?.messages.find(({ role }) => role === 'tool')?.content).toContain('timeZone');
      expect(ada.faults).toEqual([]);
    });

    test('a question is put to the person, and the answer reaches the tool', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('call wrap_order');
      await ada.page.getByLabel('Which colour?').fill('red');
      await ada.click('Answer');
      await ada.sees('wrapped in red');
      expect(ada.faults).toEqual([]);
    });

    test('approvals of one message are answered apart, and go on together', async () => {
      const ada = await Person.open(browser, name);
      const before = server.ran.length;
      await ada.say('call place_order where_am_i place_order');
      await ada.page.getByRole('button', { name: 'Approve', exact: true }).nth(1).waitFor();
      await ada.click('Refuse', 0);
      expect((await ada.view())?.status).toBe('suspended');
      await ada.click('Approve');
      await ada.sees('heard');
      expect(server.ran.length).toBe(before + 1);
      const results = (await ada.view())?.messages.filter(({ role }) => role === 'tool');
      expect(results?.map(({ content }) => content)).toEqual([
        expect.stringContaining('not approved'),
        expect.stringContaining('timeZone'),
        'placed 1 lamp',
      ]);
      expect(ada.faults).toEqual([]);
    });

    test('a page that is loaded anew in the middle shows what was said, and goes on', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('Hello');
      await ada.sees('heard');
      await ada.say('slowly');
      await ada.sees('The first half');
      await ada.page.reload();
      await ada.sees('Hello');
      await ada.sees('The first half');
      server.goOn();
      await ada.sees('The first half, and the second');
      await ada.page.getByRole('status').getByText('ready').waitFor();
      await ada.say('call place_order');
      await ada.page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
      await ada.page.reload();
      await ada.click('Approve');
      await ada.sees('placed 1 lamp');
      const texts = await ada.texts();
      expect(texts.filter((text) => text === 'The first half, and the second')).toHaveLength(1);
      expect(texts.filter((text) => text === 'placed 1 lamp')).toHaveLength(1);
      expect(ada.faults).toEqual([]);
    });

    test('Enter sends, and Shift+Enter begins a line', async () => {
      const ada = await Person.open(browser, name);
      const message = ada.page.getByLabel('Message');
      await message.pressSequentially('one');
      await message.press('Shift+Enter');
      await message.pressSequentially('two');
      await message.press('Enter');
      await ada.page.getByText(/heard \d+: one/).waitFor();
      expect((await ada.texts())[0]).toBe('one\ntwo');
      expect(await message.inputValue()).toBe('');
      expect(ada.faults).toEqual([]);
    });

    test.each([
      ['light', 1200],
      ['dark', 1200],
      ['light', 360],
      ['dark', 360],
    ] as const)('people can use it, %s, at %i px', async (colorScheme, width) => {
      const ada = await Person.open(browser, name, { colorScheme, viewport: { width, height: 700 } });
      await ada.say('Hello');
      await ada.sees('heard');
      await ada.say('call place_order wrap_order where_am_i');
      await ada.click('Edit arguments');
      await ada.page.getByLabel('Which colour?').waitFor();
      expect(await barriers(ada.page)).toEqual([]);
      await ada.click('Refuse');
      await ada.page.getByLabel('Which colour?').fill('red');
      await ada.click('Answer');
      await ada.sees('wrapped in red');
      expect(await barriers(ada.page)).toEqual([]);
    });

    test('a turn that is stopped ends, and the next one is taken', async () => {
      const ada = await Person.open(browser, name);
      await ada.say('slowly');
      await ada.sees('The first half');
      await ada.click('Stop');
      expect((await ada.view())?.status).toBe('idle');
      await ada.page.getByRole('status').getByText('ready').waitFor();
      await ada.say('Hello again');
      await ada.sees('Hello again');
      await ada.page.getByText(/heard \d+: Hello again/).waitFor();
      expect(await ada.texts()).not.toContain('The first half, and the second');
      expect(ada.faults).toEqual([]);
    });
  });

describeBrowser('the page use-chat', (browser) => {
  test('an answer is made anew, and a message is edited: the server forgets what was there', async () => {
    const ada = await Person.open(browser, 'use-chat');
    await ada.say('Hello');
    await ada.page.getByText(/heard \d+: Hello/).waitFor();
    const [, first] = await ada.texts();
    await ada.click('Answer anew');
    await ada.page.getByText(String(first)).waitFor({ state: 'detached' });
    await ada.page.getByText(/heard \d+: Hello/).waitFor();
    await ada.click('Edit');
    expect(await ada.page.getByLabel('Message').inputValue()).toBe('Hello');
    await ada.say('Good evening');
    await ada.page.getByText(/heard \d+: Good evening/).waitFor();
    expect((await ada.view())?.messages.map(({ content }) => content)).toEqual([
      'Good evening',
      expect.stringContaining('Good evening'),
    ]);
    expect(ada.faults).toEqual([]);
  });
});
