import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parameterList } from '../../../src/tools/discovery/method-facts.js';

const names = (fn: (...args: never[]) => unknown) => parameterList(fn)?.map(({ name }) => name);
const defaults = (fn: (...args: never[]) => unknown) =>
  parameterList(fn)?.map(({ defaultValue }) => defaultValue?.value);

/** A function from source text, so that no compiler changes its syntax. */
function method(source: string): (...args: never[]) => unknown {
  const holder = new Function(`return {${source}}`)() as Record<string, (...args: never[]) => unknown>;
  return Object.values(holder)[0] as (...args: never[]) => unknown;
}

describe('parameter names', () => {
  test.each([
    ['a method', 'find(id, limit) {}'],
    ['an async method', 'async find(id, limit) {}'],
    ['a generator', '*find(id, limit) {}'],
    ['an async generator', 'async *find(id, limit) {}'],
    ['a quoted name', "'find it'(id, limit) {}"],
    ['a computed name with parentheses', "['fi' + String('nd')](id, limit) {}"],
    ['comments in odd places', 'find(/* (a, b) */ id, // the last, )\n limit // done\n) {}'],
    ['a trailing comma', 'find(id, limit,) {}'],
    ['an arrow function', 'find: (id, limit) => id'],
    ['an async arrow function', 'find: async (id, limit) => id'],
    ['a function expression', 'find: function named(id, limit) {}'],
  ])('are read from %s', (_form, source) => {
    expect(names(method(source))).toEqual(['id', 'limit']);
  });

  test('are read from an arrow function without parentheses', () => {
    expect(names(method('find: id => id'))).toEqual(['id']);
    expect(names(method('find: async id => id'))).toEqual(['id']);
  });

  test('are absent for destructured parameters', () => {
    expect(names(method('find({ a, b }, [c], d) {}'))).toEqual([undefined, undefined, 'd']);
  });

  test('are not available for native and bound functions', () => {
    expect(parameterList(Math.max)).toBeUndefined();
    expect(parameterList(function named(this: unknown) {}.bind(null))).toBeUndefined();
  });

  test('are read despite defaults with brackets, strings, regular expressions, templates and functions', () => {
    const source = 'find(a = ")", b = /[)(]/, c = `${(1)})`, d = (x) => ({ y: [x] }), e = { f: ")" }) {}';
    expect(names(method(source))).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('do not depend on the body', () => {
    expect(names(method('find(id) { return `(${id})` + /\\(/.source + "{" }'))).toEqual(['id']);
  });

  test('are read if a default contains super', () => {
    expect(names(method('find(id = super.id, b) {}'))).toEqual(['id', 'b']);
  });
});

describe('a parameter list without brackets', () => {
  const literal = fc.constantFrom(
    '0',
    '-0',
    '12',
    '1.5',
    '-3.25',
    'true',
    'false',
    'null',
    "'a b'",
    '"x, y"',
    "')'",
    '"="',
    "''",
  );
  const parameter = fc.tuple(fc.constantFrom('a', 'b2', '$c', '_d'), fc.option(literal, { nil: undefined }));
  const space = fc.constantFrom('', ' ', '\n  ');

  test('gives the same result as with a comment in it, which requires the parser', () => {
    const lists = fc.uniqueArray(parameter, { selector: ([name]) => name, maxLength: 4 });
    fc.assert(
      fc.property(
        lists,
        space,
        fc.constantFrom('run', 'async run', '*run', 'async *run'),
        (list, gap, head) => {
          const parameters = list.map(([name, value]) =>
            value === undefined ? name : `${name}${gap}=${gap}${value}`,
          );
          const text = parameters.join(`${gap},${gap}`);
          const plain = parameterList(method(`${head}(${gap}${text}${gap})${gap}{}`));
          expect(plain).toEqual(parameterList(method(`${head}(/**/${text}) {}`)));
          expect(plain).toHaveLength(list.length);
        },
      ),
    );
  });
});

describe('literal defaults', () => {
  test('are evaluated for every kind of literal', () => {
    const source =
      "find(a = 10, b = -1.5, c = 'x', d = true, e = null, f = `t`, g = [1, ['a']], h = { i: { j: 2 }, 'k-l': [] }) {}";
    expect(defaults(method(source))).toEqual([
      10,
      -1.5,
      'x',
      true,
      null,
      't',
      [1, ['a']],
      { i: { j: 2 }, 'k-l': [] },
    ]);
  });

  test('are read as coverage tools and minifiers write them', () => {
    expect(defaults(method('find(a = (globalThis.counter++, 10), b = !0, c = !1) {}'))).toEqual([
      10,
      true,
      false,
    ]);
  });

  test('have no value, but are recorded as present, if they are not literals', () => {
    const parsed = parameterList(
      method(
        'find(a = Date.now(), b = new Date(), c = [...d], e = { f }, g = { ["h"]: 1 }, i = 1n, j = /x/) {}',
      ),
    );
    expect(parsed?.map(({ hasDefault }) => hasDefault)).toEqual(Array(7).fill(true));
    expect(parsed?.map(({ defaultValue }) => defaultValue)).toEqual(Array(7).fill(undefined));
  });

  test('never set the prototype of a default object', () => {
    expect(defaults(method('find(a = { __proto__: null }) {}'))).toEqual([undefined]);
  });
});

test('a rest parameter is marked as one', () => {
  expect(parameterList(method('find(id, ...tags) {}'))).toEqual([
    { name: 'id', isRest: false, hasDefault: false },
    { name: 'tags', isRest: true, hasDefault: false },
  ]);
});
