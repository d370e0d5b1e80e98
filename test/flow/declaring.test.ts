import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Type } from 'class-transformer';
import { IsEmail, IsInt, IsNumber, IsOptional, IsString, MinLength, ValidateNested } from 'class-validator';
import {
  Args,
  type ClassType,
  Context,
  discoverTools,
  Integer,
  type JsonSchema,
  Param,
  Tool,
  ToolContext,
  type ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { z } from 'zod';

type ToolClass = ClassType;

const schemas = (...toolsets: ToolClass[]): Record<string, JsonSchema> =>
  Object.fromEntries(discoverTools({ toolsets }).map(({ name, parameters }) => [name, parameters]));
const registry = (...toolsets: ToolClass[]) => new ToolRegistry().register(...discoverTools({ toolsets }));
const faultsOf = (...toolsets: ToolClass[]) => {
  try {
    discoverTools({ toolsets });
  } catch (error) {
    return (error as ToolDeclarationError).faults;
  }
  throw new Error('nothing was thrown');
};
const places = (...toolsets: ToolClass[]) =>
  faultsOf(...toolsets).map(({ where, parameter, problem }) => [where, parameter, problem]);

/** A decorator that replaces the method, as `@Transactional()` does. */
const Wrap: MethodDecorator = (_target, _key, descriptor: PropertyDescriptor) => {
  const original = descriptor.value;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return original.apply(this, args);
  };
};

enum Mode {
  Fast = 'fast',
  Slow = 'slow',
}
enum Level {
  Low = 1,
  High = 2,
}

