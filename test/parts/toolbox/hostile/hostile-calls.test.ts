import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { fileTools } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { newFolder, textsOf } from '../files/folders.js';

/** Only a few in `npm test`; `npm run hostile` runs 2,000. */
const RUNS = Number(process.env.HOSTILE_RUNS ?? 50);
const SECRET = 'S3CRET';

interface Trap {
  readonly root: string;
  readonly outside: string;
  readonly tools: ToolRegistry;
}

/** A folder with links of every kind, and a folder outside that must not be read or written. */
function newTrap(): Trap {
  const outside = newFolder({ 'secret.txt': `${SECRET}\n`, 'deep/secret.txt': `${SECRET}\n` });
  const root = newFolder({ 'a.txt': 'inside\n', 'dir/b.txt': 'inside\n', 'dir/c d.txt': 'inside\n' });
  symlinkSync(outside, join(root, 'out'));
  symlinkSync(join(outside, 'secret.txt'), join(root, 'dir', 'file-out'));
  symlinkSync('..', join(root, 'dir', 'up'));
  const { policy } = new Permissions({ mode: 'auto' });
  const tools = new ToolRegistry({ policy }).register(...fileTools({ root }));
  return { root, outside, tools };
}

const untouched = { 'deep/secret.txt': `${SECRET}\n`, 'secret.txt': `${SECRET}\n` };

/** Random paths that may lead anywhere. */
function pathsIn({ root, outside }: Trap): fc.Arbitrary<string> {
  const name = fc.constantFrom(
    'a.txt',
    'dir',
    'b.txt',
    'out',
    'file-out',
    'up',
    'secret.txt',
    'deep',
    '..',
    '.',
    '',
    '...',
    'new',
    'OUT',
    '~',
    'ou\u200bt',
    '*',
    'bin',
    'evil',
  );
  const start = fc.constantFrom(
    '',
    '',
    '',
    './',
    '/',
    '../',
    `${root}/`,
    `${outside}/`,
    '//',
    '/proc/self/cwd/',
    '/proc/self/root/',
    'out/',
    'dir/up/',
  );
  const tail = outside.split('/').at(-1) ?? '';
  const joined = fc.array(
    fc.oneof({ weight: 6, arbitrary: name }, { weight: 1, arbitrary: fc.constant(tail) }),
    { minLength: 1, maxLength: 5 },
  );
  return fc.tuple(start, joined).map(([first, names]) => first + names.join('/'));
}

function fileCalls(trap: Trap): fc.Arbitrary<readonly [string, object]> {
  const path = pathsIn(trap);
  const call = <Args extends object>(tool: string, args: fc.Arbitrary<Args>) =>
    args.map((one) => [tool, one] as const);
  const of = (args: Readonly<Record<string, fc.Arbitrary<unknown>>>) => fc.record(args);
  return fc.oneof(
    call('read_file', of({ path })),
    call('read_file', of({ path, fromByte: fc.constant(0) })),
    call('list_files', of({ path })),
    call(
      'find_files',
      of({
        path,
        pattern: fc.constantFrom('**', '*', '../**', '**/..', 'out/**'),
        withIgnored: fc.boolean(),
      }),
    ),
    call('search_files', of({ path, text: fc.constant(SECRET), withIgnored: fc.boolean() })),
    call('write_file', of({ path, text: fc.constant('mine\n') })),
    call(
      'edit_file',
      of({
        path,
        edits: fc.constantFrom(
          [{ oldText: SECRET, newText: 'x' }],
          [{ oldText: 'inside', newText: 'changed' }],
        ),
      }),
    ),
    call(
      'patch_files',
      path.map((to) => ({ patch: `--- /dev/null\n+++ b/${to}\n@@ -0,0 +1 @@\n+mine\n` })),
    ),
    call('move_file', of({ from: path, to: path })),
    call('delete_file', of({ path, withContents: fc.boolean() })),
  );
}

describe('FileTools with hostile arguments', () => {
  test('neither read nor write anything outside of their folder', async () => {
    let trap = newTrap();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constant(0).chain(() => fileCalls(trap)),
        async ([tool, args]) => {
          count += 1;
          // The calls remove and move the files of the trap.
          if (count % 50 === 0) trap = newTrap();
          const { forLLM, forUser = '' } = await trap.tools.execute(tool, args);
          expect([
            tool,
            args,
            (forLLM + forUser).replaceAll(`'${SECRET}'`, '').includes(`${SECRET}\n`) ||
              /\d[:\t] ?S3CRET/.test(forLLM),
          ]).toEqual([tool, args, false]);
          expect([tool, args, textsOf(trap.outside)]).toEqual([tool, args, untouched]);
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
  });
});
