import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { generate } from '../../../src/typegen/generate.js';
import { closeCompilers, compilerOf, fixture, VERSIONS } from './compilers.js';

afterAll(closeCompilers);

const SHOP = fixture('shop');
const EXPECTED = join(SHOP, 'src', 'toolwright.gen.ts');

describe.each(VERSIONS)('TypeScript %s', (version) => {
  test('generates the committed file of the fixture, byte for byte', async () => {
    const view = (await compilerOf(version)).open(join(SHOP, 'tsconfig.json'));
    expect(view.version.startsWith(version)).toBe(true);
    expect(view.problems()).toEqual([]);
    const { text, outFile, faults } = generate({ view, folder: SHOP });
    expect(faults).toEqual([]);
    expect(outFile).toBe(EXPECTED);
    if (process.env.UPDATE_GENERATED && version === '7.0') writeFileSync(EXPECTED, text);
    // A change of the printed form is a decision: UPDATE_GENERATED=1 npm run jest -- test/rooms/typegen
    expect(text).toBe(readFileSync(EXPECTED, 'utf8'));
  });

  test('warns of what is not checked', async () => {
    const view = (await compilerOf(version)).open(join(SHOP, 'tsconfig.json'));
    const { warnings } = generate({ view, folder: SHOP });
    expect(warnings.map(({ where, path, problem }) => [where, path, problem])).toEqual([
      ['OrderTools.objects, parameter anything', 'anything', 'is unknown: nothing is checked about it'],
    ]);
  });
});
