import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import { describeClasses } from '../../../src/dev/typegen/describe-classes.js';
import type { WrittenSchema } from '../../../src/dev/typegen/written-schema.js';
import { schemaTest } from '../../../src/tools/checking/interpreter/interpret-schema.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { offeredSchema } from './offered-schema.js';
import { type SmallProject, smallProject, WITH_PLATFORM } from './small-project.js';

type Test = ReturnType<typeof schemaTest>;

afterAll(closeCompilers);

type Version = (typeof VERSIONS)[number];

/** The generated description of the first tool of a project. */
async function describedTool({ folder }: SmallProject, version: Version = '7.0') {
  const view = (await compilerOf(version)).open(join(folder, 'tsconfig.json'));
  const { drafts, faults } = describeClasses(view);
  const [draft] = drafts;
  expect(faults).toEqual([]);
  return Object.values(draft?.tools ?? {})[0];
}

/** The generated schema of a parameter of type `Given`, with the schemas of its properties. */
async function schemaOf(declarations: string, version?: Version) {
  const text = `import { Tool } from 'toolwright';\n${declarations}\nexport class Tools { @Tool() run(value: Given) {} }`;
  using project = smallProject({ 'src/tools.ts': text }, declarations.includes('URL') ? WITH_PLATFORM : {});
  const tool = await describedTool(project, version);
  const schema = tool?.parameters[0]?.schema ?? {};
  const fits: Test = (value) => schemaTest(offeredSchema(tool))({ value });
  return { schema, fits, properties: schema.properties as Readonly<Record<string, WrittenSchema>> };
}

describe('keys of a template literal type', () => {
  test('are allowed next to named properties', async () => {
    const { fits } = await schemaOf(
      'interface Given { id: string; "a.b"?: number; [key: `x-${string}`]: unknown }',
    );
    expect(fits({ id: 'a' })).toBe(true);
    expect(fits({ id: 'a', 'a.b': 1, 'x-size': 2 })).toBe(true);
    expect(fits({ id: 'a', other: 1 })).toBe(false);
    expect(fits({ id: 'a', a_b: 1 })).toBe(false);
  });

  test.each(VERSIONS)(
    'can be of several types, whose order is the same with TypeScript %s',
    async (version) => {
      const { schema, fits } = await schemaOf(
        'interface Given { [key: `y-${number}`]: string; [key: `x-${string}`]: number }',
        version,
      );
      expect(fits({ 'x-a': 1, 'y-2': 'b' })).toBe(true);
      expect(fits({ 'y-b': 'b' })).toBe(false);
      expect(fits({ 'x-a': true })).toBe(false);
      expect(schema.additionalProperties).toEqual({ anyOf: [{ type: 'number' }, { type: 'string' }] });
    },
  );

  test('appear as a pattern in the message for an invalid key', async () => {
    using project = smallProject({
      'src/tools.ts':
        "import { Tool } from 'toolwright';\nexport class Tools { @Tool() run(value: { [key: `x-${string}`]: number }) {} }",
    });
    const parameters = offeredSchema(await describedTool(project));
    const tool = defineTool({ name: 'run', description: 'Runs', parameters, execute: () => 'done' });
    const { content } = await new ToolRegistry()
      .register(tool)
      .call({ name: 'run', arguments: { value: { 'x-a': 1, 'y-rate': 2 } } });
    expect(content).toContain('value.y-rate: this key must match pattern "^x-');
  });

  test('are ignored if the type also has an index signature for all strings', async () => {
    const { schema } = await schemaOf('interface Given { [key: `x-${string}`]: 1; [key: string]: number }');
    expect(schema).toEqual({ type: 'object', additionalProperties: { type: 'number' } });
  });
});

test('@integer applies to all numbers inside a value', async () => {
  const { properties } = await schemaOf(`interface Given {
    /** @integer */ or: number | null;
    /** @integer */ text: number | string;
    /** @integer */ list: (number | null)[] | null;
    /** @integer */ record: Record<string, number>;
    /** @integer */ other: Record<string, unknown>;
  }`);
  expect(properties).toEqual({
    or: { type: ['integer', 'null'] },
    text: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    list: { type: ['array', 'null'], items: { type: ['integer', 'null'] } },
    record: { type: 'object', additionalProperties: { type: 'integer' } },
    other: { type: 'object', additionalProperties: true },
  });
});

describe('tags of a parameter in the comment of its method', () => {
  test.each([
    ['in a comment of one line', '/** Find. @param size How many @minimum 1 @integer */'],
    ['after its description', '/** Find.\n * @param size How many @minimum 1 @integer\n */'],
    ['on indented lines under it', '/** Find.\n * @param size How many\n *   @minimum 1\n *   @integer\n */'],
    ['on separate lines after it', '/** Find.\n * @param size How many\n * @integer\n *\n * @minimum 1 */'],
    [
      'next to another parameter',
      '/** Find. @param other Which @maxLength 5 @param size How many @minimum 1 @integer */',
    ],
    ['before @returns', '/** Find. @param size How many @minimum 1 @integer @returns a thing @deprecated */'],
  ])('%s belong to the parameter', async (_, comment) => {
    const { tool, warnings } = await commented(comment);
    expect(warnings).toEqual([]);
    expect(tool?.description).toMatch(/^Find\./);
    expect(tool?.parameters[0]?.schema).toEqual({ type: 'integer', description: 'How many', minimum: 1 });
  });

  test.each([
    ['/** Find. @minimum 1 */', 'minimum'],
    ['/** Find.\n * @default 5\n * @param size How many */', 'default'],
    ['/** Find.\n * @param size How many\n * @returns a number\n * @pattern x */', 'pattern'],
  ])('%s gives a warning because the tag belongs to no parameter', async (comment, name) => {
    const { warnings } = await commented(comment);
    expect(warnings).toMatchObject([
      { where: 'Tools.run', problem: `its comment has a @${name} outside a @param` },
    ]);
  });

  /** Generates a method with this comment. */
  async function commented(comment: string) {
    const text = `import { Tool } from 'toolwright';\nexport class Tools {\n${comment}\n@Tool() run(size: number, other: string) {} }`;
    using project = smallProject({ 'src/tools.ts': text });
    const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
    const { drafts, warnings } = describeClasses(view);
    const [draft] = drafts;
    return { tool: Object.values(draft?.tools ?? {})[0], warnings };
  }
});

