// Runs in the environment of each test file, before it: which change is active, and which were passed.
import { appendFileSync } from 'node:fs';
import { afterAll, expect } from '@jest/globals';

const active = Number(process.env.TOOLWRIGHT_MUTANT ?? -1);
const passed = new Set();
const began = Date.now();

globalThis.__mutant = (id) => {
  passed.add(id);
  return id === active;
};

afterAll(() => {
  const file = process.env.TOOLWRIGHT_PASSED;
  if (file === undefined) return;
  const { testPath } = expect.getState();
  appendFileSync(file, `${JSON.stringify({ testPath, ms: Date.now() - began, ids: [...passed] })}\n`);
});
