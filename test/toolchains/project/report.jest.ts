import { writeFileSync } from 'node:fs';
import { test } from '@jest/globals';
import { report } from './src/report.js';

test('reports', async () => {
  writeFileSync('report.json', await report());
});
