import type { CommandWord } from './read-script.js';

/** What a program starts in turn, as far as its arguments say. */
export interface Started {
  /** Commands, word by word. */
  readonly commands: readonly (readonly CommandWord[])[];
  /** Scripts for a shell. */
  readonly scripts: readonly string[];
  /** Scripts of a `package.json`, and the words that are put behind them. */
  readonly packageScripts: readonly PackageScript[];
  /** Files that it runs as the programs that they say they are. */
  readonly files: readonly CommandWord[];
  /** Files that it writes by itself. */
  readonly writes: readonly CommandWord[];
  readonly unclear: readonly string[];
}

/** `npm run build -- --watch`: its name, and what stands behind it. */
export interface PackageScript {
  readonly name: string;
  readonly rest: readonly CommandWord[];
  /** What becomes of a name that has no script: nothing runs, where it is a step of a life cycle. */
  readonly missing?: 'nothing';
}

/** A program and its arguments, or these alone. */
export type Words = readonly CommandWord[];

/** What is known of a program: from its arguments to what it starts. */
export type Reading = (args: Words, program: string) => Started;

/** It starts nothing that its words say. */
export const NOTHING: Started = {
  commands: [],
  scripts: [],
  packageScripts: [],
  files: [],
  writes: [],
  unclear: [],
};
/** Some word. */
export const UNKNOWN: CommandWord = { kind: 'unknown' };

/** It starts this. */
export function starts(part: Partial<Started>): Started {
  return { ...NOTHING, ...part };
}

/** It cannot be told what it starts. */
export function unclear(...why: readonly string[]): Started {
  return starts({ unclear: why });
}

/** A known word; of what is not known, nothing. */
export function textOf(word: CommandWord | undefined): string | undefined {
  return word?.kind === 'known' ? word.text : undefined;
}

/** The program that a word names: `/bin/rm` is `rm`. */
export function programOf(word: CommandWord | undefined): string | undefined {
  return textOf(word)?.split('/').at(-1);
}

/** Whatever of it is the command: a rule that denies finds it. */
export function anyOf(args: Words, why: string): Started {
  const commands = args
    .map((_, start) => args.slice(start))
    .filter(([first]) => textOf(first)?.startsWith('-') === false);
  return starts({ commands, unclear: [why] });
}

/** Programs, by name, that are read alike. */
export function each(programs: string, reading: Reading): Readonly<Record<string, Reading>> {
  return Object.fromEntries(programs.split(' ').map((program) => [program, reading]));
}

/** What two readings say. */
export function both(one: Started, other: Started): Started {
  return {
    commands: [...one.commands, ...other.commands],
    scripts: [...one.scripts, ...other.scripts],
    packageScripts: [...one.packageScripts, ...other.packageScripts],
    files: [...one.files, ...other.files],
    writes: [...one.writes, ...other.writes],
    unclear: [...one.unclear, ...other.unclear],
  };
}

/** How the options of a program that runs another one are passed over. */
interface Wrapper {
  /** Options that take nothing. */
  readonly flags?: RegExp;
  /** Options that take the next word. */
  readonly values?: RegExp;
  /** How many words stand before the command. */
  readonly operands?: number;
  /** Words that are added behind. */
  readonly adds?: 'unknown words';
}

/** A program that runs what stands behind its options. One whose options are not known may run any of its words. */
export function runsTheRest({ flags, values, operands = 0, adds }: Wrapper): Reading {
  return (args, program) => {
    let at = 0;
    for (; at < args.length; at += 1) {
      const text = textOf(args[at]);
      if (text === undefined) return anyOf(args, `what '${program}' runs is not known before`);
      if (text === '--') {
        at += 1;
        break;
      }
      if (!text.startsWith('-') || text === '-') break;
      if (values?.test(text)) at += 1;
      else if (!flags?.test(text)) return anyOf(args, `'${program} ${text}' is not understood`);
    }
    const command = args.slice(at + operands);
    if (command.length === 0) return NOTHING;
    return starts({ commands: [adds === undefined ? command : [...command, UNKNOWN]] });
  };
}