describe('parameters', () => {
  test('become properties from names, types, literal defaults and @Param, in declared order', () => {
    @Toolset()
    class Tools {
      @Tool('Search')
      search(
        @Param('Words to look for') query: string,
        @Param({ type: () => Integer, minimum: 1, maximum: 50 }) limit = 10,
        @Param({ enum: Mode, default: Mode.Fast }) mode: Mode,
        @Param({ items: () => String, required: false, maxItems: 3 }) tags?: string[],
        @Param({ required: false }) since?: Date,
        exact = false,
      ) {
        return [query, limit, mode, tags, since, exact];
      }
    }
    expect(schemas(Tools).search).toEqual({
      type: 'object',
      properties: {
        query: { type: 'string', description: 'Words to look for' },
        limit: { type: 'integer', minimum: 1, maximum: 50, default: 10 },
        mode: { type: 'string', enum: ['fast', 'slow'], default: 'fast' },
        tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
        since: { type: 'string', format: 'date-time' },
        exact: { type: 'boolean', default: false },
      },
      required: ['query'],
    });
    expect(Object.keys(schemas(Tools).search?.properties ?? {})).toEqual([
      'query',
      'limit',
      'mode',
      'tags',
      'since',
      'exact',
    ]);
  });

  test('are passed in declared order for any order of JSON keys, with dates as Date', async () => {
    @Toolset()
    class Tools {
      @Tool('x')
      order(first: string, second: number, third: Date) {
        return `${first}|${second}|${third.getUTCFullYear()}`;
      }
    }
    const result = await registry(Tools).execute(
      'order',
      '{"third":"2024-05-01T00:00:00Z","second":2,"first":"a"}',
    );
    expect(result.forLLM).toBe('a|2|2024');
  });

  test('with a default that is not a JSON number have no default in the schema, and use it in the call', async () => {
    @Toolset()
    class Tools {
      @Tool('Search')
      // biome-ignore lint/correctness/noPrecisionLoss: a literal of a number that JSON does not have
      search(limit = 1e999, @Param({ items: () => Number }) steps = [1, -1e999]) {
        return `${limit} ${steps}`;
      }
    }
    expect(schemas(Tools).search).toEqual({
      type: 'object',
      properties: { limit: { type: 'number' }, steps: { type: 'array', items: { type: 'number' } } },
      required: [],
    });
    expect((await registry(Tools).execute('search')).forLLM).toBe('Infinity 1,-Infinity');
  });

  test('use the defaults of the method if no argument is sent', async () => {
    @Toolset()
    class Tools {
      @Tool('x')
      page(size = 20, @Param({ required: false, type: () => String }) after: string = String(size)) {
        return `${size} ${after}`;
      }
    }
    expect((await registry(Tools).execute('page', {})).forLLM).toBe('20 20');
    expect((await registry(Tools).execute('page', { size: 3 })).forLLM).toBe('3 3');
  });

  test('that are rest parameters become arrays of their item type', async () => {
    @Toolset()
    class Tools {
      @Tool('x')
      sum(@Param('First') first: number, @Param({ items: () => Number }) ...others: number[]) {
        return others.reduce((total, one) => total + one, first);
      }
    }
    expect(schemas(Tools).sum?.properties?.others).toEqual({ type: 'array', items: { type: 'number' } });
    expect((await registry(Tools).execute('sum', { first: 1, others: [2, 3] })).forLLM).toBe('6');
    expect((await registry(Tools).execute('sum', { first: 1 })).forLLM).toBe('1');
  });

  test('that are a Set, a Map or a bigint arrive as such', async () => {
    class Basket {
      @Param({ items: () => String })
      tags!: Set<string>;

      @Param({ type: () => String })
      total!: bigint;
    }
    @Toolset()
    class Tools {
      @Tool('x')
      sets(
        @Param({ items: () => Date, minItems: 1 }) days: Set<Date>,
        @Param({ enum: Mode }) modes: Set<Mode>,
        @Param({ type: () => Integer }) sizes: Set<number>,
      ) {
        return [days instanceof Set, [...days][0] instanceof Date, [...modes], sizes.has(3)];
      }

      @Tool('x')
      map(@Param({ additionalProperties: { type: 'number' } }) prices: Map<string, number>) {
        return prices.get('a');
      }

      @Tool('x')
      sum(first: bigint, @Param({ type: () => String }) second: bigint) {
        return first + second;
      }

      @Tool('x')
      dto(basket: Basket) {
        return [basket.tags.has('new'), basket.total + 1n];
      }
    }
    const days = ['2030-01-01T00:00:00Z'];
    const tools = registry(Tools);
    const call = async (name: string, args: object) => (await tools.execute(name, args)).forLLM;
    expect(await call('sets', { days, modes: ['fast'], sizes: [3] })).toBe('[true,true,["fast"],true]');
    expect(await call('sets', { days: [], modes: [], sizes: [] })).toContain('at least 1');
    expect(await call('map', { prices: { a: 2 } })).toBe('2');
    expect(await call('sum', { first: '1', second: '2' })).toBe('"3"');
    expect(await call('dto', { tags: ['new'], total: '9' })).toBe('[true,"10"]');
  });

  test('whose @Param states another type than their Set, Map or bigint are faults with a fix', () => {
    const schema = { type: 'array', items: { type: 'string' } } as const;
    @Toolset()
    class Tools {
      @Tool('x')
      run(
        @Param({ schema }) set: Set<string>,
        @Param({ type: () => Object }) map: Map<string, string>,
        @Param({ type: () => Integer }) big: bigint,
        @Param({ schema: z.array(z.string()).transform((items) => new Set(items)) }) parsed: Set<string>,
      ) {
        return [set, map, big, parsed];
      }
    }
    expect(faultsOf(Tools).map(({ parameter, problem, fix }) => [parameter, problem, fix])).toEqual([
      ['set (#0)', expect.stringMatching(/another type .* a Set$/), expect.stringContaining('items:')],
      ['map (#1)', expect.stringMatching(/ a Map$/), expect.stringContaining('additionalProperties:')],
      ['big (#2)', expect.stringMatching(/ a bigint$/), expect.stringContaining('no type in @Param')],
    ]);
  });

  test('that are the context or a signal are injected, and are not in the schema', async () => {
    @Toolset()
    class Tools {
      @Tool('x')
      typed(name: string, context: ToolContext, signal: AbortSignal) {
        return [name, context.chatId, signal.aborted];
      }

      @Tool('x')
      marked(@Context() context: Pick<ToolContext, 'chatId'>, name: string) {
        return [name, context.chatId];
      }
    }
    expect(schemas(Tools).typed?.properties).toEqual({ name: { type: 'string' } });
    expect(schemas(Tools).marked?.properties).toEqual({ name: { type: 'string' } });
    const scope = { channel: 'web', chatId: 'c1' };
    expect((await registry(Tools).executeWithContext('typed', { name: 'a' }, scope)).forLLM).toBe(
      '["a","c1",false]',
    );
    expect((await registry(Tools).executeWithContext('marked', { name: 'a' }, scope)).forLLM).toBe(
      '["a","c1"]',
    );
  });

  test('of every kind of enum have its values in the schema', () => {
    enum Mixed {
      Text = 'text',
      Number = 7,
    }
    @Toolset()
    class Tools {
      @Tool('x')
      set(
        @Param({ enum: Mode }) a: string,
        @Param({ enum: Level }) b: number,
        @Param({ enum: Mixed }) c: Mixed,
        @Param({ enum: ['x', 'y'] }) d: string,
      ) {
        return [a, b, c, d];
      }
    }
    expect(schemas(Tools).set?.properties).toEqual({
      a: { type: 'string', enum: ['fast', 'slow'] },
      b: { type: 'number', enum: [1, 2] },
      c: { enum: ['text', 7] },
      d: { type: 'string', enum: ['x', 'y'] },
    });
  });

  test('can be records, nullable, or have any explicit schema', () => {
    @Toolset()
    class Tools {
      @Tool('x')
      set(
        @Param({ additionalProperties: { type: 'number' } }) scores: Record<string, number>,
        @Param({ nullable: true }) note: string,
        @Param({ schema: { type: 'string', format: 'uri' } }) link: unknown,
        @Param({ schema: z.union([z.string(), z.number()]) }) either: string | number,
      ) {
        return [scores, note, link, either];
      }
    }
    expect(schemas(Tools).set?.properties).toEqual({
      scores: { type: 'object', additionalProperties: { type: 'number' } },
      note: { type: ['string', 'null'] },
      link: { type: 'string', format: 'uri' },
      either: { type: ['string', 'number'] },
    });
  });
});

