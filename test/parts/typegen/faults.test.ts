import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { generate } from '../../../src/dev/typegen/generate.js';
import { ROOT } from '../../structure/repository.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { generateFrom, generateTool, smallProject } from './small-project.js';

afterAll(closeCompilers);

const CASES: readonly (readonly [
  string,
  { readonly before?: string; readonly param: string; readonly path: string; readonly problem: string },
])[] = [
  ['a function', { param: 'x: () => void', path: 'x', problem: 'is a function' }],
  [
    'a function in an array in a property',
    { param: 'x: { a: { b: (() => void)[] } }', path: 'x.a.b[]', problem: 'is a function' },
  ],
  [
    'a method of an interface',
    {
      before: 'interface I { run(): void }',
      param: 'x: I',
      path: 'x',
      problem: 'is I, which has methods (run)',
    },
  ],
  [
    'a DOM element',
    {
      param: 'x: { at: HTMLElement }',
      path: 'x.at',
      problem: 'is HTMLElement, which has methods (addEventListener,',
    },
  ],
  [
    'a partial DOM element',
    { param: 'x: Partial<HTMLElement>', path: 'x', problem: 'is Partial<HTMLElement>, which has methods (' },
  ],
  [
    'a request of Express',
    {
      before: "import type { Request } from 'express';",
      param: 'x: Request',
      path: 'x',
      problem: 'is Request<',
    },
  ],
  [
    'an iterable',
    {
      param: 'x: Iterable<string>',
      path: 'x',
      problem: 'is Iterable<string>, which has methods (an iterator)',
    },
  ],
  ['a symbol', { param: 'x: symbol', path: 'x', problem: 'is a symbol' }],
  [
    'a type parameter',
    {
      param: 'x: { id: string }): void {}\n  @Tool() other<T>(y: T',
      path: 'y',
      problem: 'is T, a generic type',
    },
  ],
  ['never', { param: 'x: never', path: 'x', problem: 'is never' }],
  ['undefined', { param: 'x: undefined', path: 'x', problem: 'has no value in JSON' }],
  ['a promise', { param: 'x: Record<string, Promise<string>>', path: 'x{}', problem: 'is a promise' }],
  [
    'a Map with Date keys',
    { param: 'x: Map<Date, string>', path: 'x', problem: 'is a Map whose keys are Date' },
  ],
  [
    'a Map with object keys in a property',
    {
      param: 'x: { a: ReadonlyMap<{ id: number }, string> }',
      path: 'x.a',
      problem: 'keys are { id: number; }',
    },
  ],
  [
    'a Map with string or object keys',
    { param: 'x: Map<string | RegExp, 1>', path: 'x', problem: 'keys are RegExp' },
  ],
  ['a Map with array keys', { param: 'x: Map<string[], 1>[]', path: 'x[]', problem: 'keys are string[]' }],
  ['a Map with boolean keys', { param: 'x: Map<boolean, 1>', path: 'x', problem: 'keys are boolean' }],
  ['a Map with bigint keys', { param: 'x: Map<bigint, 1>', path: 'x', problem: 'keys are bigint' }],
  ['a Map with symbol keys', { param: 'x: Map<symbol, 1>', path: 'x', problem: 'keys are symbol' }],
  ['an ArrayBuffer', { param: 'x: [ArrayBuffer]', path: 'x[0]', problem: 'is an ArrayBuffer' }],
  [
    'a class with methods',
    {
      before: 'export class Money { cents = 0; add() {} }',
      param: 'x: Money',
      path: 'x',
      problem: 'is the class Money, which has methods (add)',
    },
  ],
  [
    'a class that is not exported',
    {
      before: 'class Line { sku = "" }',
      param: 'x: Line',
      path: 'x',
      problem: 'is the class Line, which is not exported',
    },
  ],
  [
    'a class whose constructor uses its arguments',
    {
      before: 'export class P { x: number; constructor(at: { x: number }) { this.x = at.x; } }',
      param: 'x: P',
      path: 'x',
      problem: 'is the class P, whose constructor uses its arguments',
    },
  ],
  [
    'an abstract class',
    {
      before: 'export abstract class P { x = 1 }',
      param: 'x: P',
      path: 'x',
      problem: 'cannot be called, because it is abstract',
    },
  ],
  [
    'an infinite type',
    {
      before: 'type Deep<T> = { value: T; next?: Deep<T[]> };',
      param: 'x: Deep<string>',
      path: '',
      problem: 'has an infinitely nested type',
    },
  ],
  [
    'an invalid pattern',
    { param: '/** @pattern ( */ x: string', path: 'x', problem: 'has a @pattern that cannot be read: "("' },
  ],
  [
    'a bound that is not a number',
    {
      before: 'interface I { /** @minimum two */ size: number }',
      param: 'x: I',
      path: 'x.size',
      problem: 'has a @minimum that cannot be read: "two"',
    },
  ],
];

