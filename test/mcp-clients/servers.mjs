// A server without sign-in, and a protected server with its own authorization server.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { startAuthorizationServer } from '../../dist/examples/mcp/authorization-server.js';
import { defineTool, ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer, jwks } from '../../dist/src/surfaces/mcp/index.js';

const tool = (name, options = {}) =>
  defineTool({
    name,
    description: `The tool ${name}`,
    execute: (_args, { data }) => `${name} for ${data.mcp?.authInfo?.extra?.sub ?? 'anonymous'}`,
    ...options,
  });

export const HOURS = tool('hours', { public: true });
export const READ = tool('read', { scopes: ['orders:read'] });
export const CANCEL = tool('cancel', { scopes: ['orders:write'] });
export const PAY = tool('pay', { approval: true, scopes: ['orders:write'] });

async function listen() {
  const http = createServer().listen(0, '127.0.0.1');
  await once(http, 'listening');
  return { http, url: new URL(`http://127.0.0.1:${http.address().port}/mcp`) };
}

async function close({ mcp, http, authorization }) {
  await mcp.close();
  await authorization?.close();
  http.closeAllConnections();
  http.close();
}

/** Starts a server without sign-in. */
export async function startPlain(...tools) {
  const { http, url } = await listen();
  const mcp = createMcpServer(new ToolRegistry().register(...tools), { name: 'plain' });
  http.on('request', mcp.node);
  return { url, [Symbol.asyncDispose]: () => close({ mcp, http }) };
}

/** Starts a server with sign-in whose lists also contain tools that the caller may not call yet. */
export async function startProtected(...tools) {
  const { http, url } = await listen();
  const api = { resource: url.href, scopes: ['orders:read', 'orders:write'] };
  const authorization = await startAuthorizationServer({ port: 0, api });
  const { issuer } = authorization;
  const verify = jwks(`${issuer}/jwks`);
  const mcp = createMcpServer(new ToolRegistry().register(...tools), {
    name: 'protected',
    oauth: { resource: url.href, issuer, verify, unauthorised: 'show' },
  });
  http.on('request', mcp.node);
  return { url, issuer, [Symbol.asyncDispose]: () => close({ mcp, http, authorization }) };
}

/** Follows redirects with cookies, as a browser does, up to an address that starts with `end`, or to a page. */
export async function browse(from, end) {
  const cookies = new Map();
  let url = new URL(from);
  while (end === undefined || !url.href.startsWith(end)) {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ');
    const response = await open(url, cookie);
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const next = response.headers.get('location');
    const page = await response.text();
    if (next === null && end === undefined && response.ok) return url;
    if (next === null) throw new Error(`${url} responded with ${response.status}: ${page}`);
    url = new URL(next, url);
  }
  return url;
}

/** Retries, because some clients print the address of the page before they listen for the callback. */
async function open(url, cookie) {
  for (let attempts = 0; ; attempts += 1)
    try {
      return await fetch(url, { headers: { cookie }, redirect: 'manual' });
    } catch (error) {
      if (attempts === 100) throw error;
      await wait(200);
    }
}

export function expect(condition, actual) {
  if (!condition) throw new Error(`unexpected: ${JSON.stringify(actual)}`);
}