/** Long options that matter, by program: any beginning of one stands for it. */
const LONG_OPTIONS: Readonly<Record<string, string>> = {
  ...named(
    'tar bsdtar gtar',
    'use-compress-program to-command checkpoint-action rsh-command rmt-command info-script new-volume-script dereference hard-dereference extract get files-from',
  ),
  ...named(
    'grep egrep fgrep rgrep ugrep ug',
    'recursive dereference-recursive directories file regexp regex',
  ),
  ...named('sort', 'compress-program files0-from output'),
  ...named('wc du', 'files0-from dereference dereference-args'),
  ...named('cp stat file chmod chown chgrp', 'dereference files-from'),
  ...named('diff ls', 'recursive'),
  ...named('rsync', 'rsh rsync-path remote-option daemon files-from'),
  ...named('zip', 'unzip-command names-stdin'),
  ...named('curl', 'config'),
  ...named('wget', 'input-file use-askpass config execute'),
  ...named('tcpdump', 'postrotate-command'),
  ...named('sed', 'in-place expression file'),
  ...named('xargs', 'replace'),
  ...named(
    'git',
    'text textconv exec upload-pack receive-pack ext-diff output template separate-git-dir config recurse-submodules open-files-in-pager edit reedit-message interactive patch binary unified function-context word-diff verbose',
  ),
};

function named(programs: string, options: string): Readonly<Record<string, string>> {
  return Object.fromEntries(programs.split(' ').map((program) => [program, options]));
}

/** Its words, with long options that matter in full: `tar --to-com=x` is `tar --to-command=x`. */
export function inFull(words: Words): Words {
  const program = programOf(words[0]) ?? '';
  const options = Object.hasOwn(LONG_OPTIONS, program) ? LONG_OPTIONS[program]?.split(' ') : undefined;
  if (options === undefined) return words;
  return words.map((word) => {
    const [, name, rest = ''] = /^--([a-z][\w-]*)(=.*)?$/s.exec(textOf(word) ?? '') ?? [];
    if (name === undefined || options.includes(name)) return word;
    const full = options.find((option) => option.startsWith(name));
    return full === undefined ? word : { kind: 'known', text: `--${full}${rest}` };
  });
}

/** Its words are a command, or one of them is a script: rules that deny find it, and all else asks. */
const runsOthers: Reading = (args, program) => runsAnyOf(args, `'${program}' runs others`);

function runsAnyOf(args: Words, why: string): ReturnType<Reading> {
  const scripts = args
    .map((word) =>
      (textOf(word) ?? '').replace(/^--?[\w-]+=/, '').replace(/^\s*(\\!|\.shell|\.system|system)\s+/, ''),
    )
    .filter((text) => /\S\s+\S/.test(text));
  return starts({ ...anyOf(args, why), scripts });
}

/** It runs others where a word says so. */
function runsWith(option: RegExp): Reading {
  return (args, program) =>
    args.some((word) => option.test(textOf(word) ?? '')) || args.some((word) => textOf(word) === undefined)
      ? runsAnyOf(args, `'${program}' may run others`)
      : NOTHING;
}

/** Databases and their shells: what is given on the line is looked at, everything else may run programs. */
function database(statement: RegExp, harmful: RegExp): Reading {
  return (args, program) => {
    const texts = args.map((word) => textOf(word) ?? '\\');
    if (/^(--version|--help)$/.test(texts[0] ?? '')) return NOTHING;
    const isPlain = texts.some((text) => statement.test(text)) && !texts.some((text) => harmful.test(text));
    return isPlain ? NOTHING : runsAnyOf(args, `'${program}' may run others`);
  };
}

