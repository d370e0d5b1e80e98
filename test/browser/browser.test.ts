import { expect, test } from '@jest/globals';
import { chromiumPath, describeBrowser } from './browser.js';

const { findChromium } = (await import('./find-chromium.mjs' as string)) as {
  findChromium(): string | undefined;
};

describeBrowser('the Chromium of the tests', (browser) => {
  test('opens a page, and tells what goes wrong in it', async () => {
    const { page, faults } = await browser.newPage({ viewport: { width: 360, height: 600 } });
    await page.setContent('<h1>Hello</h1>');
    expect(await page.getByRole('heading').textContent()).toBe('Hello');
    expect(await page.evaluate('innerWidth')).toBe(360);
    expect(faults).toEqual([]);
    const thrown = page.waitForEvent('pageerror');
    await page.evaluate("console.error('and this'); setTimeout(() => { throw new Error('it broke') })");
    await thrown;
    expect(faults).toEqual(['and this', expect.stringContaining('it broke')]);
  });
});

test('a Chromium that the environment says is not there is none', () => {
  const before = process.env.CHROMIUM_PATH;
  process.env.CHROMIUM_PATH = '';
  try {
    expect(findChromium()).toBeUndefined();
    expect(chromiumPath()).toBeUndefined();
    process.env.CHROMIUM_PATH = '/opt/mine';
    expect(findChromium()).toBe('/opt/mine');
  } finally {
    process.env.CHROMIUM_PATH = before;
  }
});
