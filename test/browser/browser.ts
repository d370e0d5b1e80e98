import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

/** A real Chromium for the tests of one file. */
export interface TestBrowser {
  /**
   * A page with storage of its own, until its test ends. What goes wrong in it (errors that nothing catches, what is
   * logged as an error) is in `faults`.
   */
  newPage(options?: BrowserContextOptions): Promise<TestPage>;
}

export interface TestPage {
  readonly page: Page;
  readonly faults: readonly string[];
}

/** Where Chromium is, as `find-services.mjs` found it; `undefined` where there is none. */
export function chromiumPath(): string | undefined {
  return process.env.CHROMIUM_PATH || undefined;
}

/** A busy machine may be many times slower, and no test is about speed. */
const PATIENCE_MS = 60_000;

/**
 * What Chromium does without: the pages of its address bar, which each window opens in a process of its own, and what
 * Playwright leaves out. Only the last list of features counts.
 */
const NOT_NEEDED = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AimEnabled', 'LensOverlay', 'MediaRouter', 'OptimizationHints', 'PaintHolding', 'PreconnectToSearch'],
  ...['NetworkTimeServiceQuerying', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable'],
  ...[
    'AvoidUnnecessaryBeforeUnloadCheckSync',
    'DestroyProfileOnBrowserClose',
    'ThirdPartyStoragePartitioning',
  ],
];

/** `describe` with a Chromium; without one its tests are skipped, and the end of the run says so. */
export function describeBrowser(title: string, tests: (browser: TestBrowser) => void): void {
  const executablePath = chromiumPath();
  if (executablePath === undefined) {
    describe.skip(`${title} [needs Chromium]`, () => tests({ newPage: noBrowser }));
    return;
  }
  describe(title, () => {
    let browser: Browser;
    const contexts: BrowserContext[] = [];
    beforeAll(async () => {
      // Its sandbox does not run as root, nor its shared memory in a container.
      const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
      args.push(`--disable-features=${NOT_NEEDED.join(',')}`);
      browser = await chromium.launch({ executablePath, args, timeout: PATIENCE_MS });
    });
    afterEach(async () => {
      for (const context of contexts.splice(0)) await context.close();
    });
    afterAll(async () => browser?.close());
    tests({
      async newPage(options) {
        const context = await browser.newContext(options);
        contexts.push(context);
        context.setDefaultTimeout(PATIENCE_MS);
        return watchedPage(await context.newPage());
      },
    });
  });
}

function watchedPage(page: Page): TestPage {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error.stack ?? error)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  return { page, faults };
}

function noBrowser(): never {
  throw new Error('There is no Chromium.');
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * What keeps people from using a page as it is: what axe finds, and content that is wider than the window. axe runs in
 * an isolated world, which the page's policy does not reach.
 */
export async function barriers(page: Page): Promise<readonly string[]> {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
  });
  await session.send('Runtime.evaluate', { expression: AXE, contextId: executionContextId });
  const expression = `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 200) + failureSummary)))`;
  const { result } = await session.send('Runtime.evaluate', {
    ...{ expression, contextId: executionContextId },
    ...{ awaitPromise: true, returnByValue: true },
  });
  const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  return [...(result.value as readonly string[]), ...(overflow > 0 ? [`${overflow} px too wide`] : [])];
}
