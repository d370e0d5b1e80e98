import { describe, expect, test } from '@jest/globals';
import type { JsonSchema } from 'toolwright';
import { createChecker, createResultChecker } from '../../../src/tools/checking/checker.js';
import { rejectedDefaults } from '../../../src/tools/checking/schema-faults.js';

function withDefault(schema: JsonSchema, fallback: unknown): JsonSchema {
  return {
    type: 'object',
    properties: { a: { ...schema, default: fallback } as JsonSchema },
    $defs: { short: { maxLength: 2 } },
  };
}

/** The value that replaces an omitted argument. */
function filledIn(schema: JsonSchema, fallback: unknown): unknown {
  const checked = createChecker(withDefault(schema, fallback))({});
  return checked.ok ? checked.value.a : undefined;
}

/** The rejected defaults that are reported to the author. */
function told(schema: JsonSchema, fallback: unknown): readonly string[] {
  return rejectedDefaults(withDefault(schema, fallback)).map(({ path }) => path);
}

const when = { if: { type: 'string' } };
// biome-ignore lint/suspicious/noThenProperty: the keyword
const filled = { ...when, then: { minLength: 1 } };

describe('a default', () => {
  test.each<[JsonSchema, readonly unknown[], readonly unknown[]]>([
    [{ type: 'integer' }, [1, -0], [1.5, '1', null, true]],
    [{ type: ['string', 'null'] }, ['', null], [1]],
    [{ type: 'string', nullable: true }, [null], [1]],
    [{ const: { x: [1] } }, [{ x: [1] }], [{ x: [2] }]],
    [{ enum: ['a', [1, 2]] }, ['a', [1, 2]], ['b', [2, 1]]],
    [{ $ref: '#/$defs/short' }, ['ab'], ['abc']],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
    [{ anyOf: [{ type: 'string' }, { minimum: 1 }] }, ['', 1], [0]],
    [{ oneOf: [{ minimum: 1 }, { maximum: 1 }] }, [0, 2], [1]],
    [{ not: { type: 'string' } }, [1], ['a']],
    [{ ...filled, else: { minimum: 1 } }, ['a', 1], ['', 0]],
    [filled, ['a', 0], ['']],
    [{ ...when, else: { minimum: 1 } }, ['', 1], [0]],
    [{ minimum: 1, maximum: 3 }, [1, 3, 'a'], [0, 4]],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
    [{ multipleOf: 3 }, [9], [8]],
    [{ minLength: 1, maxLength: 2 }, ['a', '🙂🙂'], ['', 'abc']],
    [{ pattern: '^a' }, ['ab'], ['ba']],
    [{ format: 'date' }, ['2024-01-31'], ['2024-01-32']],
    [{ minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3]]],
    [
      { uniqueItems: true },
      [[1, { a: 1 }, { a: 2 }]],
      [
        [1, 1],
        [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
      ],
    ],
    [{ uniqueItems: false }, [[1, 1]], []],
    [{ type: 'array' }, [[1, 1]], [1]],
    [{ items: { type: 'string' } }, [['a']], [['a', 1]]],
    [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, [['a', 1], []], [['a', 'b'], [1]]],
    [{ prefixItems: [{ type: 'string' }] }, [['a', {}]], [[1]]],
    [{ contains: { type: 'string' } }, [[1, 'a']], [[1], []]],
    [
      { contains: { type: 'string' }, minContains: 2, maxContains: 3 },
      [['a', 'b']],
      [['a'], ['a', 'b', 'c', 'd']],
    ],
    [{ required: ['x'] }, [{ x: 1 }], [{}, { y: 1 }]],
    [{ minProperties: 1, maxProperties: 2 }, [{ x: 1 }], [{}, { x: 1, y: 2, z: 3 }]],
    [{ propertyNames: { maxLength: 1 } }, [{ x: 1 }], [{ xx: 1 }]],
    [{ properties: { x: { type: 'string' } } }, [{ x: 'a' }, { y: 1 }], [{ x: 1 }]],
    [{ additionalProperties: { type: 'string' } }, [{ x: 'a' }], [{ x: 1 }]],
    [{ properties: { x: {} }, additionalProperties: false }, [{ x: 1 }], [{ y: 1 }]],
    [
      { patternProperties: { '^x': { type: 'string' } }, additionalProperties: false },
      [{ x1: 'a' }],
      [{ x1: 1 }, { y: 'a' }],
    ],
    [
      { properties: { x1: { minLength: 1 } }, patternProperties: { '^x': { maxLength: 1 } } },
      [{ x1: 'a' }],
      [{ x1: '' }, { x1: 'ab' }],
    ],
    [{ dependentRequired: { x: ['y'] } }, [{ x: 1, y: 1 }, { y: 1 }, {}], [{ x: 1 }]],
    [{ dependentSchemas: { x: { required: ['y'] } } }, [{ x: 1, y: 1 }, {}], [{ x: 1 }]],
  ])('is used if %j accepts it, and otherwise left out and reported', (schema, fitting, others) => {
    const faults = createResultChecker({ ...schema, $defs: { short: { maxLength: 2 } } } as JsonSchema);
    for (const fallback of fitting) {
      expect(faults(fallback)).toEqual([]);
      expect(filledIn(schema, fallback)).toEqual(fallback);
      expect(told(schema, fallback)).toEqual([]);
    }
    for (const fallback of others) {
      expect(faults(fallback)).not.toEqual([]);
      expect(filledIn(schema, fallback)).toBeUndefined();
      expect(told(schema, fallback)).toEqual(['properties.a.default']);
    }
  });
});
