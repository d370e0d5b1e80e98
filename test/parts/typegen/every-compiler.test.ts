import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Generated, generate } from '../../../src/dev/typegen/generate.js';
import type { Compiler, CompilerView } from '../../../src/dev/typegen/load-compiler.js';
import { closeCompilers, compilerOf, fixture, VERSIONS } from './compilers.js';

afterAll(closeCompilers);

const SHOP = fixture('shop');
const EXPECTED = join(SHOP, 'src', 'toolwright.gen.ts');

describe.each(VERSIONS)('TypeScript %s', (version) => {
  let compiler: Compiler;
  let view: CompilerView;
  let generated: Generated;

  beforeAll(async () => {
    compiler = await compilerOf(version);
    view = compiler.open(join(SHOP, 'tsconfig.json'));
    generated = generate({ view, folder: SHOP });
  });

  test('generates exactly the committed file of the fixture', () => {
    expect(compiler.version.startsWith(version)).toBe(true);
    expect(view.problems()).toEqual([]);
    const { text, outFile, faults } = generated;
    expect(faults).toEqual([]);
    expect(outFile).toBe(EXPECTED);
    if (process.env.UPDATE_GENERATED && version === '7.0') writeFileSync(EXPECTED, text);
    // After an intended change of the output: UPDATE_GENERATED=1 npm run jest -- test/parts/typegen
    expect(text).toBe(readFileSync(EXPECTED, 'utf8'));
  });

  test('warns about a parameter that cannot be validated', () => {
    expect(generated.warnings.map(({ where, path, problem }) => [where, path, problem])).toEqual([
      ['OrderTools.objects, parameter anything', 'anything', 'is unknown, so its values are not validated'],
    ]);
  });
});
