import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, type JsonSchema, ToolRegistry } from 'toolwright';
import {
  expectToolSurface,
  type SurfaceChange,
  surfaceChanges,
  type ToolSurface,
  toolSurface,
} from 'toolwright/testing';
import { interpretSchema } from '../../../src/tools/checking/interpreter/interpret-schema.js';
import { anySchema, anyValue } from '../checking/any-schema.js';
import { randomValue, schemaOf, wrapped } from '../checking/random-schema.js';

/** A surface with one tool. */
function surfaceOf(parameters: JsonSchema): ToolSurface {
  return { tools: [{ name: 'find', description: 'Finds', parameters, tokens: 1 }], tokens: 1 };
}

function changesOf(before: JsonSchema, after: JsonSchema): readonly SurfaceChange[] {
  return surfaceChanges(surfaceOf(before), surfaceOf(after));
}

/** The changes of a property, which accepts values of any type. */
function changesOfProperty(before: JsonSchema, after: JsonSchema) {
  const object = (a: JsonSchema): JsonSchema => ({ type: 'object', properties: { a } });
  return changesOf(object(before), object(after)).map(({ kind, path, what }) => [kind, path, what]);
}

const register = (...tools: readonly JsonSchema[]) =>
  new ToolRegistry().register(
    ...tools.map((parameters, index) =>
      defineTool({ name: `tool_${index}`, description: 'A tool', parameters, execute: () => 'ok' }),
    ),
  );

