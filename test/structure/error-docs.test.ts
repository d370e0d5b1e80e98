import { expect, test } from '@jest/globals';
import { ERROR_TABLE } from '../../src/core/errors/toolwright-error.js';
import { readText } from './repository.js';

interface Row {
  readonly code: number;
  readonly name: string;
  readonly happened: string;
  readonly remedy: string;
}

const TABLE: readonly Row[] = Object.entries(ERROR_TABLE).map(([name, { code, happened, remedy }]) => ({
  code,
  name,
  happened,
  remedy,
}));

test('docs/reference/errors.md has exactly the rows of the error table, in the same order', () => {
  expect(rowsOf(readText('docs/reference/errors.md'))).toEqual(TABLE);
});

test('error codes are unique and ascend from 500', () => {
  const codes = TABLE.map(({ code }) => code);
  expect(codes).toEqual([...new Set(codes)].sort((a, b) => a - b));
  expect(codes[0]).toBe(500);
});

test('every error describes what happened and what to do in full sentences', () => {
  const incomplete = TABLE.filter(
    (row) => ![row.happened, row.remedy].every((text) => /^[A-Z].+\.$/.test(text)),
  );
  expect(incomplete).toEqual([]);
});

/** The rows of a Markdown table whose first cell is a number. */
function rowsOf(markdown: string): Row[] {
  return markdown.split('\n').flatMap((line) => {
    const [, code, name, happened, remedy] = line.split(/\s*(?<!\\)\|\s*/);
    if (code === undefined || !/^\d+$/.test(code)) return [];
    return [
      {
        code: Number(code),
        name: (name ?? '').replaceAll('`', ''),
        happened: happened ?? '',
        remedy: remedy ?? '',
      },
    ];
  });
}
