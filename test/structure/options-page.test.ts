import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { optionsPage } from './options-page.js';
import { ROOT, readText } from './repository.js';

const PAGE = 'docs/reference/options.md';

test('docs/reference/options.md is up to date with the types of the options', () => {
  const page = optionsPage();
  if (process.env.WRITE_OPTIONS_PAGE) writeFileSync(join(ROOT, PAGE), page);
  // After a change of options or their docstrings: npm run docs:options
  expect(readText(PAGE)).toBe(page);
});