describe('surfaceChanges', () => {
  const string = { type: 'string' };
  const nullable = { type: ['string', 'null'] };
  const rows: readonly (readonly [JsonSchema, JsonSchema, string, string])[] = [
    [nullable, string, 'breaking', 'type narrowed from ["string","null"] to "string"'],
    [{}, string, 'breaking', 'type narrowed from "any" to "string"'],
    [{ type: 'number' }, { type: 'integer' }, 'breaking', 'type narrowed from "number" to "integer"'],
    [string, { ...string, enum: ['a'] }, 'breaking', 'values limited to ["a"]'],
    [{ enum: ['a', 'b'] }, { enum: ['a'] }, 'breaking', 'values removed: ["b"]'],
    [{ type: 'boolean' }, { const: true }, 'breaking', 'values removed: [false]'],
    [{ const: 'a' }, { const: 'b' }, 'breaking', 'values removed: ["a"]'],
    [{ type: 'integer' }, { type: 'integer', minimum: 1 }, 'breaking', 'minimum tightened'],
    [
      { type: 'integer', minimum: 1 },
      { type: 'integer', exclusiveMinimum: 1 },
      'breaking',
      'exclusiveMinimum tightened',
    ],
    [
      { type: 'number', maximum: 5 },
      { type: 'number', exclusiveMaximum: 4 },
      'breaking',
      'maximum tightened',
    ],
    [string, { ...string, minLength: 1 }, 'breaking', 'minLength tightened from nothing to 1'],
    [{ ...string, maxLength: 9 }, { ...string, maxLength: 8 }, 'breaking', 'maxLength tightened from 9 to 8'],
    [string, { ...string, pattern: '^a' }, 'breaking', 'pattern changed from nothing to "^a"'],
    [{ ...string, format: 'date' }, { ...string, format: 'email' }, 'breaking', 'format changed'],
    [
      { type: 'integer', multipleOf: 2 },
      { type: 'integer', multipleOf: 3 },
      'breaking',
      'multipleOf changed',
    ],
    [{ type: 'array' }, { type: 'array', uniqueItems: true }, 'breaking', 'uniqueItems changed'],
    [{ anyOf: [string, { type: 'null' }] }, string, 'breaking', 'type narrowed from "null" to "string"'],
    [
      { anyOf: [string, { type: 'null' }, { const: 1 }] },
      { anyOf: [string, { type: 'null' }] },
      'breaking',
      'alternative removed: {"const":1}',
    ],
    [string, { ...string, not: { const: 'a' } }, 'breaking', 'not changed'],
    [string, { allOf: [{ minLength: 1 }] }, 'breaking', 'part added to allOf'],
    [string, nullable, 'non-breaking', 'type widened from "string" to ["string","null"]'],
    [string, { anyOf: [string, { type: 'null' }] }, 'non-breaking', 'alternatives changed from 1 to 2'],
    [nullable, { anyOf: [{ type: 'null' }, string] }, 'non-breaking', ''],
    [{ enum: ['a'] }, { enum: ['a', 'b'] }, 'non-breaking', 'values added: ["b"]'],
    [
      { enum: ['a', 'b'] },
      { anyOf: [{ const: 'b' }, { const: 'a', description: 'A' }, { const: 'c' }] },
      'non-breaking',
      'alternatives changed',
    ],
    [{ enum: ['a'] }, string, 'non-breaking', 'other values allowed'],
    [
      { type: 'integer', multipleOf: 4 },
      { type: 'integer', multipleOf: 2 },
      'non-breaking',
      'multipleOf changed',
    ],
    [
      { ...string, minLength: 2 },
      { ...string, minLength: 1 },
      'non-breaking',
      'minLength loosened from 2 to 1',
    ],
    [{ ...string, pattern: '^a' }, string, 'non-breaking', 'pattern changed'],
    [{ ...string, not: { const: 'a' } }, string, 'non-breaking', 'not removed'],
    [{ type: 'integer' }, { type: ['integer', 'string'], minLength: 2 }, 'non-breaking', 'type widened'],
    [
      { type: 'integer', default: 1 },
      { type: 'integer', default: 2 },
      'non-breaking',
      'default changed from 1 to 2',
    ],
    [{ ...string, description: 'One' }, { ...string, description: 'Two' }, 'wording', 'description changed'],
    [string, { ...string, title: 'T' }, 'wording', 'title changed'],
  ];

  test.each(rows)('the change from %j to %j is %s: %s', (before, after, kind, what) => {
    const changes = changesOfProperty(before, after);
    const found = kind === 'non-breaking' ? changes : changes.filter((change) => change[0] === kind);
    if (kind === 'non-breaking') expect(changes.map(([is]) => is)).not.toContain('breaking');
    if (what !== '') expect(found.map(([, , said]) => said)).toContainEqual(expect.stringContaining(what));
  });

  test('reports properties that were added, removed or made required, by path', () => {
    const before: JsonSchema = {
      type: 'object',
      properties: {
        id: { type: 'string' },
        gone: { type: 'string' },
        items: {
          type: 'array',
          items: { type: 'object', properties: { sku: { type: ['string', 'null'] } } },
        },
      },
      required: ['id'],
    };
    const after: JsonSchema = {
      type: 'object',
      properties: {
        id: { type: 'string' },
        limit: { type: 'integer' },
        token: { type: 'string' },
        items: { type: 'array', items: { type: 'object', properties: { sku: { type: 'string' } } } },
      },
      required: ['items', 'token'],
    };
    expect(changesOf(before, after).map(({ kind, path, what }) => `${kind} ${path}: ${what}`)).toEqual([
      'breaking gone: property removed',
      'breaking items[].sku: type narrowed from ["string","null"] to "string"',
      'non-breaking limit: optional property added',
      'breaking items: newly required',
      'breaking token: required property added',
      'non-breaking id: no longer required',
    ]);
  });

  test('reports added and removed tools, and changed descriptions', () => {
    const tool = (name: string, description = 'D') => ({ name, description, parameters: {}, tokens: 1 });
    const before = { tools: [tool('a'), tool('b'), tool('constructor')], tokens: 3 };
    const after = { tools: [tool('b', 'E'), tool('c')], tokens: 2 };
    expect(surfaceChanges(before, after)).toEqual([
      { tool: 'a', kind: 'breaking', path: '', what: 'tool removed' },
      { tool: 'b', kind: 'wording', path: '', what: 'description of the tool changed' },
      { tool: 'c', kind: 'non-breaking', path: '', what: 'tool added' },
      { tool: 'constructor', kind: 'breaking', path: '', what: 'tool removed' },
    ]);
  });

  test('follows references, also in recursive schemas', () => {
    const tree = (value: JsonSchema): JsonSchema => ({
      type: 'object',
      properties: { root: { $ref: '#/$defs/node' } },
      $defs: {
        node: {
          type: 'object',
          properties: { value, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
        },
      },
    });
    expect(changesOf(tree({ type: 'string' }), tree({ type: 'string' }))).toEqual([]);
    expect(changesOf(tree({ type: 'string' }), tree({ type: 'integer' }))).toMatchObject([
      { kind: 'breaking', path: 'root.value' },
    ]);
  });

  test('finds no changes between equal schemas, whatever the order of their keys', () => {
    const reversed = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      if (Array.isArray(value)) return value.map(reversed);
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, field]) => [key, reversed(field)]),
      );
    };
    const defs = {
      $defs: {
        one: { type: 'string' },
        other: { type: 'object', properties: { a: { $ref: '#/$defs/other' } } },
      },
    };
    const schema = fc
      .oneof(anySchema('7'), anySchema('2020-12'), schemaOf(3))
      .map((any) => ({ ...wrapped(any), ...defs }));
    fc.assert(
      fc.property(schema, (any) => {
        expect(changesOf(any, structuredClone(any))).toEqual([]);
        expect(changesOf(any, reversed(any) as JsonSchema)).toEqual([]);
      }),
    );
  });
});

