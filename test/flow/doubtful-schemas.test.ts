import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Type } from 'class-transformer';
import { IsInt, IsString, Matches, MaxLength, Min, ValidateNested } from 'class-validator';
import {
  Args,
  defineTool,
  discoverTools,
  type JsonSchema,
  type Logger,
  Param,
  Tool,
  ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import * as z from 'zod';
import { FORMATS, KNOWN_FORMATS } from '../../src/tools/checking/formats.js';
import { patternGrowth } from '../../src/tools/checking/patterns.js';

class Told implements Logger {
  readonly warnings: string[] = [];
  debug() {}
  info() {}
  warn(message: string) {
    this.warnings.push(message);
  }
  error() {}
}

const execute = () => 'ran';
const withName = (name: JsonSchema): JsonSchema => ({ type: 'object', properties: { name } });

/** The warnings when a hand-written tool with one parameter is registered. */
function warningsOf(name: JsonSchema): readonly string[] {
  const logger = new Told();
  new ToolRegistry({ logger }).register({
    name: 'find',
    description: 'd',
    parameters: withName(name),
    execute,
  });
  return logger.warnings;
}

function processWarnings(declare: () => unknown): readonly string[] {
  const warned: string[] = [];
  const { emitWarning } = process;
  process.emitWarning = ((message: string) => warned.push(message)) as typeof emitWarning;
  try {
    declare();
  } finally {
    process.emitWarning = emitWarning;
  }
  return warned;
}

const SLOW = 'which takes practically unlimited time for a string of 40 characters';

describe('an exponential pattern is reported with tool, property and pattern', () => {
  test('by discoverTools, for a parameter and for a class', () => {
    class Order {
      @IsString() @Matches(/^([a-z]+\s?)*$/) name!: string;
    }
    @Toolset()
    class Tools {
      @Tool('Finds') find(@Param({ pattern: '^(a+)+$' }) name: string) {
        return name;
      }
      @Tool('Orders') order(@Args() order: Order) {
        return order;
      }
    }
    const logger = new Told();
    discoverTools({ toolsets: [Tools], logger });
    expect(logger.warnings.map((warning) => warning.split(' (a ')[0])).toEqual([
      `Tools.find: \`properties.name.pattern\` of its \`parameters\` is ^(a+)+$, ${SLOW}`,
      `Tools.order: \`properties.name.pattern\` of its \`parameters\` is ^([a-z]+\\s?)*$, ${SLOW}`,
    ]);
  });

  test('by defineTool, once', () => {
    const declare = () =>
      defineTool({ name: 'find', description: 'd', parameters: withName({ pattern: '^(a|aa)+$' }), execute });
    expect(processWarnings(declare)).toEqual([expect.stringContaining(`^(a|aa)+$, ${SLOW}`)]);
    expect(processWarnings(declare)).toEqual([]);
    const parameters = z.object({ name: z.string().regex(/^(\w+ ?)*$/) });
    const ofLibrary = () => defineTool({ name: 'find', description: 'd', parameters, execute });
    expect(processWarnings(ofLibrary)).toEqual([expect.stringContaining(SLOW)]);
  });

  test('by register, also in patternProperties', () => {
    expect(warningsOf({ type: 'string', pattern: '^(a+)+$' })).toEqual([
      expect.stringContaining(
        'register("find"): `properties.name.pattern` of its `parameters` is ^(a+)+$, which',
      ),
    ]);
    expect(warningsOf({ type: 'object', patternProperties: { '^(a+)+$': {} } })).toHaveLength(1);
    expect(warningsOf({ type: 'string', pattern: '^a+$' })).toEqual([]);
  });
});

test.each([
  ...['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(x+x+)+y', '(.*)*x', '^(\\w+\\s?)+$', '^((a{1,3})*)$'],
  ...['^(.*?,){11}P', '^(a+b?)*$', '^(a|b|ab)*c$', '^(?:(?:\\d+)[.]?)+$', '^(?<word>\\w+\\s*)*;$'],
  ...['^x(?:\\Ba+)+$', '^(?=(a+)+b)', '^(\\d+|\\p{L}|[0-9])*-$', '^([\\da-z.-]+)\\.([\\/\\w .-]*)*\\/?$'],
])('%s is exponential', (pattern) => {
  expect(patternGrowth(pattern)).toBe('exponential');
});

test.each([
  ...[
    '^[a-z]+$',
    '^[a-z0-9]+(?:-[a-z0-9]+)*$',
    '^(\\d+,)*\\d+$',
    '^(?:[a-z]+ )*[a-z]+$',
    '^/(?:[^/]+/)*[^/]*$',
  ],
  ...['^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$', '^(?:\\d{1,3}\\.){3}\\d{1,3}$'],
  ...['^(\\+?\\d{1,3}[- ]?)?(\\d[- ]?){6,14}$', '^(ab*)+$', '^(?:.+\\n)*$', '^(?:aab|aac)\\d+\\s*\\d+$'],
  // The last part cannot fail, so that it never backtracks.
  ...['^(\\w+\\s?)+', '(a+)*', '^\\d+\\s*\\d+$', '^(?:[0-9a-f]{64})*$', '(a)\\1{2}', '^(?:a|[^\\]a])*$'],
])('%s is not exponential', (pattern) => {
  expect(patternGrowth(pattern)).not.toBe('exponential');
});

describe('an unknown format', () => {
  test('is reported with similar known formats', () => {
    expect(warningsOf({ type: 'string', format: 'datetime' })).toEqual([
      'register("find"): `properties.name.format` of its `parameters` is datetime, which is not checked (date-time)',
    ]);
    expect(warningsOf({ type: 'string', format: 'currency' })).toEqual([
      expect.stringContaining('is currency, which is not checked (a format of JSON Schema'),
    ]);
  });

  test.each(['email', 'date-time', 'int32', 'idn-email'])('is not reported for %s', (format) => {
    expect(warningsOf({ type: 'string', format })).toEqual([]);
  });

  test('is not reported for the schema of a library', async () => {
    const parameters = z.object({ id: z.cuid2() });
    expect(processWarnings(() => defineTool({ name: 'a', description: 'd', parameters, execute }))).toEqual(
      [],
    );
  });

  test('all formats that are checked are known', () => {
    expect(Object.keys(FORMATS).filter((name) => !KNOWN_FORMATS.has(name))).toEqual([]);
  });
});

test('a default of a class that does not fit its own rules is reported', () => {
  class Inner {
    @IsString() @MaxLength(2) @Param({ default: 'abc' }) code!: string;
  }
  class Order {
    @IsInt() @Min(1) @Param({ default: 0 }) amount!: number;
    @ValidateNested() @Type(() => Inner) inner!: Inner;
  }
  @Toolset()
  class Tools {
    @Tool('Orders') order(@Args() order: Order) {
      return order;
    }
  }
  const logger = new Told();
  discoverTools({ toolsets: [Tools], logger });
  expect(logger.warnings).toEqual([
    'Tools.order: `properties.amount.default` of its `parameters` is 0, which its own schema does not accept, so it is not applied (a default that fits)',
    expect.stringContaining("default` of its `parameters` is 'abc', which its own schema does not accept"),
  ]);
});

describe('a schema default that the schema rejects is reported and not filled in', () => {
  const parameters: JsonSchema = {
    type: 'object',
    properties: {
      style: { type: 'string', default: null },
      limit: { type: 'integer', default: 10 },
      within: { type: 'object', properties: { code: { type: 'string', maxLength: 2, default: 'abc' } } },
    },
  };
  const DOUBTS = [
    '`properties.style.default` of its `parameters` is null, which its own schema does not accept, so it is not applied (no default, or a type that includes null)',
    "`properties.within.properties.code.default` of its `parameters` is 'abc', which its own schema does not accept, so it is not applied (a default that fits)",
  ];
  const options = {
    name: 'draw',
    description: 'Draws',
    parameters,
    execute: (args: object) => JSON.stringify(args),
  };

  async function expectDrawn(registry: ToolRegistry): Promise<void> {
    const [offered] = registry.toProviderDefs();
    expect(JSON.stringify(offered?.function.parameters)).toBe(JSON.stringify(parameters));
    const { forLLM } = await registry.execute('draw', { within: {} });
    expect(JSON.parse(forLLM)).toEqual({ within: {}, limit: 10 });
  }

  test('by register', async () => {
    const logger = new Told();
    const registry = new ToolRegistry({ logger }).register(options);
    expect(logger.warnings).toEqual(DOUBTS.map((doubt) => `register("draw"): ${doubt}`));
    await expectDrawn(registry);
  });

  test('by defineTool', async () => {
    const warned = processWarnings(() => defineTool(options));
    expect(warned).toEqual(DOUBTS.map((doubt) => `defineTool("draw"): ${doubt}`));
    await expectDrawn(new ToolRegistry().register(defineTool(options)));
  });

  test('in `parameters` and `output` of @Tool', async () => {
    @Toolset()
    class Tools {
      @Tool({
        description: 'Draws',
        parameters,
        output: { type: 'object', properties: { size: { type: 'number', default: 'm' } } },
      })
      draw(args: object) {
        return args;
      }
    }
    const logger = new Told();
    const tools = discoverTools({ toolsets: [Tools], logger });
    expect(logger.warnings).toEqual([
      ...DOUBTS.map((doubt) => `Tools.draw: ${doubt}`),
      "Tools.draw: `properties.size.default` of its `output` is 'm', which its own schema does not accept, so it is not applied (a default that fits)",
    ]);
    await expectDrawn(new ToolRegistry().register(...tools));
  });

  test('in the schema of one parameter', async () => {
    @Toolset()
    class Tools {
      @Tool('Draws') draw(
        @Param({ schema: { type: 'string', default: null }, required: false }) style?: string,
      ) {
        return String(style);
      }
    }
    const logger = new Told();
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [Tools], logger }));
    expect(logger.warnings).toEqual([`Tools.draw: ${DOUBTS[0]}`]);
    expect((await registry.execute('draw', {})).forLLM).toBe('undefined');
  });
});

