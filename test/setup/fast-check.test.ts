import { expect, test } from '@jest/globals';
import fc from 'fast-check';

test('properties have the same seed each time, except in npm run test:long', () => {
  expect(fc.readConfigureGlobal()?.seed).toBe(process.env.TOOLWRIGHT_RUNS === undefined ? 1 : undefined);
});
