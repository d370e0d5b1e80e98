import { expect, test } from '@jest/globals';
import { chromiumPath, describeBrowser } from './browser.js';

const { findChromium } = (await import('./find-chromium.mjs' as string)) as {
  findChromium(): string | undefined;
};

describeBrowser('the test browser', (browser) => {
  test('opens a page and records the errors in it', async () => {
    const { page, faults } = await browser.newPage({ viewport: { width: 360, height: 600 } });
    await page.setContent('<h1>Hello</h1>');
    expect(await page.getByRole('heading').textContent()).toBe('Hello');
    expect(await page.evaluate('innerWidth')).toBe(360);
    expect(faults).toEqual([]);
    const thrown = page.waitForEvent('pageerror');
    await page.evaluate("console.error('logged'); setTimeout(() => { throw new Error('thrown') })");
    await thrown;
    expect(faults).toEqual(['logged', expect.stringContaining('thrown')]);
  });
});

test('CHROMIUM_PATH sets the path of Chromium, and an empty value means no Chromium', () => {
  const before = process.env.CHROMIUM_PATH;
  process.env.CHROMIUM_PATH = '';
  try {
    expect(findChromium()).toBeUndefined();
    expect(chromiumPath()).toBeUndefined();
    process.env.CHROMIUM_PATH = '/opt/chromium';
    expect(findChromium()).toBe('/opt/chromium');
  } finally {
    process.env.CHROMIUM_PATH = before;
  }
});
