import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { generate } from '../../../src/dev/typegen/generate.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { smallProject } from './small-project.js';

afterAll(closeCompilers);

const TOOLS =
  "import { Tool } from 'toolwright';\nexport class Tools {\n  @Tool('A') a(x: string) { return x; }\n}\n";

const EMITS = { noEmit: false, outDir: 'dist' };
const BUNDLER = { module: 'ESNext', moduleResolution: 'Bundler' };

const CASES: readonly (readonly [string, object, 'module' | 'commonjs', string])[] = [
  ['Node’s resolution of ES modules', { module: 'NodeNext' }, 'module', './tools.js'],
  [
    'older names of this resolution',
    { module: 'Node20', moduleResolution: 'Node16' },
    'module',
    './tools.js',
  ],
  ['Node’s resolution in a CommonJS package', { module: 'NodeNext' }, 'commonjs', './tools'],
  ['a bundler', BUNDLER, 'module', './tools'],
  ['module: Preserve', { module: 'Preserve' }, 'module', './tools'],
  ['ES modules emitted by the compiler', { ...BUNDLER, ...EMITS }, 'module', './tools.js'],
  [
    'declarations only',
    { ...BUNDLER, ...EMITS, declaration: true, emitDeclarationOnly: true },
    'module',
    './tools',
  ],
  ['Bundler resolution in a CommonJS package', { ...BUNDLER, ...EMITS }, 'commonjs', './tools'],
  ['allowImportingTsExtensions', { ...BUNDLER, allowImportingTsExtensions: true }, 'module', './tools.ts'],
  [
    'allowImportingTsExtensions in Node',
    { module: 'NodeNext', allowImportingTsExtensions: true },
    'module',
    './tools.ts',
  ],
  [
    'rewriteRelativeImportExtensions',
    { module: 'NodeNext', rewriteRelativeImportExtensions: true, ...EMITS },
    'module',
    './tools.ts',
  ],
];

describe('the ending of relative imports in the generated file follows the compiler options', () => {
  test.each(CASES)('with %s', async (_, options, type, specifier) => {
    using project = smallProject({ 'src/tools.ts': TOOLS }, options);
    project.write('package.json', JSON.stringify({ name: 'small', ...(type === 'module' ? { type } : {}) }));
    // Imports in other generated files and names with a dot do not decide the ending.
    project.write(
      'src/types/a.ts',
      "import './b.js';\nimport { c } from './c.service.js';\nexport const d = c;\n",
    );
    expect(await endingIn(project.folder, '7.0')).toBe(specifier);
  });

  test.each(VERSIONS)(
    'with TypeScript %s',
    async (version) => {
      using node = smallProject({ 'src/tools.ts': TOOLS });
      expect(await endingIn(node.folder, version)).toBe('./tools.js');
      using bundled = smallProject({ 'src/tools.ts': TOOLS }, BUNDLER);
      expect(await endingIn(bundled.folder, version)).toBe('./tools');
      using typed = smallProject({ 'src/tools.ts': TOOLS }, { ...BUNDLER, allowImportingTsExtensions: true });
      expect(await endingIn(typed.folder, version)).toBe('./tools.ts');
    },
    60_000,
  );

  test('with options that exist in TypeScript 5.9 but not in 7', async () => {
    const classic = { module: 'CommonJS', moduleResolution: 'Node10' };
    using project = smallProject({ 'src/tools.ts': TOOLS }, classic);
    expect(await endingIn(project.folder, '5.9')).toBe('./tools');
  }, 60_000);

  test('a .mts file is always imported as .mjs', async () => {
    using project = smallProject({ 'src/tools.mts': TOOLS }, { module: 'NodeNext' });
    project.write('package.json', JSON.stringify({ name: 'small' }));
    expect(await endingIn(project.folder, '7.0')).toBe('./tools.mjs');
  });
});

async function endingIn(folder: string, version: (typeof VERSIONS)[number]): Promise<string | undefined> {
  const view = (await compilerOf(version)).open(join(folder, 'tsconfig.json'));
  const { text, faults } = generate({ view, folder });
  expect(faults).toEqual([]);
  return /import \{ Tools \} from '([^']+)'/.exec(text)?.[1];
}
