import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, ToolRegistry } from 'toolwright';
import { runs } from '../setup/runs.js';

const CUT = 'cut off in the middle of a value';

/** Sends this text as arguments: returns what a tool that takes any object received, or the error. */
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

/** A value as a model writes it, with the given quotes; otherwise correct. */
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

/** Whether `read` equals `meant`, except for entries missing at the end of containers. */
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
  'ToolRegistry.execute reads arguments in %s, and never completes a value that was cut off',
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
])('ToolRegistry.execute refuses arguments that are cut off inside a value: %j', async (text) => {
  expect((await sent(text)).error).toContain(CUT);
});

test.each([
  ['{"a": "x"', { a: 'x' }],
  ["{'a': ['x', {'b': 'y'}", { a: ['x', { b: 'y' }] }],
  ['{“a”: “x”', { a: 'x' }],
  ['```json\n{"a": ["x"]\n```', { a: ['x'] }],
])('ToolRegistry.execute adds missing brackets after a complete value: %j', async (text, args) => {
  expect(await sent(text)).toEqual({ args });
});

test.each([
  '{"a":1}{"command":"x"}',
  '{"a":1} and {"command":"x"}',
  "{'command': 'it's'}",
  "{'command': 'don't, stop', 'force': True}",
  '{‘command’: ‘it’s’}',
  '{"command": "echo "}" && rm"}',
  '{"command": say("hi")}',
  '{"command": """rm"""}',
  '{"command": ["""rm"""]}',
  '{"command": [(}] and more words',
  '{"a": 1 // b }, "c": 2 }',
])('ToolRegistry.execute refuses arguments that it could only change: %j', async (text) => {
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
])('ToolRegistry.execute repairs arguments with one possible meaning: %j', async (text, args) => {
  expect(await sent(text)).toEqual({ args });
});

test('ToolRegistry.execute refuses arguments nested 20,000 levels deep, with every bracket and quote', async () => {
  for (const unit of ['{"a":', "{'a':[", '[', '{a:(', '{“a”:', '{"a": "b"c": {'])
    expect((await sent(`{"x": ${unit.repeat(20_000)}`)).error).toContain('the arguments');
});

