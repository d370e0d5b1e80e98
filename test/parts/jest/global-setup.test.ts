import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import generateBeforeTests from 'toolwright/jest';
import { smallProject } from '../typegen/small-project.js';

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";

test('Jest’s globalSetup generates in rootDir, and rejects with the errors of the command', async () => {
  using project = smallProject({ 'src/tools.ts': TOOLS });
  await generateBeforeTests({ rootDir: project.folder });
  expect(readFileSync(join(project.folder, 'src/toolwright.gen.ts'), 'utf8')).toContain("name: 'x'");
  project.write('src/tools.ts', TOOLS.replace('x: string', 'x: symbol'));
  await expect(generateBeforeTests({ rootDir: project.folder })).rejects.toThrow(
    'src/tools.ts:3 Tools.a, parameter x: x is a symbol, which JSON cannot represent.',
  );
});

test('Jest’s globalSetup uses the nearest tsconfig.json if rootDir is a subfolder of the project', async () => {
  using project = smallProject({ 'src/tools.ts': TOOLS });
  await generateBeforeTests({ rootDir: join(project.folder, 'src') });
  expect(readFileSync(join(project.folder, 'src/toolwright.gen.ts'), 'utf8')).toContain("name: 'x'");
});
