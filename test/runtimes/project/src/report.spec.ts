import { writeFileSync } from 'node:fs';
import { report } from './report.js';

/** Jest's own, without a package for it. */
declare function test(name: string, body: () => Promise<void>): void;

test('reports', async () => {
  writeFileSync('jest-report.json', await report());
});
