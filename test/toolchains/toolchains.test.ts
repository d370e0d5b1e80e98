import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Installation, installBuilt } from '../packed/installation.js';
import { outputOfNode, runNode } from '../processes/run-node.js';
import { bundle, TOOLCHAINS } from './build-with.js';

let installed: Installation;

beforeAll(() => {
  installed = installBuilt();
  cpSync(join(import.meta.dirname, 'project'), installed.folder, { recursive: true });
  const { folder, unpacked } = installed;
  outputOfNode([join(unpacked, 'dist', 'src', 'cli', 'main.js'), 'generate'], { folder });
});

afterAll(() => installed?.remove());

describe('the same toolsets, built without decorator metadata or with it', () => {
  let first: string | undefined;

  test.each(Object.keys(TOOLCHAINS))('%s', (name) => {
    const report = TOOLCHAINS[name]?.(installed.folder).trim() ?? '';
    first ??= report;
    expect(JSON.parse(report)).toEqual(JSON.parse(first));
    // The order of keys is part of the bytes that caches depend on.
    expect(report).toBe(first);
  });

  test('give the model what the types say, and the methods what they ask for', () => {
    const { definitions, results } = JSON.parse(first ?? '{}') as {
      definitions: unknown[];
      results: string[];
    };
    expect(definitions).toHaveLength(3);
    expect(results).toEqual([
      '{"found":"cus_1 open 20 3 shop_find_orders","at":"1970-01-01T00:00:00.000Z"}',
      expect.stringContaining('- state: must be one of'),
      'true true 1,2',
      expect.stringContaining('lines.0.quantity'),
      '1000 null bigint,radius a true false 1,two',
    ]);
  });

  test('are generated as the committed file says', () => {
    const generated = readFileSync(join(installed.folder, 'src', 'toolwright.gen.ts'), 'utf8');
    expect(generated).toBe(
      readFileSync(join(import.meta.dirname, 'project', 'src', 'toolwright.gen.ts'), 'utf8'),
    );
  });
});

test('an ESM bundle that leaves tsyringe outside has it where it imports toolwright/tsyringe', () => {
  const { folder } = installed;
  const outfile = join('out-injected', 'main.js');
  const external = ['tsyringe', 'reflect-metadata'];
  bundle(folder, { outfile, format: 'esm', external, first: 'toolwright/tsyringe' });
  const { results } = JSON.parse(outputOfNode([outfile], { folder })) as { results: string[] };
  expect(results[0]).toContain('cus_1 open');
});

test('decorators within a bundle that toolwright is not part of are missed, not overlooked', () => {
  const { folder } = installed;
  const outfile = join('out-apart', 'main.js');
  bundle(folder, { outfile, format: 'esm', external: ['toolwright', 'tsyringe'] });
  const { exitCode, stderr } = runNode([outfile], { folder });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /what class-transformer's decorators say of class \w+, @Exclude for one, cannot be seen/,
  );
});