describe('types without a schema are reported with their place', () => {
  test.each(CASES)('%s is reported', async (_, { before, param, path, problem }) => {
    const { faults } = await generateTool(`  @Tool() run(${param}): void {}`, before);
    expect(faults).toHaveLength(1);
    const [fault] = faults;
    expect(fault?.problem).toContain(problem);
    expect(fault?.path?.startsWith(path)).toBe(true);
    expect(fault?.file.endsWith('/src/tools.ts')).toBe(true);
    expect(fault?.where).toMatch(/^Tools\.(run|other), parameter [xy]$/);
    expect(fault?.fix).not.toBe('');
  });

  test('a tag of a @param without a valid value is reported with the value it needs', async () => {
    const { faults } = await generateTool(
      '  /** @param x Size @minimum high @maximum 3 */\n  @Tool() run(x: number) {}',
    );
    expect(faults.map(({ path, problem, fix }) => [path, problem, fix])).toEqual([
      ['x', 'has a @minimum that cannot be read: "high"', '@minimum with a number'],
    ]);
  });

  test('several faults are reported together, each with its line', async () => {
    const { faults } = await generateTool(
      '  @Tool() run(a: symbol,\n    b: number,\n    c: { d: () => void }) {}',
    );
    expect(faults.map(({ where, path, line }) => [where, path, line])).toEqual([
      ['Tools.run, parameter a', 'a', 4],
      ['Tools.run, parameter c', 'c.d', 6],
    ]);
  });

  test('a type with too many properties is reported once', async () => {
    const before = `type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';
      type Wide = { [name in \`p\${Digit}\${Digit}\${Digit}\`]: { a: string; b: string } };`;
    const { faults, warnings } = await generateTool('  @Tool() run(x: Wide): Wide { return x; }', before);
    const problem = 'has a type with more than 2000 properties, including nested properties';
    expect(faults).toMatchObject([{ where: 'Tools.run, parameter x', path: '', problem }]);
    expect(warnings).toMatchObject([{ where: 'Tools.run, its result', path: '', problem }]);
  });

  test('only the first ten faults of a type are reported', async () => {
    const functions = Array.from({ length: 100 }, (_, index) => `f${index}: () => void`).join('; ');
    const { faults } = await generateTool(`  @Tool() run(x: { ${functions} }, y: symbol) {}`);
    const paths = faults.map(({ path }) => path);
    expect([paths.length, paths[0], paths[9], paths[10]]).toEqual([11, 'x.f0', 'x.f9', 'y']);
  });

  test('a property of a DTO class is reported once, even if several tools use the class', async () => {
    const before = 'export class Dto { name = ""; fn!: () => void }';
    const { faults } = await generateTool('  @Tool() run(a: Dto, b: Dto[]) {}', before);
    expect(faults.map(({ where, path }) => [where, path])).toEqual([['Dto', 'fn']]);
  });
});

