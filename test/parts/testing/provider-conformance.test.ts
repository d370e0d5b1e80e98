import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { providerConformance } from 'toolwright/testing';
import { CAPABILITIES } from '../../../src/dev/testing/conformance/bench.js';
import { PROVIDERS } from './conformance-backends.js';

describe.each(PROVIDERS)('$name', (provider) => {
  for (const { title, run } of providerConformance(provider)) test(title, run);
});

test('the guide explains every feature that a provider may lack', () => {
  const guide = readFileSync('docs/guides/testing.md', 'utf8');
  const named = guide.matchAll(/^\| ((?:`[a-z-]+`(?:, )?)+) +\|/gm);
  const names = Array.from(named, ([, cell = '']) => cell.replaceAll('`', '').split(', ')).flat();
  expect(CAPABILITIES.filter((name) => !names.includes(name))).toEqual([]);
});
