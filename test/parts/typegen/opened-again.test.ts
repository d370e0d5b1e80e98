import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import type { CompilerView } from '../../../src/dev/typegen/load-compiler.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { smallProject } from './small-project.js';

afterAll(closeCompilers);

describe.each(VERSIONS)('a project that is opened again, TypeScript %s', (version) => {
  test('has the current files, texts and extended options from disk', async () => {
    using project = smallProject({ 'src/a.ts': 'export const a = 1;', 'src/gone.ts': 'export {};' });
    project.write('tsconfig.json', '{ "extends": "./base.json", "include": ["src"] }');
    project.write('base.json', baseOf({ module: 'NodeNext' }));
    const compiler = await compilerOf(version);
    const open = () => stateOf(compiler.open(join(project.folder, 'tsconfig.json')), project.folder);
    expect(open()).toEqual({
      files: ['src/a.ts: export const a = 1;', 'src/gone.ts: export {};'],
      module: 199,
    });
    rmSync(join(project.folder, 'src/gone.ts'));
    project.write('src/a.ts', 'export const a = 2;');
    project.write('src/deep/new.ts', 'export {};');
    project.write('base.json', baseOf({ module: 'ESNext', moduleResolution: 'Bundler' }));
    expect(open()).toEqual({
      files: ['src/a.ts: export const a = 2;', 'src/deep/new.ts: export {};'],
      module: 99,
    });
  }, 60_000);
});

/** Without lib, because the files contain no types and loading it is slow. */
function baseOf(options: object): string {
  return JSON.stringify({ compilerOptions: { noLib: true, types: [], ...options } });
}

function stateOf(view: CompilerView, folder: string) {
  const files = view.projectFiles().map(({ path, text }) => `${path.slice(folder.length + 1)}: ${text}`);
  return { files, module: view.options.module };
}
