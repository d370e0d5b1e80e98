import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { describeClasses } from '../../../src/dev/typegen/describe-classes.js';
import { generate } from '../../../src/dev/typegen/generate.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { generateTool, smallProject } from './small-project.js';

afterAll(closeCompilers);

test('a class named like a built-in class is not confused with it', async () => {
  const { faults, text } = await generateTool(
    '  @Tool() run(town: Town, prices: Map<string, number>, at: Date) {}',
    "import { Map as Town } from './map.js';",
    { 'src/map.ts': "export class Map { title = ''; }\n" },
  );
  expect(faults).toEqual([]);
  expect(text).toContain("import { Map as Map2 } from './map.js';");
  expect(text).toContain("{ name: 'town', schema: { instanceOf: Map2 } }");
  expect(text).toMatch(/additionalProperties: \{ type: 'number' \},\s+instanceOf: Map\b/);
});

test('toolwright generate restricts the keys of a Map with number keys', async () => {
  const { faults, text } = await generateTool(
    '  @Tool() run(prices: Map<number, string>, names: Map<1 | 2, string>, others: Map<string, string>) {}',
    '',
  );
  expect(faults).toEqual([]);
  expect(text.match(/propertyNames/g)).toHaveLength(2);
});

test('toolwright generate ignores the methods of a DTO class with decorated properties', async () => {
  const { faults, text } = await generateTool(
    '  @Tool() run(data: Order) {}',
    `import { IsEmail } from 'class-validator';
     class Base { static of() {} sum() { return 1; } }
     export class Order extends Base { @IsEmail() email!: string; count = 1; total() { return this.count; } }`,
  );
  expect(faults).toEqual([]);
  expect(text.replace(/\s+/g, ' ')).toContain(
    "properties: { email: { schema: { type: 'string' } }, count: { optional: true, schema: { type: 'number', default: 1 } }, }, });",
  );
});

test('toolwright generate reports a property of a DTO class that holds a function', async () => {
  const { faults } = await generateTool(
    '  @Tool() run(data: Order) {}',
    `import { IsEmail } from 'class-validator';
     export class Order { @IsEmail() email!: string; total = () => 1; }`,
  );
  expect(faults.map(({ path, problem }) => [path, problem])).toEqual([
    ['total', 'is a function, which JSON cannot represent'],
  ]);
});

test('the initializer of a parameter property becomes its default', async () => {
  const { text } = await generateTool(
    '  @Tool() run(at: Point, b: string) {}',
    'export class Point { constructor(public x: number, public y = 2, private z = 3) {} }',
  );
  expect(text.replace(/\s+/g, ' ')).toContain(
    "properties: { x: { schema: { type: 'number' } }, y: { optional: true, schema: { type: 'number', default: 2 } }, }, });",
  );
});

const SHARED = `import { IsEmail } from 'class-validator';
  export class Line { sku!: string; }
  export class Signup { @IsEmail() email!: string; lines: Line[] = []; }
  export class Mailer { constructor(readonly clock: Clock) {} send() { return this.clock.now(); } }
  export class Clock { now() { return 1; } }
`;
const TOOLS = `import { Tool } from 'toolwright';
  import type { Signup } from '@small/shared';
  import { Mailer } from '@small/shared';
  export class Tools {
    constructor(readonly mailer: Mailer) {}
    @Tool() run(data: Signup) { return [this.mailer.send(), data.email].join(); }
  }
`;

describe.each(VERSIONS)('toolwright generate, TypeScript %s', (version) => {
  test('restricts the keys of a Map to the values of their type', async () => {
    using project = smallProject({
      'src/tools.ts': `import { Tool } from 'toolwright';
        enum Size { Small = 's', Large = 'l' }
        type Key = \`x-\${string}\`;
        export class Tools {
          @Tool() a(map: Map<Size, number>) {}
          @Tool() b(map: ReadonlyMap<'z' | 'a', number>) {}
          @Tool() c(map: Map<Key | 'id', number>) {}
          @Tool() d(map: Map<2 | 1, number>) {}
          @Tool() e(map: Map<string, number>, other: Map<string | 5, number>) {}
        }`,
    });
    const { text } = await generatedTools(project.folder, version);
    expect([...text.matchAll(/propertyNames: (\{[^}]*\})/g)].map(([, names]) => names)).toEqual([
      "{ enum: ['s', 'l'] }",
      "{ enum: ['z', 'a'] }",
      String.raw`{ pattern: '^(?:x-[\\s\\S]*|id)$' }`,
      String.raw`{ pattern: '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$', enum: ['2', '1'] }`,
    ]);
  });

  test('uses the comment of an enum for the whole enum, but not for a single member', async () => {
    using project = smallProject({
      'src/tools.ts': `import { Tool } from 'toolwright';
        /** Sort order of the list. */
        export enum Order {
          /** The smallest first */
          Up = 'up',
          Down = 'down',
        }
        interface Query { order: Order; maybe?: Order | null; /** Own. */ own: Order; one: Order.Down }
        export class Tools { @Tool() run(query: Query) {} }`,
    });
    const { tools } = await generatedTools(project.folder, version);
    const properties = tools[0]?.parameters[0]?.schema?.properties;
    const notes = '- `up`: The smallest first';
    expect(properties).toEqual({
      order: { type: 'string', enum: ['up', 'down'], description: `Sort order of the list.\n${notes}` },
      maybe: {
        type: ['string', 'null'],
        enum: ['up', 'down', null],
        description: `Sort order of the list.\n${notes}`,
      },
      own: { type: 'string', enum: ['up', 'down'], description: `Own.\n${notes}` },
      one: { type: 'string', const: 'down' },
    });
  });

  test('ignores the brand of lists, dates and collections', async () => {
    using project = smallProject({
      'src/tools.ts': `import { Tool } from 'toolwright';
        type Brand = { readonly __brand: 'x' };
        export class Tools {
          @Tool() run(list: string[] & Brand, pair: Brand & readonly [string, number], at: Date & Brand) {}
          @Tool() other(set: Set<string> & Brand, map: Brand & Map<string, number>) {}
        }`,
    });
    const { tools } = await generatedTools(project.folder, version);
    const [list, pair, at, set, map] = tools.flatMap(({ parameters }) =>
      parameters.map(({ schema }) => schema),
    );
    expect(list).toEqual({ type: 'array', items: { type: 'string' } });
    expect(pair).toMatchObject({ prefixItems: [{ type: 'string' }, { type: 'number' }], maxItems: 2 });
    expect(at).toMatchObject({ format: 'date-time', instanceOf: { name: 'Date' } });
    expect(set).toMatchObject({ items: { type: 'string' }, instanceOf: { name: 'Set' } });
    expect(map).toMatchObject({ additionalProperties: { type: 'number' }, instanceOf: { name: 'Map' } });
  });
});