describe('toolwright generate refuses what discovery cannot use', () => {
  test('a destructured parameter that does not take all arguments', async () => {
    const { faults } = await generateTool(
      '  @Tool() run({ a }: { a: string },\n  b: number) {}\n  @Tool() lone({ a }: { a: string }) {}',
    );
    expect(faults.map(({ where, problem, line }) => [where, problem, line])).toEqual([
      ['Tools.run, parameter #0', 'is destructured, so it has no name for the model', 4],
      ['Tools.lone, parameter #0', 'is destructured, so it has no name for the model', 6],
    ]);
  });

  test('but accepts a destructured parameter that takes all arguments, has a name or is filled by a decorator', async () => {
    const { faults } = await generateTool(
      `  @Tool() dto({ a }: Dto, context: ToolContext) {}
  @Tool() args(@Args() { a }: { a: string }) {}
  @Tool() named(@Param({ name: 'at' }) { a }: { a: string }, b: number) {}
  @Tool() filled(@Req() { a }: { a: string }) {}
  @Tool({ parameters: { type: 'object' } }) explicit({ a }: { a: string }) {}`,
      "import { Req } from '@nestjs/common'; export class Dto { a = ''; }",
    );
    expect(faults).toEqual([]);
  });

  test('a generic toolset that is neither abstract nor extended', async () => {
    const { faults } = await generateFrom({
      'src/tools.ts': `import { Tool, Toolset } from 'toolwright';
        @Toolset() export class Open<T> { @Tool('A') a(x: T) {} }
        @Toolset() export abstract class Base<T> { @Tool('A') a(x: T) {} }
        export class Bare<T> { @Tool('A') a(x: T) {} }
        @Toolset() export class Closed extends Base<string> {}`,
    });
    expect(faults.map(({ where, problem, line }) => [where, problem, line])).toEqual([
      ['Open', 'is a generic toolset whose type parameters are unknown', 2],
    ]);
  });
});

