import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { defineTool, discoverTools, Resource, ToolRegistry } from 'toolwright';
import { type ServedLibrary, serveLibrary } from '../../../examples/mcp/serve-library.js';
import { signIn } from '../../../examples/mcp/sign-in.js';
import { serve } from '../../setup/loopback.js';
import { ROOT } from '../../structure/repository.js';
import { listen } from '../mcp/mcp-connections.js';
import { runCommand } from './run-command.js';

const check = (...args: string[]) => runCommand(['mcp', 'check', ...args], ROOT);

interface SignInServer {
  readonly challenge?: string | false;
  readonly issuer?: string;
  readonly client_id_metadata_document_supported?: boolean;
}

/** Checks a server with a sign-in through its own authorization server. */
async function checkSignInServer({ challenge, issuer, ...metadata }: SignInServer) {
  await using server = await serve(({ url: path = '', headers }, response) => {
    const origin = `http://${headers.host}`;
    const well = `${origin}/.well-known/oauth-protected-resource/mcp`;
    if (path === '/mcp')
      response.writeHead(401, {
        ...(challenge !== false && {
          'WWW-Authenticate': challenge ?? `Bearer resource_metadata="${well}"`,
        }),
      });
    const document = path.startsWith('/.well-known/oauth-protected-resource')
      ? { resource: `${origin}/mcp`, authorization_servers: [issuer ?? origin] }
      : { issuer: origin, code_challenge_methods_supported: ['S256'], ...metadata };
    response.end(JSON.stringify(document));
  });
  return await check(new URL('/mcp', server.url).href);
}

