import { expect, test } from '@jest/globals';
import { orderedPath } from '../../../src/dev/typegen/literal-schema.js';

test('the order of files does not depend on where project, packages and compiler are installed', () => {
  const files = (project: string, packages: string, compiler: string) => [
    { path: `${compiler}/lib.es5.d.ts`, isDeclaration: true },
    { path: `${packages}/node_modules/zod/index.d.ts`, isDeclaration: true },
    { path: `${project}/src/a.ts`, isDeclaration: false },
    { path: `${project}/src/b.d.ts`, isDeclaration: true },
  ];
  const here = files('/a/app', '/a/app', '/a/app/node_modules/typescript/lib');
  const there = files('/b/app', '/z/store/node_modules/.pnpm/zod@4.0.0', 'bundled:///libs');
  for (const paths of [here, there].map((list) => list.map(orderedPath)))
    expect(paths.toReversed().sort()).toEqual(paths);
});
