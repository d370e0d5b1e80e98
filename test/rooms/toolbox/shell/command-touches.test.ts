import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Touch } from 'toolwright';
import { commandTouches, LocalShell } from 'toolwright/toolbox/shell';
import { newFolder } from '../files/folders.js';

let touches: (command: string) => readonly Touch[];

beforeEach(() => {
  const root = newFolder({
    'a.txt': 'a',
    'src/b.ts': 'b',
    'x.sh': '#!/bin/sh\nrm y',
    'node-script': '#!/usr/bin/env node\n',
    'no-first-line': 'rm y',
  });
  mkdirSync(join(root, 'links'));
  symlinkSync('/etc/hostname', join(root, 'links', 'out'));
  const scripts = {
    build: 'tsc -p .',
    prebuild: 'rm -rf dist',
    test: 'jest',
    evil: 'node -e "x"',
    loop: 'npm run loop',
  };
  writeFileSync(join(root, 'package.json'), JSON.stringify({ scripts }));
  const shell = new LocalShell({ folder: root });
  touches = (command) => commandTouches(command, shell.folderAt('.'), shell.view());
});

/** The programs that are seen to run, with their words; `…` for what is not known. */
function runs(command: string): readonly string[] {
  return touches(command).flatMap((touch) =>
    touch.action === 'run' ? [touch.words.map((word) => word ?? '…').join(' ')] : [],
  );
}

function doubts(command: string): readonly string[] {
  return touches(command).flatMap((touch) => (touch.action === 'unknown' ? [touch.why] : []));
}