/** Broken texts, each with the repaired arguments, or a part of the error message. */
const BROKEN: readonly (readonly [text: string, args: unknown])[] = [
  // Commas
  ['{"tags": ["red" "green" "blue"]}', { tags: ['red', 'green', 'blue'] }],
  ['{"tags": ["red"\n"green"\n]}', { tags: ['red', 'green'] }],
  ['{"n": [1\n2\n3]}', { n: [1, 2, 3] }],
  ['{"n": ["a" 2]}', { n: ['a', 2] }],
  ['{"rows": [{"a": 1}{"a": 2}]}', { rows: [{ a: 1 }, { a: 2 }] }],
  ['{"rows": [[1] [2]]}', { rows: [[1], [2]] }],
  ['{"a": true "b": null}', { a: true, b: null }],
  ['{"a": "x" b: 2}', { a: 'x', b: 2 }],
  ['{"a": "x""b": 2}', { a: 'x', b: 2 }],
  ['{,"a": 1,, "b": 2,}', { a: 1, b: 2 }],
  ['{"a": [,1,,2,]}', { a: [1, 2] }],
  ['{"n": [1 2]}', 'values must be separated by commas'],
  ['{"a": 1 2}', 'values must be separated by commas'],
  ['{"tags": ["red""green"]}', 'a quote within a string'],
  ['{"cmd": ["join with " " here"]}', 'a quote within a string'],
  ['{"cmd": ["IFS=" "", "x"]}', 'a quote within a string'],
  ['{"a": ["x" y]}', 'a quote within a string'],
  ['{"amount": 1,000}', 'not valid JSON'],
  ['{"amounts": [10 000]}', 'not valid JSON'],
  // Colons and missing values
  ['{"a" "b"}', { a: 'b' }],
  ['{"a": "x", "b" "y"}', { a: 'x', b: 'y' }],
  ['{"a" {"b": 1}}', { a: { b: 1 } }],
  ['{"a" [1]}', { a: [1] }],
  ['{"a":}', 'the value of "a" is missing'],
  ['{"a": , "b": 1}', 'the value of "a" is missing'],
  ['{"a"}', 'not valid JSON'],
  ['{:2}', 'not valid JSON'],
  // Quotes around texts and keys
  ['{city: Paris}', { city: 'Paris' }],
  ["{'city': 'Paris'}", { city: 'Paris' }],
  ['{“city”: “Paris”}', { city: 'Paris' }],
  ['{‘city’: ‘Paris’}', { city: 'Paris' }],
  ['{"city": `Paris "la nuit"`}', { city: 'Paris "la nuit"' }],
  ['{"city": Paris", "days": 2}', { city: 'Paris', days: 2 }],
  ['{city": "Paris"}', { city: 'Paris' }],
  ['{"city": "Paris, "days": 2}', { city: 'Paris', days: 2 }],
  ['{"city": "Paris, days: "two"}', { city: 'Paris', days: 'two' }],
  ['{"city": "Paris, days": "two"}', 'a quote within a string'],
  ['{"city": "Paris, days: 2}', CUT],
  ['{"city: "Paris"}', 'the arguments'],
  ['{"city": ""Paris"}', 'the arguments'],
  ['{"city": """"}', 'a quote within a string'],
  ['{"city": "" "Paris"}', 'a colon must follow the key "Paris"'],
  ['{"url": https://example.org/a?b=1, "n": 2}', { url: 'https://example.org/a?b=1', n: 2 }],
  ['{at: 2030-01-02T03:04:05Z}', { at: '2030-01-02T03:04:05Z' }],
  ['{version: 1.2.3}', { version: '1.2.3' }],
  ['{a: b c: d}', 'a string must be in quotes'],
  ['{a: one, two, b: 3}', 'not valid JSON'],
  // Quotes inside texts
  ['{"text": "say "hi" now"}', { text: 'say "hi" now' }],
  ['{"text": "say "hi", then "bye""}', { text: 'say "hi", then "bye"' }],
  ['{"html": "<a href="x">y</a>"}', { html: '<a href="x">y</a>' }],
  ['{"text": "a 24" screen"}', { text: 'a 24" screen' }],
  ['{"text": "[link]("https://example.org")"}', { text: '[link]("https://example.org")' }],
  ['{"text": ["say "hi" now", "b"]}', { text: ['say "hi" now', 'b'] }],
  ['{"the "key"s": 1}', { 'the "key"s': 1 }],
  ['{"text": "say "hi"}', 'the arguments'],
  ['{"text": "{ x": {} }"}', 'a quote within a string'],
  ['{"list": ["a"], "text": "b", ["c"]}', 'a quote within a string'],
  ['{"list": ["a", "b" note" ], "c": 1}', 'the arguments'],
  ['{"list": ["a, "b", "c"]}', 'the arguments'],
  ['{"text": "a \\"b\\" and "c" d"}', 'the arguments'],
  // Escapes
  ['{"text": "it\\\'s",}', { text: "it's" }],
  ['{"text": "a\nb"}', { text: 'a\nb' }],
  ['{"pattern": "\\d+"}', '\\d is not a JSON escape'],
  ['{"path": "C:\\lib"}', '\\l is not a JSON escape'],
  ['{"text": "\\u12"}', '\\u is not a JSON escape'],
  ['{"text": "\\u12', CUT],
  ['{"text": "a\\', CUT],
  ['{\\"text\\": \\"a \\\\\\"b\\\\\\" c\\"}', { text: 'a "b" c' }],
  ['{\\"text\\": \\"a \\\\"b\\\\" c\\"}', { text: 'a "b" c' }],
  ['{\\"a\\": 1,\n \\"b\\": 2}', { a: 1, b: 2 }],
  ['{\\"":0}', 'the arguments'],
  // Values of other languages
  ['{"a": True, "b": False, "c": None}', { a: true, b: false, c: null }],
  ['{"a": undefined, "b": 1}', { a: null, b: 1 }],
  ['{"at": (1, 2), "one": (1,), "grouped": (1)}', { at: [1, 2], one: [1], grouped: 1 }],
  ['{"text": "a" + "b"}', { text: 'ab' }],
  ["{'text': 'a' +\n 'b'}", { text: 'ab' }],
  ['{"a": TRUE}', 'TRUE is not a JSON value'],
  ['{"a": NaN}', 'NaN is not a JSON value'],
  ['{"a": -Infinity}', '-Infinity is not a JSON value'],
  ['{"n": 05}', '05 is not a JSON value'],
  ['{"n": +5}', '+5 is not a JSON value'],
  ['{"n": 0x1F}', '0x1F is not a JSON value'],
  ['{"n": 1_000}', '1_000 is not a JSON value'],
  ['{"n": 1e }', '1e is not a JSON value'],
  ['{"n": 1.}', { n: 1 }],
  ['{"n": .5}', { n: 0.5 }],
  ['{"id": ObjectId("507f1f77")}', 'the arguments'],
  ['{"a", "b"}', 'not valid JSON'],
  // Comments and gaps
  ['{"a": 1, // one\n "b": 2 /* two */}', { a: 1, b: 2 }],
  ['/* note */ {"a": 1} // end', { a: 1 }],
  ['{"a": [1, 2, ...]}', { a: [1, 2] }],
  ['{"a": 1, ...}', { a: 1 }],
  ['{"a":\u200b"x"}', { a: 'x' }],
  // Brackets
  ['{"a": {"b": [1, {"c": "x"', { a: { b: [1, { c: 'x' }] } }],
  ['{"a": [1, 2}', { a: [1, 2] }],
  ['{"a": 1}}]', { a: 1 }],
  ['{"a": x "b": "y" ', { a: 'x', b: 'y' }],
  ['{"a": ["x" "y"', { a: ['x', 'y'] }],
  ['{"a": ["x", "y', CUT],
  ['{"a": {"b": 1}, "c', CUT],
  // Text around the object
  ['```json\n{"a": 1}\n```', { a: 1 }],
  ['Here you are:\n{"a": 1}\nAnything else?', { a: 1 }],
  ['callback({"a": 1});', { a: 1 }],
  ['{"a": 1}{}', { a: 1 }],
  ['{"a": 1}, []', { a: 1 }],
  ['{"a": 1}["x"]', 'contains several'],
  ['{"a": 1}\n{"b": 2}', 'contains several'],
  ['{"a": "x"}, "b": "y"}', 'not valid JSON'],
];

