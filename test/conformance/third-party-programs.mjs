// Third-party clients that use a registry, and third-party servers that `mcpTools` uses.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ToolRegistry } from '../../dist/src/index.js';
import { mcpTools } from '../../dist/src/surfaces/mcp/index.js';

const run = promisify(execFile);
const moduleAt = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const INSPECTOR = moduleAt('@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const EVERYTHING = moduleAt('@modelcontextprotocol/server-everything/dist/index.js');
const FILESYSTEM = moduleAt('@modelcontextprotocol/server-filesystem/dist/index.js');
const SIMPLE = 'This is a simple text response for testing.';

/** A check for each program, which throws if it fails. */
export function thirdPartyPrograms(url) {
  return {
    'Inspector lists': async () => {
      const { tools } = JSON.parse(await inspect(url, '--method', 'tools/list'));
      expect(
        tools.length > 20 && tools[0].name === 'test_simple_text',
        tools.map(({ name }) => name),
      );
    },
    'Inspector calls': async () => {
      const call = ['--method', 'tools/call', '--tool-name'];
      const { content } = JSON.parse(await inspect(url, ...call, 'test_simple_text'));
      expect(content[0].text === SIMPLE, content);
      const region = await inspect(url, ...call, 'test_custom_headers', '--tool-arg', 'region=eu');
      expect(region.includes('Region eu'), region);
    },
    '@ai-sdk/mcp lists and calls, 2026-07-28': () => useAiSdk(url, true),
    '@ai-sdk/mcp lists and calls, 2025-11-25': () => useAiSdk(url, false),
    'server-everything is called': () =>
      withServer([EVERYTHING, 'stdio'], async (registry) => {
        const echo = await registry.execute('echo', { message: 'hello' });
        expect(echo.forLLM === 'Echo: hello', echo.forLLM);
        const sum = await registry.execute('get-sum', '{"a": "2", "b": 3}');
        expect(sum.forLLM.includes('5'), sum.forLLM);
        const image = await registry.execute('get-tiny-image');
        expect(
          image.content.some(({ type }) => type === 'image'),
          image,
        );
        const weather = await registry.execute('get-structured-content', { location: 'New York' });
        expect(typeof weather.details.temperature === 'number', weather);
        const wrong = await registry.execute('get-sum', { a: 'two' });
        expect(wrong.isError && wrong.forLLM.includes('a: must be number'), wrong.forLLM);
      }),
    'server-everything reports progress': () =>
      withServer([EVERYTHING, 'stdio'], async (registry) => {
        const updates = [];
        await registry.executeWithContext(
          'trigger-long-running-operation',
          { duration: 0.2, steps: 2 },
          { onUpdate: ({ progress, total }) => updates.push(`${progress}/${total}`) },
        );
        // The last progress report may arrive together with the result.
        expect(updates[0] === '1/2', updates);
      }),
    'server-filesystem writes and reads': async () => {
      const folder = mkdtempSync(join(tmpdir(), 'toolwright-third-party-'));
      try {
        await withServer([FILESYSTEM, folder], async (registry) => {
          const path = join(folder, 'note.txt');
          const written = await registry.execute('write_file', { path, content: 'remember' });
          expect(!written.isError && readFileSync(path, 'utf8') === 'remember', written.forLLM);
          const read = await registry.execute('read_text_file', { path });
          expect(read.forLLM === 'remember', read.forLLM);
          const outside = await registry.execute('read_text_file', { path: '/etc/hostname' });
          expect(outside.isError, outside.forLLM);
        });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

async function inspect(url, ...args) {
  const { stdout } = await run(process.execPath, [INSPECTOR, '--cli', url, '--transport', 'http', ...args]);
  return stdout;
}

async function useAiSdk(url, protocolVersionDiscovery) {
  const client = await createMCPClient({ transport: { type: 'http', url }, protocolVersionDiscovery });
  try {
    const tools = await client.tools();
    const options = { toolCallId: 'call_1', messages: [] };
    const simple = await tools.test_simple_text.execute({}, options);
    expect(simple.content[0].text === SIMPLE, simple);
    const failed = await tools.test_error_handling.execute({}, options);
    expect(failed.isError, failed);
  } finally {
    await client.close();
  }
}

async function withServer(args, use) {
  const client = new Client({ name: 'toolwright', version: '0.0.0' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
  try {
    await use(new ToolRegistry().register(...(await mcpTools(client))));
  } finally {
    await client.close();
  }
}

function expect(condition, found) {
  if (!condition) throw new Error(`unexpected: ${JSON.stringify(found)}`);
}
