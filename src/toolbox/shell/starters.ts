import { anyOf, each, NOTHING, type Reading, starts, textOf, unclear, type Words } from './started.js';

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