/** Schemas of the keywords that are compared one by one. */
const covered = fc.letrec<{ schema: JsonSchema }>((tie) => {
  const part = tie('schema');
  const count = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined });
  const number = fc.option(fc.constantFrom(-1, 0, 1, 2), { nil: undefined });
  const type = (name: string) => fc.constant(name);
  const some = <Fields extends Record<string, unknown>>(
    fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
  ) => fc.record(fields, { requiredKeys: ['type'] as never[] }) as unknown as fc.Arbitrary<JsonSchema>;
  return {
    schema: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      fc.constantFrom<JsonSchema>(
        {},
        { type: 'null' },
        { type: 'boolean' },
        { enum: ['a', 1] },
        { enum: ['a', 'ab', 1, null] },
        { const: 'a' },
      ),
      some({
        type: type('string'),
        minLength: count,
        maxLength: count,
        pattern: fc.constantFrom('^a', 'b$'),
      }),
      some({
        type: fc.constantFrom('integer', 'number'),
        minimum: number,
        exclusiveMaximum: number,
        maximum: number,
        exclusiveMinimum: number,
        multipleOf: fc.constantFrom(1, 2, 0.5),
      }),
      some({ type: fc.constant(['string', 'null', 'integer']), minLength: count }),
      some({ type: type('array'), items: part, minItems: count, maxItems: count, uniqueItems: fc.boolean() }),
      some({
        type: type('object'),
        properties: fc.dictionary(fc.constantFrom('a', 'b'), part, { maxKeys: 2, noNullPrototype: true }),
        required: fc.uniqueArray(fc.constantFrom('a', 'b'), { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean() as fc.Arbitrary<unknown>, part),
        minProperties: count,
        maxProperties: count,
      }),
      fc.record({
        anyOf: fc.array(part, { minLength: 1, maxLength: 3 }),
      }) as unknown as fc.Arbitrary<JsonSchema>,
      fc.record({
        allOf: fc.array(part, { minLength: 1, maxLength: 2 }),
      }) as unknown as fc.Arbitrary<JsonSchema>,
    ),
  };
}).schema;

/** Without keywords that are undefined. */
const plain = covered.map((schema) => JSON.parse(JSON.stringify(schema)) as JsonSchema);

/** Allows no additional properties, so that new and removed properties change the accepted values. */
const closed = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (_key, value) =>
    value?.type === 'object' ? { additionalProperties: false, ...value } : value,
  );

/** Changes of a schema that accept more values. */
const WIDENINGS: readonly ((schema: JsonSchema) => JsonSchema)[] = [
  (schema) => ({ anyOf: [schema, { type: 'null' }] }),
  (schema) => ({ anyOf: [{ const: 'new' }, schema] }),
  ({ minLength: _minLength, pattern: _pattern, minimum: _minimum, ...schema }) => schema,
  ({ required: _required, maxItems: _maxItems, ...schema }) => schema,
  (schema) =>
    typeof schema.maxLength === 'number' ? { ...schema, maxLength: schema.maxLength + 1 } : schema,
  (schema) => (Array.isArray(schema.enum) ? { ...schema, enum: [...schema.enum, 'more'] } : schema),
  (schema) => (Array.isArray(schema.type) ? { ...schema, type: [...schema.type, 'boolean'] } : schema),
  (schema) => (schema.type === 'integer' ? { ...schema, type: 'number' } : schema),
  (schema) =>
    schema.type === 'object' && schema.additionalProperties === undefined
      ? { ...schema, properties: { ...schema.properties, zz: { type: 'string' } } }
      : schema,
  (schema) => ({ ...schema, description: 'other words' }),
];

