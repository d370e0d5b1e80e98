import {
  Args,
  type ClassType,
  describeClass,
  discoverTools,
  Integer,
  type JsonObject,
  Param,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import 'reflect-metadata';
import { describe, expect, jest, test } from '@jest/globals';
import {
  ArrayMaxSize,
  IsArray,
  IsInt,
  IsOptional,
  IsString,
  Length,
  MaxLength,
  MinLength,
} from 'class-validator';
import { container } from 'tsyringe';

type Constructor = new () => object;

/** A decorated class without metadata, as esbuild leaves it. */
function bare<Class extends Constructor>(target: Class): Class {
  for (const key of Object.getOwnPropertyNames(target.prototype)) {
    Reflect.deleteMetadata('design:paramtypes', target.prototype, key);
    Reflect.deleteMetadata('design:type', target.prototype, key);
  }
  Reflect.deleteMetadata('design:paramtypes', target);
  return target;
}

function parametersOf(toolset: ClassType, name: string): JsonObject {
  const tool = discoverTools({ toolsets: [toolset] }).find((one) => one.name === name);
  return tool?.parameters as JsonObject;
}

function problemsOf(toolset: ClassType, strict = false): readonly string[] {
  try {
    discoverTools({ toolsets: [toolset], strict, logger: silent });
    return [];
  } catch (error) {
    return (error as ToolDeclarationError).faults.map(({ where, problem }) => `${where}: ${problem}`);
  }
}

const nothing = () => {};
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

describe('precedence: explicit schema, @Param, generated, metadata', () => {
  class Tools {
    @Tool('Each parameter has another source')
    run(
      @Param({ schema: { type: 'integer' } }) explicit: number,
      @Param({ type: () => Integer, description: 'Said' }) said: number,
      @Param('Words only') words: unknown,
      generated: unknown,
      emitted: string,
    ) {
      return [explicit, said, words, generated, emitted];
    }

    @Tool({ parameters: { type: 'object', properties: { a: { type: 'boolean' } } } })
    explicit(a: boolean) {
      return a;
    }
  }
  const text = { type: 'string', description: 'Generated', minLength: 2 };
  describeClass(Tools, {
    tools: {
      run: {
        description: 'From the comment',
        parameters: [
          { name: 'explicit', schema: { type: 'number', description: 'Not this' } },
          { name: 'said', optional: true, schema: { type: 'number', maximum: 5, description: 'Not this' } },
          { name: 'words', schema: text },
          { name: 'generated', schema: text },
          { name: 'emitted' },
        ],
      },
      explicit: { description: 'From the comment', parameters: [{ name: 'a' }] },
    },
  });

  test('each keyword of a parameter comes from the first source that has it', () => {
    expect(parametersOf(Tools, 'run')).toEqual({
      type: 'object',
      properties: {
        explicit: { type: 'integer' },
        said: { type: 'integer', description: 'Said', maximum: 5 },
        words: { type: 'string', description: 'Words only', minLength: 2 },
        generated: text,
        emitted: { type: 'string' },
      },
      required: ['explicit', 'words', 'generated', 'emitted'],
    });
  });

  test('description and schema of @Tool win, and the rest is generated', () => {
    const [run, explicit] = discoverTools({ toolsets: [Tools] });
    expect(run?.description).toBe('Each parameter has another source');
    expect(explicit?.description).toBe('From the comment');
    expect(explicit?.parameters).toEqual({ type: 'object', properties: { a: { type: 'boolean' } } });
  });
});

describe('information missing at run time', () => {
  test('names, optional parameters and defaults of a minified method are generated', async () => {
    class Minified {
      @Tool('M')
      run(a: unknown, b: unknown) {
        return [a, b];
      }
    }
    describeClass(bare(Minified), {
      tools: {
        run: {
          parameters: [
            { name: 'customerId', schema: { type: 'string' } },
            { name: 'limit', optional: true, schema: { type: 'number', default: 7 } },
          ],
        },
      },
    });
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Minified], strict: true }));
    expect((await tools.execute('run', { customerId: 'x' })).forLLM).toBe('["x",7]');
  });

  test('constructor dependencies are generated, including those of services', () => {
    class Clock {
      now = () => 'noon';
    }
    class Service {
      constructor(readonly clock: Clock) {}
    }
    @Toolset()
    class Tools {
      constructor(readonly service: Service) {}

      @Tool('Now')
      run() {
        return this.service.clock.now();
      }
    }
    bare(Tools as unknown as Constructor);
    expect(problemsOf(Tools)[0]).toContain('needs arguments, but their types are unknown');
    describeClass(Tools, { dependencies: [Service], tools: { run: { parameters: [] } } });
    describeClass(Service, { dependencies: [Clock] });
    const [tool] = discoverTools({ toolsets: [Tools], container: container.createChildContainer() });
    expect(tool?.execute({}, undefined as never)).toBe('noon');
  });

  test('without a generated description, the fault suggests npx toolwright generate', () => {
    class Plain {
      @Tool('P')
      run(a: unknown) {
        return a;
      }
    }
    expect(() => discoverTools({ toolsets: [bare(Plain)] })).toThrow('npx toolwright generate');
  });
});