describe('toolwright mcp check', () => {
  let library: ServedLibrary;
  beforeAll(async () => {
    library = await serveLibrary(0);
  });
  afterAll(() => library.close());

  test('follows the sign-in of a protected server, and reports how each host gets a client id', async () => {
    const { code, out } = await check(library.url.href);
    expect(out).toContain('ok       connects without a token\n');
    expect(out).toContain('ok       the metadata of the protected resource names http://127.0.0.1:');
    expect(out).toContain('ok       Claude registers with a client metadata document\n');
    expect(out).toContain('ok       Cursor registers with dynamic registration\n');
    expect(out).toContain('problem  the tool take_stock has no title');
    expect(out).toContain('ok       the view ui://library/book-card can be read\n');
    expect(code).toBe(1);
  });

  test('signs in with a token, and prints JSON with --json', async () => {
    const { out } = await check(library.url.href, '--token', await signIn(library.url), '--json');
    const findings = JSON.parse(out);
    expect(findings).toContainEqual({ state: 'ok', text: 'connects with the token' });
    expect(findings).toContainEqual({
      state: 'ok',
      text: 'Claude registers with a client metadata document',
    });
  });

  test('reports a refused token, and still checks the sign-in', async () => {
    const { code, out } = await check(library.url.href, '--token', 'wrong');
    expect(code).toBe(1);
    expect(out).toMatch(/^problem {2}the server refuses the token: 401 Bearer /);
    expect(out).toContain('ok       Claude registers with a client metadata document\n');
  });

  test('reports a 401 without sign-in metadata, even with a valid token', async () => {
    await using wrong = await serve(({ headers }, response) => {
      if (headers.authorization === undefined) response.writeHead(401).end();
      else response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: [] } }));
    });
    const { code, out } = await check(new URL('/mcp', wrong.url).href, '--token', 'valid');
    expect(code).toBe(1);
    expect(out).toContain('ok       connects with the token\n');
    expect(out).toContain('problem  the 401 response has no WWW-Authenticate header');
  });

  test('reports a 401 without WWW-Authenticate, even if hosts can guess the metadata', async () => {
    const { code, out } = await checkSignInServer({ challenge: false });
    expect(code).toBe(1);
    expect(out).toContain(
      'problem  the 401 response has no WWW-Authenticate header: send Bearer resource_metadata=',
    );
    expect(out).toContain('ok       the metadata of the protected resource names ');
  });

  test('explains why Claude does not use client metadata documents', async () => {
    const { out } = await checkSignInServer({ client_id_metadata_document_supported: true });
    expect(out).toContain(
      'advice   Claude needs a client ID: register one by hand and enter it there. It uses client metadata documents only if the authorization server lists "none" in token_endpoint_auth_methods_supported\n',
    );
    expect(out).toContain('advice   Cursor needs a client ID: register one by hand and enter it there\n');
  });

  test('reports a challenge and an issuer that are not URLs', async () => {
    const relative = await checkSignInServer({ challenge: 'Bearer resource_metadata="/metadata"' });
    expect(relative.out).toContain(
      'problem  no metadata of the protected resource (RFC 9728) was found at /meta',
    );
    const { out } = await checkSignInServer({ issuer: 'example.org' });
    expect(out).toContain('problem  the metadata contains no URL of an authorization server\n');
  });

  test.each(['initialize', 'tools/list', 'GET'])(
    'reports a server that does not answer %s',
    async (silent) => {
      const limits: AbortController[] = [];
      const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
        const limit = new AbortController();
        limits.push(limit);
        return limit.signal;
      });
      await using server = await serve(async (request, response) => {
        let body = '';
        for await (const chunk of request) body += chunk;
        const { method } = request.method === 'GET' ? { method: 'GET' } : JSON.parse(body);
        // The timeout fires while the server is silent.
        if (method === silent) limits.at(-1)?.abort(new DOMException('', 'TimeoutError'));
        else response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: [] } }));
      });
      const { code, out } = await check(new URL('/mcp', server.url).href);
      expect(timeout).toHaveBeenCalledWith(10_000);
      timeout.mockRestore();
      expect(code).toBe(1);
      expect(out).toMatch(/^problem {2}.*no complete answer within 10 seconds/m);
    },
  );

  test.each(['http://', 'HTTPS://[/mcp'])(
    'reports the invalid URL %s in one line with exit code 2',
    async (url) => {
      const { code, error } = await check(url);
      expect({ code, error }).toEqual({
        code: 2,
        error: expect.stringMatching(/^[^\n]+ is not a valid URL[^\n]+\n$/),
      });
    },
  );

  test('reports a server whose sign-in hosts cannot find', async () => {
    await using wrong = await serve((_request, response) => {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="x"' }).end();
    });
    const { code, out } = await check(new URL('/mcp', wrong.url).href);
    expect(code).toBe(1);
    expect(out).toContain('problem  WWW-Authenticate has no resource_metadata');
    expect(out).toContain('problem  no metadata of the protected resource (RFC 9728) was found at');
  });

  test('reports an authorization server that cannot be reached', async () => {
    const { code, out } = await checkSignInServer({ issuer: 'http://127.0.0.1:1023' });
    expect(code).toBe(1);
    expect(out).toContain('ok       the metadata of the protected resource names http://127.0.0.1:1023\n');
    expect(out).toMatch(
      /^problem {2}no metadata of the authorization server was found at http:\/\/127\.0\.0\.1:1023\/\.well-known.*ECONNREFUSED/m,
    );
  });

  test('reports metadata for another address that cannot be read', async () => {
    const registry = new ToolRegistry().register(
      defineTool({ name: 'work', description: 'Works', execute: () => 'done' }),
    );
    const oauth = { resource: 'https://other.example/mcp', issuer: 'http://127.0.0.1:9' };
    const listening = await listen(registry, { oauth });
    const { out } = await check(new URL('/mcp', listening.url).href);
    await listening.close();
    expect(out).toContain(
      'no metadata of the protected resource (RFC 9728) was found at https://other.example',
    );
  });

  test('reports views of tools that hosts cannot show', async () => {
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
      'problem  the view ui://plain has the type text/html; hosts only show text/html;profile=mcp-app',
    );
    expect(out).toContain('advice   the view ui://part does not begin with <!doctype html>');
  });

  test('reports an unreachable server in one line', async () => {
    expect(await check('http://127.0.0.1:1023/mcp')).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /^problem {2}http:\/\/127.0.0.1:1023\/mcp cannot be reached: connect ECONNREFUSED .+\n$/,
      ),
    });
  });

  test('checks the tools of a module against the requirements of directories', async () => {
    const { code, out } = await check('test/parts/cli/fixtures/called-tools.mjs');
    expect(code).toBe(1);
    expect(out).toContain("problem  the tool add has no title: annotations: { title: 'Add' }\n");
  });

  test('reports its usage without a target', async () => {
    const { code, error } = await check();
    expect({ code, error }).toMatchObject({ code: 2, error: expect.stringContaining('mcp check takes one') });
  });
});

describe('toolwright mcp server-json', () => {
  const folder = mkdtempSync(join(tmpdir(), 'server-json-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const write = (manifest: object) => writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const serverJson = (...args: string[]) => runCommand(['mcp', 'server-json', ...args], folder);

  test('writes the registry’s server.json from package.json', async () => {
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

  test('reports a missing name, description, address of a private package, and package', async () => {
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
    expect(await serverJson()).toMatchObject({
      code: 1,
      error: expect.stringContaining('no readable package.json'),
    });
  });
});
