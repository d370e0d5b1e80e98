import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { IsString } from 'class-validator';
import fc from 'fast-check';
import {
  defineTool,
  describeClass,
  discoverTools,
  Integer,
  type JsonSchema,
  Param,
  type ParamOptions,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** The message that discovery throws, or an empty string. */
function told(toolset: new () => object): string {
  try {
    discoverTools({ toolsets: [toolset], logger: quiet });
    return '';
  } catch (error) {
    expect(error).toBeInstanceOf(ToolDeclarationError);
    return (error as ToolDeclarationError).message;
  }
}

/** A toolset with one method of one parameter, with the metadata of a compiler. */
function toolsetWith(designType: unknown, options: ParamOptions): new () => object {
  class Shop {
    take(value: unknown) {
      return value;
    }
  }
  Reflect.defineMetadata('design:paramtypes', [designType], Shop.prototype, 'take');
  Param(options)(Shop.prototype, 'take', 0);
  Tool('Takes')(Shop.prototype, 'take', Object.getOwnPropertyDescriptor(Shop.prototype, 'take') ?? {});
  return Shop;
}

describe('discoverTools', () => {
  test('reports an empty enum, and not the constraints next to it', () => {
    const message = told(toolsetWith(Object, { enum: [], maxLength: 3 }));
    expect(message).toContain('`enum` is []');
    expect(message).not.toContain('does not apply');
  });

  test('reports every constraint that does not apply to its parameter, together with other faults', () => {
    @Toolset()
    class Shop {
      @Tool('Finds')
      find(
        @Param({ minLength: 2 }) size: number,
        @Param({ minItems: 1, maxLength: 3 }) name: string,
        @Param({ pattern: '^y' }) isNew: boolean,
      ) {
        return [size, name, isNew];
      }

      @Tool('Lists')
      list(@Param({ items: () => String, minLength: 2 }) tags: string[], @Param({}) other: object) {
        return [tags, other];
      }
    }
    const message = told(Shop);
    expect(message).toContain('Shop.find');
    expect(message).toContain('size (#0)');
    expect(message).toContain('`minLength` does not apply to a number');
    expect(message).toContain('`minimum`');
    expect(message).toContain('name (#1)');
    expect(message).toContain('`minItems` does not apply to a string');
    expect(message).toContain('isNew (#2)');
    expect(message).toContain('`pattern` does not apply to a boolean');
    expect(message).toContain('Shop.list');
    expect(message).toContain('`minLength` does not apply to an array');
    expect(message).toContain("items: { type: 'string', minLength: … }");
    expect(message).toContain('other (#1): its type is unknown');
  });

  test('reports them in properties of a DTO, even if a class-validator rule gives the type', () => {
    class Order {
      @Param({ minimum: 2 }) @IsString() sku!: string;
      @Param({ uniqueItems: true }) count!: number;
    }
    @Toolset()
    class Shop {
      @Tool('Orders')
      order(order: Order) {
        return order;
      }
    }
    const message = told(Shop);
    expect(message).toContain('property Order.sku: its `minimum` does not apply to a string');
    expect(message).toContain('property Order.count: its `uniqueItems` does not apply to a number');
  });

  test('applies a constraint of a rest parameter to the array', () => {
    @Toolset()
    class Shop {
      @Tool('Finds')
      find(@Param({ items: () => String, minItems: 1 }) ...names: string[]) {
        return names;
      }
    }
    expect(told(Shop)).toBe('');
  });

  test('accepts a constraint that applies to a branch of a generated type, and rejects others', () => {
    const described = (options: ParamOptions) => {
      const shop = toolsetWith(Object, options);
      describeClass(shop, {
        tools: { take: { parameters: [{ name: 'value', schema: { anyOf: UNION } }] } },
      });
      return told(shop);
    };
    const UNION = [{ type: 'string' }, { type: 'array', items: { type: 'number' } }, { type: 'null' }];
    expect(described({ minLength: 2 })).toBe('');
    expect(described({ minItems: 2 })).toBe('');
    expect(described({ minimum: 2 })).toContain('`minimum` does not apply to a string, an array or null');
  });

  test.each<[string, unknown, ParamOptions]>([
    ['the text of a date', Date, { pattern: '^2030' }],
    ['OpenAPI’s formats of numbers', Number, { format: 'int32' }],
    ['any constraint of an unknown type', Object, { schema: {}, minLength: 2, minimum: 3 }],
    [
      'a constraint together with a reference',
      Object,
      { schema: { $ref: '#/$defs/a', $defs: { a: {} } }, minItems: 2 },
    ],
    ['values of an enum', String, { enum: ['a', 1], minimum: 0, maxLength: 3 }],
    [
      'properties of an object',
      Object,
      { type: () => Object, minProperties: 1, additionalProperties: false },
    ],
    ['annotations without a constraint', Boolean, { title: 'New', deprecated: true, examples: [true] }],
  ])('accepts useful constraints: %s', (_, designType, options) => {
    expect(told(toolsetWith(designType, options))).toBe('');
  });

  test('rejects exactly the constraints that reject no value of their type', async () => {
    await fc.assert(
      fc.asyncProperty(TYPE, CONSTRAINT, async ({ designType, options, schema }, constraint) => {
        const isRefused = told(toolsetWith(designType, { ...options, ...constraint })) !== '';
        const limits = VALUES.map(
          async (value) =>
            (await takes(schema, value)) &&
            !(await takes({ ...schema, ...(constraint as JsonSchema) }, value)),
        );
        expect(isRefused).toBe(!(await Promise.all(limits)).includes(true));
      }),
    );
  });
});

describe('contradicting options of @Param', () => {
  test.each<[ParamOptions, string, string]>([
    [{ schema: { type: 'string' }, enum: ['a'] }, 'enum', 'schema'],
    [{ schema: { type: 'string' }, type: () => Number }, 'type', 'schema'],
    [{ schema: { type: 'array' }, items: () => Number }, 'items', 'schema'],
    [{ schema: { type: 'object' }, additionalProperties: () => Number }, 'additionalProperties', 'schema'],
    [{ enum: ['a'], items: { type: 'string', maxLength: 3 } }, 'items', 'enum'],
    [{ enum: ['a'], additionalProperties: () => Number }, 'additionalProperties', 'enum'],
    [{ items: () => String, additionalProperties: true }, 'additionalProperties', 'items'],
    [{ type: () => Map, items: () => String, additionalProperties: {} }, 'additionalProperties', 'items'],
    [{ type: () => String, additionalProperties: () => Number }, 'additionalProperties', 'type'],
  ])('%j: an option that would be ignored is rejected', (options, unheard, beside) => {
    const message = `its \`${unheard}\` is ignored, because its \`${beside}\` defines the value`;
    expect(told(toolsetWith(Object, options))).toContain(message);
    class Order {
      @Param(options) value!: unknown;
    }
    expect(told(toolsetWith(Order, {}))).toContain(`property Order.value: ${message}`);
  });

  test.each<[ParamOptions, JsonSchema]>([
    [
      { type: () => Object, additionalProperties: () => Number },
      { type: 'object', additionalProperties: { type: 'number' } },
    ],
    [
      { type: () => [String], enum: ['a'] },
      { type: 'array', items: { type: 'string', enum: ['a'] } },
    ],
    [
      { items: () => String, enum: ['a'] },
      { type: 'array', items: { type: 'string', enum: ['a'] } },
    ],
    [
      { type: () => String, enum: ['a'] },
      { type: 'string', enum: ['a'] },
    ],
  ])('%j: both options are in the schema', (options, schema) => {
    const tools = discoverTools({ toolsets: [toolsetWith(Object, options)], logger: quiet });
    expect(tools[0]?.parameters.properties).toEqual({ value: schema });
  });
});

describe('schemas in @Param', () => {
  test.each<[ParamOptions, string]>([
    [{ items: { type: 'number', min: 1 } }, '`min` in its `items` is not a keyword of JSON Schema'],
    [{ additionalProperties: { max: 1 } }, '`max` in its `additionalProperties` is not a keyword'],
    [{ schema: { properties: { a: { isArray: true } } } }, '`isArray` in its `schema` is not a keyword'],
    [{ items: { type: () => Number } as unknown as JsonSchema }, 'its schema is a function at `type`'],
    [{ items: { properties: { a: String } } as unknown as JsonSchema }, 'a function at `properties.a`'],
  ])('%j: a keyword that JSON Schema does not have is rejected', (options, problem) => {
    expect(told(toolsetWith(Object, options))).toContain(problem);
  });

  test('constraints of items are in the schema, and are validated', async () => {
    const toolset = toolsetWith(Array, { items: { type: 'number', minimum: 1 } });
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [toolset], logger: quiet }));
    expect(tools.getDefinitions()[0]?.function.parameters.properties?.value).toEqual({
      type: 'array',
      items: { type: 'number', minimum: 1 },
    });
    expect((await tools.execute('take', { value: [1, 2] })).isError).toBe(false);
    expect((await tools.execute('take', { value: [1, 0] })).isError).toBe(true);
  });
});

