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
   * Opens a page with its own storage, which is closed when its test ends. `faults` contains its uncaught errors and
   * the messages logged as errors.
   */
  newPage(options?: BrowserContextOptions): Promise<TestPage>;
}

export interface TestPage {
  readonly page: Page;
  readonly faults: readonly string[];
}

/** The path of Chromium that `find-services.mjs` has found; `undefined` if it is not installed. */
export function chromiumPath(): string | undefined {
  return process.env.CHROMIUM_PATH || undefined;
}

/** Long, because a busy machine can be many times slower. */
const TIMEOUT_MS = 60_000;

/**
 * Disabled features: pages of the address bar, for which each window starts another process, and the defaults of
 * Playwright, because Chromium uses only the last list.
 */
const DISABLED_FEATURES = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AimEnabled', 'LensOverlay', 'MediaRouter', 'OptimizationHints', 'PaintHolding', 'PreconnectToSearch'],
  ...['NetworkTimeServiceQuerying', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable'],
  ...[
    'AvoidUnnecessaryBeforeUnloadCheckSync',
    'DestroyProfileOnBrowserClose',
    'ThirdPartyStoragePartitioning',
  ],
];

/** `describe` with Chromium. If it is not installed, the tests are skipped, and the summary of the run lists them. */
export function describeBrowser(title: string, tests: (browser: TestBrowser) => void): void {
  const executablePath = chromiumPath();
  if (executablePath === undefined) {
    describe.skip(`${title} [needs Chromium]`, () => tests({ newPage: failWithoutBrowser }));
    return;
  }
  describe(title, () => {
    let browser: Browser;
    const contexts: BrowserContext[] = [];
    beforeAll(async () => {
      // The sandbox does not work as root, and /dev/shm is too small in containers.
      const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
      args.push(`--disable-features=${DISABLED_FEATURES.join(',')}`);
      browser = await chromium.launch({ executablePath, args, timeout: TIMEOUT_MS });
    });
    afterEach(async () => {
      for (const context of contexts.splice(0)) await context.close();
    });
    afterAll(async () => browser?.close());
    tests({
      async newPage(options) {
        const context = await browser.newContext(options);
        contexts.push(context);
        context.setDefaultTimeout(TIMEOUT_MS);
        return recordFaults(await context.newPage());
      },
    });
  });
}

function recordFaults(page: Page): TestPage {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error.stack ?? error)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  return { page, faults };
}

function failWithoutBrowser(): never {
  throw new Error('Chromium is not installed.');
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * Returns the accessibility violations that axe finds, and whether the content is wider than the window. axe runs in an
 * isolated world, to which the content security policy of the page does not apply.
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