class AddressDto {
  @IsString()
  @MinLength(2)
  city!: string;
}
class PersonDto {
  @Param('Where to write to')
  @IsEmail()
  email!: string;

  @ValidateNested()
  @Type(() => AddressDto)
  address!: AddressDto;

  @IsOptional()
  @IsInt()
  age?: number;
}

describe('a decorator that replaces a method', () => {
  class Query {
    @IsString()
    text!: string;
  }

  @Toolset()
  class Tools {
    @Wrap
    @Tool('x')
    find(id: string, limit = 10) {
      return [id, limit];
    }

    @Tool('x')
    @Wrap
    search(query: Query) {
      return `${query instanceof Query} ${query.text}`;
    }
  }

  test('has no effect above @Tool', async () => {
    expect(schemas(Tools).find).toEqual({
      type: 'object',
      properties: { id: { type: 'string' }, limit: { type: 'number', default: 10 } },
      required: ['id'],
    });
    expect((await registry(Tools).execute('find', { id: 'a' })).forLLM).toBe('["a",10]');
  });

  test('has no effect below @Tool for a method that takes one class', async () => {
    expect(schemas(Tools).search).toEqual({
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
    });
    expect((await registry(Tools).execute('search', { text: 'tea' })).forLLM).toBe('true tea');
  });
});

