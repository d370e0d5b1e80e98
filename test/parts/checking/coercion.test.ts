import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { JsonSchema } from 'toolwright';
import { createChecker } from './reported-faults.js';

const ofType = (type: string | readonly string[], more: object = {}) => ({
  type: 'object',
  properties: { v: { type, ...more } },
  required: ['v'],
});

describe('ToolRegistry.invoke coerces:', () => {
  test.each([
    ['number', '1.5', 1.5],
    ['number', ' -2e3 ', -2000],
    ['integer', '7', 7],
    ['integer', '7.0', 7],
    ['boolean', 'true', true],
    ['boolean', 'false', false],
    ['object', '{"a":1}', { a: 1 }],
    ['array', '[1,2]', [1, 2]],
    ['array', 'x', ['x']],
    ['array', 5, [5]],
    ['array', { a: 1 }, [{ a: 1 }]],
  ])('to %s, %j becomes %j, and the change is recorded', (type, sent, expected) => {
    expect(createChecker(ofType(type))({ v: sent })).toEqual({
      ok: true,
      value: { v: expected },
      removed: [],
      coerced: ['v'],
    });
  });

  test.each([
    ['string', 5],
    ['string', true],
    ['string', null],
    ['string', { a: 1 }],
    ['number', null],
    ['number', true],
    ['number', ''],
    ['number', '1,5'],
    ['number', '0x10'],
    ['number', '1e999'],
    ['number', 'Infinity'],
    ['number', '12345678901234567890'],
    ['integer', '1.5'],
    ['integer', 1.5],
    ['boolean', 1],
    ['boolean', 0],
    ['boolean', 'yes'],
    ['boolean', null],
    ['object', '{"a":'],
    ['object', '[1]'],
    ['object', 5],
    ['array', null],
    ['null', 5],
    ['null', ''],
  ])('to %s, %j is never coerced', (type, sent) => {
    expect(createChecker(ofType(type))({ v: sent }).ok).toBe(false);
  });

  test('a valid value is not changed, even if another type would also be possible', () => {
    const check = createChecker(ofType(['string', 'integer']));
    expect(check({ v: '5' })).toMatchObject({ ok: true, value: { v: '5' }, removed: [], coerced: [] });
    const text = createChecker(ofType('string'));
    expect(text({ v: '{"a":1}' })).toMatchObject({ value: { v: '{"a":1}' }, coerced: [] });
  });

  test('the elements of an array are coerced, and so is a single value', () => {
    const check = createChecker(ofType('array', { items: { type: 'integer' } }));
    expect(check({ v: ['1', 2] })).toMatchObject({ ok: true, value: { v: [1, 2] }, coerced: ['v.0'] });
    expect(check({ v: '3' })).toMatchObject({ ok: true, value: { v: [3] } });
  });

  test('a value behind a long chain of references is coerced', () => {
    const $defs: Record<string, JsonSchema> = { d100: { type: 'integer' } };
    for (let index = 0; index < 100; index += 1) $defs[`d${index}`] = { $ref: `#/$defs/d${index + 1}` };
    const schema = { type: 'object', $defs, properties: { v: { $ref: '#/$defs/d0' } } };
    expect(createChecker(schema)({ v: '7' })).toMatchObject({ value: { v: 7 } });
  });

  const BRANCHES: readonly JsonSchema[] = [
    { type: 'integer' },
    { type: 'number', maximum: 5 },
    { type: 'boolean' },
    { type: 'null' },
    { enum: ['a', 'b'] },
    { type: 'string', pattern: '^[a-c]' },
    { type: 'string', format: 'date' },
    { type: 'string', maxLength: 1 },
    { type: 'array', items: { type: 'integer' } },
    { type: 'object', properties: { v: { type: 'integer' } }, required: ['v'] },
    { $ref: '#/$defs/whole' },
  ];
  const within = (v: JsonSchema): JsonSchema => ({
    type: 'object',
    $defs: { whole: { type: 'integer' } },
    properties: { v },
  });
  const judges = new Map(
    BRANCHES.map((branch) => [branch, createChecker(within(branch), { coerce: false })] as const),
  );

  test('a text that no branch of a union accepts becomes the number or boolean that one accepts', () => {
    const texts = fc.constantFrom('5', '7', '7.5', 'true', 'a', '[5]', 'zz', '{"v":5}', '');
    const text = fc.record({ text: texts, keyword: fc.constantFrom('anyOf', 'oneOf' as const) });
    fc.assert(
      fc.property(fc.subarray([...BRANCHES], { minLength: 2 }), text, (branches, { text, keyword }) => {
        const call = createChecker(within({ [keyword]: branches }));
        const accepted = (v: unknown): number =>
          branches.filter((branch) => judges.get(branch)?.({ v }).ok).length;
        const called = call({ v: text });
        if (accepted(text) === 0 && keyword === 'anyOf') {
          const meant = ['5', '7', '7.5', 'true'].includes(text) ? JSON.parse(text) : text;
          if (accepted(meant) > 0) expect(called).toMatchObject({ ok: true, value: { v: meant } });
        } else if (accepted(text) === 1) expect(called).toMatchObject({ ok: true, value: { v: text } });
        if (called.ok) expect(accepted(called.value.v)).toBeGreaterThan(0);
        // Generated code accepts the same.
        for (let count = 0; count < 60; count += 1) call({ v: text });
        expect(call({ v: text })).toEqual(called);
      }),
      { numRuns: 300 },
    );
  });

  test.each(['anyOf', 'oneOf'])('what is in the only branch of %s for its type is coerced', (keyword) => {
    const whole = { type: 'integer' };
    const item = { type: 'object', properties: { n: whole, m: { ...whole, default: 1 } }, required: ['n'] };
    const call = createChecker(
      within({ [keyword]: [{ type: 'string' }, item, { type: 'array', items: whole }] }),
    );
    expect(call({ v: ['5'] })).toMatchObject({ value: { v: [5] }, coerced: ['v.0'] });
    const sent = { n: '5', other: 1 };
    expect(call({ v: sent })).toMatchObject({ value: { v: { n: 5, m: 1 } }, removed: ['v.other'] });
    expect(call({ v: { n: 5, m: 2 } })).toMatchObject({ value: { v: { n: 5, m: 2 } }, coerced: [] });
    expect(call({ v: '5' })).toMatchObject({ value: { v: '5' }, coerced: [] });
  });

  test('a coerced value is validated again', () => {
    expect(createChecker(ofType('integer', { maximum: 10 }))({ v: '11' })).toMatchObject({
      ok: false,
      faults: [{ path: 'v', message: 'must be <= 10' }],
    });
  });

  test('a number read from text has the same text when it is written again', () => {
    const check = createChecker(ofType('number'));
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (number) => {
        const checked = check({ v: String(number) });
        if (checked.ok) expect(String(checked.value.v)).toBe(String(number));
      }),
    );
  });

  test('any value is either refused or of the required type', () => {
    const types = ['number', 'integer', 'boolean', 'object', 'array'];
    const checks = types.map((type) => createChecker(ofType(type)));
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...checks), (v, check) => {
        const checked = check({ v });
        if (!checked.ok) return expect(checked.faults.length).toBeGreaterThan(0);
        expect(check(checked.value)).toEqual({ ...checked, coerced: [] });
      }),
    );
  });
});
