import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { generate } from '../../../src/dev/typegen/generate.js';
import { closeCompilers, compilerOf, VERSIONS } from './compilers.js';
import { generateTool, smallProject } from './small-project.js';

afterAll(closeCompilers);

const BEFORE = `
  interface Lines extends Array<string> {}
  interface Page<Row> extends ReadonlyArray<Row> { readonly total?: number }
  interface Pages extends Page<{ id: number }> {}
  interface Pair extends Array<number> { 0: number; 1: number }
  interface Point extends Readonly<[x: number, y: number]> {}
  interface Tree extends Array<Tree> {}
`;
const MEMBERS = `
  @Tool() lines(lines: Lines, pages: Pages, pair: Pair): Pages { return pages; }
  @Tool() point(point: Point): Lines { return []; }
  @Tool() tree(tree: Tree) {}`;

describe.each(VERSIONS)('interfaces that extend arrays, TypeScript %s', (version) => {
  test('become array schemas for parameters and results', async () => {
    using project = smallProject({
      'src/tools.ts': `import { Tool } from 'toolwright';${BEFORE}export class Tools {${MEMBERS}\n}\n`,
    });
    const view = (await compilerOf(version)).open(join(project.folder, 'tsconfig.json'));
    const { text, faults } = generate({ view, folder: project.folder });
    expect(faults).toEqual([]);
    const flat = text.replace(/\s+/g, ' ');
    const item = "{ type: 'object', properties: { id: { type: 'number' } }, required: ['id'] }";
    expect(flat).toContain("{ name: 'lines', schema: { type: 'array', items: { type: 'string' } } }");
    expect(flat.split(`items: ${item}`)).toHaveLength(3);
    expect(flat).toContain("{ name: 'pair', schema: { type: 'array', items: { type: 'number' } } }");
    expect(flat).toContain(
      "schema: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], minItems: 2, maxItems: 2, }",
    );
    expect(flat).toContain("output: { type: 'array', items: { type: 'string' } }");
    expect(flat).toContain("$defs: { Tree: { type: 'array', items: { $ref: '#/$defs/Tree' } } }");
  }, 60_000);
});

test('a class that extends Array is reported', async () => {
  const { faults } = await generateTool(
    '  @Tool() run(list: List) {}',
    'export class List extends Array<string> {}',
  );
  expect(faults.map(({ problem }) => problem)).toEqual([
    'is the class List, which extends a list; JSON only supports plain lists',
  ]);
});