test.each(BROKEN)(
  'ToolRegistry.execute repairs %j only if it has one possible meaning',
  async (text, wanted) => {
    const { args, error } = await sent(text);
    if (typeof wanted === 'string') expect(error).toContain(wanted);
    else expect({ args, error }).toEqual({ args: wanted });
  },
);

/** The tokens of JSON text as `JSON.stringify` writes it. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const isText = (token: string | undefined) => token?.startsWith('"') === true;
const isEntryEnd = (token: string | undefined) => token !== undefined && !/^[{[,:]$/.test(token);

/** Makes one mistake at a token of a JSON text; returns undefined if it is not possible there. */
type Slip = (tokens: readonly string[], at: number) => readonly string[] | undefined;
const changed = (tokens: readonly string[], at: number, token: string) => tokens.with(at, token);

const SLIPS: Readonly<Record<string, Slip>> = {
  'a comma is missing': (tokens, at) => (tokens[at] === ',' ? changed(tokens, at, ' ') : undefined),
  'a comma is a line break': (tokens, at) => (tokens[at] === ',' ? changed(tokens, at, '\n') : undefined),
  'a comma is doubled': (tokens, at) => (tokens[at] === ',' ? changed(tokens, at, ', ,') : undefined),
  'a comma precedes the end of a container': (tokens, at) =>
    /^[}\]]$/.test(tokens[at]!) && isEntryEnd(tokens[at - 1])
      ? changed(tokens, at, `,${tokens[at]}`)
      : undefined,
  'a comma follows the start of a container': (tokens, at) =>
    /^[{[]$/.test(tokens[at]!) ? changed(tokens, at, `${tokens[at]},`) : undefined,
  'a colon is missing': (tokens, at) => (tokens[at] === ':' ? changed(tokens, at, ' ') : undefined),
  'brackets at the end are missing': (tokens, at) =>
    /^[}\]]*$/.test(tokens.slice(at).join('')) ? tokens.slice(0, at) : undefined,
  'a bracket is of the wrong kind': (tokens, at) =>
    /^[}\]]$/.test(tokens[at]!) ? changed(tokens, at, tokens[at] === '}' ? ']' : '}') : undefined,
  'the opening quote of a text is missing': (tokens, at) =>
    isText(tokens[at]) ? changed(tokens, at, tokens[at]!.slice(1)) : undefined,
  'the closing quote of a text is missing': (tokens, at) =>
    isText(tokens[at]) ? changed(tokens, at, tokens[at]!.slice(0, -1)) : undefined,
  'quotes in texts are not escaped': (tokens) =>
    tokens.map((token) => token.replace(/\\(.)/g, (pair) => (pair === '\\"' ? '"' : pair))),
  'a comment follows a token': (tokens, at) => changed(tokens, at, `${tokens[at]} /* a "note", {x: 1} */ `),
};

/** Texts that models write: words, code, paths, quotations. */
const words = fc.oneof(
  texts,
  fc.stringMatching(/^[a-z ,.:'"(){}=/-]{0,12}$/),
  fc.constantFrom(
    'say "hi", then go',
    'a 24" screen',
    '<a href="x">y</a>',
    'Paris',
    'x: 1',
    'f("a", "b")',
    "it's",
    '"',
  ),
);
const call = fc.dictionary(
  fc.oneof(fc.constantFrom('city', 'to', 'max_count', 'a b', 'x"y'), words),
  fc.oneof(
    words,
    fc.integer(),
    fc.boolean(),
    fc.array(words, { maxLength: 3 }),
    fc.array(fc.integer(), { maxLength: 3 }),
    fc.dictionary(words, words, { maxKeys: 2 }),
  ),
  { minKeys: 1, maxKeys: 4 },
);

test.each(Object.entries(SLIPS))(
  'ToolRegistry.execute passes the intended arguments or refuses the call if %s',
  async (_, slip) => {
    await fc.assert(
      fc.asyncProperty(call, fc.nat(), async (meant, place) => {
        const tokens = JSON.stringify(meant).match(TOKEN)!;
        const broken = slip(tokens, place % tokens.length)?.join('');
        fc.pre(broken !== undefined);
        const { args, error } = await sent(broken!);
        if (error === undefined) expect(args).toEqual(meant);
        else expect(error).toContain('the arguments');
      }),
      { numRuns: runs(400) },
    );
  },
);
