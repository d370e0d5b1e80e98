import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeClasses } from '../../src/dev/typegen/describe-classes.js';
import { schemaTest } from '../../src/tools/checking/interpreter/interpret-schema.js';
import { closeCompilers, compilerOf, fixture } from '../parts/typegen/compilers.js';
import { offeredSchema } from '../parts/typegen/offered-schema.js';
import { schemasOfTypes } from '../processes/schemas-of-types.js';
import { spoilt } from './random-type.js';

type Test = ReturnType<typeof schemaTest>;

const FOLDER = fixture('agreement');
const VALUES = 60;

/** Valid values of each interface, from which invalid ones are made. */
const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  Scalars: [{ text: 'a', count: 1, isSure: true, nothing: null }],
  Optional: [
    { must: 'a', either: 'b', nullable: null },
    { must: 'a', may: 1, either: 'b', nullable: 'c' },
  ],
  Literals: [{ state: 'open', level: 0, one: 1, yes: true, mixed: null }],
  Lists: [{ names: ['a'], states: ['open'], table: [[1], []], maybe: ['a', null] }],
  Tuples: [{ pair: ['a', 1], open: ['a', 1, 2], optional: ['a'], none: [] }],
  Records: [{ prices: { a: 1 }, known: { a: true, b: false }, indexed: { x: ['a'] }, partial: { open: 1 } }],
  Nested: [{ id: 'a', inner: { deep: { value: 1 } }, list: [{ sku: 'a' }] }],
  Unions: [
    { shape: { kind: 'circle', radius: 1 }, either: { id: 'a' }, many: [null, { kind: 'square', side: 1 }] },
  ],
  Tree: [{ name: 'a', children: [{ name: 'b', children: [] }], parent: { name: 'c', children: [] } }],
  Generics: [{ page: { items: [{ id: 'a' }] }, pages: { items: [{ items: ['open'], next: 'a' }] } }],
  Mapped: [
    {
      partial: { size: 1 },
      picked: { id: 'a', inner: { deep: { value: 1 } } },
      omitted: { id: 'a' },
      required: { must: 'a', may: 1, either: 'b', nullable: null },
    },
  ],
  Tagged: [{ count: 1, text: 'ab', list: [1], whole: 1 }],
  Times: [{ at: '2030-01-02T03:04:05.000Z' }],
  Templates: [{ id: 'ord_1', route: '/a' }],
  Anything: [{ any: 'x', object: {} }],
};

/** Interfaces for which our schema is stricter on purpose. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  Templates: 'theirs says of `/${string}` only that it is text; the type does not let other texts through',
};

let ours: ReadonlyMap<string, Test>;
let theirs: (name: string) => Test;

beforeAll(async () => {
  const view = (await compilerOf('7.0')).open(join(FOLDER, 'tsconfig.json'));
  const { drafts, faults } = describeClasses(view);
  const [draft] = drafts;
  expect(faults).toEqual([]);
  const tools = Object.entries(draft?.tools ?? {});
  ours = new Map(tools.map(([name, tool]) => [name, schemaTest(offeredSchema(tool))]));
  const folder = 'test/parts/typegen/fixtures/agreement';
  const schemas = await schemasOfTypes({
    path: `${folder}/src/interfaces.ts`,
    tsconfig: `${folder}/tsconfig.json`,
    names: Object.keys(GOOD),
    // Both accept unknown keys: ours are removed before validation.
    additionalProperties: true,
  });
  theirs = (name) => schemaTest(schemas[name]!);
});

afterAll(closeCompilers);

describe('ts-json-schema-generator and the generated file accept and refuse the same values', () => {
  test.each(Object.keys(GOOD))('%s', (name) => {
    const fits = theirs(name);
    const values = fc
      .constantFrom(...(GOOD[name] ?? []))
      .chain((value) => fc.oneof(fc.constant(value), spoilt(value)));
    const differing = fc
      .sample(values, { numRuns: VALUES, seed: 1 })
      .map((value) => ({ value, ours: ours.get(name)?.({ value }), theirs: fits(value) }))
      .filter((verdict) => verdict.ours !== verdict.theirs);
    if (DIFFERENCES[name] === undefined) expect(differing).toEqual([]);
    else expect(new Set(differing.map((verdict) => verdict.theirs))).toEqual(new Set([true]));
  });

  test('both accept every valid value', () => {
    const verdicts = Object.entries(GOOD).flatMap(([name, values]) =>
      values.map((value) => [name, ours.get(name)?.({ value }), theirs(name)(value)]),
    );
    expect(verdicts.filter(([, one, other]) => one !== true || other !== true)).toEqual([]);
  });
});
