import { afterEach, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { defineTool, type McpApp, ToolRegistry } from 'toolwright';
import { createMcpServer } from 'toolwright/mcp';
import { describeBrowser } from '../../browser/browser.js';
import { serve } from '../../setup/loopback.js';
import { ROOT } from '../../structure/repository.js';

/** A view that uses the official library of MCP Apps. */
const VIEW = `
  import { App } from '@modelcontextprotocol/ext-apps';
  const app = new App({ name: 'order-card', version: '1' }, {});
  const show = (id, value) => { document.getElementById(id).textContent = JSON.stringify(value); };
  app.ontoolinput = ({ arguments: given }) => show('input', given);
  app.ontoolresult = ({ structuredContent }) => show('result', structuredContent);
  document.getElementById('refresh').onclick = async () => {
    const { structuredContent } = await app.callServerTool({ name: 'refresh_order', arguments: { id: 'a1' } });
    show('result', structuredContent);
  };
  await app.connect();`;

/** A host that uses the official bridge: finds the view of a tool, shows it, and calls the tool. */
const HOST = `
  import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
  import * as bridge from '@modelcontextprotocol/ext-apps/app-bridge';
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: [bridge.RESOURCE_MIME_TYPE] } };
  window.show = async (versionNegotiation) => {
    const client = new Client({ name: 'host', version: '1' }, { capabilities: { extensions }, versionNegotiation });
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)));
    const { tools } = await client.listTools();
    const offered = tools.filter((tool) => !bridge.isToolVisibilityAppOnly(tool)).map(({ name }) => name);
    const tool = tools.find(({ name }) => name === 'show_order');
    for (const { _meta } of tools) bridge.McpUiToolMetaSchema.parse(_meta.ui);
    const { contents } = await client.readResource({ uri: bridge.getToolUiResourceUri(tool) });
    const [{ mimeType, text, _meta }] = contents;
    if (mimeType !== bridge.RESOURCE_MIME_TYPE) throw new Error(mimeType);
    bridge.McpUiResourceMetaSchema.parse(_meta.ui);
    const frame = document.body.appendChild(document.createElement('iframe'));
    frame.sandbox = 'allow-scripts';
    frame.allow = bridge.buildAllowAttribute(_meta.ui.permissions);
    const host = new bridge.AppBridge(client, { name: 'host', version: '1' }, { serverTools: {} }, {
      hostContext: { theme: 'dark' },
    });
    const initialized = new Promise((resolve) => { host.oninitialized = resolve; });
    const sized = new Promise((resolve) => { host.onsizechange = resolve; });
    await host.connect(new bridge.PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.srcdoc = text;
    await initialized;
    const call = { name: 'show_order', arguments: { id: 'a1' } };
    await host.sendToolInput({ arguments: call.arguments });
    await host.sendToolResult(await client.callTool(call));
    return { offered, meta: _meta.ui, app: host.getAppVersion(), allow: frame.allow, height: (await sized).height };
  };
  window.isReady = true;`;

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    format: 'esm',
    write: false,
  });
  return outputFiles[0]?.text.replaceAll('</script', '<\\/script') ?? '';
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

let scripts: Promise<readonly string[]> | undefined;

async function serveShop(): Promise<string> {
  scripts ??= Promise.all([VIEW, HOST].map(bundle));
  const [view, page] = await scripts;
  const OrderCard: McpApp = {
    uri: 'ui://shop/order-card',
    html: `<!doctype html><p id="input"></p><p id="result"></p><button id="refresh">Refresh</button><script type="module">${view}</script>`,
    permissions: { clipboardWrite: {} },
    prefersBorder: true,
  };
  const parameters = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } as const;
  const output = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] } as const;
  const order = (name: string, total: number, _meta?: Readonly<Record<string, unknown>>) =>
    defineTool({
      ...{ name, description: 'An order', parameters, output, ui: OrderCard, _meta },
      execute: ({ id }) => ({ id, total }),
    });
  const tools = new ToolRegistry().register(
    order('show_order', 42),
    order('refresh_order', 43, { ui: { visibility: ['app'] } }),
  );
  const mcp = createMcpServer(tools);
  const host = `<!doctype html><link rel="icon" href="data:,"><script type="module">${page}</script>`;
  const server = await serve((request, response) => {
    if (request.url === '/mcp') void mcp.node(request, response);
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(host);
  });
  ends.push(
    () => server[Symbol.asyncDispose](),
    () => mcp.close(),
  );
  return server.url;
}

describeBrowser('a host of MCP Apps', (browser) => {
  test.each([
    ['2025-11-25', 'undefined'],
    ['2026-07-28', `{ mode: { pin: '2026-07-28' } }`],
  ])('shows the view of a tool with its input and result, and forwards its calls (%s)', async (_, era) => {
    const { page, faults } = await browser.newPage();
    await page.goto(await serveShop());
    await page.waitForFunction('window.isReady');
    expect(await page.evaluate(`show(${era})`)).toEqual({
      offered: ['show_order'],
      meta: { permissions: { clipboardWrite: {} }, prefersBorder: true },
      app: { name: 'order-card', version: '1' },
      allow: 'clipboard-write',
      height: expect.any(Number),
    });
    const view = page.frameLocator('iframe');
    await view.getByText('{"id":"a1"}').waitFor();
    await view.getByText('{"id":"a1","total":42}').waitFor();
    await view.getByRole('button', { name: 'Refresh' }).click();
    await view.getByText('{"id":"a1","total":43}').waitFor();
    expect(faults).toEqual([]);
  });
});
