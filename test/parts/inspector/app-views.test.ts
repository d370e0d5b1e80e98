import { afterEach, expect, test } from '@jest/globals';
import { defineTool, type McpApp, type ToolContext, type ToolDefinition, ToolRegistry } from 'toolwright';
import { createInspector } from 'toolwright/inspector';
import { barriers, describeBrowser, type TestPage } from '../../browser/browser.js';
import { builtFile } from '../../processes/built-file.js';
import { serve as serveHttp } from '../../setup/loopback.js';

builtFile('dist/inspector/page.js');

/** A view without a library that shows what it receives and attempts what is forbidden. */
const OrderCard: McpApp = {
  uri: 'ui://shop/order-card',
  csp: { connectDomains: ['https://api.example.org'], resourceDomains: ['https://images.example.org'] },
  domain: 'shop.claudemcpcontent.com',
  permissions: { clipboardWrite: {} },
  html: `<!doctype html><html lang="en"><title>Order</title>
    <p id="host"></p><p id="input"></p><p id="result"></p><p id="called"></p><p id="tried"></p>
    <button id="refresh">Refresh</button> <button id="pay">Pay</button> <button id="hidden">Hidden</button>
    <script>
      const answers = new Map();
      const send = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
      const request = (method, params) => new Promise((resolve) => {
        const id = answers.size + 1;
        answers.set(id, resolve);
        send({ id, method, params });
      });
      const show = (id, value) => { document.getElementById(id).textContent = JSON.stringify(value); };
      addEventListener('message', ({ source, data }) => {
        if (source !== parent) return;
        if (data.method === 'ui/notifications/tool-input') show('input', data.params.arguments);
        if (data.method === 'ui/notifications/tool-result') show('result', data.params);
        answers.get(data.id)?.(data);
      });
      for (const [id, name] of [['refresh', 'show_order'], ['pay', 'pay'], ['hidden', 'model_only']])
        document.getElementById(id).onclick = async () =>
          show('called', await request('tools/call', { name, arguments: { id: 'b2' } }));
      const trial = async (work) => { try { return await work(); } catch (error) { return error.name; } };
      (async () => {
        const { result } = await request('ui/initialize', {
          protocolVersion: '2026-01-26', appInfo: { name: 'card', version: '1' }, appCapabilities: {},
        });
        show('host', [result.hostContext.toolInfo.tool.name, result.hostContext.displayMode]);
        send({ method: 'ui/notifications/initialized' });
        send({ method: 'ui/notifications/size-changed', params: { width: 300, height: 321 } });
        show('tried', [
          origin,
          await trial(() => parent.document.title),
          await trial(() => fetch('../api/tools').then(({ status }) => status)),
          await trial(() => localStorage.length),
          (await request('ui/open-link', { url: 'https://example.org' })).error.message,
        ]);
      })();
    </script>`,
};

const ORDER = {
  type: 'object',
  properties: { id: { type: 'string' }, owner: { type: 'string' } },
  required: ['id'],
} as const;

const order = (name: string, options: Partial<ToolDefinition> = {}): ToolDefinition =>
  defineTool({
    ...{ name, description: 'An order', ui: OrderCard, output: ORDER },
    parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    execute: ({ id }: { readonly id: string }, { data }: ToolContext) => ({
      id,
      owner: String(Reflect.get(data, 'user')),
    }),
    ...options,
  } as never);

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function serve(...tools: ToolDefinition[]) {
  const registry = new ToolRegistry().register(...tools);
  const inspector = createInspector(registry);
  ends.push(() => inspector.close());
  return { url: (await inspector.listen()).url, registry };
}

const shop = () =>
  serve(
    order('show_order'),
    order('pay', { approval: true }),
    order('model_only', { _meta: { ui: { visibility: ['model'] } } }),
    order('broken', {
      ui: { ...OrderCard, csp: { connectDomains: ["'unsafe-eval'; sandbox allow-same-origin"] } },
    }),
  );

