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

describe('discoverTools warns', () => {
  test('of a tool without a description, which stays a tool', () => {
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

  test('of a class with tools that is in the container and that no @Toolset offers', () => {
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
    const forgotten = warningsOf(undefined).filter((warning) => warning.includes('none of them is offered'));
    expect(forgotten).toEqual([expect.stringMatching(/^Forgotten: .*@Toolset\(\) before the class/)]);
  });

  test('of parameter names that look like a minifier’s, unless they were given by hand', () => {
    const minified = shopOf(MINIFIED);
    const warnings = warningsOf([minified]);
    expect(warnings).toEqual([
      expect.stringContaining('a minifier seems to have named its parameters (e, t)'),
    ]);
    expect(warnings[0]).toContain('s.add');
  });

  test.each(['production', 'staging'])('in %s such names are a fault', (environment) => {
    const minified = shopOf(MINIFIED);
    const discover = () => inEnvironment(environment, () => discoverTools({ toolsets: [minified] }));
    expect(discover).toThrow(/s\.add: a minifier seems to have named its parameters \(e, t\)/);
    expect(discover).toThrow(/npx toolwright generate, and import the file that it writes/);
    expect(discover).not.toThrow(/s\.sum/);
  });

  test.each(['development', 'test', undefined])('with NODE_ENV %s it stays a warning', (environment) => {
    const minified = shopOf(MINIFIED);
    expect(inEnvironment(environment, () => warningsOf([minified]))).toHaveLength(1);
  });

  test('not of short names that somebody wrote, also if the whitespace was removed as tsx does', () => {
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

  test('not of names of two letters, because minifiers give parameters one letter', () => {
    const short = shopOf(MINIFIED.replace('add(e,t){', 'add(id,to){'));
    expect(inEnvironment('production', () => warningsOf([short]))).toEqual([]);
  });
});

/** What is done while NODE_ENV says this. */
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

/** As a minifier leaves a class. */
const MINIFIED = 'class s{add(e,t){return e+t}sum(e,t){return e+t}}';

/** A class from its source: the parameters have no names of their own in `add`, and have in `sum`. */
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

test('discoverTools says once that it cannot know whether a parameter is optional, and names generate', () => {
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
    'Optional.find(id) and 1 more: required, as decorator metadata does not tell whether a parameter has a `?` ' +
      '(npx toolwright generate reads the types: import the file that it writes; or @Param({ required }))',
  ]);
});

test('register and defineTool warn of tools without a description, and take them', () => {
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

test('a fault about a lost type names the missing annotation and generate', () => {
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

test('@Toolset({ name, description }) is the title of the toolset’s tools', () => {
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