describe('a class whose file imports the generated file', () => {
  const TOOLS = "import { Tool } from 'toolwright';\nexport class Tools { @Tool('A') a(x: string) {} }\n";
  const faultsOf = async (line: string) => (await generateFrom({ 'src/tools.ts': line + TOOLS })).faults;

  test.each([
    ["import { toolsets } from './toolwright.gen.js';\n", 1],
    ["\n// All of them.\nimport './toolwright.gen';\n", 3],
    ["export * from '../src/toolwright.gen.ts';\n", 1],
  ])('is refused with %j', async (line, number) => {
    const [fault, ...others] = await faultsOf(line);
    expect(others).toEqual([]);
    expect(fault).toMatchObject({
      line: number,
      where: 'Tools',
      file: expect.stringMatching(/src\/tools\.ts$/),
    });
    expect(fault?.problem).toMatch(/^is in a file that imports the generated file \('\S+toolwright\.gen/);
    expect(fault?.fix).toContain('a separate file');
  });

  test.each(VERSIONS)(
    'is refused with a mapped import of an existing generated file, TypeScript %s',
    async (version) => {
      const files = {
        'src/tools.ts': `import '@/toolwright.gen.js';\nimport '@/old/toolwright.gen.js';\n${TOOLS}`,
        'src/toolwright.gen.ts': 'export const toolsets = [];\n',
        'src/old/toolwright.gen.ts': 'export const toolsets = [];\n',
      };
      const toolwright = [join(ROOT, 'test/parts/typegen/fixtures/toolwright.ts')];
      using project = smallProject(files, { paths: { toolwright, '@/*': ['./src/*'] } });
      const view = (await compilerOf(version)).open(join(project.folder, 'tsconfig.json'));
      const { faults } = generate({ view, folder: project.folder });
      expect(faults.map(({ line, where }) => [line, where])).toEqual([[1, 'Tools']]);
    },
  );

  test('is also refused if it is a DTO class', async () => {
    const { faults } = await generateFrom({
      'src/tools.ts': TOOLS.replace('x: string', 'x: Dto').replace(
        'export',
        "import { Dto } from './dto.js';\nexport",
      ),
      'src/dto.ts': "import './toolwright.gen.js';\nexport class Dto { a = '' }\n",
    });
    expect(faults.map(({ where }) => where)).toEqual(['Dto']);
  });

  test.each([
    "import type { toolsets } from './toolwright.gen.js';\n",
    "export type * from './toolwright.gen.js';\n",
    "import './other/toolwright.gen.js';\n",
    "const later = () => import('./toolwright.gen.js');\n",
  ])('is accepted if the import does not load the file: %j', async (line) => {
    expect(await faultsOf(line)).toEqual([]);
  });
});

describe('types that are not reported', () => {
  test('parameters with @Param({ schema }), @Tool({ parameters }) or @Context', async () => {
    const { faults, text } = await generateTool(`
      @Tool() run(@Param({ schema: {} }) a: () => void, @Param({ type: () => String }) b: symbol) {}
      @Tool({ parameters: { type: 'object' } }) explicit(a: symbol) {}
      @Tool() context(@Context() a: { fn(): void }, b: ToolContext | undefined, c?: AbortSignal) {}`);
    expect(faults).toEqual([]);
    expect(text).toContain("{ name: 'b', inject: 'context' }");
    expect(text).toContain("{ name: 'c', inject: 'signal' }");
  });

  test('parameters filled by decorators of another package', async () => {
    const before = `import { Body, createParamDecorator, Req } from '@nestjs/common';
      const CurrentUser = createParamDecorator(() => ({ id: '1' }));`;
    const { faults, text } = await generateTool(
      '  @Tool() run(@CurrentUser() me: { save(): void }, @CurrentUser() id: { id: string }, @Req() req: Request, @Body() a: { x: 1 }) {}',
      before,
    );
    expect(faults).toEqual([]);
    expect(text.replace(/\s+/g, ' ')).toContain(
      "parameters: [ { name: 'me' }, { name: 'id' }, { name: 'req' }, { name: 'a', schema:",
    );
  });

  test('properties of a DTO class with their own type or @Exclude', async () => {
    const before = `import { Exclude } from 'class-transformer';
      export class Dto { @Param({ type: () => String }) fn!: () => void; @Exclude() gone!: symbol; kept = 1 }`;
    const { faults, text } = await generateTool('  @Tool() run(a: Dto, b: string) {}', before);
    expect(faults).toEqual([]);
    expect(text).toContain('fn: { schema: {} },\n    kept: { optional: true');
    expect(text).not.toContain('gone');
  });

  test('a result without a schema gives a warning and no output schema', async () => {
    const { faults, warnings, text } = await generateTool('  @Tool() run<T>(): T[] { throw 0; }');
    expect(faults).toEqual([]);
    expect(warnings.map(({ where }) => where)).toEqual(['Tools.run, its result']);
    expect(text).not.toContain('output');
  });
});

describe('toolwright generate warns about', () => {
  test('a class that is not exported, and skips it', async () => {
    const { warnings, tools } = await generateFrom({
      'src/tools.ts':
        "import { Tool } from 'toolwright';\nclass Hidden { @Tool() run() {} }\nnew Hidden();\n",
    });
    expect(tools).toBe(0);
    expect(warnings.map(({ where, problem }) => `${where} ${problem}`)).toEqual([
      'Hidden is not exported, so nothing can be generated for it',
    ]);
  });

  test('a class in a namespace, because it cannot be imported', async () => {
    const { warnings } = await generateTool(
      '  @Tool() run() {}',
      'export namespace Inner { export class Hidden { @Tool() run() {} } }',
    );
    expect(warnings.map(({ where, line, fix }) => [where, line, fix])).toEqual([
      ['Hidden', 2, 'export class Hidden, at the top of its file'],
    ]);
  });

  test('a @param tag that matches no parameter', async () => {
    const { warnings } = await generateTool(
      '  /** @param old The old name */\n  @Tool() run(fresh: string) {}',
    );
    expect(warnings.map(({ problem }) => problem)).toEqual([
      'its comment describes the parameter old, which does not exist',
    ]);
  });

  test('a method whose name is a symbol or a text that the compiler does not know', async () => {
    const { warnings, text } = await generateTool(
      '  @Tool() [LITERAL](a: string) {}\n  @Tool() [LITERAL.concat()]() {}\n  @Tool() [Symbol.iterator]() {}',
      "const LITERAL = 'find_all';",
    );
    expect(text).toContain("find_all: { parameters: [{ name: 'a', schema: { type: 'string' } }] }");
    expect(warnings.map(({ where, line, problem }) => [where, line, problem])).toEqual([
      ['Tools.[…]', 5, expect.stringContaining('nothing can be generated')],
      ['Tools.[…]', 6, expect.stringContaining('nothing can be generated')],
    ]);
  });
});