describe('surfaceChanges with random schemas', () => {
  test('reports no wider schema as breaking', () => {
    const widening = fc.constantFrom(...WIDENINGS);
    const places: readonly ((schema: JsonSchema) => JsonSchema)[] = [
      (schema) => ({ type: 'object', properties: { a: schema }, required: ['a'] }),
      (schema) => ({ type: 'array', items: schema }),
      (schema) => ({ anyOf: [{ type: 'null' }, schema] }),
      (schema) => ({ type: 'object', properties: { a: { $ref: '#/$defs/one' } }, $defs: { one: schema } }),
    ];
    fc.assert(
      fc.property(plain, widening, fc.constantFrom(...places), (schema, widen, place) => {
        const changes = changesOf(place(schema), place(widen(schema)));
        expect(changes.filter(({ kind }) => kind === 'breaking')).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('reports a schema that accepts fewer values as breaking', () => {
    const values = fc.array(fc.oneof(anyValue, randomValue), { minLength: 10, maxLength: 10 });
    fc.assert(
      fc.property(plain, plain, fc.boolean(), values, (one, other, isRelated, given) => {
        const [before, after] = [closed(one), closed(isRelated ? { ...one, ...other } : other)];
        const [old, now] = [interpretSchema(before), interpretSchema(after)];
        const lost = given.filter((value) => old.test(value) && !now.test(value));
        if (lost.length === 0) return;
        expect({ lost, changes: changesOf(before, after) }).toMatchObject({
          changes: expect.arrayContaining([expect.objectContaining({ kind: 'breaking' })]),
        });
      }),
      { numRuns: 500 },
    );
  });
});

describe('expectToolSurface', () => {
  let folder: string;
  let file: string;
  const { CI, UPDATE_TOOL_SURFACE } = process.env;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolwright-surface-'));
    file = join(folder, 'deep', 'tools.json');
    for (const name of ['CI', 'UPDATE_TOOL_SURFACE']) delete process.env[name];
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
    for (const [name, value] of Object.entries({ CI, UPDATE_TOOL_SURFACE }))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });

  const one = { type: 'object', properties: { a: { type: 'string' } } };
  const other = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'string', description: 'B' } },
  };

  test('writes a surface file if there is none, and throws if the tools changed', () => {
    expectToolSurface(register(one), { file });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(toolSurface(register(one)));
    expectToolSurface(register(one), { file });
    const told = [
      `The tools that models receive have changed since ${file}:`,
      'breaking (1):',
      '  - tool_0, a: type narrowed from "string" to "integer"',
      'non-breaking (2):',
      '  - tool_0, b: optional property added',
      '  - tool_1: tool added',
      'About 67 tokens in total, 35 before.',
      'If this is intended, update the file with UPDATE_TOOL_SURFACE=1.',
    ];
    expect(() => expectToolSurface(register(other, {}), { file })).toThrow(told.join('\n'));
  });

  test.each([
    ['an option', () => ({ update: true })],
    [
      'the environment',
      () => {
        process.env.UPDATE_TOOL_SURFACE = '1';
        return {};
      },
    ],
  ])('overwrites the file if %s requests it', (_name, option) => {
    expectToolSurface(register(one), { file });
    expectToolSurface(register(other), { file, ...option() });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(toolSurface(register(other)));
  });

  test('writes nothing in CI', () => {
    process.env.CI = 'true';
    expect(() => expectToolSurface(register(one), { file })).toThrow(
      `${file} does not exist, and is not created in CI`,
    );
    expect(existsSync(file)).toBe(false);
  });

  test('accepts changes of the allowed kinds', () => {
    const surface = toolSurface(register(one));
    const described = { ...one, description: 'A' };
    expect(() => expectToolSurface(register(described), { surface })).toThrow('wording (1)');
    expectToolSurface(register(described), { surface, allow: ['wording'] });
    expectToolSurface(register(described, {}), { surface, allow: ['wording', 'non-breaking'] });
    expect(() => expectToolSurface(register(other), { surface, allow: ['wording', 'non-breaking'] })).toThrow(
      'type narrowed',
    );
  });

  test('estimates one token per four characters of a definition', () => {
    const { tools, tokens } = toolSurface(register(one, other));
    const sizes = register(one, other)
      .toProviderDefs()
      .map((definition) => Math.ceil(JSON.stringify(definition).length / 4));
    expect(tools.map((tool) => tool.tokens)).toEqual(sizes);
    expect(tokens).toBe(sizes.reduce((sum, size) => sum + size, 0));
  });

  test('throws for an invalid surface', () => {
    writeFileSync(join(folder, 'x.json'), '{"tools":[5]}');
    const registry = register(one);
    expect(() => expectToolSurface(registry, { file: join(folder, 'x.json') })).toThrow(
      'contains no tool surface',
    );
    expect(() => expectToolSurface(registry, {})).toThrow('either a file or a surface is needed, not both');
    expect(() => expectToolSurface(registry, { fil: file } as never)).toThrow('did you mean `file`');
    expect(() => expectToolSurface([] as never, { file })).toThrow('the ToolRegistry');
    expect(() => surfaceChanges(toolSurface(registry), {} as never)).toThrow(
      'the result of toolSurface(registry)',
    );
  });
});
