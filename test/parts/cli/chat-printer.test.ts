import { stripVTControlCharacters } from 'node:util';
import { expect, test } from '@jest/globals';
import { colouredDifference, hasColours } from '../../../src/dev/cli/terminal.js';

const colourOf = (line: string) =>
  line.startsWith('\u001b[') ? line.slice(2, line.indexOf('m')) : undefined;

test('colouredDifference colours removed lines, added lines and headers, and changes no text', () => {
  const lines = [
    'It removes a rule:',
    '--- a',
    '+++ a',
    '@@ -1,3 +1,2 @@',
    ' x',
    '--- gone',
    '-y',
    '+z',
    '- not a part',
  ];
  const coloured = colouredDifference(lines);
  expect(coloured.map(stripVTControlCharacters)).toEqual(lines);
  // A removed line that looks like a header is coloured as a removed line.
  expect(coloured.map(colourOf)).toEqual([undefined, '1', '1', '36', undefined, '31', '31', '32', undefined]);
});

test('hasColours is false without a terminal, for a dumb terminal and with NO_COLOR', () => {
  const { NO_COLOR, TERM } = process.env;
  try {
    delete process.env.NO_COLOR;
    process.env.TERM = 'xterm';
    expect(hasColours({ isTerminal: true })).toBe(true);
    expect(hasColours({ isTerminal: false })).toBe(false);
    process.env.NO_COLOR = '1';
    expect(hasColours({ isTerminal: true })).toBe(false);
    delete process.env.NO_COLOR;
    process.env.TERM = 'dumb';
    expect(hasColours({ isTerminal: true })).toBe(false);
  } finally {
    for (const [name, value] of Object.entries({ NO_COLOR, TERM }))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
});
