import fc from 'fast-check';
import { CHANGERS, FILE_READERS, FOLDER_READERS, OPENERS, REPOSITORY_READERS } from './readers.js';
import { STARTED_BY } from './starters.js';

/** The goals of an attack: to run `evil`, to read or change denied paths, or to open a connection. */
export interface Aim {
  /** Absolute path of the folder. */
  readonly root: string;
  /** Denied paths, relative to the folder. */
  readonly denied: readonly string[];
  /** Folders that contain denied paths, and links to them. */
  readonly around: readonly string[];
}

/** Commands that try to access denied paths in every way that Bash and common programs offer. */
export function attacksOn(aim: Aim): fc.Arbitrary<string> {
  const reading = fc.oneof(readsFile(aim), readsFile(aim), readsFolder(aim), readsRepository(aim));
  const start = fc.oneof(
    runsEvil(aim),
    runsEvil(aim),
    reading,
    changes(aim),
    fc.constantFrom(...OPENERS),
    // Few of these run, because a command in three wrappers mostly asks.
    fc.constantFrom(...HARMLESS),
    fc.constantFrom(...HARMLESS),
    fc.constantFrom(...HARMLESS),
  );
  const around = fc.array(wrapper(aim), { maxLength: 3 });
  return fc
    .tuple(start, around)
    .map(([command, wraps]) => wraps.reduce((inner, wrap) => wrap(inner), command));
}

const HARMLESS = ['echo fine', 'cat a.txt', 'ls', 'wc -l a.txt', 'cat dir/*', 'grep -r in dir'];

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The same text in other Bash notation; with `files` also as a pattern that matches the file. */
function disguised(text: string, how: 'word' | 'files'): fc.Arbitrary<string> {
  const characters = Array.from(text);
  const forms: readonly ((one: string) => string)[] = [
    (one) => `'${one}'`,
    (one) => `"${one}"`,
    (one) => `\\${one}`,
    (one) => `$'\\x${one.charCodeAt(0).toString(16)}'`,
    (one) => `$'\\${one.charCodeAt(0).toString(8).padStart(3, '0')}'`,
    (one) => `\${nothing:-${one}}`,
    (one) => `$(printf ${one})`,
    (one) => `\`echo ${one}\``,
    (one) => `{${one},${one}}`,
    (one) => `${one}"$nothing"`,
    ...(how === 'files'
      ? [() => '?', () => '*', (one: string) => `[${one}]`, (one: string) => `[!~${one === 'q' ? 'r' : 'q'}]`]
      : []),
  ];
  const changed = fc.array(fc.tuple(fc.nat(characters.length - 1), fc.nat(forms.length - 1)), {
    maxLength: 3,
  });
  return changed.map((places) => {
    const parts = [...characters];
    for (const [place, form] of places) {
      const [one = ''] = [characters[place]];
      if (one !== '/') parts[place] = forms[form]?.(one) ?? one;
    }
    return parts.join('');
  });
}

function pathTo({ root, denied }: Aim): fc.Arbitrary<string> {
  const before = fc.constantFrom(
    '',
    '',
    '',
    './',
    './/',
    'dir/../',
    'dir/up/',
    'deep/er/shared/../../',
    'deep/er/shared/../in/../../',
    './deep//er/./shared/.././../',
    'deep/er/shared/../../deep/er/shared/../../',
    'deep/*/shared/../../',
    'd*/er/sh*/../../',
    'link/../',
    'missing/../',
    `${root}/deep/er/shared/../../`,
    `${root}/`,
    '/proc/self/cwd/',
    '$PWD/',
    '"$PWD"/',
    '~+/',
    '*/../',
    '{dir,.}/../',
  );
  const name = fc.constantFrom(...denied, ...denied.map((path) => path.toUpperCase()));
  return fc
    .tuple(
      before,
      name.chain((path) => disguised(path, 'files')),
    )
    .map((parts) => parts.join(''));
}

function folderAround({ around }: Aim): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom('', '.', './', '*', '.*', '{.,dir}', '"$PWD"', '$(pwd)', '..', './dir/..'),
    fc.constantFrom(...around).chain((path) => disguised(path, 'files')),
  );
}

function readsFile(aim: Aim): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...FILE_READERS), pathTo(aim))
    .map(([form, path]) => form.replaceAll('@', () => path));
}

function readsFolder(aim: Aim): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...FOLDER_READERS), folderAround(aim))
    .map(([form, path]) => form.replaceAll('@', () => path));
}

/** Readers of the history, which contains all denied files. */
function readsRepository({ denied, around }: Aim): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...REPOSITORY_READERS), fc.constantFrom(...denied, ...around))
    .map(([form, path]) => form.replaceAll('@', () => path));
}

function changes(aim: Aim): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...CHANGERS), pathTo(aim))
    .map(([form, path]) => form.replaceAll('@', () => path));
}

