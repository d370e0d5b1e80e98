import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { type EntryPoint, entryPoints, type PublicName, publicNames } from './entry-points.js';
import { ROOT, readText } from './repository.js';

const SNAPSHOT = 'test/structure/public-api.txt';
const VALUES = new Set(['class', 'function', 'const', 'enum']);

test('the public names are those of public-api.txt', () => {
  const now = entryPoints().map(describeEntryPoint).join('\n');
  if (process.env.UPDATE_PUBLIC_API) writeFileSync(join(ROOT, SNAPSHOT), now);
  // A change of the public names is a decision: UPDATE_PUBLIC_API=1 npm run jest -- test/structure/public-api
  expect(now).toBe(readText(SNAPSHOT));
});

test.each(entryPoints())('what $name exports at run time is what its source says', async (entryPoint) => {
  const module = (await import(entryPoint.name)) as Record<string, unknown>;
  const values = publicNames(entryPoint).filter(({ declarations }) =>
    declarations.some(({ kind }) => VALUES.has(kind)),
  );
  const said = new Set(values.map(({ name }) => name));
  // Type-only exports of values (`export type { SomeClass }`) do not exist at run time.
  const typeOnly = [...said].filter((name) => !(name in module));
  expect(Object.keys(module).sort()).toEqual([...said].filter((name) => !typeOnly.includes(name)).sort());
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
