import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';
import { runs } from '../setup/runs.js';

const CUT = 'cut off in the middle of a value';

/** What a tool that takes anything is called with for arguments that come as this text; the error otherwise. */
async function sent(text: string): Promise<{ readonly args?: unknown; readonly error?: string }> {
  let args: unknown;
  const registry = new ToolRegistry();
  registry.register(
    defineTool({
      name: 'take',
      description: 'Takes anything',
      parameters: { type: 'object', additionalProperties: true },
      execute: (given) => {
        args = given;
      },
    }),
  );
  const result = await registry.execute('take', text);
  return result.isError ? { error: result.forLLM } : { args };
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const texts = fc.oneof(
  fc.string(),
  fc.constantFrom(
    'SELECT "id" FROM t WHERE (a = 1)',
    "it's {x}: [y], ",
    '}',
    '"}',
    '",',
    '”',
    '“a” b',
    '\n```\n',
    '// c',
    ' /* ',
    '\\',
    'a, "b": 1',
  ),
);
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(
      texts,
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(texts, tie('value'), { maxKeys: 3 }),
  ),
})).value;
const object = fc.dictionary(texts, value, { minKeys: 1, maxKeys: 3 });

interface Style {
  readonly open: string;
  readonly close: string;
  readonly literals: readonly [string, string, string];
}

const JSON_STYLE: Style = { open: '"', close: '"', literals: ['true', 'false', 'null'] };
const PYTHON: Style = { open: "'", close: "'", literals: ['True', 'False', 'None'] };
const CURLY: Style = { open: '“', close: '”', literals: ['true', 'false', 'null'] };

/** A value as a model writes it, with one of the quote styles; correct in every other way. */
function written(given: Json, style: Style): string {
  if (typeof given === 'string') {
    const escaped = JSON.stringify(given).slice(1, -1).replaceAll('\\"', '"');
    const special = new RegExp(`[${style.open}${style.close}]`, 'g');
    return `${style.open}${escaped.replace(special, '\\$&')}${style.close}`;
  }
  if (given === null) return style.literals[2];
  if (typeof given === 'boolean') return style.literals[given ? 0 : 1];
  if (typeof given === 'number') return JSON.stringify(given);
  if (Array.isArray(given)) return `[${given.map((item) => written(item, style)).join(', ')}]`;
  const members = Object.entries(given).map(
    ([key, item]) => `${written(key, style)}: ${written(item, style)}`,
  );
  return `{${members.join(', ')}}`;
}

/** Whether what was read is what was meant, but for entries at the ends of containers that never came. */
function isBeginning(read: unknown, meant: unknown): boolean {
  if (Array.isArray(read) && Array.isArray(meant))
    return read.length <= meant.length && read.every((item, index) => isBeginning(item, meant[index]));
  if (typeof read === 'object' && read !== null && typeof meant === 'object' && meant !== null)
    return Object.entries(read).every(
      ([key, item]) =>
        Object.hasOwn(meant, key) && isBeginning(item, (meant as Record<string, unknown>)[key]),
    );
  return Object.is(read, meant);
}

test.each([
  ['JSON', JSON_STYLE],
  ['Python', PYTHON],
  ['curly quotes', CURLY],
])(
  'ToolRegistry.execute reads arguments in %s, and completes no value that they were cut in',
  async (_, style) => {
    await fc.assert(
      fc.asyncProperty(object, fc.nat(), async (meant, length) => {
        const text = written(meant, style);
        const expected: unknown = JSON.parse(JSON.stringify(meant));
        expect((await sent(text)).args).toEqual(expected);
        const part = text.slice(0, 1 + (length % (text.length - 1)));
        const { args } = await sent(part);
        if (args === undefined) return;
        expect(isBeginning(args, expected)).toBe(true);
        expect(part.trimEnd()).toMatch(new RegExp(`[${style.close}\\]}]$`));
      }),
      { numRuns: runs(400) },
    );
  },
);

test.each([
  `{'cmd': 'SELECT "id" FROM t WHERE (`,
  '{“to”: “Anna,',
  '{"to": ["a","b",',
  '{"to": [',
  '{"to": {',
  '{"to":',
  '{"to": "a",',
  '{"amount": 12',
  '{"force": tru',
  "{'note': 'a}",
  '{“note”: “a"}',
  '{cmd: rm -rf /tmp',
  '{"cmd": "say "hi" and then (',
  '```json\n{"path": "/tmp\n```',
])('ToolRegistry.execute refuses arguments that are cut in a value: %j', async (text) => {
  expect((await sent(text)).error).toContain(CUT);
});

test.each([
  ['{"a": "x"', { a: 'x' }],
  ["{'a': ['x', {'b': 'y'}", { a: ['x', { b: 'y' }] }],
  ['{“a”: “x”', { a: 'x' }],
  ['```json\n{"a": ["x"]\n```', { a: ['x'] }],
])(
  'ToolRegistry.execute adds the brackets that are missing after a complete value: %j',
  async (text, args) => {
    expect(await sent(text)).toEqual({ args });
  },
);

test.each([
  '{"a":1}{"command":"x"}',
  '{"a":1} and {"command":"x"}',
  "{'command': 'it's'}",
  "{'command': 'don't, stop', 'force': True}",
  '{‘command’: ‘it’s’}',
  '{"command": "echo "}" && rm"}',
  '{"command": "rm " + "-rf"}',
  '{"command": say("hi")}',
  '{"command": """rm"""}',
  '{"command": ["""rm"""]}',
  '{"command": [(}] and more words',
  '{"a": 1 // b }, "c": 2 }',
])('ToolRegistry.execute refuses arguments that it would have to change: %j', async (text) => {
  expect((await sent(text)).error).toContain('the arguments');
});

test.each([
  ['{"key": "apple "bee" carrot"}', { key: 'apple "bee" carrot' }],
  ['{"cmd": "say "hi", then go"}', { cmd: 'say "hi", then go' }],
  ['{"a": 1 "b": 2}', { a: 1, b: 2 }],
  ['{"a": "x,"b": 2}', { a: 'x', b: 2 }],
  ['{"a": "x, "b": 2}', { a: 'x', b: 2 }],
  ['{a: some words, b: 2024-10-18}', { a: 'some words', b: '2024-10-18' }],
  ['{"a": [1, 2}', { a: [1, 2] }],
  ['[note] {"a": 1}', { a: 1 }],
  ['{\\"a\\": 1}', { a: 1 }],
])('ToolRegistry.execute mends slips that leave no doubt: %j', async (text, args) => {
  expect(await sent(text)).toEqual({ args });
});

test('ToolRegistry.execute refuses nesting without end, in every bracket and quote', async () => {
  for (const unit of ['{"a":', "{'a':[", '[', '{a:(', '{“a”:', '{"a": "b"c": {'])
    expect((await sent(`{"x": ${unit.repeat(20_000)}`)).error).toContain('the arguments');
});