describe('@default', () => {
  test('sets the default if the value fits the type', async () => {
    const rows = [
      ['number', '5', 5],
      ['number', '`-0.5`', -0.5],
      ['string', '5', '5'],
      ['string', '1.0', '1.0'],
      ['string', 'true', 'true'],
      ['string', 'plain words', 'plain words'],
      ['string', '"quoted"', 'quoted'],
      ['boolean', 'false', false],
      ['string | null', 'null', null],
      ['number | string', '5', 5],
      ['"a" | "b"', "'a'", 'a'],
      ['1 | "1"', '1', 1],
      ['string[]', '["a"]', ['a']],
      ['{ a?: number }', '{}', {}],
      ['Date', '2030-01-01', '2030-01-01'],
      ['URL', 'https://example.com/', 'https://example.com/'],
      ['unknown', 'plain words', 'plain words'],
    ] as const;
    const properties = await defaulted(rows);
    const found = rows.map(([type, said], index) => [type, said, properties[index]?.default]);
    expect(found).toEqual(rows);
    expect(properties.filter((one) => 'description' in one)).toEqual([]);
  });

  test('with a value that does not fit the type is added to the description', async () => {
    const rows = [
      ['number', 'the current year'],
      ['number', '"5"'],
      ['boolean', 'yes'],
      ['Date', 'now'],
      ['URL', 'the home page'],
      ['"a" | "b"', 'c'],
      ['5', '6'],
      ['string[]', 'none'],
      ['number | null', 'as many as there are'],
      ['Line', 'one line'],
    ] as const;
    const properties = await defaulted(rows, 'How it is. ');
    expect(properties.map(({ description }) => description)).toEqual(
      rows.map(([, said]) => `How it is.\n\nDefault: ${said}`),
    );
    expect(properties.filter((one) => 'default' in one)).toEqual([]);
  });

  test('for a nested property makes that property optional', async () => {
    using project = smallProject({
      'src/tools.ts': `import { Tool } from 'toolwright';
        export class Tools {
          /** @param page.size How many. @default 20
           * @param page.from The first. */
          @Tool() run(page: { size: number; from: number }) {}
        }`,
    });
    const tool = await describedTool(project);
    expect(tool?.parameters[0]?.schema).toEqual({
      type: 'object',
      properties: {
        size: { type: 'number', description: 'How many.', default: 20 },
        from: { type: 'number', description: 'The first.' },
      },
      required: ['from'],
    });
  });

  test('without a value or with undefined is ignored', async () => {
    const properties = await defaulted([
      ['string', 'undefined'],
      ['string', ''],
    ]);
    expect(properties).toEqual([{ type: 'string' }, { type: 'string' }]);
  });
});

describe('the default of a destructured property', () => {
  test.each(VERSIONS)('becomes the default of the property in the schema, TypeScript %s', async (version) => {
    using project = smallProject({
      'src/tools.ts': `import { Args, Tool } from 'toolwright';
        const SIZE = 20 as const;
        interface Given {
          text: string;
          limit?: number;
          /** @default 1 */ order: 'up' | 'down';
          page: { size: number; from: string; deep?: { a: number } };
          at: number;
          tags?: string[];
          'other-name': boolean;
        }
        export class Tools {
          @Tool() run(@Args() {
            text, limit = 10, order: way = 'up', page: { size = SIZE, deep: { a = 1 } = {} } = { from: 'start' },
            at = Date.now(), tags = [], 'other-name': other = true, ...rest
          }: Given) {}
        }`,
    });
    const tool = await describedTool(project, version);
    expect(tool?.parameters[0]?.schema).toEqual({
      type: 'object',
      properties: {
        text: { type: 'string' },
        limit: { type: 'number', default: 10 },
        order: { type: 'string', enum: ['up', 'down'], description: 'Default: 1', default: 'up' },
        page: {
          type: 'object',
          properties: {
            size: { type: 'number', default: 20 },
            from: { type: 'string' },
            deep: {
              type: 'object',
              properties: { a: { type: 'number', default: 1 } },
              required: [],
              default: {},
            },
          },
          required: ['from'],
          default: { from: 'start' },
        },
        at: { type: 'number' },
        tags: { type: 'array', items: { type: 'string' }, default: [] },
        'other-name': { type: 'boolean', default: true },
      },
      required: ['text'],
    });
  });
});

/** The generated schemas of properties of these types with these texts after `@default`. */
async function defaulted(
  rows: readonly (readonly [type: string, said: string, ...rest: unknown[]])[],
  words = '',
): Promise<readonly WrittenSchema[]> {
  const members = rows.map(
    ([type, said], index) => `/** ${words}@default ${said} */ it${index}?: ${type};\n`,
  );
  const { properties } = await schemaOf(
    `export class Line { sku!: string }\ninterface Given {\n${members.join('')}}`,
  );
  return Object.values(properties);
}