describe('values are converted to their types', () => {
  class Line {
    sku!: string;
    due?: Date;
  }
  describeClass(Line, {
    name: 'Line',
    properties: {
      sku: { schema: { type: 'string' } },
      due: { optional: true, schema: { type: 'string', format: 'date-time', instanceOf: Date } },
    },
  });
  class Dog {
    name?: string;
  }
  describeClass(Dog, { name: 'Dog', properties: { name: { optional: true, schema: { type: 'string' } } } });
  class Money {
    cents?: number;
  }
  describeClass(Money, {
    name: 'Money',
    properties: { cents: { optional: true, schema: { type: 'integer' } } },
  });
  const date = { type: 'string', format: 'date-time', instanceOf: Date };
  const circle = {
    type: 'object',
    properties: { kind: { const: 'circle' }, at: date },
    required: ['kind', 'at'],
  };
  const square = {
    type: 'object',
    properties: { kind: { const: 'square' }, at: { type: 'string' } },
    required: ['kind', 'at'],
  };

  class Tools {
    seen: unknown;

    @Tool('R')
    run(value: unknown) {
      this.seen = value;
    }
  }

  test.each([
    ['a nullable date', { type: ['string', 'null'], format: 'date-time', instanceOf: Date }, null, null],
    [
      'a date in a tuple',
      { type: 'array', prefixItems: [date], items: { type: 'boolean' } },
      ['2030-01-01T00:00:00Z', true],
      [new Date('2030-01-01T00:00:00Z'), true],
    ],
    [
      'the right branch of a union',
      { anyOf: [square, circle] },
      { kind: 'circle', at: '2030-01-01T00:00:00Z' },
      { kind: 'circle', at: new Date('2030-01-01T00:00:00Z') },
    ],
    [
      'the branch of a union without a date',
      { anyOf: [square, circle] },
      { kind: 'square', at: '2030-01-01T00:00:00Z' },
      { kind: 'square', at: '2030-01-01T00:00:00Z' },
    ],
    [
      'a big integer',
      { type: 'string', pattern: '^-?[0-9]+$', instanceOf: BigInt },
      '-12345678901234567890',
      -12345678901234567890n,
    ],
    [
      'a set of URLs',
      { type: 'array', items: { type: 'string', format: 'uri', instanceOf: URL }, instanceOf: Set },
      ['https://a.b/'],
      new Set([new URL('https://a.b/')]),
    ],
    [
      'a map of lists',
      { type: 'object', additionalProperties: { type: 'array', items: date }, instanceOf: Map },
      { a: ['2030-01-01T00:00:00Z'] },
      new Map([['a', [new Date('2030-01-01T00:00:00Z')]]]),
    ],
    [
      'a map whose keys are numbers',
      {
        type: 'object',
        propertyNames: { pattern: '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$' },
        additionalProperties: { type: 'string' },
        instanceOf: Map,
      },
      { 7: 'seven', '-1.5': 'less' },
      new Map([
        [7, 'seven'],
        [-1.5, 'less'],
      ]),
    ],
    [
      'the class of a union that fits the sent keys',
      { anyOf: [{ instanceOf: Dog }, { instanceOf: Money }] },
      { cents: 5 },
      Object.assign(new Money(), { cents: 5 }),
    ],
    [
      'a DTO deep in plain objects',
      {
        type: 'object',
        properties: { lines: { type: 'array', items: { anyOf: [{ instanceOf: Line }, { type: 'null' }] } } },
        required: ['lines'],
      },
      { lines: [{ sku: 'a' }, null] },
      { lines: [Object.assign(new Line(), { sku: 'a' }), null] },
    ],
    [
      'a tree',
      { $ref: '#/$defs/Tree' },
      { at: '2030-01-01T00:00:00Z', trees: [{ at: '2031-01-01T00:00:00Z' }] },
      { at: new Date('2030-01-01T00:00:00Z'), trees: [{ at: new Date('2031-01-01T00:00:00Z') }] },
    ],
    [
      'a map of itself',
      { $ref: '#/$defs/Folder' },
      { at: '2030-01-01T00:00:00Z', kids: { a: { at: '2031-01-01T00:00:00Z', kids: { b: { kids: {} } } } } },
      {
        at: new Date('2030-01-01T00:00:00Z'),
        kids: new Map([
          ['a', { at: new Date('2031-01-01T00:00:00Z'), kids: new Map([['b', { kids: new Map() }]]) }],
        ]),
      },
    ],
    [
      'sets and maps that contain each other',
      { type: 'object', additionalProperties: { $ref: '#/$defs/Left' }, instanceOf: Map },
      { a: { rights: { b: [{ lefts: [] }, { lefts: [{ rights: null }] }] } } },
      new Map([
        [
          'a',
          {
            rights: new Map([['b', new Set([{ lefts: new Set() }, { lefts: new Set([{ rights: null }]) }])]]),
          },
        ],
      ]),
    ],
  ])('%s', async (_, schema, sent, expected) => {
    const $defs = {
      Folder: {
        type: 'object',
        properties: {
          at: date,
          kids: { type: 'object', additionalProperties: { $ref: '#/$defs/Folder' }, instanceOf: Map },
        },
        required: ['kids'],
      },
      Left: {
        type: 'object',
        properties: {
          rights: {
            type: ['object', 'null'],
            additionalProperties: { type: 'array', items: { $ref: '#/$defs/Right' }, instanceOf: Set },
            instanceOf: Map,
          },
        },
      },
      Right: {
        type: 'object',
        properties: { lefts: { type: 'array', items: { $ref: '#/$defs/Left' }, instanceOf: Set } },
      },
      Tree: {
        type: 'object',
        properties: { at: date, trees: { type: 'array', items: { $ref: '#/$defs/Tree' } } },
        required: ['at'],
      },
    };
    const tools = new Tools();
    describeClass(Tools, { tools: { run: { parameters: [{ name: 'value', schema }], $defs } } });
    const scope = container.createChildContainer();
    scope.registerInstance(Tools, tools);
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [Tools], container: scope }));
    const result = await registry.execute('run', { value: sent });
    expect(result.error).toBeUndefined();
    expect(tools.seen).toEqual(expected);
    expect(Object.getPrototypeOf(tools.seen ?? {})).toBe(Object.getPrototypeOf(expected ?? {}));
  });

  test('an invalid value is reported, and not converted', async () => {
    describeClass(Tools, {
      tools: {
        run: { parameters: [{ name: 'value', schema: { type: 'array', items: { instanceOf: Line } } }] },
      },
    });
    const registry = new ToolRegistry().register(
      ...discoverTools({ toolsets: [Tools], container: container.createChildContainer() }),
    );
    const { forLLM } = await registry.execute('run', { value: [{ sku: 1, due: 'tomorrow' }] });
    expect(forLLM).toContain('value.0.sku: must be string');
    expect(forLLM).toContain('value.0.due');
  });
});

