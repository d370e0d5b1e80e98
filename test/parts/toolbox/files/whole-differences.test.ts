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
])('the difference of %j to %j is what is found by looking for it', (before, after) => {
  expect(differenceOf('a.txt', before, after)).toBe(createTwoFilesPatch('a.txt', 'a.txt', before, after));
});
