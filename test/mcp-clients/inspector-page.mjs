// Tests the web page of the MCP Inspector in Chromium.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { findChromium } from '../browser/find-chromium.mjs';
import { expect, HOURS, PAY, READ, startPlain, startProtected } from './servers.mjs';

/** Long enough for a step of the page on a slow machine. */
const STEP_MS = 60_000;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return String(port);
}

/** Starts an Inspector that is configured with a server, opens its page and connects. */
async function inWebInspector({ program, url, era }, use) {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-inspector-'));
  const [CLIENT_PORT, MCP_SANDBOX_PORT, MCP_APP_ORIGIN_PORT] = [
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const args = ['--web', '--transport', 'http', '--server-url', url.href, '--protocol-era', era];
  const child = spawn(process.execPath, [program, ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      HOST: '127.0.0.1',
      MCP_AUTO_OPEN_ENABLED: 'false',
      MCP_INSPECTOR_SECRET_STORE: 'memory',
      CLIENT_PORT,
      MCP_SANDBOX_PORT,
      MCP_APP_ORIGIN_PORT,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => child.kill());
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('Chromium is not installed.');
  let browser;
  let page;
  try {
    let output = '';
    let address;
    for await (const chunk of child.stdout) {
      output += chunk;
      [address] = /http:\S+MCP_INSPECTOR_API_TOKEN=\S+(?=\s)/.exec(output) ?? [];
      if (address !== undefined) break;
    }
    expect(address !== undefined, output);
    browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'],
    });
    page = await browser.newPage();
    page.setDefaultTimeout(STEP_MS);
    await page.goto(address);
    await page.getByRole('switch').first().click({ force: true });
    await page.getByText('Tools', { exact: true }).first().click();
    return await use(page);
  } catch (error) {
    const snapshot = await page?.locator('body').ariaSnapshot();
    throw new Error(`${error.message}\nThe page shows:\n${snapshot}`);
  } finally {
    await browser?.close();
    child.kill();
    await once(child, 'exit');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function callTool(page, name) {
  await page.getByText(name, { exact: true }).first().click();
  await page.getByRole('button', { name: 'Execute Tool' }).click();
}

/** Returns the scenarios for both revisions. Without Chromium they are skipped, except in CI. */
export function webInspector(program) {
  if (findChromium() === undefined && !process.env.CI) {
    console.log('- Inspector (web) is skipped because Chromium is not installed');
    return {};
  }
  return Object.fromEntries(
    Object.entries({ '2025-11-25': 'legacy', '2026-07-28': 'modern' }).flatMap(([revision, era]) => [
      [
        `Inspector (web, ${revision}) lists and calls without sign-in`,
        async () => {
          await using server = await startPlain(HOURS, READ);
          await inWebInspector({ program, url: server.url, era }, async (page) => {
            await callTool(page, 'hours');
            await page.getByText('hours for anonymous').waitFor();
          });
        },
      ],
      [
        `Inspector (web, ${revision}) signs in and shows an approval to its user`,
        async () => {
          await using server = await startProtected(READ, PAY);
          await inWebInspector({ program, url: server.url, era }, async (page) => {
            await callTool(page, 'pay');
            await page.getByText("Run 'pay' with these arguments?").waitFor();
            await page.getByRole('button', { name: 'Submit' }).click();
            await page.getByText('pay for ada').waitFor();
          });
        },
      ],
    ]),
  );
}