describe('DTO classes', () => {
  @Toolset()
  class Tools {
    @Tool('x')
    alone(person: PersonDto, context: ToolContext) {
      return [person instanceof PersonDto, person.address instanceof AddressDto, context.toolName];
    }

    @Tool('x')
    marked(@Args() person: PersonDto) {
      return person instanceof PersonDto;
    }

    @Tool('x')
    beside(person: PersonDto, note: string) {
      return [person instanceof PersonDto, note];
    }
  }
  const person = { email: 'a@b.de', address: { city: 'Bonn' } };

  test('take the whole arguments object if they are the only parameter', async () => {
    expect(schemas(Tools).alone).toEqual(schemas(Tools).marked);
    expect(schemas(Tools).alone).toEqual({
      type: 'object',
      properties: {
        email: { type: 'string', description: 'Where to write to', format: 'email' },
        address: {
          type: 'object',
          properties: { city: { type: 'string', minLength: 2 } },
          required: ['city'],
        },
        age: { type: 'integer' },
      },
      required: ['email', 'address'],
    });
    expect((await registry(Tools).execute('alone', person)).forLLM).toBe('[true,true,"alone"]');
    expect((await registry(Tools).execute('marked', person)).forLLM).toBe('true');
  });

  test('are one property if there are other parameters', async () => {
    expect(Object.keys(schemas(Tools).beside?.properties ?? {})).toEqual(['person', 'note']);
    expect((await registry(Tools).execute('beside', { person, note: 'n' })).forLLM).toBe('[true,"n"]');
  });

  test('report every fault with its path, including a missing nested object', async () => {
    const { forLLM, isError } = await registry(Tools).execute('alone', { email: 'nobody', age: 1.5 });
    expect(isError).toBe(true);
    expect(forLLM).toBe(
      'Validation failed for tool \'alone\':\n  - email: must match format "email"\n  - address: is required\n  - age: must be integer\nReceived: {"email":"nobody","age":1.5}',
    );
  });

  test('with the same name are never merged', () => {
    const makeInput = (name: string) => {
      class Input {}
      Reflect.decorate([IsString()], Input.prototype, name);
      Reflect.defineMetadata('design:type', String, Input.prototype, name);
      return Input;
    };
    const One = makeInput('one');
    const Two = makeInput('two');
    @Toolset()
    class Both {
      @Tool('x')
      both(@Param({ type: () => One }) a: object, @Param({ type: () => Two }) b: object) {
        return [a, b];
      }
    }
    const { a, b } = schemas(Both).both?.properties ?? {};
    expect([Object.keys(a?.properties ?? {}), Object.keys(b?.properties ?? {})]).toEqual([['one'], ['two']]);
  });
});

test('a value on which a class-validator rule throws is reported to the model as invalid', async () => {
  class PriceDto {
    @IsNumber({ maxDecimalPlaces: 2 })
    price!: number;
  }
  @Toolset()
  class Tools {
    @Tool('x')
    pay(price: PriceDto) {
      return price;
    }
  }
  const { error, forLLM } = await registry(Tools).execute('pay', { price: 1e-7 });
  expect(error).toMatchObject({ name: 'InvalidArguments' });
  expect(forLLM).toContain('has a value that the rules cannot check');
  expect((await registry(Tools).execute('pay', { price: 1.25 })).forLLM).toBe('{"price":1.25}');
});

describe('names', () => {
  test('are the method name in snake case after the prefix, unless given', () => {
    @Toolset({ prefix: 'crm' })
    class Tools {
      @Tool('x')
      getHTTPStatus() {}

      @Tool({ name: 'exact' })
      other() {}
    }
    expect(discoverTools({ toolsets: [Tools] }).map(({ name }) => name)).toEqual([
      'crm_get_http_status',
      'exact',
    ]);
  });

  test.each(['has space', '1st', 'ünder'])('the prefix %p is one fault', (prefix) => {
    @Toolset({ prefix })
    class Tools {
      @Tool('x')
      first() {}

      @Tool('x')
      second() {}
    }
    expect(faultsOf(Tools)).toMatchObject([{ where: 'Tools', problem: `prefix is '${prefix}'` }]);
  });
});

describe('explicit schemas', () => {
  test('replace everything derived, and a Standard Schema parses the arguments', async () => {
    const parameters = z.object({ day: z.string().transform((text) => text.toUpperCase()) });
    @Toolset()
    class Tools {
      @Tool({ description: 'x', parameters })
      plan(@Args() args: PersonDto) {
        return args;
      }
    }
    expect(schemas(Tools).plan?.properties).toEqual({ day: { type: 'string' } });
    expect((await registry(Tools).execute('plan', { day: 'mon' })).forLLM).toBe('{"day":"MON"}');
  });
});

