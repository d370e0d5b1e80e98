import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { type Generated, generate } from '../../../src/dev/typegen/generate.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { type SmallProject, smallProject } from './small-project.js';

afterAll(closeCompilers);

const ENTRY_POINT = join(import.meta.dirname, 'fixtures/toolwright.ts');
const LIBRARY = {
  'libs/shop/src/index.ts':
    "export { ShopTools } from './shop-tools';\nexport { ShopModule } from './shop-module';\n",
  'libs/shop/src/shop-tools.ts': `import { Tool } from 'toolwright';
    export class Order { id!: string; }
    export class ShopTools { @Tool('Orders') orders(order: Order) { return order.id; } }`,
  'libs/shop/src/shop-module.ts': `import { ShopTools } from './shop-tools';
    import { StockTools } from './stock/stock-tools';
    export class ShopModule { providers = [ShopTools, StockTools]; }`,
  'libs/shop/src/stock/stock-tools.ts': `import { Tool } from 'toolwright';
    export class StockTools { @Tool('Stock') stock(sku: string) { return sku; } }`,
  'libs/other/src/index.ts': `import { Tool } from 'toolwright';
    export class OtherTools { @Tool('Other') other(sku: string) { return sku; } }`,
};
const MAIN = "import { ShopModule } from '@app/shop';\nexport const modules = [ShopModule];\n";

/** The layout of a monorepo of the Nest CLI: all applications extend the configuration with the paths. */
function monorepo(files: Readonly<Record<string, string>>): SmallProject {
  const project = smallProject(files);
  const paths = {
    toolwright: [ENTRY_POINT],
    '@app/shop': ['./libs/shop/src'],
    '@app/shop/*': ['./libs/shop/src/*'],
    '@app/other': ['./libs/other/src/index.ts'],
  };
  const compilerOptions = {
    module: 'ESNext',
    moduleResolution: 'Bundler',
    target: 'ES2023',
    lib: ['ES2023'],
    noEmit: true,
    strict: true,
  };
  const text = JSON.stringify({
    compilerOptions: {
      ...compilerOptions,
      experimentalDecorators: true,
      types: [],
      skipLibCheck: true,
      paths,
    },
  });
  project.write('tsconfig.json', text);
  project.write('apps/api/tsconfig.app.json', '{ "extends": "../../tsconfig.json", "include": ["src"] }');
  return project;
}

describe.each(VERSIONS)('libraries that tsconfig.json maps to their sources, TypeScript %s', (version) => {
  test('belong to the project, and their exports are imported by their mapped names', async () => {
    using project = monorepo({ ...LIBRARY, 'apps/api/src/main.ts': MAIN });
    const { text, outFile, faults, warnings } = await generatedFor(project, version);
    expect([...faults, ...warnings]).toEqual([]);
    expect(outFile).toBe(`${project.folder}/apps/api/src/toolwright.gen.ts`);
    expect(text).toContain("import { ShopTools } from '@app/shop';");
    // A class that the library does not export is imported from its file.
    expect(text).toContain("import { Order } from '../../../libs/shop/src/shop-tools';");
    expect(text).toContain("import { StockTools } from '../../../libs/shop/src/stock/stock-tools';");
    expect(text).toContain('export const toolsets = [ShopTools, StockTools];');
  }, 60_000);
});

test('a mapped library that the project does not import is not included', async () => {
  const own = LIBRARY['libs/other/src/index.ts'].replaceAll('Other', 'Own');
  using project = monorepo({ ...LIBRARY, 'apps/api/src/main.ts': own });
  expect((await generatedFor(project, '7.0')).text).toContain('export const toolsets = [OwnTools];');
});

test('a path pattern for everything does not make packages part of the project', async () => {
  using project = monorepo({ ...LIBRARY, 'apps/api/src/main.ts': MAIN });
  const wide = {
    '*': ['./node_modules/*', './types/*'],
    toolwright: [ENTRY_POINT],
    '@app/shop': ['./libs/shop/src'],
  };
  const options = {
    module: 'ESNext',
    moduleResolution: 'Bundler',
    lib: ['ES2023'],
    experimentalDecorators: true,
    skipLibCheck: true,
  };
  project.write('tsconfig.json', JSON.stringify({ compilerOptions: { ...options, types: [], paths: wide } }));
  expect((await generatedFor(project, '7.0')).text).toContain(
    'export const toolsets = [ShopTools, StockTools];',
  );
});

async function generatedFor(
  { folder }: SmallProject,
  version: (typeof VERSIONS)[number],
): Promise<Generated> {
  const app = join(folder, 'apps/api');
  const view = (await compilerOf(version)).open(join(app, 'tsconfig.app.json'));
  expect(view.problems()).toEqual([]);
  return generate({ view, folder: app });
}
