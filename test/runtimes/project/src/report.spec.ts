import { writeFileSync } from 'node:fs';
import { report } from './report.js';

/** Jest's global function, declared here because the project has no types for Jest. */
declare function test(name: string, body: () => Promise<void>): void;

test('reports', async () => {
  writeFileSync('jest-report.json', await report());
});