describe('@Args() on an interface', () => {
  class Tools {
    @Tool('A')
    run(@Args() query: { words: string; since?: Date }) {
      return `${query.words} ${query.since instanceof Date}`;
    }
  }

  test('takes the whole arguments object, converted', async () => {
    describeClass(Tools, {
      tools: {
        run: {
          parameters: [
            {
              name: 'query',
              schema: {
                type: 'object',
                properties: {
                  words: { type: 'string' },
                  since: { type: 'string', format: 'date-time', instanceOf: Date },
                },
                required: ['words'],
              },
            },
          ],
        },
      },
    });
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Tools] }));
    expect((await tools.execute('run', { words: 'a', since: '2030-01-01T00:00:00Z' })).forLLM).toBe('a true');
    expect(parametersOf(Tools, 'run')).toMatchObject({ type: 'object', required: ['words'] });
  });

  test('has type object at the root, even if it is a union or recursive', () => {
    const branch = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
    describeClass(Tools, {
      tools: { run: { parameters: [{ name: 'query', schema: { anyOf: [branch, branch] } }] } },
    });
    expect(parametersOf(Tools, 'run').type).toBe('object');
    const node = { type: 'object', properties: { child: { $ref: '#/$defs/Node' } }, required: [] };
    describeClass(Tools, {
      tools: {
        run: { parameters: [{ name: 'query', schema: { $ref: '#/$defs/Node' } }], $defs: { Node: node } },
      },
    });
    expect(parametersOf(Tools, 'run')).toEqual({ ...node, $defs: { Node: node } });
  });
});

