import { expect, test } from '@jest/globals';
import fc from 'fast-check';

test('properties have the same cases each time, but for npm run test:long', () => {
  expect(fc.readConfigureGlobal()?.seed).toBe(process.env.TOOLWRIGHT_RUNS === undefined ? 1 : undefined);
});