describe('a misspelt keyword of JSON Schema is a fault', () => {
  const problemsOf = (parameters: JsonSchema): readonly string[] => {
    try {
      defineTool({ name: 't', description: 'd', parameters, execute });
      return [];
    } catch (error) {
      return (error as ToolDeclarationError).faults.map(({ problem }) => problem);
    }
  };

  test.each([
    ['propertys', 'properties'],
    ['requird', 'required'],
    ['additionalproperties', 'additionalProperties'],
    ['desciption', 'description'],
    ['oneof', 'oneOf'],
  ])('%s instead of %s', (slip, meant) => {
    expect(problemsOf({ type: 'object', [slip]: {} })).toEqual([
      `\`${slip}\` of its \`parameters\` is not a keyword of JSON Schema (did you mean \`${meant}\`?)`,
    ]);
  });

  test.each([
    ['minimun', 'minimum'],
    ['exclusiveMaximun', 'exclusiveMaximum'],
    ['maxLenght', 'maxLength'],
    ['min_length', 'minLength'],
    ['types', 'type'],
  ])('%s instead of %s at any depth', (slip, meant) => {
    expect(problemsOf(withName({ type: 'array', items: { [slip]: 3 } }))).toEqual([
      `\`properties.name.items.${slip}\` of its \`parameters\` is not a keyword of JSON Schema (did you mean \`${meant}\`?)`,
    ]);
  });

  test('keywords of other tools, property names and data are accepted', () => {
    const own = {
      'x-requird': 1,
      example: 'a',
      comment: 'b',
      id: 'c',
      propertyOrdering: [],
      errorMessage: 'd',
    };
    const others = { enumNames: [], description_de: 'e', markdownDescription: 'f', discriminator: {} };
    expect(problemsOf(withName({ ...own, ...others, default: { minimun: 1 } }))).toEqual([]);
    expect(problemsOf({ type: 'object', properties: { requird: { type: 'string' } } })).toEqual([]);
  });

  test('also in classes and hand-written tools', () => {
    @Toolset()
    class Tools {
      @Tool('Finds') find(@Param({ schema: { type: 'number', minimun: 1 } }) amount: number) {
        return amount;
      }
    }
    expect(() => discoverTools({ toolsets: [Tools] })).toThrow(/did you mean `minimum`\?/);
    const parameters = { type: 'object', requird: ['a'] } as JsonSchema;
    expect(() => new ToolRegistry().register({ name: 't', description: 'd', parameters, execute })).toThrow(
      ToolDeclarationError,
    );
  });
});