describe('a keyword in both @Param and the type', () => {
  const toolWith = (designType: unknown, options: ParamOptions) => {
    const toolset = toolsetWith(designType, options);
    return new ToolRegistry().register(...discoverTools({ toolsets: [toolset], logger: quiet }));
  };
  const taken = (tools: ToolRegistry, values: readonly unknown[]) =>
    Promise.all(values.map(async (value) => !(await tools.execute('take', { value })).isError));

  test.each<[string, unknown, ParamOptions, Record<'fits' | 'misfits', readonly unknown[]>]>([
    [
      'patterns of an explicit schema',
      String,
      { schema: { type: 'string', pattern: 'z$' }, pattern: '^a' },
      { fits: ['az'], misfits: ['ab', 'bz'] },
    ],
    [
      'patterns of a nullable schema',
      String,
      { schema: { type: 'string', pattern: 'z$' }, pattern: '^a', nullable: true },
      { fits: ['az', null], misfits: ['ab', 'bz'] },
    ],
    [
      'patterns together with allOf',
      String,
      { schema: { type: 'string', pattern: 'z$', allOf: [{ minLength: 3 }] }, pattern: '^a' },
      { fits: ['abz'], misfits: ['az', 'abb', 'bbz'] },
    ],
    [
      'allOf in both',
      String,
      {
        schema: { type: 'string', allOf: [{ pattern: 'z$' }], pattern: 'y' },
        ...{ allOf: [{ pattern: '^a' }], pattern: 'x' },
      },
      { fits: ['axyz'], misfits: ['xyz', 'axy', 'axz', 'ayz'] },
    ],
    [
      'anyOf and not in both',
      Number,
      {
        schema: { type: 'number', anyOf: [{ maximum: 3 }, { minimum: 7 }], not: { const: 1 } },
        ...{ anyOf: [{ maximum: 2 }, { minimum: 9 }], not: { const: 2 } },
      },
      { fits: [0, 9], misfits: [1, 2, 3, 8] },
    ],
    [
      'bounds',
      Number,
      { schema: { type: 'number', minimum: 5, maximum: 9 }, minimum: 3, maximum: 7 },
      { fits: [5, 7], misfits: [4, 8] },
    ],
    [
      'a const',
      String,
      { schema: { type: 'string', const: 'a' }, const: 'b' },
      { fits: [], misfits: ['a', 'b'] },
    ],
    ['formats', String, { schema: { format: 'email' }, format: 'uri' }, { fits: [], misfits: ['a@b.co'] }],
  ])('both apply: %s', async (_, designType, options, { fits, misfits }) => {
    const tools = toolWith(designType, options);
    expect(await taken(tools, fits)).toEqual(fits.map(() => true));
    expect(await taken(tools, misfits)).toEqual(misfits.map(() => false));
  });

  test('both apply: the digits of a bigint', async () => {
    const shop = toolsetWith(Object, { pattern: '^1' });
    const schema = { type: 'string', pattern: '^-?[0-9]+$', instanceOf: BigInt };
    describeClass(shop, { tools: { take: { parameters: [{ name: 'value', schema }] } } });
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [shop], logger: quiet }));
    expect(await taken(tools, ['12345678901234567890', '2', '1a'])).toEqual([true, false, false]);
    const { properties } = tools.getDefinitions()[0]?.function.parameters ?? {};
    expect(properties?.value).toEqual({
      ...{ type: 'string', pattern: '^-?[0-9]+$' },
      allOf: [{ pattern: '^1' }],
    });
  });

  test('@Param closes an explicit schema of an object', async () => {
    const schema = { type: 'object', properties: { a: {} }, additionalProperties: true };
    const tools = toolWith(Object, { schema, additionalProperties: false });
    const { forLLM } = await tools.execute('take', { value: { a: 1, b: 2 } });
    expect(forLLM).toContain('{"a":1}');
  });

  test('the format of a date and the title of @Param win', async () => {
    const schema = (designType: unknown, options: ParamOptions) =>
      toolWith(designType, options).getDefinitions()[0]?.function.parameters.properties?.value;
    expect(schema(Date, { format: 'date' })).toEqual({ type: 'string', format: 'date' });
    expect(schema(String, { schema: { type: 'string', title: 'Old' }, title: 'New' })).toEqual({
      type: 'string',
      title: 'New',
    });
  });
});

