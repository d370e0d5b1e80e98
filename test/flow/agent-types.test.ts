import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';

/** The packages that a declaration file imports, directly or through other files. */
function packagesOf(entryPoint: string): readonly string[] {
  const files = new Set([entryPoint]);
  const packages = new Set<string>();
  for (const file of files) {
    const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    for (const [, name = ''] of text.matchAll(/(?:from |import\(|import )['"]([^'"]+)['"]/g)) {
      if (name.startsWith('.')) files.add(join(dirname(file), name.replace(/\.js$/, '.d.ts')));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  }
  return [...packages].sort();
}

test('the types of createAgent import no optional packages', () => {
  expect(packagesOf(builtFile('dist/src/toolbox/agent/index.d.ts'))).toEqual(['reflect-metadata/lite']);
  expect(packagesOf(builtFile('dist/src/surfaces/mcp/index.d.ts'))).toContain('@modelcontextprotocol/server');
});
