import { describe, expect, test } from '@jest/globals';
import type { JsonSchema } from 'toolwright';
import { interpretSchema } from '../../../src/tools/checking/interpreter/interpret-schema.js';
import { createChecker, toldFaults } from './reported-faults.js';

const FIRST = "Validation failed for tool 'search':";
const Owner: JsonSchema = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
};
const Cat: JsonSchema = {
  type: 'object',
  properties: {
    kind: { const: 'cat' },
    owner: { $ref: '#/$defs/Owner' },
    kittens: { type: 'array', items: { $ref: '#/$defs/Cat' } },
  },
  required: ['kind', 'owner'],
};
const Dog: JsonSchema = {
  type: 'object',
  properties: { kind: { const: 'dog' }, owner: { $ref: '#/$defs/Owner' }, age: { type: 'integer' } },
  required: ['kind', 'owner', 'age'],
};
const pets: JsonSchema = {
  type: 'object',
  $defs: { Owner, Cat, Dog },
  properties: {
    pet: { anyOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }] },
    name: { type: 'string' },
  },
  required: ['name'],
};

describe('ToolRegistry.invoke: errors of unions', () => {
  test('a discriminated union reports only the errors of the branch that the tag selects', () => {
    expect(toldFaults(pets, { name: 'x', pet: { kind: 'dog', owner: { name: 'O' }, age: 'old' } })).toEqual([
      FIRST,
      '  - pet.age: must be integer',
    ]);
  });

  test('errors in a reference that both branches share are reported once', () => {
    expect(toldFaults(pets, { pet: { kind: 'cat', owner: { name: 7 } } })).toEqual([
      FIRST,
      '  - pet.owner.name: must be string',
      '  - name: is required',
    ]);
  });

  test('errors of a recursive branch are reported in schema order', () => {
    const pet = { kind: 'cat', owner: {}, kittens: [{ kind: 'cat', owner: { name: 'K' } }, { kind: 'cat' }] };
    expect(toldFaults(pets, { name: 'x', pet })).toEqual([
      FIRST,
      '  - pet.owner.name: is required',
      '  - pet.kittens.1.owner: is required',
    ]);
  });

  test.each([[{}], [{ kind: 'cow' }], [{ kind: null }]])(
    'without a known tag, the error for %j lists the tags',
    (pet) => {
      expect(toldFaults(pets, { name: 'x', pet })).toEqual([
        FIRST,
        '  - pet.kind: must be one of: "cat", "dog"',
      ]);
    },
  );

  test('a branch can have several tag values', () => {
    const branch = (kinds: readonly string[], name: string) => ({
      properties: { kind: { enum: kinds }, [name]: { type: 'integer' } },
      required: ['kind', name],
    });
    const one = { anyOf: [branch(['cat', 'lion'], 'lives'), branch(['dog'], 'age')] } as JsonSchema;
    const schema = { type: 'object', properties: { one } };
    expect(toldFaults(schema, { one: { kind: 'cow' } })).toEqual([
      FIRST,
      '  - one.kind: must be one of: "cat", "lion", "dog"',
    ]);
    expect(toldFaults(schema, { one: { kind: 'lion' } })).toEqual([FIRST, '  - one.lives: is required']);
  });

  test('the allowed forms are reported, not the types, for a value of an allowed type', () => {
    const id = { anyOf: [{ type: 'integer', minimum: 5 }, { type: 'boolean' }] };
    expect(toldFaults({ type: 'object', properties: { id } }, { id: 3 })).toEqual([
      FIRST,
      '  - id: must have one of the forms that the schema allows: integer or boolean',
      '  - id: must be >= 5',
    ]);
  });

  describe('without a tag', () => {
    const text = { type: 'string' };
    const byMail = { type: 'object', properties: { email: text, name: text }, required: ['email'] };
    const byId = { type: 'object', properties: { id: { type: 'integer' }, since: text }, required: ['id'] };
    const forms =
      'must have one of the forms that the schema allows: { email, name? } or { id, since? } or array';
    const schema: JsonSchema = {
      type: 'object',
      $defs: { byId },
      properties: {
        user: { anyOf: [byMail, { $ref: '#/$defs/byId' }, { type: 'array', items: text, minItems: 2 }] },
      },
    };

    test.each<[unknown, readonly string[]]>([
      [{ id: 'x' }, ['user.id: must be integer']],
      [{ since: 'today' }, ['user.id: is required']],
      [{ email: 5, name: 'Ada' }, ['user.email: must be string']],
      [['x'], ['user: must have at least 2 items']],
      [{}, []],
      [{ since: 'today', name: 'Ada' }, []],
    ])('%j gets every form and the errors of the closest one, if there is one', (user, wrong) => {
      const expected = [forms, ...wrong].map(
        (line) => `  - ${line.startsWith('user') ? '' : 'user: '}${line}`,
      );
      expect(toldFaults(schema, { user })).toEqual([FIRST, ...expected]);
    });

    test('branches that only require keys are reported as forms', () => {
      const root = {
        type: 'object',
        properties: { id: text, email: text },
        anyOf: [{ required: ['id'] }, { required: ['email'] }],
      };
      expect(toldFaults(root, {})).toEqual([
        FIRST,
        '  - must have one of the forms that the schema allows: { id } or { email }',
      ]);
    });

    test('a long chain of nested unions is validated in linear time', () => {
      const chain: JsonSchema = {
        type: 'object',
        $defs: {
          Node: {
            anyOf: [
              { type: 'object', properties: { next: { $ref: '#/$defs/Node' } }, required: ['next'] },
              { type: 'string' },
            ],
          },
        },
        properties: { first: { $ref: '#/$defs/Node' } },
      };
      let reads = 0;
      const nodeOf = (depth: number): object =>
        Object.defineProperty({}, 'next', {
          enumerable: true,
          get: () => {
            reads += 1;
            return depth === 0 ? 5 : nodeOf(depth - 1);
          },
        });
      const readsOf = (depth: number) => {
        reads = 0;
        expect(interpretSchema(chain).check({ first: nodeOf(depth) })).toHaveLength(2);
        return reads;
      };
      expect(readsOf(200)).toBeLessThan(3 * readsOf(100));
    });
  });

  test('`not` refuses its values despite additional properties', () => {
    const forbidden = { properties: { a: { const: 1 } }, required: ['a'] };
    const schema: JsonSchema = { type: 'object', properties: { one: { not: forbidden } } };
    expect(toldFaults(schema, { one: { a: 1, b: 2 } })).not.toEqual([]);
    expect(toldFaults(schema, { one: { a: 2, b: 2 } })).toEqual([]);
  });

  test('duplicate items of an array are reported with their indexes', () => {
    const schema = { type: 'object', properties: { list: { type: 'array', uniqueItems: true } } };
    expect(toldFaults(schema, { list: [1, 2, 1] })).toEqual([
      FIRST,
      '  - list: must not have duplicate items (items 0 and 2 are identical)',
    ]);
  });

  test('a value that is not an object is reported with the type, not the tag', () => {
    expect(toldFaults(pets, { name: 'x', pet: 7 })).toEqual([FIRST, '  - pet: must be object']);
  });

  test('the error of the second branch is not confused with that of the twelfth', () => {
    const branches = Array.from({ length: 12 }, (_, index) => ({
      type: 'object',
      properties: { tag: { const: `t${index}` }, [`p${index}`]: { type: 'integer' } },
      required: ['tag', `p${index}`],
    }));
    const schema = { type: 'object', properties: { one: { anyOf: branches } } };
    expect(toldFaults(schema, { one: { tag: 't1' } })).toEqual([FIRST, '  - one.p1: is required']);
    expect(toldFaults(schema, { one: { tag: 't11', p11: 'x' } })).toEqual([
      FIRST,
      '  - one.p11: must be integer',
    ]);
  });

  test('an array of a union reports the errors of each element', () => {
    const schema: JsonSchema = {
      type: 'object',
      $defs: { Owner, Cat, Dog },
      properties: {
        pets: { type: 'array', items: { anyOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }] } },
      },
    };
    const sent = [{ kind: 'dog', owner: { name: 'O' } }, { kind: 'cow' }, { kind: 'cat' }];
    expect(toldFaults(schema, { pets: sent })).toEqual([
      FIRST,
      '  - pets.0.age: is required',
      '  - pets.1.kind: must be one of: "cat", "dog"',
      '  - pets.2.owner: is required',
    ]);
  });

  test('a nullable object reports only the errors of the object', () => {
    const schema: JsonSchema = {
      type: 'object',
      $defs: { Owner },
      properties: { owner: { anyOf: [{ $ref: '#/$defs/Owner' }, { type: 'null' }] } },
    };
    expect(toldFaults(schema, { owner: null })).toEqual([]);
    expect(toldFaults(schema, { owner: { name: 7 } })).toEqual([FIRST, '  - owner.name: must be string']);
  });

  test('a union of plain types reports all of them', () => {
    const schema = {
      type: 'object',
      properties: { id: { anyOf: [{ type: 'integer' }, { type: 'array', items: { type: 'integer' } }] } },
    };
    expect(toldFaults(schema, { id: 5 })).toEqual([]);
    expect(toldFaults(schema, { id: true })).toEqual([FIRST, '  - id: must be integer or array']);
    expect(
      toldFaults(
        { type: 'object', properties: { id: { anyOf: [{ type: 'integer' }, { type: 'boolean' }] } } },
        { id: 'x' },
      ),
    ).toEqual([FIRST, '  - id: must be integer or boolean']);
  });

  test.each(['anyOf', 'oneOf'])('a union of texts names their patterns and formats: %s', (keyword) => {
    const forms = [
      { type: 'string', pattern: '^ORD-' },
      { type: 'string', pattern: '^INV-' },
      { type: 'string', format: 'email', pattern: '@' },
      { pattern: '^x' },
    ];
    const id = (branches: readonly object[]) => ({
      type: 'object',
      properties: { id: { [keyword]: branches } },
    });
    expect(toldFaults(id(forms.slice(0, 3)), { id: 'A' })).toEqual([
      FIRST,
      '  - id: must have one of the forms that the schema allows: string of pattern "^ORD-" or string of pattern "^INV-" or string of format "email"',
    ]);
    // A branch without a type says nothing about most values.
    expect(toldFaults(id(forms), { id: 'A' })).toEqual([
      FIRST,
      '  - id: must have one of the forms that the schema allows',
    ]);
  });

  test.each(['anyOf', 'oneOf'])('a union of constants reports its values like an enum: %s', (keyword) => {
    const units = [{ const: 'celsius', type: 'string' }, { enum: ['kelvin', 3] }, { type: 'null' }];
    const schema = { type: 'object', properties: { units: { [keyword]: units } } };
    const expected = [FIRST, '  - units: must be one of: "celsius", "kelvin", 3, null'];
    for (const sent of ['rankine', 7, {}]) expect(toldFaults(schema, { units: sent })).toEqual(expected);
    for (const sent of ['celsius', 'kelvin', 3, null])
      expect(toldFaults(schema, { units: sent })).toEqual([]);
  });

  test('a value that matches two branches of oneOf is an error', () => {
    const schema = { type: 'object', properties: { n: { oneOf: [{ minimum: 1 }, { minimum: 2 }] } } };
    expect(toldFaults(schema, { n: 3 })).toEqual([
      FIRST,
      '  - n: must have only one of the forms that the schema allows',
    ]);
  });

  test('an object sent as text is matched to its branch, and its unknown keys are removed', () => {
    const pet = JSON.stringify({ kind: 'dog', owner: { name: 'O' }, age: '7', wings: 2 });
    expect(createChecker(pets)({ name: 'x', pet })).toEqual({
      ok: true,
      value: { name: 'x', pet: { kind: 'dog', owner: { name: 'O' }, age: 7 } },
      removed: ['pet.wings'],
      coerced: ['pet', 'pet.age'],
    });
  });
});