describe('results', () => {
  class Tools {
    @Tool('Checked')
    checked() {
      return { id: 1 };
    }

    @Tool({ description: 'Switched off', output: false })
    unchecked() {
      return { id: 1 };
    }
  }
  const output = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
  describeClass(Tools, {
    tools: { checked: { parameters: [], output }, unchecked: { parameters: [], output } },
  });

  test('that do not fit the generated output are a warning, unless the tool has output: false', async () => {
    const warnings: unknown[] = [];
    const warn = (message: string, fields: unknown) => warnings.push([message, fields]);
    const logger = { debug: () => {}, info: () => {}, error: () => {}, warn };
    const tools = new ToolRegistry({ logger }).register(...discoverTools({ toolsets: [Tools] }));
    for (const name of ['checked', 'unchecked', 'checked'])
      expect(await tools.execute(name, {})).toMatchObject({ forLLM: '{"id":1}', isError: false });
    expect(warnings).toEqual([
      [
        'A result does not fit the output that was read from its types',
        { tool: 'checked', callId: expect.any(String), path: 'id', fault: 'must be string' },
      ],
    ]);
  });
});

describe('DTO classes', () => {
  class Dto {
    /** Has no decorator. */
    plain!: string;

    @Length(2, 5)
    text!: string;

    @IsInt()
    count!: number;

    @IsOptional()
    @IsString()
    maybe?: string;
  }
  class Tools {
    @Tool('D')
    run(dto: Dto) {
      return [dto instanceof Dto, dto.plain, dto.count];
    }
  }
  describeClass(Dto, {
    name: 'Dto',
    properties: {
      plain: { schema: { type: 'string', description: 'Without any decorator.' } },
      text: { schema: { type: 'string', minLength: 3 } },
      count: { schema: { type: 'number' } },
      maybe: { optional: true, schema: { type: 'string' } },
    },
  });

  test('combine types and class-validator rules, the stricter of both', () => {
    expect(parametersOf(Tools, 'run')).toEqual({
      type: 'object',
      properties: {
        plain: { type: 'string', description: 'Without any decorator.' },
        text: { type: 'string', minLength: 3, maxLength: 5 },
        count: { type: 'integer' },
        maybe: { type: 'string' },
      },
      required: ['plain', 'text', 'count'],
    });
  });

  test('whose types and rules disagree cause a warning with both', () => {
    class Wrong {
      @IsString()
      count!: number;
    }
    class Others {
      @Tool('O')
      run(dto: Wrong) {
        return dto;
      }
    }
    describeClass(Wrong, { properties: { count: { schema: { type: 'number' } } } });
    const warnings: string[] = [];
    discoverTools({ toolsets: [Others], logger: { ...silent, warn: (text) => warnings.push(text) } });
    expect(warnings).toEqual([
      'Others.run: property Wrong.count: its type is number, but its class-validator rules are for string (rules for the type of the property, with `each: true` for rules of its items)',
    ]);
  });
});