describeBrowser('the inspector of a tool with a view', (browser) => {
  async function visit(url: string, view: string): Promise<TestPage> {
    const opened = await browser.newPage();
    await opened.page.goto(url);
    await opened.page.getByText(/ of \d+ tools/).waitFor();
    await opened.page.goto(`${url.replace(/#.*/, '')}#/${view}`);
    return opened;
  }

  test('shows the view before a call, and after a call with the arguments and the result', async () => {
    const { url } = await shop();
    const { page } = await visit(url, 'tools/show_order');
    const before = page.getByRole('region', { name: 'View before a call' }).frameLocator('iframe');
    await before.getByText('["show_order","inline"]').waitFor();
    expect(await before.locator('#input').textContent()).toBe('');
    await page.getByText('shop.claudemcpcontent.com').waitFor();
    await page.getByText('connectDomains: https://api.example.org').waitFor();

    await page.getByText('Scope: not set').click();
    await page.getByLabel('Data', { exact: true }).fill('{"user": "ann"}');
    await page.getByLabel('id required').fill('a1');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    const call = page.getByRole('region', { name: 'Call of show_order' });
    const view = call.frameLocator('iframe');
    await view.getByText('{"id":"a1"}', { exact: true }).waitFor();
    const structuredContent = { id: 'a1', owner: 'ann' };
    const result = {
      content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
      structuredContent,
    };
    expect(JSON.parse((await view.locator('#result').textContent()) ?? '')).toEqual(result);
    await call.locator('iframe[style*="321px"]').waitFor();

    // Its calls are validated in the same way, in the same scope.
    await view.getByRole('button', { name: 'Refresh' }).click();
    await view.locator('#called').getByText('"owner":"ann"').waitFor();
    await view.getByRole('button', { name: 'Pay' }).click();
    await view.locator('#called').getByText('is waiting for an answer').waitFor();
    await view.getByRole('button', { name: 'Hidden' }).click();
    await view.locator('#called').getByText("the view may not call 'model_only'").waitFor();
    await call.getByText(/Messages of the view: 1\d/).click();
    await call.getByText('ui/open-link').first().waitFor();
    expect(await barriers(page)).toEqual([]);
  });

  test('isolates the view from the page, the inspector and origins that it does not name', async () => {
    const { url } = await shop();
    const { page } = await visit(url, 'tools/show_order');
    const view = page.frameLocator('iframe');
    await view.locator('#tried').getByText('null').waitFor();
    expect(JSON.parse((await view.locator('#tried').textContent()) ?? '')).toEqual([
      'null',
      'SecurityError',
      'TypeError',
      'SecurityError',
      'The inspector does not support ui/open-link',
    ]);
    const address = await page.locator('iframe').getAttribute('src');
    const response = await fetch(new URL(`/${address}`, url));
    expect(response.headers.get('content-security-policy')).toBe(
      [
        "default-src 'none'",
        "script-src 'unsafe-inline' https://images.example.org",
        "style-src 'unsafe-inline' https://images.example.org",
        'img-src data: https://images.example.org',
        'font-src data: https://images.example.org',
        'media-src data: https://images.example.org',
        'connect-src https://api.example.org',
        "frame-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        'sandbox allow-scripts',
      ].join('; '),
    );
    expect((await fetch(new URL('/apps/unknown', url))).status).toBe(404);
  });

  test('prevents the view from navigating to another address, which could leak its data', async () => {
    const seen: (string | undefined)[] = [];
    await using elsewhere = await serveHttp((request, response) => {
      seen.push(request.url);
      response.end();
    });
    const html = `<!doctype html><title>Leaves</title><script>location = '${elsewhere.url}/?secret=1'</script>`;
    const { url } = await serve(order('leave', { ui: { uri: 'ui://leave', html } }));
    const { page, faults } = await browser.newPage();
    const refused = page.waitForEvent('console', (message) => message.text().includes('frame-src'));
    await page.goto(url);
    await page.getByText(/ of \d+ tools/).waitFor();
    await page.goto(`${url.replace(/#.*/, '')}#/tools/leave`);
    await refused;
    expect(faults).toHaveLength(1);
    expect(seen).toEqual([]);
  });

  test('shows the errors in a view instead of the view', async () => {
    const { url } = await shop();
    const { page } = await visit(url, 'tools/broken');
    await page.getByRole('alert').getByText('csp.connectDomains[0] is').waitFor();
    expect(await page.locator('iframe').count()).toBe(0);
  });

  test.each(['answers', 'does not respond'])(
    'gives the view time to finish before it is removed, if it %s',
    async (kind) => {
      const html = `<!doctype html><title>Draft</title><script>
      addEventListener('message', ({ data: { id, method } }) => {
        if (id === 1) parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, '*');
        if (id === 1) console.log('started');
        if (method !== 'ui/resource-teardown') return;
        setTimeout(() => {
          console.log('saved');
          if ('${kind}' === 'answers') parent.postMessage({ jsonrpc: '2.0', id, result: {} }, '*');
        }, 50);
      });
      parent.postMessage({ jsonrpc: '2.0', id: 1, method: 'ui/initialize', params: {} }, '*');
    </script>`;
      const { url } = await serve(order('draft', { ui: { uri: 'ui://draft', html } }));
      const { page, faults } = await browser.newPage();
      const logged = (text: string) => page.waitForEvent('console', (message) => message.text() === text);
      const started = logged('started');
      await page.goto(url);
      await page.getByText(/ of \d+ tools/).waitFor();
      await page.goto(`${url.replace(/#.*/, '')}#/tools/draft`);
      await started;
      const saved = logged('saved');
      await page.getByRole('link', { name: 'Calls' }).click();
      await saved;
      await page.locator('iframe').waitFor({ state: 'detached' });
      expect(faults).toEqual([]);
    },
  );

  test('reports an aborted call to the view as cancelled', async () => {
    const html = `<!doctype html><title>Wait</title><p id="heard"></p><script>
      addEventListener('message', ({ data: { id, method, params } }) => {
        if (id === 1) parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, '*');
        else document.getElementById('heard').textContent += method + (params.reason ? ': ' + params.reason : '') + ' ';
      });
      parent.postMessage({ jsonrpc: '2.0', id: 1, method: 'ui/initialize', params: {} }, '*');
    </script>`;
    const { url, registry } = await serve(
      order('wait', { ui: { uri: 'ui://wait', html }, execute: () => new Promise<never>(() => {}) }),
    );
    const gone = new AbortController();
    const call = registry.invoke({ id: '1', name: 'wait', arguments: { id: 'a1' } }, { signal: gone.signal });
    gone.abort();
    await call;
    const { page } = await visit(url, 'calls');
    await page.locator('.rows').getByRole('link', { name: 'wait' }).click();
    const heard = page.frameLocator('iframe').locator('#heard');
    await heard.getByText('ui/notifications/tool-cancelled').waitFor();
    expect(await heard.textContent()).toMatch(
      /^ui\/notifications\/tool-input ui\/notifications\/tool-cancelled: The run was aborted.* $/,
    );
  });

  test('also shows the view in the list of calls', async () => {
    const { url } = await shop();
    const { page } = await visit(url, 'tools/show_order');
    await page.getByLabel('id required').fill('c3');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('region', { name: 'Call of show_order' }).getByText('success').waitFor();
    await page.getByRole('link', { name: 'Calls' }).click();
    await page.locator('.rows').getByRole('link', { name: 'show_order' }).click();
    await page.frameLocator('div > iframe').locator('#result').getByText('"id":"c3"').waitFor();
  });
});
