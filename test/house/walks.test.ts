import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { builtFile } from '../processes/built-file.js';
import { outputOfNode } from '../processes/run-node.js';
import { ROOT } from './repository.js';

/** How many files and functions of the sources something takes at most, when everything is warm. */
interface Ceiling {
  readonly files: number;
  readonly functions: number;
}

/** At most this many today; lower them when the number of a walk falls. The goal stands beside each. */
const CEILINGS: Readonly<Record<string, Ceiling>> = {
  execute: { files: 8, functions: 19 }, // 8
  'turn with a call': { files: 23, functions: 93 }, // 20, 90
  'discover a method': { files: 20, functions: 106 }, // 20, 70
  suspend: { files: 33, functions: 157 }, // 28
  resume: { files: 34, functions: 167 }, // 28
};

builtFile('dist/src/index.js');
const walks = JSON.parse(
  outputOfNode([join(ROOT, 'test/house/walk-program.mjs')], { folder: ROOT }),
) as Readonly<Record<string, readonly string[]>>;

test('all walks are measured', () => {
  expect(Object.keys(walks)).toEqual(Object.keys(CEILINGS));
});

test.each(Object.entries(CEILINGS))(
  '%s goes through few files and functions',
  (name, { files, functions }) => {
    const walked = walks[name] ?? [];
    const walkedFiles = new Set(walked.map((place) => place.split(':')[0]));
    expect(walked.length).toBeGreaterThan(5);
    const isMore = walkedFiles.size > files || walked.length > functions;
    // What was walked, where it is more than it may be.
    expect(isMore ? { files: walkedFiles.size, functions: walked.length, walked } : {}).toEqual({});
  },
);