describe('class-validator rules of one property', () => {
  test('that are for different types cause a warning, and still reject every value', async () => {
    class Rules {
      @IsInt()
      @MinLength(3)
      count!: number;

      @IsString({ each: true })
      @MaxLength(3)
      tags!: string[];

      @IsArray()
      @IsString({ each: true })
      @ArrayMaxSize(3)
      names!: string[];
    }
    class Ruled {
      @Tool('R')
      run(dto: Rules) {
        return dto;
      }
    }
    const warnings: string[] = [];
    const logger = { ...silent, warn: (text: string) => warnings.push(text) };
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Ruled], logger }));
    const fix = 'rules for the type of the property, with `each: true` for rules of its items';
    expect(warnings).toEqual([
      `Ruled.run: property Rules.count: its class-validator rules are for number and for string (${fix})`,
      `Ruled.run: property Rules.tags: its class-validator rules are for string and for array (${fix})`,
    ]);
    const { forLLM } = await tools.execute('run', { count: 12, tags: ['a'], names: ['b'] });
    expect(forLLM).toContain('count: must be longer than or equal to 3 characters');
    expect(forLLM).toContain('tags: must be shorter than or equal to 3 characters');
  });
});

describe('an outdated generated description', () => {
  const parameter = (name: string, type = 'string') => ({ name, schema: { type } });
  class Tools {
    @Tool('T')
    run(first: string, second: number) {
      return [first, second];
    }
  }

  test.each([
    ['too few parameters', [parameter('first')], 'it has 2 parameters, but its generated description has 1'],
    [
      'another order',
      [parameter('second', 'number'), parameter('first')],
      'it has the parameters (first, second), but its generated description has (second, first)',
    ],
    [
      'another name',
      [parameter('first'), parameter('other', 'number')],
      'it has a parameter second (#1), which is named other in its generated description',
    ],
    [
      'another type',
      [parameter('first', 'boolean'), parameter('second', 'number')],
      'it has the type String at first (#0), but its generated description has Boolean',
    ],
    [
      'an unexpected rest parameter',
      [parameter('first'), { ...parameter('second', 'number'), rest: true }],
      'it has a parameter #1 that is optional or a rest parameter in only one of source and description',
    ],
  ])('%s: a fault in strict mode', (_, parameters, problem) => {
    describeClass(Tools, { tools: { run: { parameters } } });
    expect(problemsOf(Tools, true)).toEqual([`Tools.run: ${problem}`]);
  });

  test.each([
    ['first2', 'second33'],
    ['first$1', '_second'],
    ['_first2', 'second'],
  ])('is valid if a bundler has renamed the parameters to (%s, %s)', (one, two) => {
    const source = `return class Bundled { run(${one}, ${two}) { return [${one}, ${two}]; } }`;
    const Bundled = new Function(source)() as Constructor;
    const run = Object.getOwnPropertyDescriptor(Bundled.prototype, 'run') as PropertyDescriptor;
    Tool('T')(Bundled.prototype, 'run', run);
    const parameters = [parameter('first'), parameter('second', 'number')];
    describeClass(Bundled, { tools: { run: { parameters } } });
    expect(problemsOf(Bundled, true)).toEqual([]);
    expect(parametersOf(Bundled, 'run').required).toEqual(['first', 'second']);
  });

  test('is a warning without strict mode, and the tool uses the metadata', () => {
    describeClass(Tools, { tools: { run: { parameters: [parameter('first')] }, gone: { parameters: [] } } });
    const warnings: string[] = [];
    const [tool] = discoverTools({
      toolsets: [Tools],
      logger: { ...silent, warn: (text) => warnings.push(text) },
    });
    expect(tool?.parameters.properties).toEqual({ first: { type: 'string' }, second: { type: 'number' } });
    expect(warnings).toEqual([
      'Tools.gone: it is described by a generated file, but is not a tool (npx toolwright generate)',
      'Tools.run: it has 2 parameters, but its generated description has 1 (npx toolwright generate)',
    ]);
  });

  test('is a process warning if there is no logger', () => {
    describeClass(Tools, { tools: { run: { parameters: [] } } });
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(nothing);
    discoverTools({ toolsets: [Tools] });
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('npx toolwright generate'), {
      type: 'ToolwrightWarning',
    });
    warn.mockRestore();
  });

  test('a current description causes no fault', () => {
    describeClass(Tools, {
      tools: { run: { parameters: [parameter('first'), parameter('second', 'number')] } },
    });
    expect(problemsOf(Tools, true)).toEqual([]);
  });
});

