import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type EntryPoint, entryPoints, type PublicName, publicNames } from './entry-points.js';
import { ROOT, readText } from './repository.js';

const SNAPSHOT = 'test/structure/public-api.txt';
const VALUES = new Set(['class', 'function', 'const', 'enum']);

test('public-api.txt lists the public names', () => {
  const now = entryPoints().map(describeEntryPoint).join('\n');
  if (process.env.UPDATE_PUBLIC_API) writeFileSync(join(ROOT, SNAPSHOT), now);
  // To change public names on purpose: UPDATE_PUBLIC_API=1 npm run jest -- test/structure/public-api
  expect(now).toBe(readText(SNAPSHOT));
});

test.each(entryPoints())('$name exports the same values at run time as in its source', async (entryPoint) => {
  const module = (await import(entryPoint.name)) as Record<string, unknown>;
  const values = publicNames(entryPoint).filter(({ declarations }) =>
    declarations.some(({ kind }) => VALUES.has(kind)),
  );
  const declared = new Set(values.map(({ name }) => name));
  // Type-only exports of values (`export type { SomeClass }`) do not exist at run time.
  const typeOnly = [...declared].filter((name) => !(name in module));
  expect(Object.keys(module).sort()).toEqual([...declared].filter((name) => !typeOnly.includes(name)).sort());
  expect(typeOnly).toEqual([]);
});

function describeEntryPoint(entryPoint: EntryPoint): string {
  const lines = new Map(publicNames(entryPoint).map((name) => [name.name, describeName(name)]));
  return [entryPoint.name, ...[...lines.values()].sort().map((line) => `  ${line}`), ''].join('\n');
}

function describeName({ name, declarations }: PublicName): string {
  const kinds = [...new Set(declarations.map(({ kind }) => kind))].sort();
  return `${name}: ${kinds.join(' + ')}`;
}
