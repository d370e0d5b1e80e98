import { expect, test } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module } from '@nestjs/common';
import {
  defineTool,
  discoverTools,
  type Logger,
  Prompt,
  Tool,
  ToolDeclarationError,
  Toolset,
} from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';
import { boot } from './boot.js';

@Injectable()
class Orders {
  find(id: string) {
    return `order ${id}`;
  }
}

function decorate(target: object, key: string): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, key) as PropertyDescriptor;
  Tool('Find')(target, key, descriptor);
  Reflect.defineMetadata('design:paramtypes', [String], target, key);
}

/** As a class without a class decorator: there is no metadata of its constructor. */
class Bare {
  constructor(private readonly orders: Orders) {}

  find(id: string) {
    return this.orders.find(id);
  }
}
decorate(Bare.prototype, 'find');

class InheritsBare extends Bare {}

class OwnConstructor extends Bare {
  constructor() {
    super(new Orders());
  }
}

class Defaults {
  constructor(private readonly orders = new Orders()) {}

  find(id: string) {
    return this.orders.find(id);
  }
}
decorate(Defaults.prototype, 'find');

async function faultsOf(provider: new (...given: never[]) => object) {
  const error = await boot({ providers: [provider as never, Orders] }).catch((thrown: unknown) => thrown);
  return error instanceof ToolDeclarationError ? error.faults : [];
}

test('ToolwrightModule refuses a class without constructor metadata: its dependencies would be undefined', async () => {
  for (const provider of [Bare, InheritsBare]) {
    expect(await faultsOf(provider)).toMatchObject([
      {
        where: provider.name,
        problem: expect.stringContaining(
          'its constructor takes a parameter, and Nest cannot know what to inject',
        ),
        fix: expect.stringContaining('@Injectable() before the class'),
      },
    ]);
  }
});

test('ToolwrightModule accepts classes whose constructors need nothing or declare what they need', async () => {
  @Injectable()
  class Injected {
    constructor(private readonly orders: Orders) {}

    @Tool('Find')
    find(id: string) {
      return this.orders.find(id);
    }
  }
  class Named {
    constructor(@Inject(Orders) private readonly orders: Orders) {}

    @Tool('Find')
    find(id: string) {
      return this.orders.find(id);
    }
  }
  class Inherits extends Injected {}
  for (const provider of [OwnConstructor, Defaults, Injected, Named, Inherits]) {
    const { tools } = await boot({ providers: [provider as never, Orders] });
    expect((await tools.execute('find', { id: '7' })).forLLM).toBe('order 7');
  }
  const made = { provide: Bare, useFactory: () => new Bare(new Orders()) };
  const { tools } = await boot({ providers: [made] });
  expect((await tools.execute('find', { id: '7' })).forLLM).toBe('order 7');
});

@Injectable()
class Lonely {
  @Tool('Nobody provides it')
  alone() {}
}

@Toolset()
class LonelyToolset {
  @Tool('Nobody provides it either')
  alsoAlone() {}
}

abstract class Base {
  @Tool('Of a base')
  ofBase() {}
}

@Injectable()
class Derived extends Base {}

@Controller('things')
class Things {
  @Get()
  @Tool('Without @Toolset or @Injectable')
  list() {
    return ['thing'];
  }
}

@Module({ providers: [Derived], controllers: [Things] })
class ThingsModule {}

test('ToolwrightModule warns once about tool classes that no module provides, and serves controllers', async () => {
  const warned: string[] = [];
  const ignore = (): void => {};
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: (message) => warned.push(message),
    error: ignore,
  };
  const { tools, toolwright } = await boot({ options: { logger }, imports: [ThingsModule] });
  await toolwright.discover();
  const [warning, ...others] = warned.filter((message) => message.includes('no module provides'));
  expect(others).toEqual([]);
  expect(warning).toContain('Lonely');
  expect(warning).not.toMatch(/Things|Base|Derived/);
  expect(warning).toContain('ToolwrightModule.forFeature');
  expect((await tools.execute('list')).forLLM).toBe('["thing"]');
  expect(tools.list()).toEqual(['of_base', 'list']);
  const provided = await boot({
    options: { logger },
    imports: [ToolwrightModule.forFeature([Lonely, LonelyToolset])],
  });
  expect(provided.tools.list()).toEqual(expect.arrayContaining(['alone', 'also_alone']));
  expect(warned.at(-1)).not.toMatch(/Lonely/);
});

test('ToolwrightModule warns, with the provider, if a registered tool replaces that of a provider', async () => {
  @Injectable()
  class Shop {
    @Tool('Finds in the shop') find() {}
    @Tool('Only the shop has it') other() {}
  }
  const warnings: string[] = [];
  const logger: Logger = { debug() {}, info() {}, error() {}, warn: (message) => warnings.push(message) };
  const { tools } = await boot({ providers: [Shop], options: { logger } });
  expect(warnings.filter((warning) => warning.includes('replaces'))).toEqual([]);
  const find = (description: string) => defineTool({ name: 'find', description, execute: () => description });
  tools.register(find('Finds elsewhere'));
  tools.register(find('Finds elsewhere again'));
  expect(warnings.filter((warning) => warning.includes('replaces'))).toEqual([
    expect.stringContaining('register("find"): it replaces the tool of Shop.find, a provider'),
  ]);
  expect((await tools.execute('find')).forLLM).toBe('Finds elsewhere again');
});

test('ToolwrightModule does not treat a prompt as the replacement of a tool with the same name', async () => {
  @Injectable()
  class Shop {
    @Tool({ name: 'letter', description: 'Writes a letter' }) write() {}
  }
  @Toolset()
  class Prompts {
    @Prompt({ name: 'letter', description: 'Asks for a letter' }) ask() {}
  }
  const warnings: string[] = [];
  const logger: Logger = { debug() {}, info() {}, error() {}, warn: (message) => warnings.push(message) };
  const { tools } = await boot({ providers: [Shop], options: { logger } });
  tools.register(...discoverTools({ toolsets: [Prompts] }));
  expect(warnings.filter((warning) => warning.includes('replaces'))).toEqual([]);
});
