import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolRegistry } from 'toolwright';
import { fileTools } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { newFolder, textsOf } from '../files/folders.js';

/** In `npm test` a few; `npm run hostile` makes 10,000 of each. */
const RUNS = Number(process.env.HOSTILE_RUNS ?? 50);
const SECRET = 'S3CRET';

interface Trap {
  readonly root: string;
  readonly outside: string;
  readonly tools: ToolRegistry;
}

/** A folder with every kind of link, beside one that nobody may read or write; `evil` is denied, and would leave a mark there. */
function newTrap(): Trap {
  const outside = newFolder({ 'secret.txt': `${SECRET}\n`, 'deep/secret.txt': `${SECRET}\n` });
  const root = newFolder({ 'a.txt': 'inside\n', 'dir/b.txt': 'inside\n', 'dir/c d.txt': 'inside\n' });
  symlinkSync(outside, join(root, 'out'));
  symlinkSync(join(outside, 'secret.txt'), join(root, 'dir', 'file-out'));
  symlinkSync('..', join(root, 'dir', 'up'));
  mkdirSync(join(root, 'bin'));
  writeFileSync(join(root, 'bin', 'evil'), `#!/bin/bash\ntouch ${outside}/ran\n`);
  chmodSync(join(root, 'bin', 'evil'), 0o755);
  const scripts = { fine: 'echo fine', bad: 'evil x', worse: "sh -c 'evil'" };
  writeFileSync(join(root, 'package.json'), JSON.stringify({ scripts }));
  const { policy } = new Permissions({ mode: 'auto', rules: [{ decision: 'deny', command: 'evil' }] });
  const environment = { PATH: `${root}/bin:${process.env.PATH}` };
  const tools = new ToolRegistry({ policy }).register(
    ...fileTools({ root }),
    ...shellTools({ folder: root, environment }),
  );
  return { root, outside, tools };
}

const untouched = { 'deep/secret.txt': `${SECRET}\n`, 'secret.txt': `${SECRET}\n` };

/** Paths as texts that may lead anywhere. */
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