test('@Param on a generated Set or Map describes its items, and the tool still receives a Set or Map', async () => {
  class Tools {
    @Tool('R')
    run(
      @Param({ items: () => Integer }) set: ReadonlySet<number>,
      @Param({ additionalProperties: { type: 'number', minimum: 0 } }) map: ReadonlyMap<number, number>,
    ) {
      return [set.has(1), map.get(7)];
    }
  }
  const items = { type: 'number' };
  const propertyNames = { pattern: '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$' };
  const parameters = [
    { name: 'set', schema: { type: 'array', items, instanceOf: Set } },
    { name: 'map', schema: { type: 'object', propertyNames, additionalProperties: items, instanceOf: Map } },
  ];
  describeClass(Tools, { tools: { run: { parameters } } });
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Tools] }));
  expect((await tools.execute('run', { set: [1], map: { 7: 2 } })).forLLM).toBe('[true,2]');
  expect((await tools.execute('run', { set: [1.5], map: { 7: -2 } })).isError).toBe(true);
});

test('a generated rest parameter that needs elements is required', async () => {
  class Tools {
    @Tool('R')
    pair(...both: [first: string, second?: number]) {
      return both.length;
    }

    @Tool('R')
    many(...all: string[]) {
      return all.length;
    }
  }
  const text = { type: 'string' };
  const prefixItems = [text, { type: 'number' }];
  const pair = { type: 'array', prefixItems, minItems: 1, maxItems: 2 };
  describeClass(Tools, {
    tools: {
      pair: { parameters: [{ name: 'both', rest: true, schema: pair }] },
      many: { parameters: [{ name: 'all', rest: true, schema: { type: 'array', items: text } }] },
    },
  });
  expect(parametersOf(Tools, 'pair').required).toEqual(['both']);
  expect(parametersOf(Tools, 'many').required).toEqual([]);
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [Tools] }));
  expect((await tools.execute('pair', {})).isError).toBe(true);
  expect((await tools.execute('pair', { both: ['a'] })).forLLM).toBe('1');
});

test('describeClass reports an undefined class as an import cycle', () => {
  expect(() => describeClass(undefined as never, {})).toThrow(
    /type undefined\. .*imports the generated file/,
  );
});
