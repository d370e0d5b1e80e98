// Runs before each test file: activates the mutant and records which mutants the tests execute.
import { appendFileSync } from 'node:fs';
import { afterAll, expect } from '@jest/globals';

const active = Number(process.env.TOOLWRIGHT_MUTANT ?? -1);
const covered = new Set();
const startedAt = Date.now();

globalThis.__mutant = (id) => {
  covered.add(id);
  return id === active;
};

afterAll(() => {
  const file = process.env.TOOLWRIGHT_COVERED;
  if (file === undefined) return;
  const { testPath } = expect.getState();
  appendFileSync(file, `${JSON.stringify({ testPath, ms: Date.now() - startedAt, ids: [...covered] })}\n`);
});
