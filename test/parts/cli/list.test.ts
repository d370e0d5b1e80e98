import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runCommand } from './run-command.js';

const FIXTURES = join(import.meta.dirname, 'fixtures');

async function list(module: string) {
  const { code, out, error } = await runCommand(['list', module], FIXTURES);
  const rows = out.split('\n').map((line) => line.split(/\s{2,}/).slice(0, 3));
  return { code, error, rows: rows.slice(1, -1) };
}

test('toolwright list shows tools without a class, and reports their problems', async () => {
  const { code, error, rows } = await list('loose-tools.ts');
  expect(rows).toEqual([
    ['one', '-', 'explicit'],
    ['two', '-', 'explicit'],
    ['2 in all', expect.any(String), expect.any(String)],
  ]);
  expect(code).toBe(1);
  expect(error).toContain('2 mistakes in tool declarations:');
  for (const problem of ['the tool name "3"', "timeoutMs is '5'"]) expect(error).toContain(problem);
});

test('toolwright list shows only the tools that an exported registry contains', async () => {
  expect(await list('registered-tools.ts')).toEqual({
    code: 0,
    error: '',
    rows: [
      ['known', 'Registered.known', 'metadata'],
      ['loose', '-', 'explicit'],
      ['2 in all', expect.any(String), expect.any(String)],
    ],
  });
});

test('toolwright list prints the descriptions of toolsets above their tools', async () => {
  const { out } = await runCommand(['list', 'titled-tools.ts'], FIXTURES);
  expect(out).toMatch(/^Shop: Orders and invoices \(find, place\)\n\ntool +method/);
});

test('toolwright list --strict shows which tools have a strict form, and the differences', async () => {
  const { code, out, error } = await runCommand(['list', 'strict-tools.ts', '--strict'], FIXTURES);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out.split('\n')).toEqual([
    'tool    strict  rewritten  only checked',
    'find    yes             2             1',
    'place   no',
    'plain   yes             0             0',
    '2 of 3',
    '',
    'find',
    '  null leaves it out: limit, sort',
    '  only checked at the call: minLength: text',
    '',
    'place',
    '  sent without strict: $dynamicRef depends on where the schema is used',
    '',
  ]);
});

describe('toolwright list of a file that exports a NestJS module', () => {
  test('starts the application, shows the tools of its registry, and closes it', async () => {
    expect(await list('nest-module.ts')).toEqual({
      code: 0,
      error: '',
      rows: [
        ['loose', '-', 'explicit'],
        ['count_stock', 'StockTools.countStock', '@Param, metadata'],
        ['2 in all', expect.any(String), expect.any(String)],
      ],
    });
    expect(Reflect.get(globalThis, 'nestModuleEvents')).toEqual(['started', 'ended']);
  });

  test.each([
    ['nest-module-without-tools.ts', 'it has no tools; imports: [ToolwrightModule.forRoot()]'],
    [
      'nest-module-broken.ts',
      'the application of BrokenModule in nest-module-broken.ts cannot be started: Nest can',
    ],
    ['nest-modules.ts', 'nest-modules.ts exports several NestJS modules: give a file that exports only one'],
  ])('%s is reported in one line', async (module, message) => {
    const { code, out, error } = await runCommand(['list', module], FIXTURES);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(error).toContain(message);
    expect(error).toMatch(/^toolwright: [^\n]+\n$/);
  });
});
