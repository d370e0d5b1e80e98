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
    'the same by another year’s name',
    { module: 'Node20', moduleResolution: 'Node16' },
    'module',
    './tools.js',
  ],
  ['Node’s resolution in a CommonJS package', { module: 'NodeNext' }, 'commonjs', './tools'],
  ['a bundler', BUNDLER, 'module', './tools'],
  ['a bundler that keeps what is written', { module: 'Preserve' }, 'module', './tools'],
  ['ES modules that the compiler writes for Node', { ...BUNDLER, ...EMITS }, 'module', './tools.js'],
  [
    'declarations only',
    { ...BUNDLER, ...EMITS, declaration: true, emitDeclarationOnly: true },
    'module',
    './tools',
  ],
  ['CommonJS by a bundler', { ...BUNDLER, ...EMITS }, 'commonjs', './tools'],
  ['endings of TypeScript', { ...BUNDLER, allowImportingTsExtensions: true }, 'module', './tools.ts'],
  [
    'endings of TypeScript in Node',
    { module: 'NodeNext', allowImportingTsExtensions: true },
    'module',
    './tools.ts',
  ],
  [
    'endings that are rewritten',
    { module: 'NodeNext', rewriteRelativeImportExtensions: true, ...EMITS },
    'module',
    './tools.ts',
  ],
];

describe('relative imports of the generated file end as the compiler’s options want it', () => {
  test.each(CASES)('%s', async (_, options, type, specifier) => {
    using project = smallProject({ 'src/tools.ts': TOOLS }, options);
    project.write('package.json', JSON.stringify({ name: 'small', ...(type === 'module' ? { type } : {}) }));
    // Neither files that others generate nor names with a point in them say anything.
    project.write(
      'src/types/a.ts',
      "import './b.js';\nimport { c } from './c.service.js';\nexport const d = c;\n",
    );
    expect(await endingIn(project.folder, '7.0')).toBe(specifier);
  });

  test.each(VERSIONS)(
    'the same under TypeScript %s',
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

  test('also with the options of TypeScript 5.9 that 7 does not have', async () => {
    const classic = { module: 'CommonJS', moduleResolution: 'Node10' };
    using project = smallProject({ 'src/tools.ts': TOOLS }, classic);
    expect(await endingIn(project.folder, '5.9')).toBe('./tools');
  }, 60_000);

  test('.mts is always written, as .mjs', async () => {
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
