import 'reflect-metadata';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type ClassType,
  defineTool,
  discoverTools,
  type Logger,
  Param,
  Tool,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { container, singleton } from 'tsyringe';

afterEach(() => container.reset());

class Told implements Logger {
  readonly warnings: string[] = [];
  readonly notes: string[] = [];
  debug() {}
  info(message: string) {
    this.notes.push(message);
  }
  warn(message: string) {
    this.warnings.push(message);
  }
  error() {}
}

function warningsOf(toolsets: readonly ClassType[] | undefined): readonly string[] {
  const logger = new Told();
  discoverTools({ ...(toolsets ? { toolsets } : {}), logger });
  return logger.warnings;
}

describe('discoverTools', () => {
  test('warns about a tool without a description, and returns it', () => {
    @Toolset()
    class Mute {
      @Tool() say() {}
      @Tool('Says it loudly') shout() {}
      @Tool('  ') whisper() {}
    }
    const warnings = warningsOf([Mute]);
    expect(warnings.map((warning) => warning.split(':')[0])).toEqual(['Mute.say', 'Mute.whisper']);
    expect(warnings[0]).toContain('it has no description: the model sees only its name');
  });

  test('warns about a class in the container that has tools and no @Toolset', () => {
    @singleton()
    class Forgotten {
      @Tool('A tool') a() {}
    }
    class Base {
      @Tool('A tool of a base class') b() {}
    }
    @Toolset()
    class Known extends Base {}
    container.registerSingleton(Base);
    container.registerSingleton(Forgotten);
    class Elsewhere {
      @Tool('Not in the container') c() {}
    }
    expect([Known, Elsewhere].map(({ name }) => name)).toEqual(['Known', 'Elsewhere']);
    const forgotten = warningsOf(undefined).filter((warning) =>
      warning.includes('its tools are not offered'),
    );
    expect(forgotten).toEqual([expect.stringMatching(/^Forgotten: .*@Toolset\(\) before the class/)]);
  });

  test('warns about minified parameter names, unless the names are given by hand', () => {
    const minified = shopOf(MINIFIED);
    const warnings = warningsOf([minified]);
    expect(warnings).toEqual([
      expect.stringContaining('a minifier seems to have renamed its parameters (e, t)'),
    ]);
    expect(warnings[0]).toContain('s.add');
  });

  test.each(['production', 'staging'])(
    'reports minified parameter names as a fault if NODE_ENV is %s',
    (environment) => {
      const minified = shopOf(MINIFIED);
      const discover = () => inEnvironment(environment, () => discoverTools({ toolsets: [minified] }));
      expect(discover).toThrow(/s\.add: a minifier seems to have renamed its parameters \(e, t\)/);
      expect(discover).toThrow(/npx toolwright generate, and import the generated file/);
      expect(discover).not.toThrow(/s\.sum/);
    },
  );

  test.each(['development', 'test', undefined])(
    'only warns about minified parameter names if NODE_ENV is %s',
    (environment) => {
      const minified = shopOf(MINIFIED);
      expect(inEnvironment(environment, () => warningsOf([minified]))).toHaveLength(1);
    },
  );

  test('does not warn about short names in the source, even if the whitespace was removed as by tsx', () => {
    @Toolset()
    class Sums {
      @Tool('Adds two numbers')
      add(a: number, b: number) {
        return a + b;
      }
    }
    const compact = shopOf(MINIFIED.replace('class s{', 'class Sums{'));
    for (const environment of ['production', 'staging', undefined])
      for (const toolset of [Sums, compact])
        expect(inEnvironment(environment, () => warningsOf([toolset]))).toEqual([]);
  });

  test('does not warn about names of two letters, because minified parameters have one letter', () => {
    const short = shopOf(MINIFIED.replace('add(e,t){', 'add(id,to){'));
    expect(inEnvironment('production', () => warningsOf([short]))).toEqual([]);
  });
});

