import { describe, expect, test } from '@jest/globals';
import { type FunctionParameter, Integer, registerFunction, ToolRegistry } from 'toolwright';

describe('registerFunction', () => {
  test('types become their JSON types, all parameters are required, in order', () => {
    const tools = new ToolRegistry();
    const params: FunctionParameter[] = [
      ['count', Integer],
      ['ratio', Number],
      ['isNew', Boolean],
      ['name', String],
    ];
    registerFunction(tools, 'all', 'All types', params, (count, ratio, isNew, name) =>
      [count, ratio, isNew, name].join(),
    );
    expect(tools.get('all')?.parameters).toEqual({
      type: 'object',
      properties: {
        count: { type: 'integer' },
        ratio: { type: 'number' },
        isNew: { type: 'boolean' },
        name: { type: 'string' },
      },
      required: ['count', 'ratio', 'isNew', 'name'],
    });
    expect(Object.keys(tools.get('all')?.parameters.properties ?? {})).toEqual([
      'count',
      'ratio',
      'isNew',
      'name',
    ]);
  });

  test('add has two required integers, and a function without parameters an empty one', async () => {
    const tools = new ToolRegistry();
    const add = (a: number, b: number) => a + b;
    registerFunction(
      tools,
      'add',
      'Add two integers',
      [
        ['a', Integer],
        ['b', Integer],
      ],
      add,
    );
    registerFunction(tools, 'get_time', 'Get the time', [], () => 'noon');
    expect(tools.toProviderDefs()).toEqual([
      {
        type: 'function',
        function: {
          name: 'add',
          description: 'Add two integers',
          parameters: {
            type: 'object',
            properties: { a: { type: 'integer' }, b: { type: 'integer' } },
            required: ['a', 'b'],
          },
        },
      },
      {
        type: 'function',
        function: {
          name: 'get_time',
          description: 'Get the time',
          parameters: { type: 'object', properties: {}, required: [] },
        },
      },
    ]);
    expect((await tools.execute('add', { b: 2, a: 40 })).forLLM).toBe('42');
    expect((await tools.execute('add', { a: 1 })).forLLM).toBe(
      'Validation failed for tool \'add\':\n  - b: is required\nReceived: {"a":1}',
    );
    expect((await tools.execute('get_time', {})).forLLM).toBe('noon');
  });

  test('throws 502 and registers nothing if the number of names differs from the number of parameters', () => {
    const tools = new ToolRegistry();
    const register = () =>
      registerFunction(tools, 'add', 'Add', [['a', Integer]], (a: number, b: number) => a + b);
    expect(register).toThrow('Parameter name count (1) does not match function arity (2)');
    expect(register).toThrow(expect.objectContaining({ name: 'InvalidToolSignature', code: 502 }));
    const [a, b]: readonly FunctionParameter[] = [
      ['a', Integer],
      ['b', Integer],
    ];
    expect(() => registerFunction(tools, 'add', 'Add', [a!, b!], (only: number) => only)).toThrow(
      'Parameter name count (2) does not match function arity (1)',
    );
    expect(() => registerFunction(tools, 'add', 'Add', [a!], () => 1)).toThrow('does not match');
    expect(tools.count()).toBe(0);
  });

  test('all faults are reported at once', () => {
    const params = [
      ['when', Date],
      ['when', String],
    ] as unknown as FunctionParameter[];
    expect(() => registerFunction(new ToolRegistry(), 'f', 'F', params, () => 1)).toThrow(
      "registerFunction('f'): Parameter name count (2) does not match function arity (0); Parameter names must differ: when, when; Parameter 'when' must be Integer, Number, Boolean or String.",
    );
    expect(() => registerFunction(new ToolRegistry(), 'f', 'F', [['a', 1 as never]], 'x' as never)).toThrow(
      "registerFunction('f'): Its last argument must be a function; Parameter 'a' must be",
    );
  });

  test.each([Date, Object, Array, 'string', undefined])(
    'the type %p is refused, and nothing is registered',
    (type) => {
      const tools = new ToolRegistry();
      const params = [['when', type]] as unknown as FunctionParameter[];
      expect(() => registerFunction(tools, 'x', 'X', params, (when) => when)).toThrow(
        expect.objectContaining({ code: 502 }),
      );
      expect(tools.count()).toBe(0);
    },
  );

  test('two parameters of one name and an illegal name are refused', () => {
    const tools = new ToolRegistry();
    const twice: FunctionParameter[] = [
      ['a', String],
      ['a', String],
    ];
    expect(() => registerFunction(tools, 'x', 'X', twice, (a, b) => a + b)).toThrow(/must differ/);
    expect(() => registerFunction(tools, 'not a name', 'X', [], () => 1)).toThrow(
      expect.objectContaining({ code: 502 }),
    );
    expect(tools.count()).toBe(0);
  });

  test('functions, bound methods, closures and async functions can be registered', async () => {
    class Counter {
      #count = 0;
      add(by: number) {
        this.#count += by;
        return this.#count;
      }
    }
    const counter = new Counter();
    const tools = new ToolRegistry();
    registerFunction(tools, 'count', 'Counts', [['by', Integer]], counter.add.bind(counter));
    registerFunction(tools, 'greet', 'Greets', [['name', String]], async (name) => `Hello, ${name}!`);
    await tools.execute('count', { by: 2 });
    expect((await tools.execute('count', { by: 3 })).forLLM).toBe('5');
    expect((await tools.execute('greet', '{"name":"Bob"}')).forLLM).toBe('Hello, Bob!');
  });
});