/** Notations of the program name, most of them as one word of a command. */
function evilWord(root: string): fc.Arbitrary<string> {
  const name = fc.constantFrom(
    'evil',
    'evil',
    'bin/evil',
    './bin/evil',
    `${root}/bin/evil`,
    'dir/../bin/evil',
  );
  return fc.oneof(
    name,
    name.chain((one) => disguised(one, one.includes('/') ? 'files' : 'word')),
    fc.constantFrom(
      '$x',
      '"$x"',
      '${x}',
      '$(echo evil)',
      '`echo evil`',
      '{evil,x}',
      '~+/bin/evil',
      '$PWD/bin/evil',
      '"${l[@]}"',
      'e$()vil',
      '$(basename bin/evil)',
      '$(< name.txt)',
      'bin/*',
      'b*/e*',
      'EVIL',
    ),
  );
}

function runsEvil({ root }: Aim): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...STARTED_BY), evilWord(root))
    .map(([form, evil]) => form.replaceAll('@@', () => evil).replaceAll('##', () => quoted(evil)));
}

type Wrap = (inner: string) => string;

/** Wrappers for any command, so that one attack hides in another. */
function wrapper({ root }: Aim): fc.Arbitrary<Wrap> {
  const wraps: readonly Wrap[] = [
    (inner) => inner,
    (inner) => `bash -c ${quoted(inner)}`,
    (inner) => `sh -ec ${quoted(inner)}`,
    (inner) => `timeout 5 bash -c ${quoted(inner)}`,
    (inner) => `env A=1 bash -c ${quoted(inner)}`,
    (inner) => `flock a.txt -c ${quoted(inner)}`,
    (inner) => `setpriv bash -c ${quoted(inner)}`,
    (inner) => `chrt -o 0 bash -c ${quoted(inner)}`,
    (inner) => `xargs -a a.txt bash -c ${quoted(inner)}`,
    (inner) => `find . -maxdepth 0 -exec bash -c ${quoted(inner)} \\;`,
    (inner) => `nice -n 1 sh -c ${quoted(inner)} x`,
    (inner) => `nohup env -i PATH=${root}/bin:/usr/bin:/bin bash -c ${quoted(inner)}`,
    (inner) => `eval ${quoted(inner)}`,
    (inner) => `cd dir; cd ..; ${inner}`,
    (inner) => `cd . && ${inner}`,
    (inner) => `cd dir/.. && ${inner}`,
    (inner) => `cd deep/er/shared/../.. && ${inner}`,
    (inner) => `cd deep/er/shared && cd ../.. && ${inner}`,
    (inner) => `cd deep/er/shared/..; ${inner}`,
    (inner) => `cd -P deep/er/shared/../..; ${inner}`,
    (inner) => `cd missing/..; ${inner}`,
    (inner) => `ln -s sub/in turn; cd turn/..; ${inner}`,
    (inner) => `true & wait -n -p 'a[$(${inner.replaceAll("'", '"')})]'`,
    (inner) => `[[ 0 -eq 'a[$(${inner.replaceAll("'", '"')})]' ]]`,
    (inner) => `cd ${root} && ${inner}`,
    (inner) => `cd "$PWD"; ${inner}`,
    (inner) => `cd no-such-folder; ${inner}`,
    (inner) => `cd dir && cd -; ${inner}`,
    (inner) => `true && ${inner}`,
    (inner) => `false || ${inner}`,
    (inner) => `echo fine; ${inner}`,
    (inner) => `# a remark\n${inner}`,
    (inner) => `echo '#'; ${inner}`,
    (inner) => `{ ${inner}\n}`,
    (inner) => `(${inner}\n)`,
    (inner) => `echo "$(${inner}\n)"`,
    (inner) => `cat <(${inner}\n)`,
    (inner) => `if true; then ${inner}\nfi`,
    (inner) => `for i in 1 2; do ${inner}\ndone`,
    (inner) => `f() { ${inner}\n}; f`,
    (inner) => `x=evil; ${inner}`,
    (inner) => `cat <<'X' | bash\n${inner}\nX`,
    (inner) => `bash <<'X'\n${inner}\nX`,
    (inner) => `cat <<X\n$(${inner}\n)\nX`,
    (inner) => `cat <<'X' > /dev/null\nX\n${inner}`,
    (inner) => `cat << "X Y" > /dev/null\nnothing\nX Y\n${inner}`,
    (inner) => `\\\n${inner}`,
    (inner) => `${inner}\n`,
    (inner) => `${inner} # fine`,
    (inner) => `shopt -s extglob globstar dotglob\n${inner}`,
    (inner) => `set -f; ${inner}`,
    (inner) => `case x in (x) ${inner}\n;; esac`,
    (inner) => `[[ -n x ]] && ${inner}`,
    (inner) => `IFS=/ ; ${inner}`,
  ];
  return fc.constantFrom(...wraps);
}
