import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { agentAsTool, defineTool, ToolRegistry } from 'toolwright';
import { createInspector } from 'toolwright/inspector';
import { SqliteRunStore } from 'toolwright/stores';
import { describeBrowser } from '../../browser/browser.js';
import { type BuiltProgram, buildProgram } from '../../processes/build-program.js';
import { builtFile } from '../../processes/built-file.js';
import { NodeProcess } from '../../processes/node-process.js';
import { ordering, orderingTools } from './ordering.js';

builtFile('dist/inspector/page.js');

// The inspector uses a file in which another process stores its runs.

describeBrowser('a run of another process in the page of an inspector', (browser) => {
  let program: BuiltProgram;
  const folder = mkdtempSync(join(tmpdir(), 'inspector-other-'));
  const ends: (() => unknown)[] = [];
  beforeAll(() => {
    program = buildProgram('test/parts/inspector/shop-process-program.ts');
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  afterAll(() => {
    program.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(name: string): Promise<{ page: Page; faults: readonly string[]; other: NodeProcess }> {
    const path = join(folder, `${name}.sqlite`);
    const other = new NodeProcess([program.file, path], { folder });
    ends.push(() => other.kill());
    await other.waitFor(/ready/);
    const store = new SqliteRunStore({ path });
    ends.push(() => store.close());
    const tools = orderingTools({ agentAsTool, defineTool, ToolRegistry }, 'here');
    const inspector = createInspector(tools, { store, provider: ordering, model: 'm' });
    ends.push(() => inspector.close());
    const { page, faults } = await browser.newPage();
    await page.goto((await inspector.listen()).url);
    await page.getByRole('link', { name: 'Pending' }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    return { page, faults, other };
  }

  test('appears without a reload, and can be approved, edited and refused', async () => {
    const { page, faults, other } = await open('answers');
    other.write('begin order\n');
    const card = page.getByRole('region', { name: /Waiting run/ });
    await card.getByText('{"user":"ada"}').waitFor();
    expect(await card.getByLabel('Arguments of place_order').textContent()).toContain('"lamp"');
    await card.getByRole('button', { name: 'Approve place_order' }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    await page.keyboard.press('3');
    await page.getByRole('link', { name: /completed/ }).click();
    await page
      .getByText('A store has the durations of calls, but no times of requests.')
      .waitFor({ state: 'detached' });
    expect(await page.getByLabel('Answer', { exact: true }).textContent()).toBe('heard: placed 2 lamp here');

    await page.keyboard.press('5');
    other.write('begin order\n');
    await card.getByLabel('It continues').selectOption('worker');
    await card.getByRole('button', { name: 'Edit arguments' }).click();
    await card.getByLabel('Edited arguments').fill('{"sku": "vase", "amount": 9}');
    await card.getByRole('button', { name: 'Approve as edited place_order' }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    other.write('recover\n');
    await other.waitFor(/went on: completed: heard: placed 9 vase there\n/);

    other.write('begin order\n');
    await card.getByLabel('It continues').selectOption('worker');
    await card.getByLabel('Reason of a refusal').fill('too dear');
    await card.getByRole('button', { name: 'Refuse place_order' }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    other.write('recover\n');
    await other.waitFor(/went on: completed: heard: .*too dear/);
    await page.keyboard.press('3');
    await page
      .getByRole('link', { name: /in the store/ })
      .first()
      .click();
    await page.getByText('A store has the durations of calls, but no times of requests.').waitFor();
    expect(faults).toEqual([]);
  });

  test('shows which agent asks, and a remembered approval applies to later calls of the other process', async () => {
    const { page, faults, other } = await open('standing');
    other.write('begin agent\n');
    const card = page.getByRole('region', { name: /Waiting run/ });
    await card.getByText('within shopper').waitFor();
    await card.getByLabel('It continues').selectOption('worker');
    await card.getByLabel('The approval applies').selectOption('to this user');
    await card.getByText('empty: no end').waitFor();
    await card.getByRole('button', { name: 'Approve place_order' }).click();
    await page.getByText('Nothing is waiting.').waitFor();
    other.write('recover\n');
    await other.waitFor(/went on: completed: heard: .*placed 2 lamp there/);
    other.write('begin order\n');
    await other.waitFor(/begun: completed: heard: placed 2 lamp there/);
    expect(faults).toEqual([]);
  });
});
