import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { defineTool, resumeToolLoop, runToolLoop, type ToolRegistry } from 'toolwright';
import { createInspector, type Inspector, type InspectorOptions } from 'toolwright/inspector';
import { connectMcp, followMcpTools, type McpConnectOptions } from 'toolwright/mcp';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { barriers, describeBrowser, type TestPage } from '../../browser/browser.js';
import { builtFile } from '../../processes/built-file.js';
import { listen } from '../mcp/mcp-connections.js';
import { serveOddly } from '../mcp/odd-authorization-server.js';
import { HOSTILE, payments, shop } from './shop.js';

builtFile('dist/inspector/page.js');

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function serve(
  tools: ToolRegistry,
  options: InspectorOptions = {},
): Promise<{ url: string; inspector: Inspector }> {
  const inspector = createInspector(tools, options);
  ends.push(() => inspector.close());
  return { url: (await inspector.listen()).url, inspector };
}

describeBrowser('the page of an inspector', (browser) => {
  async function visit(url: string, options: Parameters<typeof browser.newPage>[0] = {}): Promise<TestPage> {
    const opened = await browser.newPage(options);
    await opened.page.goto(url);
    // The page requests the tools once it listens for keys.
    if (url.includes('#token=')) await opened.page.getByText(/ of \d+ tools/).waitFor();
    return opened;
  }

  test('the page of createInspector shows a tool and its details', async () => {
    const { url } = await serve(shop());
    const { page, faults } = await visit(url);
    expect(page.url()).not.toContain('token');
    await page.getByRole('link', { name: /find_orders/ }).click();
    await page.getByRole('heading', { name: 'find_orders', level: 1 }).waitFor();
    // The details have been requested by then.
    await page.getByRole('heading', { name: 'Sent to models' }).waitFor();
    const text = (await page.locator('main').textContent()) ?? '';
    for (const known of ['ShopTools.findOrders', '@Param, metadata', 'reads only', 'policy onlyForUsers'])
      expect(text).toContain(known);
    expect(text).toMatch(/about \d+ tokens, \d+(\.\d+)? % of all definitions/);
    expect(text).toMatch(/Schema.*customerId.*string.*limit.*number.*Strict form.*limit.*Sent to models/s);
    for (const surface of ['OpenAI, Chat Completions', 'OpenAI, strict', 'MCP', 'AI SDK'])
      await page.getByText(surface, { exact: true }).waitFor();
    await page.getByText('MCP', { exact: true }).click();
    expect(await page.getByLabel('Sent to MCP').textContent()).toContain('"readOnlyHint": true');
    expect(faults).toEqual([]);
  });

  test('the page of createInspector shows the connections of its tools, and why one was lost', async () => {
    const [kept, lost, bank] = await Promise.all([listen(shop()), listen(shop()), serveOddly(shop())]);
    ends.push(() => bank[Symbol.asyncDispose](), kept.close);
    const tools = shop();
    const follow = async (prefix: string, options: McpConnectOptions) => {
      const following = await followMcpTools(tools, connectMcp(options), { prefix, allow: ['find_orders'] });
      ends.push(() => following.close());
      return following;
    };
    await follow('orders', { url: kept.url.href });
    const stock = await follow('stock', { url: lost.url.href });
    await follow('bank', { url: bank.url, auth: { redirectUrl: 'https://app.example.com/signed-in' } });
    await lost.close();
    await stock.refresh().catch(() => {});
    const { url } = await serve(tools);
    const { page, faults } = await visit(url);
    const list = page.getByRole('list', { name: 'Connections' }).getByRole('listitem');
    await list.first().waitFor();
    expect(await list.allTextContents()).toEqual([
      'orders connected 1 tool',
      expect.stringMatching(/^stock disconnected 1 tool. .* cannot be reached/),
      'bank sign in 0 tools',
    ]);
    expect(faults).toEqual([]);
  });

  test('the page of createInspector calls a tool with a form that has unions, lists, tuples and recursion', async () => {
    const { url } = await serve(shop());
    const { page, faults } = await visit(url);
    await page.goto(`${url.replace(/#.*/, '')}#/tools/plant`);
    await page.getByLabel('name required').fill('Oak');
    await page.getByLabel('Form of size').selectOption({ label: 'small | large' });
    await page.getByLabel('size required').selectOption('large');
    await page.getByRole('button', { name: 'Add point' }).click();
    await page.getByLabel('point 1 required').fill('1.5');
    await page.getByLabel('point 2 required').fill('-2');
    await page.getByRole('button', { name: 'Add children' }).click();
    await page.getByRole('button', { name: 'Add to children' }).click();
    await page.getByLabel('name required').nth(1).fill('Twig');
    await page.getByLabel('name required').nth(1).press('Control+Enter');
    const result = page.getByRole('region', { name: 'Call of plant' });
    await result.getByText('success').waitFor();
    expect(JSON.parse((await result.getByLabel('Result for the model').textContent()) ?? '')).toEqual({
      name: 'Oak',
      size: 'large',
      point: [1.5, -2],
      children: [{ name: 'Twig' }],
    });
    expect(await result.getByLabel('Time of each step').textContent()).toMatch(
      /read.*find.*check.*allow.*run.*write/,
    );
    expect(faults).toEqual([]);
  });

  test('the page of createInspector keeps a form and the JSON beside it in sync', async () => {
    const { url } = await serve(payments());
    const { page, faults } = await visit(url);
    await page.goto(`${url.replace(/#.*/, '')}#/tools/pay`);
    const form = page.getByLabel('Form of by');
    await form.waitFor();
    expect(await form.locator('option').allTextContents()).toEqual(['card', 'On account']);
    await page.getByLabel('token required').fill('t1');
    const json = page.getByLabel('Arguments as text');
    expect(JSON.parse(await json.inputValue())).toEqual({ by: { kind: 'card', token: 't1' } });
    // The alternative alone determines the constant.
    expect(await page.getByLabel(/^kind/).count()).toBe(0);
    await form.selectOption('On account');
    await page.getByLabel('days').fill('30');
    expect(JSON.parse(await json.inputValue())).toEqual({ by: { kind: 'account', days: 30 } });
    await json.fill('{"by": {"kind": "card", "token": "t2"}, "tags": ["a", "b"]}');
    expect(await form.inputValue()).toBe('0');
    expect(await page.getByLabel('token required').inputValue()).toBe('t2');
    expect(await page.getByLabel('tags 2 required').inputValue()).toBe('b');
    await json.fill('{"by":');
    await page.getByText('This is not JSON.').waitFor();
    await page.getByRole('button', { name: 'Remove tags 1' }).click();
    expect(JSON.parse(await json.inputValue())).toEqual({ by: { kind: 'card', token: 't2' }, tags: ['b'] });
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('region', { name: 'Call of pay' }).getByText('success').waitFor();
    expect(faults).toEqual([]);
  });

  test('the page of createInspector shows warnings about a tool', async () => {
    const { url } = await serve(payments());
    const { page } = await visit(url);
    await page.getByRole('link', { name: /pay.*2 warnings/ }).click();
    const shown = page.locator('.detail .warnings li');
    await shown.first().waitFor();
    expect(await shown.allTextContents()).toEqual([
      'It has no description, so models cannot know when to call it.',
      'Without a description: by, tags.',
    ]);
  });

  test('the page of createInspector sends text like a model, in a chosen scope, and shows repairs', async () => {
    const { url } = await serve(shop());
    const { page } = await visit(url);
    await page.goto(`${url.replace(/#.*/, '')}#/tools/find_orders`);
    await page.getByLabel('Arguments as text').fill('{"customerId": "cus_1", "limit": "3", "x": 1,}');
    await page.getByText('Scope: not set').click();
    await page.getByLabel('Data', { exact: true }).fill('{"user": "ann"}');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const result = page.getByRole('region', { name: 'Call of find_orders' });
    await result.getByText('success').waitFor();
    const text = (await result.textContent()) ?? '';
    for (const told of ['"user": "ann"', 'coerced limit', 'not in the schema: x'])
      expect(text).toContain(told);
    await result.getByText('Use this call elsewhere').click();
    expect(await result.getByLabel('The call as curl').textContent()).toContain('curl -X POST');
    expect(await result.getByLabel('The call as a scripted reply').textContent()).toContain('toolCalls');
  });

  test('the page of createInspector approves, edits and answers the waits of a run, and shows its timeline', async () => {
    const tools = shop();
    const store = new MemoryRunStore();
    const { url } = await serve(tools, { store });
    const { page, faults } = await visit(url);
    const provider = new ScriptedProvider([
      {
        toolCalls: [
          { name: 'place_order', arguments: { sku: 'a', amount: 2 } },
          { name: 'place_order', arguments: { sku: 'b', amount: 1 } },
          { name: 'book', arguments: { city: 'Rome' } },
        ],
      },
      { content: 'All done.', usage: { inputTokens: 20, outputTokens: 4, totalTokens: 24 } },
    ]);
    const config = { provider, model: 'gpt-5', tools, store, checkpoint: 'step' } as const;
    await runToolLoop(config, [{ role: 'user', content: 'Shop and book' }]);
    await page.getByRole('link', { name: /Pending 1/ }).click();
    const card = page.getByRole('region', { name: /Waiting run/ });
    await card.getByRole('button', { name: 'Approve place_order' }).first().waitFor();
    expect(await card.getByRole('region').count()).toBe(3);
    await card.getByRole('button', { name: 'Edit arguments' }).first().click();
    await card.getByLabel('Edited arguments').fill('{"sku": "a", "amount": 9}');
    await card.getByRole('button', { name: 'Approve as edited place_order' }).click();
    await card.locator('.answer').nth(2).waitFor({ state: 'detached' });
    await card.getByLabel('Reason of a refusal').first().fill('too dear');
    await card.getByRole('button', { name: 'Refuse place_order' }).click();
    await card.locator('.answer').nth(1).waitFor({ state: 'detached' });
    await card.getByLabel(/answer required/).selectOption({ label: 'true' });
    await card.getByRole('button', { name: 'Answer', exact: true }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    await page.keyboard.press('3');
    await page.getByRole('link', { name: /Shop and book/ }).click();
    const run = page.locator('.detail');
    await run.getByText('completed').waitFor();
    expect(await run.getByLabel('Answer', { exact: true }).textContent()).toBe('All done.');
    expect(await run.locator('.figures').first().textContent()).toMatch(
      /Tokens20 in, 4 outCost by list pricesabout \$0\.000065/,
    );
    const timeline = (await page.locator('.waterfall').textContent()) ?? '';
    expect(timeline).toMatch(/request 1.*waiting for an answer: place_order.*request 2/s);
    const messages = (await page.locator('.messages').textContent()) ?? '';
    for (const said of ['Placed 9 of a', 'too dear', 'Booked Rome']) expect(messages).toContain(said);
    expect(faults).toEqual([]);
  });

  test('the page of createInspector finds runs, shows a timeline entry, and shortens long waits', async () => {
    const tools = shop();
    const { url } = await serve(tools);
    const { page, faults } = await visit(url);
    const script = (amount: number) =>
      new ScriptedProvider([
        {
          content: 'I order.',
          toolCalls: [{ name: 'place_order', arguments: { sku: 'a', amount } }],
        },
        { content: 'Ordered.' },
      ]);
    const config = { model: 'm', tools } as const;
    const run = await runToolLoop({ ...config, provider: script(1) }, [
      { role: 'user', content: 'One vase' },
    ]);
    await runToolLoop({ ...config, provider: script(2) }, [{ role: 'user', content: 'Two lamps' }]);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const ended = new ScriptedProvider([{ content: 'Ordered.' }]);
    await resumeToolLoop({ ...config, provider: ended }, run.state, [
      { id: run.pending?.[0]?.id ?? '', approved: true },
    ]);
    await page.keyboard.press('3');
    const rows = page.locator('.rows a');
    await rows.nth(1).waitFor();
    await page.getByLabel('Filter runs').fill('lamps');
    await page.waitForFunction("document.querySelectorAll('.rows a').length === 1");
    await page.getByLabel('Filter runs').fill('');
    await page.getByLabel('Status').selectOption('completed');
    await rows.getByText('One vase').click();
    const entry = page.getByRole('region', { name: 'Selected entry' });
    expect(await entry.getByLabel('Result for the model').count()).toBe(0);
    const timeline = page.locator('.waterfall');
    await timeline
      .getByRole('button', { name: /^place_order/ })
      .nth(1)
      .click();
    expect(await entry.getByLabel('Result for the model').textContent()).toBe('Placed 1 of a');
    await timeline.getByRole('button', { name: /^request 1/ }).click();
    await entry.getByText('I order.').waitFor();
    const widths = await timeline
      .locator('.bar')
      .evaluateAll((bars) =>
        bars.map(
          (bar) => [bar.className, Number.parseFloat((bar as unknown as Styled).style.width)] as const,
        ),
      );
    const waited = widths.filter(([kind]) => kind.includes('bar-wait')).map(([, width]) => width);
    // The wait took nearly all of the time.
    expect(waited).toEqual([expect.any(Number)]);
    expect(waited[0]).toBeLessThan(75);
    expect(faults).toEqual([]);
  });

  test('the page of createInspector updates a run while it runs and when it ends', async () => {
    const tools = shop();
    const { url } = await serve(tools);
    const { page, faults } = await visit(url);
    await page.keyboard.press('3');
    const gate = Promise.withResolvers<void>();
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'find_orders', arguments: { customerId: 'c' } }] },
      async () => {
        await gate.promise;
        return { content: 'None yet.' };
      },
    ]);
    const run = runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Any orders?' }]);
    await page.getByRole('link', { name: /Any orders/ }).click();
    await page.locator('.waterfall').getByText('find_orders').first().waitFor();
    expect(await page.locator('main').textContent()).not.toContain('completed');
    gate.resolve();
    await page.locator('.detail').getByText('completed').waitFor();
    expect(await page.getByLabel('Answer', { exact: true }).textContent()).toBe('None yet.');
    expect((await run).status).toBe('completed');
    expect(faults).toEqual([]);
  });

  test('the page of createInspector holds the calls of a tool at a breakpoint', async () => {
    const tools = shop();
    const { url } = await serve(tools);
    const { page } = await visit(url);
    await page.goto(`${url.replace(/#.*/, '')}#/tools/find_orders`);
    await page.getByLabel(/Breakpoint/).check();
    await page.getByText('breakpoint', { exact: true }).waitFor();
    const [gone, refused] = [
      tools.execute('find_orders', { customerId: 'one' }),
      tools.execute('find_orders', { customerId: 'two' }),
    ];
    await page.getByRole('link', { name: /Pending 2/ }).click();
    const held = page.getByRole('region', { name: 'Held call of find_orders' });
    await held.filter({ hasText: '"one"' }).getByRole('button', { name: 'Continue' }).click();
    await held.filter({ hasText: '"two"' }).getByLabel('Reason of a refusal').fill('not now');
    await held.filter({ hasText: '"two"' }).getByRole('button', { name: 'Refuse' }).click();
    expect((await gone).isError).toBe(false);
    expect((await refused).forLLM).toContain('not now');
    await page.getByText('Nothing is waiting.').waitFor();
  });

  test('the page of createInspector streams chats with the offline model and the configured model', async () => {
    let goOn: () => void = () => {};
    const written = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const provider = {
      async chat(): Promise<never> {
        throw new Error('it is asked to stream');
      },
      async *stream() {
        yield { type: 'text-delta', text: 'It is ' } as const;
        await written;
        const response = { content: 'It is raining.', toolCalls: [], finishReason: 'stop' } as const;
        yield { type: 'text-delta', text: 'raining.' } as const;
        yield { type: 'response', response } as const;
      },
    };
    const { url } = await serve(shop(), { provider, model: 'weather-1' });
    const { page, faults } = await visit(url);
    let tell = () => {};
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    await page.route('**/about', (route) => told.then(() => route.continue()));
    await page.keyboard.press('4');
    expect(await page.getByLabel('the offline stand-in').isDisabled()).toBe(true);
    expect(await page.getByLabel('the offline stand-in').isChecked()).toBe(false);
    tell();
    await page.getByLabel('the offline stand-in').check();
    await page.getByLabel('Message', { exact: true }).fill('find orders of customer cus_7');
    await page.getByLabel('Message', { exact: true }).press('Control+Enter');
    await page.getByText('completed').waitFor();
    expect(await page.getByLabel('Messages').textContent()).toContain('cus_7');
    await page.getByLabel(/the model weather-1/).check();
    await page.getByLabel('Message', { exact: true }).fill('How is the weather?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('It is', { exact: true }).waitFor();
    goOn();
    await page.getByText('It is raining.').waitFor();
    expect(faults).toEqual([]);
  });

  test('the page of createInspector answers approvals in the chat, also with a form, retries and stops', async () => {
    const gate = Promise.withResolvers<void>();
    const order = { toolCalls: [{ name: 'place_order', arguments: { sku: 'a', amount: 2 } }] };
    const provider = new ScriptedProvider([
      { content: 'Right **away**.', ...order },
      { content: '- `a`\n- b\n\n```\ncode <b>\n```\n[site](https://example.org) [not](javascript:alert(1))' },
      { content: 'Again.' },
      async () => {
        await gate.promise;
        return { content: 'Too late.' };
      },
    ]);
    ends.push(() => gate.resolve());
    const { url } = await serve(shop(), { provider, model: 'm' });
    const { page, faults } = await visit(url);
    await page.keyboard.press('4');
    const message = page.getByLabel('Message', { exact: true });
    await page
      .getByLabel(/the model m/)
      .and(page.locator(':checked'))
      .waitFor();
    await message.fill('Order');
    await message.press('Shift+Enter');
    await message.pressSequentially('two');
    await message.press('Enter');
    const card = page.getByRole('article', { name: 'Call of place_order' });
    await page.getByText('Right away.').waitFor();
    expect(await page.locator('.prompt').textContent()).toBe('Order\ntwo');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByLabel('amount required').fill('5');
    expect(JSON.parse(await card.getByLabel('Edited arguments').inputValue())).toEqual({
      sku: 'a',
      amount: 5,
    });
    await card.getByRole('button', { name: 'Approve as edited place_order' }).click();
    await page.getByText('completed').waitFor();
    expect(await card.textContent()).toContain('Placed 5 of a');
    expect(await page.locator('.markdown li').allTextContents()).toEqual(['a', 'b']);
    expect(await page.locator('.markdown pre').textContent()).toBe('code <b>');
    const links = page.locator('.markdown a');
    expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).toEqual([
      'https://example.org',
    ]);
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByText('Again.', { exact: true }).waitFor();
    expect(await page.locator('.prompt').count()).toBe(1);
    await message.fill('And now?');
    await message.press('Enter');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('aborted', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect(await page.locator('.prompt').count()).toBe(2);
    expect(faults).toEqual([]);
  });

  test('the page of createInspector shows the progress of a call in the chat, and its duration', async () => {
    const gate = Promise.withResolvers<void>();
    ends.push(() => gate.resolve());
    const tools = payments().register(
      defineTool({
        name: 'count',
        description: 'Counts',
        execute: async (_args, context) => {
          context.progress({ done: 1, total: 3, message: 'one' });
          await gate.promise;
          return 'three';
        },
      }),
    );
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'count', arguments: {} }] },
      { content: 'Counted.' },
    ]);
    const { url } = await serve(tools, { provider, model: 'm' });
    const { page, faults } = await visit(url);
    await page.keyboard.press('4');
    await page.getByLabel('Message', { exact: true }).fill('Count');
    await page.getByRole('button', { name: 'Send' }).click();
    const card = page.getByRole('article', { name: 'Call of count' });
    await card.getByText('one', { exact: true }).waitFor();
    expect(await card.getByRole('progressbar').getAttribute('value')).toBe('1');
    expect(await card.textContent()).toMatch(/^countrunning/);
    gate.resolve();
    await page.getByText('Counted.').waitFor();
    expect(await card.getByRole('progressbar').count()).toBe(0);
    expect(await card.textContent()).toMatch(
      /^countsuccess[\d.]+ (µs|ms|s) · ~2 tokensNo argumentsResult three/,
    );
    expect(faults).toEqual([]);
  });

  test('the page of createInspector replays a recording after a change, shows the difference, and writes a test', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'inspector-'));
    ends.push(() => rmSync(folder, { recursive: true }));
    const tools = shop();
    const setup = "import { tools } from '../tools.js';";
    const { url } = await serve(tools, {
      recordings: join(folder, 'kept'),
      tests: { folder: join(folder, 'test'), setup },
    });
    const { page, faults } = await visit(url);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'plant', arguments: { name: 'Oak', size: 3 } }] },
      { content: 'Planted.' },
    ]);
    await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Plant an oak' }]);
    await page.keyboard.press('3');
    await page.getByRole('link', { name: /Plant an oak/ }).click();
    await page.getByRole('button', { name: 'Save as recording' }).click();
    await page.getByText('Saved: Plant an oak').waitFor();
    await page.keyboard.press('6');
    await page.getByRole('link', { name: /Plant an oak/ }).click();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.getByText('Same as before.').waitFor();
    const plant = tools.offered('plant');
    tools.register({
      name: 'plant',
      description: '',
      parameters: plant?.parameters ?? {},
      execute: () => 'Felled',
    });
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.getByText('Different from before:').waitFor();
    expect(await page.locator('.added').allTextContents()).toEqual([expect.stringContaining('Felled')]);
    tools.register(plant as never);
    await page.getByRole('button', { name: 'Write a test' }).click();
    await page.getByRole('button', { name: 'Save as test' }).click();
    await page.getByText(/Saved as/).waitFor();
    expect(faults).toEqual([]);
    expect(runTest(folder, 'plant-an-oak.test.ts')).toMatchObject({ status: 0 });
  });

  test('the page of createInspector escapes untrusted texts', async () => {
    const tools = shop();
    const { url } = await serve(tools);
    const { page, faults } = await visit(`${url}`);
    await page.goto(`${url.replace(/#.*/, '')}#/tools/hostile`);
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const result = page.getByRole('region', { name: 'Call of hostile' });
    await result.getByText('success').waitFor();
    expect(await result.getByLabel('Result for the model').textContent()).toContain('<img src=x onerror=');
    const shown = (await page.locator('body').textContent()) ?? '';
    expect(shown).toContain('\\u202e');
    expect(shown).toContain('\\u001b[31m');
    expect(['\u202e', '\u001b', '\u0000'].filter((unseen) => shown.includes(unseen))).toEqual([]);
    expect(shown.length).toBeLessThan(200_000);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: HOSTILE, arguments: HOSTILE }] },
      { content: HOSTILE.repeat(10_000) },
    ]);
    await runToolLoop({ provider, model: HOSTILE, tools }, [{ role: 'user', content: HOSTILE }]);
    for (const view of ['calls', 'runs', 'pending', 'recordings', 'tools']) {
      await page.goto(`${url.replace(/#.*/, '')}#/${view}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
    }
    await page.goto(`${url.replace(/#.*/, '')}#/runs`);
    await page.locator('.rows a').first().click();
    await page.locator('.detail').getByText('completed').waitFor();
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(await page.locator('img, main script').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('the page of createInspector does not work from another origin or without its token', async () => {
    const { url, inspector } = await serve(shop());
    const other = await serve(shop());
    const { page } = await visit(other.url);
    const api = url.replace(/#.*/, 'api/calls');
    const attempt = `fetch(${JSON.stringify(api)}, {
      method: 'POST',
      headers: { authorization: 'Bearer ${inspector.token}', 'content-type': 'application/json' },
      body: '{"tool":"find_orders","arguments":{"customerId":"c"}}',
    }).then(() => 'called', (error) => String(error))`;
    // A page's own policy blocks the request, so it is sent without one, as an attacker's page would.
    const session = await page.context().newCDPSession(page);
    await session.send('Page.setBypassCSP', { enabled: true });
    await page.reload();
    expect(await page.evaluate(attempt)).toContain('Failed to fetch');
    const { page: bare } = await visit(url.replace(/#.*/, ''));
    await bare.getByLabel(/Token/).fill(inspector.token);
    await bare.getByRole('button', { name: 'Open' }).click();
    await bare.getByRole('link', { name: /find_orders/ }).waitFor();
  });

  test.each([
    ['light', 1200],
    ['dark', 1200],
    ['light', 360],
    ['dark', 360],
  ] as const)(
    'the page of createInspector passes the accessibility checks, %s, at %i px',
    async (colorScheme, width) => {
      const tools = shop();
      const provider = new ScriptedProvider([
        { content: '# Head\n\n> a *b* `c`\n\n|a|b|\n|-|-|\n|1|2|' },
        ...['one', 'two'].map((sku) => ({
          content: 'I order.',
          toolCalls: [
            { name: 'find_orders', arguments: { customerId: 'c' } },
            { name: 'secret', arguments: {} },
            { name: 'place_order', arguments: { sku, amount: 2 } },
          ],
        })),
      ]);
      const { url } = await serve(tools, { store: new MemoryRunStore(), provider, model: 'gpt-5' });
      const { page } = await visit(url, { colorScheme, viewport: { width, height: 800 } });
      const found: string[] = [];
      const look = async (view: string) => {
        found.push(...(await barriers(page)).map((barrier) => `${view} ${barrier}`));
      };
      await page.keyboard.press('4');
      for (const [text, shown] of [
        ['Hello', 'completed'],
        ['Order', 'Approve place_order'],
      ] as const) {
        await page.getByLabel('Message', { exact: true }).fill(text);
        await page.getByRole('button', { name: 'Send' }).click();
        await page.getByText(shown).waitFor();
      }
      await page.getByRole('button', { name: 'Edit arguments' }).click();
      await page.getByLabel('amount required').waitFor();
      for (const summary of await page.locator('.call summary').all()) await summary.click();
      await look('chat');
      const { state } = await runToolLoop({ provider, model: 'm', tools }, [
        { role: 'user', content: 'Order' },
      ]);
      await tools.execute('find_orders', { customerId: 'c' });
      const views = [
        ['tools', '6 of 6 tools'],
        ['tools/plant', 'Sent to models'],
        ['tools/hostile', 'Sent to models'],
        ['calls', 'place_order'],
        ['calls/1', 'For the model'],
        ['runs', 'suspended'],
        [`runs/${state?.runId}`, 'waiting for an answer'],
        ['pending', 'Approve'],
        ['recordings', 'No recordings yet'],
      ] as const;
      for (const [view, content] of views) {
        await page.goto(`${url.replace(/#.*/, '')}#/${view}`);
        await page.getByText(content).first().waitFor({ state: 'attached' });
        if (view === 'tools/plant') {
          await page.getByRole('button', { name: 'Call', exact: true }).click();
          await page.getByRole('region', { name: 'Call of plant' }).waitFor();
          for (const summary of await page.locator('main summary').all()) await summary.click();
        }
        if (view.startsWith('runs/')) {
          await page.getByRole('button', { name: /^secret/ }).click();
          await page
            .getByRole('region', { name: 'Selected entry' })
            .getByText('for admins')
            .first()
            .waitFor();
        }
        await look(view);
      }
      expect(found).toEqual([]);
    },
  );

  test('the page of createInspector can be used without a mouse', async () => {
    const { url } = await serve(shop());
    const { page } = await visit(url);
    await page.getByRole('link', { name: /find_orders/ }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('plant');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'plant', level: 1 }).waitFor();
    await page.waitForFunction("document.activeElement.tagName === 'H1'");
    await page.keyboard.press('Tab');
    for (let step = 0; step < 30; step += 1) {
      const label = await page.evaluate('document.activeElement.labels?.[0]?.textContent ?? ""');
      if (String(label).startsWith('name required')) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.type('Elm');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('region', { name: 'Call of plant' }).waitFor();
  });
});

/** An element of the page; the DOM types are not available here. */
interface Styled {
  readonly style: { readonly width: string };
}

/** Runs a generated test in Jest, with the tools that its setup imports. */
function runTest(folder: string, name: string): { readonly status: number | null; readonly output: string } {
  const root = process.cwd();
  const shopFile = JSON.stringify(join(import.meta.dirname, 'shop.ts'));
  writeFileSync(
    join(folder, 'tools.ts'),
    `import { shop } from ${shopFile};\nexport const tools = shop();\n`,
  );
  const config = {
    ...{ rootDir: root, roots: [folder], testMatch: [`**/${name}`], extensionsToTreatAsEsm: ['.ts'] },
    testEnvironment: 'node',
    cacheDirectory: join(root, 'node_modules', '.cache', 'toolwright-written-tests'),
    moduleNameMapper: {
      '^toolwright$': '<rootDir>/src/index.ts',
      '^toolwright/testing$': '<rootDir>/src/dev/testing/index.ts',
      '^@jest/globals$': '<rootDir>/node_modules/@jest/globals',
      '^(\\.{1,2}/.*)\\.js$': '$1',
      '^(\\.{1,2}/.*)\\.cjs$': ['$1.cts', '$1.cjs'],
    },
    moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
    transform: TRANSFORM,
  };
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify(config));
  const args = [
    '--experimental-vm-modules',
    'node_modules/jest/bin/jest.js',
    '--config',
    join(folder, 'jest.config.json'),
  ];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  return { status, output: stderr };
}

const SWC = {
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    keepClassNames: true,
  },
};
const TRANSFORM = {
  '^.+\\.ts$': ['@swc/jest', { ...SWC, module: { type: 'es6' } }],
  '^.+\\.cts$': ['@swc/jest', { ...SWC, module: { type: 'commonjs' } }],
};
