import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { DescribedTool } from '../../src/core/contract/declaration.js';
import { describeClasses } from '../../src/dev/typegen/describe-classes.js';
import { schemaTest } from '../../src/tools/checking/interpreter/interpret-schema.js';
import { closeCompilers, compilerOf } from '../parts/typegen/compilers.js';
import { offeredSchema } from '../parts/typegen/offered-schema.js';
import { smallProject, WITH_PLATFORM } from '../parts/typegen/small-project.js';
import { PRELUDE, type RandomType, randomType, spoilt } from './random-type.js';

const TYPES = 120;
const VALUES = 25;

afterAll(closeCompilers);

test('the schemas of random types accept exactly the values of the type', async () => {
  const seed = Number(process.env.FC_SEED ?? fc.readConfigureGlobal()?.seed ?? Date.now() % 2 ** 31);
  const types = fc.sample(randomType, { numRuns: TYPES, seed });
  const methods = await generateFor(types);
  for (const [index, type] of types.entries()) {
    const fits = schemaTest(offeredSchema(methods[index]));
    const values = type.values.chain((value) => fc.oneof(fc.constant(value), spoilt(value)));
    const judged = { accepted: 0, refused: 0 };
    for (const value of fc.sample(values, { numRuns: VALUES, seed: seed + index })) {
      const expected = type.accepts(value);
      judged[expected ? 'accepted' : 'refused'] += 1;
      if (fits({ value }) === expected) continue;
      const verdict = expected ? 'is refused' : 'is accepted';
      throw new Error(`FC_SEED=${seed}: ${JSON.stringify(value)} ${verdict} for ${type.source}`);
    }
    expect(judged.accepted).toBeGreaterThan(0);
  }
});

/** One method for each type, so that the compiler runs once. */
async function generateFor(types: readonly RandomType[]): Promise<readonly DescribedTool[]> {
  const members = types.map(({ source }, index) => `  @Tool() m${index}(value: ${source}) { return value; }`);
  const text = `import { Tool } from 'toolwright';\n${PRELUDE}export class Types {\n${members.join('\n')}\n}\n`;
  using project = smallProject({ 'src/types.ts': text }, WITH_PLATFORM);
  const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
  expect(view.problems()).toEqual([]);
  const { drafts, faults } = describeClasses(view);
  const [draft] = drafts;
  expect(faults).toEqual([]);
  return Object.values(draft?.tools ?? {});
}