/** Commands that are put together of programs, words and ways to start others. */
function commandsIn(trap: Trap): fc.Arbitrary<string> {
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const path = pathsIn(trap).filter((text) => !/[*~]/.test(text) || text.length < 12);
  const word = fc.oneof(
    { weight: 4, arbitrary: path.map((text) => (/^[\w./*~-]*$/.test(text) ? text : quoted(text))) },
    fc.constantFrom(
      '-r',
      '-R',
      '-L',
      '-l',
      '-n',
      '--',
      '$x',
      '"$x"',
      '*',
      'dir/*',
      '{a.txt,out}',
      '$(echo out)',
      '`echo evil`',
      '$HOME',
      '~',
      'evil',
      SECRET,
      '?ut',
      'o[u]t/*',
      '"out"/secret.txt',
      "$'\\x6fut/secret.txt'",
      'o\\ut/secret.txt',
    ),
  );
  const denied = fc.constantFrom(
    'evil',
    'bin/evil',
    './bin/evil',
    `${trap.root}/bin/evil`,
    "'evil'",
    'e"vi"l',
    'ev\\il',
    "$'\\x65vil'",
    'EVIL',
    '$x',
    '$(echo evil)',
    'bin/*',
    '{evil,x}',
    'dir/../bin/evil',
    'out/../bin/evil',
  );
  const allowed = fc.constantFrom(
    'cat',
    'echo',
    'ls',
    'grep',
    'head',
    'cp',
    'mv',
    'ln -s',
    'touch',
    'tee',
    'mkdir',
    'wc',
    'find',
    'sort',
    'tar cf - ',
    'sed s/a/b/',
    'test -f',
  );
  const simple = fc
    .tuple(
      fc.oneof({ weight: 3, arbitrary: allowed }, { weight: 2, arbitrary: denied }),
      fc.array(word, { maxLength: 3 }),
    )
    .map(([program, words]) => [program, ...words].join(' '));
  const { command } = fc.letrec<{ command: string }>((tie) => ({
    command: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'command', withCrossShrink: true },
      simple,
      fc
        .tuple(
          fc.constantFrom(
            'env',
            'env A=1 ',
            'nohup',
            'nice -n 1',
            'timeout 5',
            'command',
            'exec',
            'xargs',
            'echo x | xargs -n 1',
            'find . -maxdepth 1 -exec',
            'setsid',
            'stdbuf -o0',
            'busybox',
            'sudo',
            'eval',
            'builtin',
            'coproc',
            'time',
            '!',
            'env -i',
            'env -S',
            'npx --no',
            'git -c alias.x=!evil',
            'trap',
          ),
          tie('command'),
        )
        .map(
          ([wrapper, inner]) =>
            `${wrapper} ${inner}${wrapper.startsWith('find') ? ' {} ;'.replace(';', '\\;') : ''}`,
        ),
      fc
        .tuple(
          fc.constantFrom(
            'sh -c',
            'bash -c',
            'bash -ec',
            'eval',
            'env -S',
            'python3 -c',
            'trap',
            'npm exec -c',
            'dash -c',
          ),
          tie('command'),
        )
        .map(([shell, inner]) => `${shell} ${quoted(inner)}`),
      fc
        .tuple(tie('command'), fc.constantFrom('&&', '||', ';', '|', '&', '\n', '|&'), tie('command'))
        .map(([one, sign, other]) => `${one} ${sign} ${other}`),
      tie('command').map((inner) => `$(${inner})`),
      tie('command').map((inner) => `echo $(${inner})`),
      tie('command').map((inner) => `cat <(${inner})`),
      tie('command').map((inner) => `(${inner})`),
      tie('command').map((inner) => `cd dir && ${inner}`),
      tie('command').map((inner) => `x=evil; ${inner}`),
      tie('command').map((inner) => `f() { ${inner}; }; f`),
      tie('command').map((inner) => `for x in evil out; do ${inner}; done`),
      tie('command').map((inner) => `if true; then ${inner}; fi`),
      tie('command').map((inner) => `cat <<EOF\n$(${inner})\nEOF`),
      tie('command').map((inner) => `bash <<'EOF'\n${inner}\nEOF`),
      tie('command').map((inner) => `echo ${quoted(inner)} | sh`),
      tie('command').map((inner) => `PATH=bin ${inner}`),
      tie('command').map((inner) => `alias ls=evil; ${inner}`),
      fc
        .tuple(tie('command'), fc.constantFrom('>', '>>', '<', '2>', '&>', '<>'), path)
        .map(([inner, sign, to]) => `${inner} ${sign} ${/^[\w./-]+$/.test(to) ? to : quoted(to)}`),
      fc.constantFrom(
        'npm run bad',
        'npm run worse',
        'npm run fine',
        'npm run -s fine',
        'npm run fine -- x',
        'yarn bad',
      ),
      fc.string({ maxLength: 40 }),
    ),
  }));
  return command;
}

describe('with hostile arguments', () => {
  test('FileTools neither read nor write anything outside of their folder', async () => {
    let trap = newTrap();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constant(0).chain(() => fileCalls(trap)),
        async ([tool, args]) => {
          count += 1;
          // They remove and move what is there.
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

  test('ShellTools run nothing that is denied, and read and write nothing outside, where nobody is asked', async () => {
    let trap = newTrap();
    let count = 0;
    const did = { ran: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.constant(0).chain(() => commandsIn(trap)),
        async (command) => {
          count += 1;
          if (count % 50 === 0) trap = newTrap();
          const { forLLM, details } = await trap.tools.execute('run_command', { command, seconds: 5 });
          if (details === undefined) did.refused += 1;
          else did.ran += 1;
          // A command may say it itself.
          const said = command.includes(SECRET);
          expect([command, existsSync(join(trap.outside, 'ran'))]).toEqual([command, false]);
          expect([command, !said && details !== undefined && forLLM.includes(SECRET)]).toEqual([
            command,
            false,
          ]);
          expect([command, textsOf(trap.outside)]).toEqual([command, untouched]);
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
    expect(did.ran).toBeGreaterThan(RUNS / 50);
    expect(did.refused).toBeGreaterThan(RUNS / 50);
    if (process.env.HOSTILE_RUNS !== undefined) console.log(did);
  });
});
