import { describe, expect, test } from '@jest/globals';
import { defineTool, type JsonSchema, ToolRegistry } from 'toolwright';
import { leastGrowth } from '../setup/least-growth.js';

/** The allowed growth for ten times the size: a quadratic algorithm takes a hundred times as long. */
const FACTOR = 40;

const integers: JsonSchema = { type: 'array', items: { type: 'integer' } };
const kinds = ['dog', 'cat', 'cow'];
const animals = kinds.map((kind) => ({
  type: 'object',
  properties: { kind: { const: kind }, [`${kind}Age`]: { type: 'integer' }, of: { $ref: '#/$defs/animal' } },
  required: ['kind'],
}));

function object(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const tree = ['left', 'right'].map((kind) => ({
    type: 'object',
    properties: { of: { $ref: '#/$defs/tree' }, kind: { const: kind } },
    required: ['kind'],
  }));
  const $defs = {
    tree: { anyOf: tree },
    animal: { anyOf: animals },
    line: { type: 'object', properties: { of: { $ref: '#/$defs/sku' } } },
    sku: integers,
  };
  return { type: 'object', properties, $defs };
}

function times<Value>(count: number, make: (index: number) => Value): readonly Value[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function entries(count: number, value: unknown): Record<string, unknown> {
  return Object.fromEntries(times(count, (index) => [`key_${index}`, value]));
}

function nested(depth: number, leaf: unknown, around: (inner: unknown) => object): unknown {
  return times(depth, () => 0).reduce<unknown>((inner) => around(inner), leaf);
}

interface Shape {
  readonly schema: JsonSchema;
  /** Arguments of the given size. */
  readonly sent: (size: number) => object;
  readonly size?: number;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  'wrong items': { schema: object({ all: integers }), sent: (size) => ({ all: times(size, () => 'x') }) },
  'wrong items, sent as text': {
    schema: object({ all: integers }),
    sent: (size) => ({ all: JSON.stringify(times(size, () => 'x')) }),
  },
  'items that are wrong behind references': {
    schema: object({ all: { type: 'array', items: { $ref: '#/$defs/line' } } }),
    sent: (size) => ({ all: times(size, () => ({ of: ['x'] })) }),
  },
  'items that should be lists': {
    schema: object({ all: { type: 'array', items: { type: 'object', properties: { of: integers } } } }),
    sent: (size) => ({ all: times(size, () => ({ of: 'x' })) }),
  },
  'tagged unions': {
    schema: object({ all: { type: 'array', items: { $ref: '#/$defs/animal' } } }),
    sent: (size) => ({ all: times(size, () => ({ kind: 'cow', cowAge: 'x' })) }),
  },
  'tagged unions with unknown tags': {
    schema: object({ all: { type: 'array', items: { anyOf: animals } } }),
    sent: (size) => ({ all: times(size, () => ({ kind: 'hen', cowAge: 'x' })) }),
  },
  'unions without a tag': {
    schema: object({
      all: { type: 'array', items: { anyOf: [{ type: 'integer' }, object({ of: integers })] } },
    }),
    sent: (size) => ({ all: times(size, () => ({ of: ['x'] })) }),
  },
  'unions within unions': {
    schema: object({ one: { $ref: '#/$defs/animal' } }),
    sent: (size) => ({ one: nested(size, { kind: 'cow', cowAge: 'x' }, (of) => ({ kind: 'cow', of })) }),
    size: 8,
  },
  'unions within unions whose tags come last': {
    schema: object({ one: { $ref: '#/$defs/tree' } }),
    sent: (size) => ({ one: nested(size, 3, (of) => ({ of, kind: 'right' })) }),
    size: 3,
  },
  'a key of spaces': {
    schema: object({ all: { type: 'object', additionalProperties: { type: 'integer' } } }),
    sent: (size) => ({ all: { [' '.repeat(size)]: 'x' } }),
  },
  'a long key above wrong items': {
    schema: object({ all: { type: 'object', additionalProperties: integers } }),
    sent: (size) => ({ all: { ['k'.repeat(size)]: times(size, () => 'x') } }),
  },
  'unknown keys': {
    schema: object({ one: { type: 'integer' } }),
    sent: (size) => ({ one: 'x', ...entries(size, 1) }),
  },
  'wrong properties': {
    schema: object(Object.fromEntries(times(1_000, (index) => [`key_${index}`, { type: 'integer' }]))),
    sent: (size) => entries(size, 'x'),
    size: 10,
  },
  'different items that are objects': {
    schema: object({ all: { type: 'array', uniqueItems: true }, one: { type: 'integer' } }),
    sent: (size) => ({ all: times(size, (index) => ({ index })), one: 'x' }),
  },
  'digits that are not a number': {
    schema: object({ one: { type: 'integer' } }),
    sent: (size) => ({ one: `1${'0'.repeat(size)}1` }),
  },
};

describe('ToolRegistry.call refuses arguments in linear time', () => {
  test.each(Object.entries(SHAPES))('%s', async (_name, { schema, sent, size = 300 }) => {
    const tools = new ToolRegistry().register(
      defineTool({ name: 'call', description: 'x', parameters: schema, execute: () => 'ran' }),
    );
    const refuse = async (args: object) => {
      const { isError } = await tools.call({ name: 'call', arguments: args });
      expect(isError).toBe(true);
    };
    await refuse(sent(size));
    const [small, large] = [sent(10 * size), sent(100 * size)];
    const growth = await leastGrowth({
      small: () => refuse(small),
      large: () => refuse(large),
      most: FACTOR,
      noiseMs: 0.5,
    });
    expect(growth).toBeLessThan(FACTOR);
  });
});

test('ToolRegistry.call reports the first fifty faults, and the number of the others', async () => {
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'call',
      description: 'x',
      parameters: object({ all: integers }),
      execute: () => 'ran',
    }),
  );
  const { content } = await tools.call({ name: 'call', arguments: { all: times(1_284, () => 'x') } });
  const lines = content.split('\n');
  expect(lines.slice(1, 51)).toEqual(times(50, (index) => `  - all.${index}: must be integer`));
  expect(lines[51]).toBe('… and 1,234 more');
  expect(lines[52]).toMatch(/^Received: /);
});