/** Runs `work` with this NODE_ENV. */
function inEnvironment<Result>(environment: string | undefined, work: () => Result): Result {
  const before = process.env.NODE_ENV;
  const set = (value: string | undefined) => {
    if (value === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = value;
  };
  set(environment);
  try {
    return work();
  } finally {
    set(before);
  }
}

/** A class as a minifier writes it. */
const MINIFIED = 'class s{add(e,t){return e+t}sum(e,t){return e+t}}';

/** A class from its source: only the parameters of `sum` have explicit names. */
function shopOf(source: string): ClassType {
  const shop: ClassType = new Function(`return ${source}`)();
  for (const key of ['add', 'sum']) {
    Tool(key)(
      shop.prototype,
      key,
      Object.getOwnPropertyDescriptor(shop.prototype, key) as PropertyDescriptor,
    );
    for (const index of [0, 1])
      Param({ type: () => Number, ...(key === 'sum' && { name: `value${index}` }) })(
        shop.prototype,
        key,
        index,
      );
  }
  return shop;
}

test('discoverTools logs once that metadata cannot mark parameters as optional, and suggests generate', () => {
  @Toolset()
  class Optional {
    @Tool('Finds') find(id: string, limit?: number) {
      return [id, limit];
    }
    @Tool('Counts') count(@Param({ required: false }) of?: string, most = 10) {
      return [of, most];
    }
  }
  const logger = new Told();
  discoverTools({ toolsets: [Optional], logger });
  discoverTools({ toolsets: [Optional], logger });
  expect(logger.warnings).toEqual([]);
  expect(logger.notes).toEqual([
    'Optional.find(id) and 1 more: required, because decorator metadata does not contain whether a parameter has a `?` ' +
      '(npx toolwright generate reads the types: import the generated file; or @Param({ required }))',
  ]);
});

test('register and defineTool warn about tools without a description, and accept them', () => {
  const logger = new Told();
  const tools = new ToolRegistry({ logger });
  const bare = { name: 'bare', parameters: { type: 'object' as const }, execute: () => 1 };
  tools.register(bare as never, { ...bare, name: 'described', description: 'Is described' });
  expect(logger.warnings).toEqual([expect.stringMatching(/^register\("bare"\): it has no description/)]);
  expect(tools.getDefinitions()[0]?.function.description).toBe('');
  expect(tools.getSummaries()[0]).toBe('- `bare` - ');
  const warned: string[] = [];
  const { emitWarning } = process;
  process.emitWarning = ((message: string) => warned.push(message)) as typeof emitWarning;
  try {
    for (const _ of [1, 2]) defineTool({ name: 'mute_for_this_test', execute: () => 1 });
  } finally {
    process.emitWarning = emitWarning;
  }
  expect(warned).toEqual([
    expect.stringMatching(/^defineTool\("mute_for_this_test"\): it has no description/),
  ]);
});

test('a fault about a lost type names the missing annotation, and suggests generate', () => {
  class Lost {
    // biome-ignore lint/suspicious/noExplicitAny: the type is what is tested
    @Tool('A') a(x: any, y: string[]) {
      return [x, y];
    }
  }
  let message = '';
  try {
    discoverTools({ toolsets: [Lost] });
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message).toContain('the metadata contains Object');
  expect(message).toContain('it has no type annotation');
  expect(message.match(/npx toolwright generate/g)).toHaveLength(2);
});

test('@Toolset({ name, description }) sets the toolset of its tools', () => {
  @Toolset({ name: 'Shop', description: 'Orders and invoices' })
  class ShopTools {
    @Tool('A') a() {}
    @Tool('B') b() {}
  }
  @Toolset()
  class Plain {
    @Tool('C') c() {}
  }
  const titles = discoverTools({ toolsets: [ShopTools, Plain] }).map(({ toolset }) => toolset);
  expect(titles).toEqual([
    { name: 'Shop', description: 'Orders and invoices' },
    { name: 'Shop', description: 'Orders and invoices' },
    undefined,
  ]);
});