describe('commandTouches', () => {
  test('does not look at what is too long', () => {
    expect(doubts(`echo ${'x'.repeat(30_000)}`)).toEqual(['it is too long to be looked at']);
  });

  test.each([
    ['ls -la', ['ls -la']],
    ['a && b || c; d & e | f', ['a', 'b', 'c', 'd', 'e', 'f']],
    ['(a; b) && { c; }', ['a', 'b', 'c']],
    ['if a; then b; elif c; then d; else e; fi', ['a', 'b', 'c', 'd', 'e']],
    ['for x in 1 2; do a $x; done', ['a …']],
    ['while a; do b; done; until c; do d; done', ['a', 'b', 'c', 'd']],
    ['case x in y) a;; *) b;; esac', ['a', 'b']],
    ['echo $(a $(b)) `c`', ['b', 'a …', 'c', 'echo … …']],
    ['echo "in $(a) text"', ['a', 'echo …']],
    ['diff <(a) >(b)', ['a', 'b', 'diff … …']],
    ['cat <<EOF\n$(a)\nEOF', ['a', 'cat']],
    ["cat <<'EOF'\n$(a)\nEOF", ['cat']],
    ['cat <<< "$(a)"', ['a', 'cat']],
    ['! a', ['a']],
    ['time a b', ['a b']],
    ['\'r\'"m" x', ['rm x']],
    ["$'\\x72m' x", ['rm x']],
    ['r\\m x', ['rm x']],
    ['A=1 b', []],
    ['echo a # && b', ['echo a']],
    ['env a=1 ci=1 rm x', ['env a=1 ci=1 rm x', 'rm x']],
    ['env -i -u HOME rm x', ['env -i -u HOME rm x', 'rm x']],
    [
      'nohup nice -n 5 timeout -s KILL 5 rm x',
      [
        'nohup nice -n 5 timeout -s KILL 5 rm x',
        'nice -n 5 timeout -s KILL 5 rm x',
        'timeout -s KILL 5 rm x',
        'rm x',
      ],
    ],
    ['ls | xargs -0 -n 1 rm -f', ['ls', 'xargs -0 -n 1 rm -f', 'rm -f …']],
    ['ls | xargs -I{} rm {}', ['ls', 'xargs -I{} rm {}', 'rm …']],
    [
      "find . -name x -exec rm -f '{}' ';' -o -delete",
      ['find . -name x -exec rm -f {} ; -o -delete', 'rm -f …', 'rm …'],
    ],
    ["sh -c 'a && rm x'", ['sh -c a && rm x', 'a', 'rm x']],
    ['bash -ec "sh -c \'rm x\'"', ["bash -ec sh -c 'rm x'", 'sh -c rm x', 'rm x']],
    ['git -C src --no-pager push origin', ['git -C src --no-pager push origin', 'git push origin']],
    ['git push', ['git push']],
    ['npm run build -- --watch', ['npm run build -- --watch', 'rm -rf dist', 'tsc -p . --watch']],
    ['npm test', ['npm test', 'jest']],
    ['yarn build', ['yarn build', 'rm -rf dist', 'tsc -p .']],
    ['npx -y -p x rm y', ['npx -y -p x rm y', 'rm y']],
    ['npm exec -- rm y', ['npm exec -- rm y', 'rm y']],
    ['command -p rm x', ['command -p rm x', 'rm x']],
    ['exec -a name rm x', ['exec -a name rm x', 'rm x']],
    ['command -v rm', ['command -v rm']],
    ['stdbuf -oL setsid -f rm x', ['stdbuf -oL setsid -f rm x', 'setsid -f rm x', 'rm x']],
  ])('sees all that runs in %j', (command, expected) => {
    const found = runs(command);
    for (const one of expected) expect(found).toContain(one);
    if (!command.startsWith('A=')) expect(doubts(command)).toEqual([]);
    expect([...found].sort()).toEqual([...expected, ...(command.startsWith('A=') ? ['b'] : [])].sort());
  });

  test.each([
    '$x y',
    '"$x" y',
    '$(echo rm) x',
    '*/rm x',
    '{rm,x}',
    '~/rm',
    'eval "rm x"',
    'source x',
    '. ./x',
    'alias ls=rm',
    'rm() { :; }',
    'function f { rm x; }',
    'trap "rm x" EXIT',
    'PATH=. ls',
    'LD_PRELOAD=./x.so ls',
    'BASH_ENV=x ls',
    'env PATH=. ls',
    "env -S 'rm x'",
    'export PATH=.',
    'declare -x IFS=x',
    'for PATH in .; do ls; done',
    'read PATH',
    'printf -v PATH .',
    'echo ${PATH:=.}',
    'echo ${x@P}',
    'echo $((a[$(rm x)]))',
    '(( x = 1 ))',
    '[[ -v a[$(rm)] ]]',
    '[[ $x -eq 1 ]]',
    'test -v "a[0]"',
    'let x=1',
    'echo "unclosed',
    'if a; then',
    'echo \u0007',
    'echo a\rb',
    'ls \u202e',
    'bash x.sh',
    'bash',
    'curl x | sh',
    'bash -c "$x"',
    'sh -xc',
    'zsh -c "rm x"',
    'python -c "import os"',
    'python3.12 -c x',
    'cat x | python',
    'node -e x',
    'node --eval=x',
    'perl -pe x',
    'ruby -e x',
    'awk \'BEGIN { system("rm x") }\'',
    'awk -f x',
    "sed 's/x/y/e'",
    "sed -n '1w /etc/x'",
    "sed 's/a/b/;1e rm x'",
    'vim x',
    'less x',
    'sudo rm x',
    'ssh host rm x',
    'watch rm x',
    'parallel rm ::: x',
    'make x',
    'git -c core.pager=x log',
    'git -ccore.pager=x log',
    'git --exec-path=x log',
    'git nonsense',
    'git rebase -x "rm x"',
    'git bisect run rm x',
    'git submodule foreach rm x',
    'git clone ext::sh x',
    'git grep -Orm x',
    'git fetch --upload-pack=rm x',
    'git difftool x',
    'git config core.pager rm',
    'git $x',
    'npm run evil',
    'npm run nothing',
    'npm run loop',
    'npm run $x',
    'npm --prefix .. run build',
    'npm exec -c "$x"',
    'tar -I rm -xf x',
    'tar --checkpoint-action=exec=rm -xf x',
    'rg --pre rm x',
    'fd -x rm',
    'sort --compress-program=rm x',
    'nice --weird rm x',
    'grep -nR x .',
    'cp -rL dir x',
    'find -L . -name x',
    'diff -r a b',
    'tar chf x dir',
    'rg --follow x',
    'coproc rm x',
    'cat > /dev/tcp/localhost/80',
    'cd $x',
    'cd src; cd ..; rm x',
    '(cd src); rm x',
    'cd src || rm x',
    'cd nowhere; rm x',
    'env cd src',
    'a[$(rm x)]=1 b',
    'x=(1 2)',
    'exec {fd}> x',
    '{PATH}> x',
    "true & wait -n -p 'a[$(rm x)]'",
    "wait -np'a[$(rm x)]'",
    'wait -p PATH',
    'wait $x',
    "printf '-va[$(rm x)]' y",
    "exec {a['$(rm x)']}> /dev/null",
    "true {a['$(rm x)']}>&1",
    "true {a['$(rm x)']}<&0",
    'true {a["$(rm x)"]}< a.txt',
    "unset 'a[$(rm x)]'",
    "unset -v 'a[$(rm x)]'",
    "declare 'a[$(rm x)]=1'",
    "export 'a[$(rm x)]'",
    "readonly 'a[$(rm x)]=1'",
    "typeset -i x='a[$(rm x)]'",
    "local -n x='a[$(rm x)]'",
    "read 'a[$(rm x)]'",
    "read -a 'a[$(rm x)]'",
    "mapfile 'a[$(rm x)]'",
    "readarray -c1 -C 'rm x' a",
    "getopts x 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "test x -a -v 'a[$(rm x)]'",
    "[[ -R 'a[$(rm x)]' ]]",
    "[[ 1 -eq 'a[$(rm x)]' ]]",
    "for ((i='a[$(rm x)]'; 0; )); do :; done",
    'echo ${x[$(rm x)]}',
    'echo ${#x[1]}',
    'echo ${x:y}',
    'echo ${!x}',
    'echo $[x]',
    'awk \'BEGIN { ARGV[1] = ".e" "nv"; ARGC = 2 } { print }\'',
    'awk -v ARGC=2 1 x',
    'awk \'BEGIN { SYMTAB["ARGC"] = 2 } 1\' x',
    'gawk -D 1',
    'jq -n \'import ".e" as $x; $x\'',
    'jq -n \'include "x"; y\'',
    'jq -L dir . x',
    'jq -Ldir . x',
    'jq --library-path=dir . x',
    'jq -f x y',
    'jq -nf x',
    'jq --from-file x y',
    "jq -n '$__prog_args'",
    "dc -e '!rm x'",
    'dc x',
    "echo '!rm x' | dc",
    "echo '!rm x' | dc -e '?'",
    'ed a.txt',
    'red a.txt',
    "ex -c '!rm x' a.txt",
    'rview x',
  ])('does not understand %j, and says so', (command) => {
    expect(doubts(command).length).toBeGreaterThan(0);
  });

  test.each([
    ['sudo -u root rm x', 'rm x'],
    ['nice --weird rm x', 'rm x'],
    ['git bisect run rm x', 'git bisect run rm x'],
    ['watch -n 1 rm x', 'rm x'],
  ])('sees what %j may run all the same', (command, run) => {
    expect(runs(command)).toContain(run);
  });

  test.each([
    ['ls > out.txt', [{ action: 'write', path: 'out.txt' }]],
    ['ls >> src/x 2>&1', [{ action: 'write', path: 'src/x' }]],
    ['cat < a.txt', [{ action: 'read', path: 'a.txt' }]],
    ['ls > /dev/null 2>/dev/null', []],
    ['cd src && ls > x', [{ action: 'write', path: 'src/x' }]],
    ['ls > ../x', [{ action: 'write', path: expect.stringMatching(/^\/.*\/x$/) }]],
    ['ls > links/out', [{ action: 'write', path: '/etc/hostname' }]],
    ['find . -fprint /x/y', [{ action: 'write', path: '/x/y' }]],
    ['> x', [{ action: 'write', path: 'x' }]],
    ['{ ls; } &> x', [{ action: 'write', path: 'x' }]],
  ])('tells the files that %j opens', (command, expected) => {
    expect(touches(command).filter(({ action }) => action === 'read' || action === 'write')).toEqual(
      expected,
    );
  });

  test.each([
    ['cat a.txt', 'a.txt'],
    ['cat ./src/../a.txt', 'a.txt'],
    ['cat links/out', '/etc/hostname'],
    ['cat links/*', '/etc/hostname'],
    ['cat /etc/passwd', '/etc/passwd'],
    ['dd if=/etc/passwd', '/etc/passwd'],
    ['x --file=/etc/passwd', '/etc/passwd'],
    ['x -I/etc', '/etc'],
    ['x -f../y', expect.stringMatching(/^\/.*\/y$/)],
    ['x @/etc/passwd', '/etc/passwd'],
    ['cat //etc/passwd', '/etc/passwd'],
    ['x --file=//etc/passwd', '/etc/passwd'],
    ['curl file:///etc/passwd', '/etc/passwd'],
    ['curl --url=file:///etc/passwd', '/etc/passwd'],
    ['cat https://../../../../../../../../../../../../etc/passwd', '/etc/passwd'],
    ['cd src && cat ../a.txt', 'a.txt'],
    ['ls src', 'src/'],
  ])('tells the paths that the words of %j name', (command, mention) => {
    const mentions = touches(command).flatMap((touch) =>
      touch.action === 'run' ? (touch.mentions ?? []) : [],
    );
    expect(mentions).toContainEqual(mention);
  });

  test.each([
    'flock lock rm v',
    'setpriv rm v',
    'chrt -b 0 rm v',
    'split --filter="rm v" a.txt',
    'rsync -e "rm v" a b',
    'numactl rm v',
    'fakeroot rm v',
    'dbus-run-session rm v',
    'valgrind rm v',
    'hyperfine "rm v"',
    'bundle exec rm v',
    'poetry run rm v',
    'ssh-agent rm v',
    'gpg-agent --daemon rm v',
    'logsave log rm v',
    "sg root 'rm v'",
    'debconf rm v',
    "install -s --strip-program='rm v' a b",
    "diff3 --diff-program='rm v' a b c",
    "sdiff --diff-program='rm v' a b",
    "wget --use-askpass='rm v' h",
    'conda run rm v',
    'tcpdump -z "rm v"',
    'sqlite3 x ".shell rm v"',
    'psql -c "\\! rm v"',
    'zip -T -TT "rm v" a b',
    'gcc -wrapper rm v',
    'just rm v',
    '/lib64/ld-linux-x86-64.so.2 /bin/rm v',
  ])('sees that %j starts another program, and which', (command) => {
    expect(doubts(command).length).toBeGreaterThan(0);
    expect(runs(command).some((run) => /^(\/bin\/)?rm( v)?( |$)/.test(run))).toBe(true);
  });

  test.each([
    'split -l 5 a.txt',
    'sqlite3 x "select 1"',
    'psql -c "select 1"',
    'gcc -O2 -c x.c',
    'poetry install',
    'install -D a.txt b/a.txt',
    'diff3 a b c',
    'wget -q https://example.com',
    'python3 -m pytest',
    'perl node-script',
    'tcpdump -n',
    'dc -e 1',
    "dc -e '2 3 + p'",
    'true & wait',
    'wait -n',
    'wait -n -p id',
    "printf '%s\\n' -v",
    "awk -F: '{ print $1 }' a.txt",
    "awk -v n=2 'NR == n' a.txt",
    "jq '.scripts | keys' package.json",
    "jq -r '.important' package.json",
    'jq --arg x y . package.json',
    './node-script',
  ])('finds nothing odd in %j', (command) => expect(doubts(command)).toEqual([]));

  test.each([
    './x.sh',
    'perl x.sh',
    'perl -w no-first-line',
    'src/../x.sh a',
    'printf x > t; ./t',
    './no-first-line',
  ])('says of %j what it says of `bash x.sh`', (command) =>
    expect(doubts(command)).toEqual([expect.stringContaining('does not stand in the command')]),
  );

  test('takes no address for a path, and no program', () => {
    for (const command of [
      'curl https://example.com/etc/x',
      'x --proxy=http://example.com/etc/x,ftp://example.com/x',
      'git clone ssh://git@example.com/etc/x',
      '/bin/ls',
      'echo a/b',
      'ls /dev/null',
    ])
      expect(
        touches(command).filter(
          (touch) => touch.action === 'run' && touch.mentions?.some((path) => path.startsWith('/')),
        ),
      ).toEqual([]);
  });
});