describe('explicit schemas with any parameter types', () => {
  interface Order {
    readonly sku: string;
  }
  const parameters = {
    type: 'object',
    properties: { sku: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
    required: ['sku'],
  };
  @Toolset()
  class Tools {
    @Tool({ description: 'x', parameters })
    whole(order: Order, context: ToolContext) {
      return [order.sku, context.toolName];
    }

    @Tool({ description: 'x', parameters })
    marked(@Args() order: Order) {
      return order.sku;
    }

    @Tool({ description: 'x', parameters })
    parts(tags: string[], sku: unknown) {
      return [tags, sku];
    }
  }

  test('pass the whole object, or its properties by name', async () => {
    const tools = registry(Tools);
    const args = { sku: 'a', tags: ['b'] };
    expect((await tools.execute('whole', args)).forLLM).toBe('["a","whole"]');
    expect((await tools.execute('marked', args)).forLLM).toBe('a');
    expect((await tools.execute('parts', args)).forLLM).toBe('[["b"],"a"]');
    expect((await tools.execute('parts', {})).forLLM).toContain('sku: is required');
  });

  test('reject parameters that are not in the schema', () => {
    @Toolset()
    class Wrong {
      @Tool({ description: 'x', parameters })
      find(sku: string, limit: number) {
        return [sku, limit];
      }
    }
    expect(places(Wrong)).toEqual([
      ['Wrong.find', 'limit (#1)', 'the explicit schema has no property with its name'],
    ]);
  });
});

describe('inheritance', () => {
  class Base {
    @Tool('base')
    ping(name: string) {
      return `base ${name}`;
    }
  }
  @Toolset()
  class Sub extends Base {
    override ping(name: string) {
      return `sub ${name}`;
    }
  }

  test('gives a subclass the tools of its base class, and calls overriding methods', async () => {
    expect(schemas(Sub)).toEqual({
      ping: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    });
    expect((await registry(Sub).execute('ping', { name: 'x' })).forLLM).toBe('sub x');
    expect((await registry(Base).execute('ping', { name: 'x' })).forLLM).toBe('base x');
  });

  test('supports private fields', async () => {
    @Toolset()
    class Tools {
      #count = 41;

      @Tool('x')
      next() {
        this.#count += 1;
        return this.#count;
      }
    }
    expect((await registry(Tools).execute('next')).forLLM).toBe('42');
  });
});

describe('declaration faults', () => {
  test('of all classes are thrown together, each with its location', () => {
    @Toolset()
    class First {
      @Tool('x')
      list(ids: string[], anything: unknown) {
        return [ids, anything];
      }

      @Tool({ name: 'not a name' })
      odd() {}
    }
    @Toolset()
    class Second {
      @Tool('x')
      static build() {}

      @Tool('x')
      twice(@Context() one: unknown, two: ToolContext) {
        return [one, two];
      }

      @Tool({ name: 'same' })
      a() {}

      @Tool({ name: 'same' })
      b() {}
    }
    expect(places(First, Second)).toEqual([
      ['First.list', 'ids (#0)', expect.stringContaining('type is unknown')],
      ['First.list', 'anything (#1)', expect.stringContaining('type is unknown')],
      ['First.odd', undefined, expect.stringContaining('"not a name"')],
      ['Second.twice', undefined, 'two parameters receive the context'],
      ['Second.build', undefined, expect.stringContaining('static method')],
      ['Second.b', undefined, 'its name "same" is also the name of Second.a'],
    ]);
  });

  test('name possible causes and a fix', () => {
    @Toolset()
    class Tools {
      @Tool('x')
      list(ids: string | Date) {
        return ids;
      }
    }
    const [fault] = faultsOf(Tools);
    expect(fault?.causes?.join('\n')).toContain('union');
    expect(fault?.causes?.join('\n')).toContain('import type');
    expect(fault?.fix).toContain('@Param');
  });

  test('include missing metadata, as with a build tool that emits none', () => {
    class Tools {
      list(ids: string) {
        return ids;
      }
    }
    Reflect.decorate(
      [Tool('x')],
      Tools.prototype,
      'list',
      Object.getOwnPropertyDescriptor(Tools.prototype, 'list'),
    );
    expect(places(Tools)).toEqual([['Tools.list', 'ids (#0)', expect.stringContaining('type is unknown')]]);
  });

  test('include a method that a decorator below @Tool has replaced', () => {
    @Toolset()
    class Tools {
      @Tool('x')
      @Wrap
      find(id: string, limit: number) {
        return [id, limit];
      }

      @Tool('x')
      @Wrap
      one(id: string) {
        return id;
      }

      @Tool('x')
      @Wrap
      named(@Param({ name: 'id' }) id: string, @Param({ name: 'limit' }) limit: number) {
        return [id, limit];
      }
    }
    expect(places(Tools)).toEqual([
      ['Tools.find', '#0', 'its name cannot be read'],
      ['Tools.find', '#1', 'its name cannot be read'],
      ['Tools.one', '#0', 'its name cannot be read'],
    ]);
    Reflect.deleteMetadata('design:paramtypes', Tools.prototype, 'one');
    Reflect.deleteMetadata('design:paramtypes', Tools.prototype, 'find');
    const problem = 'its source is that of another function, which accepts any arguments';
    expect(places(Tools)).toEqual([
      ['Tools.find', undefined, problem],
      ['Tools.one', undefined, problem],
    ]);
  });

  test('include decorators in places where they have no effect', () => {
    @Toolset()
    class Tools {
      constructor(@Param('x') readonly url: string) {}

      @Tool('x')
      ping() {}
    }
    @Toolset()
    class Empty {}
    @Toolset()
    class Half {
      @Tool('x')
      ok() {}

      forgotten(@Param('x') id: string) {
        return id;
      }
    }
    expect(places(Tools, Empty, Half)).toEqual([
      ['Tools', undefined, 'a parameter decorator is used at constructor parameter #0'],
      ['Empty', undefined, 'it has no @Tool method'],
      ['Half.forgotten', undefined, 'it has decorators of a tool, but no @Tool'],
      ['Tools', undefined, 'there is no provider for parameter #0 (String) of Tools(?)'],
    ]);
  });

  test('include duplicate property names, @Args beside properties, and unreadable names', () => {
    @Toolset()
    class Tools {
      @Tool('x')
      clash(@Param({ name: 'id' }) a: string, @Param({ name: 'id' }) b: string) {
        return [a, b];
      }

      @Tool('x')
      both(@Args() person: PersonDto, note: string) {
        return [person, note];
      }

      @Tool('x')
      destructured({ a }: { a: string }, b: string) {
        return [a, b];
      }
    }
    expect(places(Tools)).toEqual([
      ['Tools.clash', undefined, 'two parameters have the property name "id"'],
      ['Tools.both', undefined, expect.stringContaining('one parameter receives the whole arguments object')],
      ['Tools.destructured', '#0', 'its name cannot be read'],
    ]);
  });
});

test('definitions are the same bytes every time', () => {
  const Tools = class {
    list(person: PersonDto) {
      return person;
    }
  };
  Reflect.decorate(
    [Tool('x')],
    Tools.prototype,
    'list',
    Object.getOwnPropertyDescriptor(Tools.prototype, 'list'),
  );
  Reflect.defineMetadata('design:paramtypes', [PersonDto], Tools.prototype, 'list');
  expect(JSON.stringify(schemas(Tools))).toBe(JSON.stringify(schemas(Tools)));
});

test('discovery creates no instance if there is a fault', () => {
  let created = 0;
  @Toolset()
  class Tools {
    constructor() {
      created += 1;
    }

    @Tool('x')
    bad(ids: string[]) {
      return ids;
    }
  }
  expect(faultsOf(Tools)).toHaveLength(1);
  expect(created).toBe(0);
});

test('a tool whose symbol has no description needs a name', () => {
  const key = Symbol('sym');
  const bare = Symbol('');
  @Toolset()
  class Tools {
    @Tool('x')
    [key]() {
      return 'called';
    }

    @Tool('x')
    [bare]() {}
  }
  expect(places(Tools)).toEqual([['Tools.Symbol()', undefined, expect.stringContaining('tool name ""')]]);
});
