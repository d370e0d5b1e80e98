import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { defineTool, discoverTools, Resource, ToolRegistry } from 'toolwright';
import { type ServedLibrary, serveLibrary } from '../../../examples/mcp/serve-library.js';
import { signIn } from '../../../examples/mcp/sign-in.js';
import { serve } from '../../setup/loopback.js';
import { ROOT } from '../../structure/repository.js';
import { listen } from '../mcp/mcp-connections.js';
import { runCommand } from './run-command.js';

const check = (...args: string[]) => runCommand(['mcp', 'check', ...args], ROOT);

describe('toolwright mcp check', () => {
  let library: ServedLibrary;
  beforeAll(async () => {
    library = await serveLibrary(0);
  });
  afterAll(() => library.close());

  test('goes the way of hosts to a protected server, and says how each of them gets a client id', async () => {
    const { code, out } = await check(library.url.href);
    expect(out).toContain('ok       connects without a token\n');
    expect(out).toContain('ok       the metadata of the protected resource names http://127.0.0.1:');
    expect(out).toContain('ok       Claude registers by a client metadata document\n');
    expect(out).toContain('ok       Cursor registers by dynamic registration\n');
    expect(out).toContain('problem  the tool take_stock has no title');
    expect(out).toContain('ok       the view ui://library/book-card can be read\n');
    expect(code).toBe(1);
  });

  test('signs in with a token, and prints JSON for scripts', async () => {
    const { out } = await check(library.url.href, '--token', await signIn(library.url), '--json');
    expect(JSON.parse(out)).toContainEqual({ state: 'ok', text: 'connects with the token' });
  });

  test('finds the mistakes of a server that hosts cannot sign in at', async () => {
    await using wrong = await serve((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="x"' }).end();
    });
    const { code, out } = await check(new URL('/mcp', wrong.url).href);
    expect(code).toBe(1);
    expect(out).toContain('problem  WWW-Authenticate names no resource_metadata');
    expect(out).toContain('problem  there is no metadata of the protected resource at');
  });

  test('finds metadata of another address, and an authorization server that is not there', async () => {
    const registry = new ToolRegistry().register(
      defineTool({ name: 'work', description: 'Works', execute: () => 'done' }),
    );
    const oauth = { resource: 'https://other.example/mcp', issuer: 'http://127.0.0.1:9' };
    const listening = await listen(registry, { oauth });
    const { out } = await check(new URL('/mcp', listening.url).href);
    await listening.close();
    expect(out).toContain('there is no metadata of the protected resource at https://other.example');
  });

  test('finds views of tools that hosts cannot show', async () => {
    const view = (name: string, resourceUri: string) =>
      defineTool({ name, description: 'Shows', _meta: { ui: { resourceUri } }, execute: () => 'done' });
    class Views {
      @Resource('ui://plain', { mimeType: 'text/html' })
      plain() {
        return '<p>';
      }

      @Resource('ui://part', { mimeType: 'text/html;profile=mcp-app' })
      part() {
        return '<p>';
      }
    }
    const registry = new ToolRegistry().register(
      ...discoverTools({ toolsets: [Views] }),
      ...['gone', 'plain', 'part'].map((name) => view(name, `ui://${name}`)),
    );
    const listening = await listen(registry);
    const { code, out } = await check(listening.url.href);
    await listening.close();
    expect(code).toBe(1);
    expect(out).toContain('problem  the view ui://gone cannot be read: ');
    expect(out).toContain(
      'problem  the view ui://plain is text/html, and hosts show text/html;profile=mcp-app',
    );
    expect(out).toContain('advice   the view ui://part does not begin with <!doctype html>');
  });

  test('a server that is not there is one line', async () => {
    expect(await check('http://127.0.0.1:1023/mcp')).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /^problem {2}http:\/\/127.0.0.1:1023\/mcp cannot be reached: connect ECONNREFUSED .+\n$/,
      ),
    });
  });

  test('checks the tools of a module against what directories require', async () => {
    const { code, out } = await check('test/parts/cli/fixtures/called-tools.mjs');
    expect(code).toBe(1);
    expect(out).toContain("problem  the tool add has no title: annotations: { title: 'Add' }\n");
  });

  test('without a target it says how it is called', async () => {
    const { code, error } = await check();
    expect({ code, error }).toMatchObject({ code: 2, error: expect.stringContaining('mcp check takes one') });
  });
});

describe('toolwright mcp server-json', () => {
  const folder = mkdtempSync(join(tmpdir(), 'server-json-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const write = (manifest: object) => writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const serverJson = (...args: string[]) => runCommand(['mcp', 'server-json', ...args], folder);

  test('writes what the registry wants to know, out of package.json', async () => {
    write({
      name: '@acme/shop',
      version: '1.2.0',
      description: 'The shop',
      mcpName: 'io.github.acme/shop',
      repository: { type: 'git', url: 'git+https://github.com/acme/shop.git' },
    });
    const { code, out, error } = await serverJson('--url', 'https://api.acme.example/mcp');
    expect({ code, error }).toEqual({ code: 0, error: '' });
    expect(JSON.parse(out)).toEqual({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'io.github.acme/shop',
      description: 'The shop',
      version: '1.2.0',
      repository: { url: 'https://github.com/acme/shop', source: 'github' },
      packages: [
        { registryType: 'npm', identifier: '@acme/shop', version: '1.2.0', transport: { type: 'stdio' } },
      ],
      remotes: [{ type: 'streamable-http', url: 'https://api.acme.example/mcp' }],
    });
  });

  test('says what is missing: a name, a description, an address of a private package, a package', async () => {
    write({ name: 'shop' });
    expect(await serverJson()).toMatchObject({ code: 1, error: expect.stringContaining('mcpName') });
    const named = ['--name', 'io.github.acme/shop'];
    expect(await serverJson(...named)).toMatchObject({
      code: 1,
      error: expect.stringContaining('description'),
    });
    for (const unpublished of [{ name: 'shop', private: true }, {}]) {
      write({ ...unpublished, description: 'The shop' });
      expect(await serverJson(...named)).toMatchObject({ code: 1, error: expect.stringContaining('--url') });
      const { out } = await serverJson(...named, '--url', 'https://api.acme.example/mcp');
      expect(JSON.parse(out)).not.toHaveProperty('packages');
    }
    rmSync(join(folder, 'package.json'));
    expect(await serverJson()).toMatchObject({ code: 1, error: expect.stringContaining('no package.json') });
  });
});
