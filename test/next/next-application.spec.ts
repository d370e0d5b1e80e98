import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { packPackage } from '../packed/installation.js';
import { NodeProcess } from '../processes/node-process.js';

const ROUTE = 'app/api/chat/[[...path]]/route.ts';
const LIMIT_MS = 900_000;
/** Without the NODE_ENV that Jest sets, so that Next sets its own. */
const { NODE_ENV: _, ...INHERITED } = process.env;
const ENVIRONMENT = { ...INHERITED, NODE_OPTIONS: '', NEXT_TELEMETRY_DISABLED: '1', CI: '1', NO_COLOR: '1' };

// All steps of a user: install the package in a project of create-next-app, run `toolwright init`, build and start.
describe('an application of Next 15 with a chat route', () => {
  let folder: string;

  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolwright-next-')));
    cpSync(join(import.meta.dirname, 'project'), folder, { recursive: true });
    const packed = packPackage();
    try {
      succeed('ci', '--prefer-offline', '--no-audit', '--no-fund');
      succeed('install', '--prefer-offline', '--no-audit', '--no-fund', packed.tarball);
    } finally {
      packed.remove();
    }
    succeed('exec', '--offline', '--', 'toolwright', 'init');
  }, LIMIT_MS);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test(
    'builds, starts, and calls a tool with the parameter names of its source',
    async () => {
      succeed('run', 'build');
      // Without minified names, the test would not prove that the generated file restores them.
      expect(read(`.next/server/${ROUTE.replace(/ts$/, 'js')}`)).toMatch(/\bdeliveryDays\(\w,\w\)/);
      await using server = new NodeProcess(
        ['node_modules/next/dist/bin/next', 'start', '-H', '127.0.0.1', '-p', '0'],
        { folder, environment: ENVIRONMENT },
      );
      const [, url = ''] = await server.waitFor(/(http:\/\/127\.0\.0\.1:\d+)[\s\S]*Ready/);
      const chunks = await sendMessage(url);
      expect(chunks.find(({ type }) => type === 'tool-output-available')).toMatchObject({
        output: '7 days to 8004',
      });
      const deltas = chunks.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta);
      const properties = { postcode: { type: 'string' }, weight: { type: 'number' } };
      const parameters = { type: 'object', properties, required: ['postcode', 'weight'] };
      expect(deltas.join('')).toBe(`7 days to 8004, offered as ${JSON.stringify([parameters])}`);
    },
    LIMIT_MS,
  );

  test(
    'the build fails if parameter names are minified and the generated file is not imported',
    () => {
      write(ROUTE, read(ROUTE).replace("import '@/toolwright.gen';\n", ''));
      write(
        'tsconfig.json',
        read('tsconfig.json').replace('"strict": true', '"strict": true, "emitDecoratorMetadata": true'),
      );
      const { status, output } = npm('run', 'build');
      // Next loads routes while it builds, in production.
      expect(output).toMatch(/deliveryDays: a minifier seems to have renamed its parameters \(\w, \w\)/);
      expect(output).toContain('npx toolwright generate');
      expect(status).not.toBe(0);
    },
    LIMIT_MS,
  );

  function npm(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
    const options = { cwd: folder, env: ENVIRONMENT, encoding: 'utf8', timeout: LIMIT_MS } as const;
    const run = spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
    return { status: run.status, output: `${run.stdout}${run.stderr}${run.error ?? ''}` };
  }

  function succeed(...args: readonly string[]): void {
    const { status, output } = npm(...args);
    if (status !== 0) throw new Error(`npm ${args.join(' ')} exited with code ${status}:\n${output}`);
  }

  function read(path: string): string {
    return readFileSync(join(folder, path), 'utf8');
  }

  function write(path: string, text: string): void {
    writeFileSync(join(folder, path), text);
  }
});

/** Sends a message and returns the chunks of the turn, as `useChat` does. */
async function sendMessage(url: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'When will it be in Zurich?' }] };
  const response = await fetch(`${url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'c1', messages: [message] }),
  });
  expect(response.status).toBe(200);
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice('data: '.length)));
}
