import { expect, test } from '@jest/globals';
import { addEntry, setValue } from '../../../src/dev/cli/init-command.js';

test.each([
  ['{}', '{ "a": { "b": true } }'],
  ['{ "c": 1 }', '{ "c": 1, "a": { "b": true } }'],
  ['{\n  "c":   1 // one\n}\n', '{\n  "c":   1, // one\n  "a": { "b": true }\n}\n'],
  ['{\n\t"c": 1, /* one */\n}\n', '{\n\t"c": 1, /* one */\n\t"a": { "b": true },\n}\n'],
  ['{ "a": { /* none */ } }', '{ "a": { "b": true /* none */\n } }'],
  ['{ "a": { "b": false } } // end', '{ "a": { "b": true } } // end'],
  ['{\n  "a": {\n    "c": [1,2]\n  }\n}', '{\n  "a": {\n    "c": [1,2],\n    "b": true\n  }\n}'],
])('setValue sets a value in %j', (text, expected) => {
  expect(setValue(text, ['a', 'b'], true)).toBe(expected);
  expect(setValue(expected, ['a', 'b'], true)).toBe(expected);
});

test.each([
  ['{}', '{ "a": ["x"] }'],
  ['{ "a": [] }', '{ "a": ["x"] }'],
  ['{ "a": ["w"] }', '{ "a": ["w", "x"] }'],
  ['{ "a": [\n    { "n": 1 }\n  ] }', '{ "a": [\n    { "n": 1 },\n    "x"\n  ] }'],
])('addEntry adds an entry in %j', (text, expected) => {
  expect(addEntry(text, ['a'], 'x')).toBe(expected);
});