/** A type as metadata, as options, and as JSON Schema. */
const TYPE = fc.constantFrom<{
  readonly designType: unknown;
  readonly options: ParamOptions;
  readonly schema: JsonSchema;
}>(
  { designType: String, options: {}, schema: { type: 'string' } },
  { designType: Number, options: {}, schema: { type: 'number' } },
  { designType: Number, options: { type: () => Integer }, schema: { type: 'integer' } },
  { designType: Boolean, options: {}, schema: { type: 'boolean' } },
  { designType: Array, options: { items: () => String }, schema: { type: 'array' } },
  { designType: Object, options: { type: () => Object }, schema: { type: 'object' } },
  { designType: String, options: { enum: ['', 'abcd'] }, schema: { enum: ['', 'abcd'] } },
  { designType: Object, options: { enum: [200, -200] }, schema: { enum: [200, -200] } },
  ...[
    { type: ['string', 'null'] },
    { anyOf: [{ type: 'number' }, { type: 'boolean' }] },
    { oneOf: [{ type: 'array' }, { type: 'object' }] },
    {},
  ].map((schema) => ({ designType: Object, options: { schema }, schema })),
);

/** Constraints so narrow that each rejects some of the values below. */
const CONSTRAINT = fc.constantFrom<ParamOptions>(
  { minLength: 3 },
  { maxLength: 1 },
  { pattern: '^zz$' },
  { minimum: 100 },
  { exclusiveMaximum: -100 },
  { multipleOf: 7 },
  { minItems: 3 },
  { maxItems: 1 },
  { uniqueItems: true },
  { minProperties: 3 },
  { maxProperties: 1 },
);

const VALUES: readonly unknown[] = ['', 'abcd', 200, -200, true, null, [], ['a', 'a'], {}, { a: 1, b: 2 }];

async function takes(schema: JsonSchema, value: unknown): Promise<boolean> {
  const tool = defineTool({
    name: 'take',
    description: 'Takes',
    coerce: false,
    parameters: { type: 'object', properties: { value: schema }, required: ['value'] },
    execute: () => 'taken',
  });
  return !(await new ToolRegistry().register(tool).execute('take', { value })).isError;
}