/** Generates the file of a project with one toolset. */
async function generatedTools(folder: string, version: (typeof VERSIONS)[number]) {
  const view = (await compilerOf(version)).open(join(folder, 'tsconfig.json'));
  const { faults, text } = generate({ view, folder });
  expect(faults).toEqual([]);
  const [draft] = describeClasses(view).drafts;
  return { text, tools: Object.values(draft?.tools ?? {}) };
}

describe.each(VERSIONS)('classes of another package in the workspace, TypeScript %s', (version) => {
  test('are imported from that package and described from its source', async () => {
    using project = workspace({ 'shared/src/index.ts': SHARED });
    expect(await generatedFrom(project.folder, version)).toBe(`\
// Generated by \`toolwright generate\`. Do not edit.
import { describeClass } from 'toolwright/decorators';
import { Clock, Line, Mailer, Signup } from '@small/shared';
import { Tools } from './tools.js';

describeClass(Tools, {
  dependencies: [Mailer],
  tools: {
    run: {
      parameters: [{ name: 'data', schema: { instanceOf: Signup } }],
      output: { type: 'string' },
    },
  },
});

describeClass(Signup, {
  name: 'Signup',
  properties: {
    email: { schema: { type: 'string' } },
    lines: { optional: true, schema: { type: 'array', items: { instanceOf: Line }, default: [] } },
  },
});

describeClass(Line, {
  name: 'Line',
  properties: { sku: { schema: { type: 'string' } } },
});

describeClass(Mailer, {
  dependencies: [Clock],
});

/** The toolsets of this project: \`discoverTools({ toolsets })\`. */
export const toolsets = [Tools];
`);
  });
});

test('DTO classes are also read from the declaration files of a package', async () => {
  const declarations = `export declare class Line { sku: string; }
      export declare class Signup { email: string; lines: Line[]; }
      export declare class Mailer { constructor(clock: object); send(): number; }`;
  using project = workspace({ 'shared/dist/index.d.ts': declarations });
  const text = await generatedFrom(project.folder, '7.0');
  expect(text).toContain("import { Line, Mailer, Signup } from '@small/shared';");
  expect(text).toContain("{ name: 'data', schema: { instanceOf: Signup } }");
  expect(text).toContain("properties: { sku: { schema: { type: 'string' } } }");
});

/** Two packages, the first with a project reference to the second, as `tsc -b` requires it. */
function workspace(files: Readonly<Record<string, string>>) {
  const options = { composite: true, noEmit: false, rootDir: 'src', outDir: 'dist' };
  const project = smallProject({}, options);
  const base = '../tsconfig.json';
  const source = Object.hasOwn(files, 'shared/src/index.ts');
  project.write(
    'shared/package.json',
    JSON.stringify({ name: '@small/shared', type: 'module', exports: './dist/index.js' }),
  );
  const compilerOptions = { rootDir: 'src', outDir: 'dist' };
  project.write('shared/tsconfig.json', JSON.stringify({ extends: base, compilerOptions, include: ['src'] }));
  project.write('app/package.json', JSON.stringify({ name: 'app', type: 'module' }));
  const references = source ? [{ path: '../shared' }] : [];
  project.write(
    'app/tsconfig.json',
    JSON.stringify({ extends: base, compilerOptions, include: ['src'], references }),
  );
  project.write('app/src/tools.ts', TOOLS);
  for (const [path, text] of Object.entries(files)) project.write(path, text);
  project.link('app/node_modules/@small/shared', 'shared');
  return project;
}

async function generatedFrom(folder: string, version: (typeof VERSIONS)[number]): Promise<string> {
  const app = join(folder, 'app');
  const view = (await compilerOf(version)).open(join(app, 'tsconfig.json'));
  expect(view.problems()).toEqual([]);
  const { text, faults, warnings } = generate({ view, folder: app });
  expect([...faults, ...warnings]).toEqual([]);
  return text;
}