const sqlite: Reading = (args, program) => {
  const texts = args.map((word) => textOf(word) ?? '.');
  const operands = texts.filter((text) => !text.startsWith('-'));
  const isHarmful = texts.some((text) =>
    /^--?(init|cmd|interactive)|(^|\n)\s*\.|edit\s*\(|load_extension|writefile|readfile|fsdir|\battach\b/i.test(
      text,
    ),
  );
  return operands.length < 2 || isHarmful ? runsAnyOf(args, `'${program}' may run others`) : NOTHING;
};

const AWK_OPTIONS = /^(-$|--$|-[Fv]|--(field-separator|assign|posix|traditional|csv|version|help)(=|$))/;

/** Beside programs that it runs: which files it reads is in its variables, too. */
const awk: Reading = (args, program) => {
  const texts = args.map(textOf);
  const isPlain = texts.every(
    (text) =>
      text !== undefined &&
      !/system|getline|ARG[CV]|SYMTAB|\\\r?\n|[|>@]/.test(text) &&
      (!text.startsWith('-') || AWK_OPTIONS.test(text)),
  );
  return isPlain ? NOTHING : unclear(`a program for '${program}' may run others, or write files`);
};

/** Programs whose business is to start others. */
export const STARTERS: Readonly<Record<string, Reading>> = {
  ...each(
    'flock setpriv chrt numactl fakeroot fakechroot dbus-run-session dbus-launch valgrind hyperfine faketime proot firejail prlimit setarch linux32 linux64 i386 x86_64 capsh choom unbuffer rlwrap xvfb-run chronic foreman honcho nodemon concurrently cross-env cross-env-shell dotenv dotenvx envdir chpst softlimit setlock setuidgid gosu su-exec start-stop-daemon daemonize runcon cgexec mpirun mpiexec srun uftrace rr lldb gdbserver direnv entr sem pueue batch inotifywait systemd-inhibit caffeinate nix nix-shell guix winpty arch tini dumb-init catchsegv sg newgrp gpg-agent ssh-agent sshpass autossh mosh logsave run-parts debconf systemd-cat pipesz uclampset coresched scriptlive eatmydata nocache cpulimit trickle timelimit retry torify torsocks proxychains proxychains4 tsocks lckdo lockrun with-lock-ex ifne pee mispipe zrun zargs fzf m4 pandoc pwsh powershell cmd.exe nu elvish xonsh yash posh osh ysh turbo nx lerna lage moon wireit lint-staged pre-commit zx vlt env-cmd',
    runsOthers,
  ),
  ...each(
    'bundle poetry conda mamba micromamba pipenv uv pipx hatch rye pdm rbenv pyenv nodenv asdf mise volta fnm op doppler aws-vault rustup opam stack cabal mix composer',
    runsWith(/^(exec|run|x|r|shell|with|run-script)$/),
  ),
  ...each('uvx just rake task invoke', runsOthers),
  ...each('tex latex pdflatex xelatex lualatex', runsWith(/^--?(enable-)?(shell-escape|write18)/)),
  ...each('awk gawk mawk nawk', awk),
  ...each('jq gojq jaq', (args, program) =>
    args.some((word) =>
      /^-[a-zA-Z]*[Lf]|^--(library-path|from-file)|\b(import|include)\b|\$__prog_args/.test(
        textOf(word) ?? 'import',
      ),
    )
      ? unclear(`a program for '${program}' is in a file, or may read others`)
      : NOTHING,
  ),
  // It does what it reads, too: from files, or from before the pipe.
  dc: (args, program) => {
    const texts = args.map(textOf);
    const isPlain = texts.every(
      (text, index) =>
        /^-(e|-expression|V|-version)$/.test(text ?? '') ||
        (texts[index - 1]?.startsWith('-e') === true &&
          /^[\d\s.+*/%^~|vpnfdrcziokIOKZX_-]*$/.test(text ?? '?')),
    );
    return isPlain && texts.length > 0 ? NOTHING : runsAnyOf(args, `'${program}' may run others`);
  },
  ...each('gcc g++ cc c++ clang clang++', (args, program) =>
    args.some((word) =>
      /^(-wrapper|-B|--?specs|-fplugin|-fpass-plugin|-Xclang|-load|@|-fuse-ld|--ld-path)/.test(
        textOf(word) ?? '@',
      ),
    )
      ? runsAnyOf(args, `'${program}' may run others`)
      : NOTHING,
  ),
  ...each(
    'mysql mariadb',
    database(/^(-[a-zA-Z]*e|--execute)/, /\\|\b(system|source|tee|pager)\b|^--(init|pager|tee)/i),
  ),
  ...each('pip pip3', runsWith(/^(install|wheel|download)$/)),
  go: runsWith(/^--?(exec|toolexec|vettool)(=|$)/),
  split: runsWith(/^--f/),
  install: runsWith(/^--strip-/),
  ...each('sdiff diff3', runsWith(/^--d/)),
  wget: runsWith(/^(--use-a|--exe|--conf|-[a-zA-Z]*e)/),
  rsync: (args, program) =>
    args.some((word) => /^(-[a-zA-Z]*e|--rsh|--rsync-path|--remote-option|--daemon)/.test(textOf(word) ?? ''))
      ? runsAnyOf(args, `'${program}' may run others`)
      : NOTHING,
  scp: (args, program) =>
    args.some((word) => /^-[a-zA-Z0-9]*[SoFDJ]/.test(textOf(word) ?? ''))
      ? unclear(`'${program}' may run others`)
      : NOTHING,
  zip: (args, program) =>
    args.some((word) => /^(-[a-zA-Z]*TT|--unzip-command)/.test(textOf(word) ?? ''))
      ? runsAnyOf(args, `'${program}' may run others`)
      : NOTHING,
  tcpdump: runsWith(/^(-[a-zA-Z]*z|--postrotate)/),
  sqlite3: sqlite,
  sqlite: sqlite,
  psql: database(/^(-[a-zA-Z]*c|--command)/, /\\|\bprogram\b|^(-[a-zA-Z]*[fo]|--(file|output))/i),
};
