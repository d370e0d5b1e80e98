// Tests other programs: mcp-remote (a bridge from stdio to HTTP) and the MCP Inspector (command line and web page).
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { signIn } from '../../dist/examples/mcp/sign-in.js';
import { webInspector } from './inspector-page.mjs';
import { browse, CANCEL, expect, HOURS, PAY, READ, startPlain, startProtected } from './servers.mjs';

const run = promisify(execFile);
const moduleAt = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const MCP_REMOTE = moduleAt('mcp-remote/dist/proxy.js');
const INSPECTOR = moduleAt('@modelcontextprotocol/inspector/clients/launcher/build/index.js');

/** Connects to a server through mcp-remote, and visits every page that mcp-remote asks to open. */
async function throughMcpRemote(url, use, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-mcp-remote-'));
  const visits = [];
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MCP_REMOTE, url.href, '--host', '127.0.0.1', '--auth-timeout', '120'],
    // An empty PATH, so that mcp-remote finds no browser and prints the address.
    env: { MCP_REMOTE_CONFIG_DIR: folder, HOME: folder, PATH: folder },
    stderr: 'pipe',
  });
  let output = '';
  transport.stderr.on('data', (chunk) => {
    output += chunk;
    for (const [address] of output.matchAll(/http\S+[?&]code_challenge=\S+(?=\s)/g)) {
      if (visits.some((visit) => visit.address === address)) continue;
      visits.push({ address, end: browse(address).catch((error) => error) });
    }
  });
  const client = new Client({ name: 'a-client', version: '1' }, options);
  try {
    await client.connect(transport, { timeout: 120_000 });
    return await use(client, visits);
  } catch (error) {
    throw new Error(`${error.message}\n${output}`);
  } finally {
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const callTool = async (client, name) =>
  (await client.callTool({ name, arguments: {} }, { timeout: 120_000 })).content[0].text;

/** Runs the Inspector on the command line with an existing token. */
async function inspect(url, token, ...args) {
  const header = token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`];
  const all = ['--cli', url.href, '--transport', 'http', ...header, ...args];
  return (await run(process.execPath, [INSPECTOR, ...all])).stdout;
}

export const programs = {
  'mcp-remote lists and calls without sign-in': async () => {
    await using server = await startPlain(HOURS, READ);
    await throughMcpRemote(server.url, async (client) => {
      const { tools } = await client.listTools();
      expect(tools.length === 2, tools);
      const text = await callTool(client, 'hours');
      expect(text === 'hours for anonymous', text);
    });
  },
  'mcp-remote signs in when it connects': async () => {
    await using server = await startProtected(READ);
    await throughMcpRemote(server.url, async (client, visits) => {
      const { tools } = await client.listTools();
      expect(tools[0].name === 'read', tools);
      const text = await callTool(client, 'read');
      expect(text === 'read for ada' && visits.length === 1, { text, visits });
    });
  },
  'mcp-remote signs in at the first call that requires it, and again for more scopes': async () => {
    await using server = await startProtected(HOURS, READ, CANCEL);
    await throughMcpRemote(server.url, async (client) => {
      for (const name of ['read', 'cancel']) {
        const text = await callTool(client, name);
        expect(text === `${name} for ada`, text);
      }
    });
  },
  'mcp-remote shows an approval to the user of its client': async () => {
    await using server = await startProtected(PAY);
    const show = async (client) => {
      const messages = [];
      client.setRequestHandler('elicitation/create', ({ params }) => {
        messages.push(params.message);
        return { action: 'accept', content: {} };
      });
      const text = await callTool(client, 'pay');
      expect(text === 'pay for ada' && messages.length === 1, { text, messages });
    };
    await throughMcpRemote(server.url, show, { capabilities: { elicitation: {} } });
  },
  'Inspector (command line) lists and calls without sign-in': async () => {
    await using server = await startPlain(HOURS, READ);
    const { tools } = JSON.parse(await inspect(server.url, undefined, '--method', 'tools/list'));
    expect(tools.length === 2, tools);
  },
  'Inspector (command line) lists and calls with a token': async () => {
    await using server = await startProtected(READ);
    const token = await signIn(server.url, { scope: 'orders:read' });
    const { tools } = JSON.parse(await inspect(server.url, token, '--method', 'tools/list'));
    expect(tools[0].name === 'read', tools);
    const call = await inspect(server.url, token, '--method', 'tools/call', '--tool-name', 'read');
    expect(JSON.parse(call).content[0].text === 'read for ada', call);
  },
  ...webInspector(INSPECTOR),
};
