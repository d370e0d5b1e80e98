import { expect, test } from '@jest/globals';
import { createTwoFilesPatch } from 'diff';
import { differenceOf } from '../../../../src/toolbox/files/file-tools.js';

test.each([
  ['', ''],
  ['', 'one\n'],
  ['', 'one\ntwo'],
  ['', '\n'],
  ['', '\n\none\r\n'],
  ['one\ntwo\n', ''],
  ['one', ''],
])(
  'the shortcut for the difference from %j to %j matches the result of the diff package',
  (before, after) => {
    expect(differenceOf('a.txt', before, after)).toBe(createTwoFilesPatch('a.txt', 'a.txt', before, after));
  },
);
