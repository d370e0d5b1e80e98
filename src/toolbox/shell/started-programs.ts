import { PACKAGE_MANAGERS, SCRIPT_RUNNERS } from './package-managers.js';
import { type CommandWord, isHarmlessVariable } from './read-script.js';
import {
  anyOf,
  both,
  each,
  inFull,
  NOTHING,
  programOf,
  type Reading,
  runsTheRest,
  STARTERS,
  type Started,
  starts,
  textOf,
  UNKNOWN,
  unclear,
  type Words,
} from './started.js';

/** What a command starts. Programs that are not named here start nothing that their words say. */
export function startedBy(words: Words): Started {
  const program = programOf(words[0]);
  if (program === undefined) return unclear('which program it runs is not known before');
  // A plain object would know `constructor` too.
  const read = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
  const version =
    /^(python|pypy|ipython|perl|ruby|node|php|lua|pip|bash|gcc|g\+\+|clang|clang\+\+)-?[\d.]+$/.exec(
      program,
    )?.[1];
  const other = version !== undefined && Object.hasOwn(PROGRAMS, version) ? PROGRAMS[version] : undefined;
  const loader = /^ld(-linux[\w-]*)?\.so(\.\d+)?$/.test(program) ? PROGRAMS.flock : undefined;
  if (program.startsWith('git-') && (GIT.has(program.slice(4)) || textOf(words[0])?.includes('git-core/')))
    return gitCommands([{ kind: 'known', text: program.slice(4) }, ...words.slice(1)], 'git');
  return (read ?? other ?? loader)?.(inFull(words).slice(1), program) ?? NOTHING;
}

const env: Reading = (args, program) => {
  const doubts: string[] = [];
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = textOf(args[at]);
    if (text === undefined) return anyOf(args, `what '${program}' runs is not known before`);
    const variable = /^(\w+)=/.exec(text)?.[1];
    if (variable !== undefined) {
      if (!isHarmlessVariable(variable)) doubts.push(`it sets '${variable}'`);
    } else if (text === '-u' || text === '--unset') at += 1;
    else if (!/^(-|-i|-0|--|--ignore-environment|--null|-u.+|--unset=.+)$/.test(text)) {
      if (text.startsWith('-')) return anyOf(args, `'${program} ${text}' is not understood`);
      break;
    }
  }
  const command = args.slice(at);
  return starts({ commands: command.length === 0 ? [] : [command], unclear: doubts });
};

const xargs: Reading = (args, program) => {
  const replaced = args.map(textOf).find((text) => /^(-I.*|-i.*|--replace.*)$/.test(text ?? ''));
  const read = runsTheRest({
    flags:
      /^(-0|-r|-t|-x|-[0rtx]+|--null|--no-run-if-empty|--verbose|--exit|-[nPLsdEI].+|-i.*|--replace.*|--\w[\w-]*=.*)$/,
    values: /^(-[nPLsdEIa]|--max-args|--max-procs|--max-lines|--delimiter)$/,
    adds: 'unknown words',
  })(args, program);
  if (replaced === undefined) return read;
  // Any word may have the place in it.
  return { ...read, commands: read.commands.map(([first = UNKNOWN]) => [first, UNKNOWN]) };
};

const find: Reading = (args) => {
  const commands: Words[] = [];
  const writes: CommandWord[] = [];
  const doubts: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const text = textOf(args[at]) ?? '';
    if (/^-(exec|execdir|ok|okdir)$/.test(text)) {
      const rest = args.slice(at + 1);
      const end = rest.findIndex((word) => textOf(word) === ';' || textOf(word) === '+');
      const inner = end < 0 ? rest : rest.slice(0, end);
      commands.push(inner.map((word) => (textOf(word)?.includes('{}') ? UNKNOWN : word)));
      at += inner.length;
    } else if (text === '-delete') commands.push([{ kind: 'known', text: 'rm' }, UNKNOWN]);
    else if (/^-f(print0?|ls|printf)$/.test(text)) writes.push(args[at + 1] ?? UNKNOWN);
    else if (/^-(L|H|follow)$/.test(text)) doubts.push("'find' may follow links out of the folder");
    else if (text === '-files0-from') doubts.push('what it looks through is not known before');
  }
  return starts({ commands, writes, unclear: doubts });
};

/** `sh -c script`; a script in a file is not looked at. */
const shell: Reading = (args, program) => {
  const flags = textOf(args[0]);
  const code = textOf(args[1]);
  if (flags !== undefined && /^-[eux]*c$/.test(flags) && code !== undefined)
    return program === 'bash' || program === 'sh' || program === 'dash'
      ? starts({ scripts: [code] })
      : starts({ scripts: [code], unclear: [`'${program}' reads scripts in its own way`] });
  if (flags === '--version') return NOTHING;
  return unclear(`what '${program}' runs does not stand in the command`);
};

/** A language whose programs may stand in the command, or come through a pipe. */
function runsCode(inline: RegExp, inWords?: RegExp): Reading {
  return (args, program) => {
    const texts = args.map(textOf);
    if (texts[0] === '--version' || texts[0] === '-V' || texts[0] === '-v') return NOTHING;
    const isInline =
      texts.length === 0 || texts.some((text) => text === undefined || text === '-' || inline.test(text));
    return isInline || inWords?.test(texts.join(' ')) === true
      ? unclear(`a program for '${program}' stands in the command, or is not known before`)
      : NOTHING;
  };
}

/** It gives a file to the program that its first line names, be that a shell. */
const perl: Reading = (args, program) => {
  const { unclear: why } = runsCode(/^-[a-zA-Z0-9]*[eEMmIrx]/)(args, program);
  const file = args.find((word) => textOf(word)?.startsWith('-') === false);
  return starts({ unclear: why, files: file === undefined ? [] : [file] });
};

/** Modules that take a program, or ask for one. */
const PYTHON_MODULES =
  /(^| )-[a-zA-Z]*m ?(pip[\d.]*( .*)? install|ensurepip|timeit|pdb|bdb|code|asyncio|profile|cProfile|trace|IPython)\b/;

/** `s/a/b/g`, `10,20p`, `/x/d`, and nothing that runs or writes. */
const PLAIN_SED =
  /^((\d+|\$)(,(\d+|\$))?|\/[^/\\]*\/)?(s([/|#,:])(?:(?!\6)[^\\\n]|\\.)*\6(?:(?!\6)[^\\\n]|\\.)*\6[gpiI\d]*|[pdq=])$/;

const sed: Reading = (args) => {
  const texts = args.map(textOf);
  const options = texts.filter((text) => text?.startsWith('-'));
  const scripts = texts.filter(
    (_, index) => texts[index - 1] === '-e' || texts[index - 1] === '--expression',
  );
  const first = texts.find((text, index) => text === undefined || (!text.startsWith('-') && index >= 0));
  const programs = scripts.length > 0 ? scripts : [first];
  const areKnown = options.every((text) =>
    /^-([nErsuz]+|i|i\.\w+|e|-expression|-quiet|-regexp-extended|-in-place)$/.test(text ?? ''),
  );
  const isPlain =
    areKnown && programs.every((text) => text?.split(/\s*;\s*/).every((one) => PLAIN_SED.test(one)));
  return isPlain ? NOTHING : unclear("a program for 'sed' may run others, or write files");
};

/** Commands of git that run no others by what stands in their words. */
const GIT = new Set(
  'add am apply archive bisect blame branch cat-file checkout cherry-pick clean clone commit count-objects describe diff diff-tree fetch format-patch fsck gc grep help init log ls-files ls-remote ls-tree merge merge-base mv notes pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index version whatchanged worktree write-tree'.split(
    ' ',
  ),
);
const EDITS = /^(-[a-zA-Z]*e$|--edit|--cont)/;
/** Options and words of those with which they run others all the same. */
const GIT_RUNS: Readonly<Record<string, RegExp>> = {
  bisect: /^run$/,
  rebase: /^(-x|-i|--exec|--interactive|--edit|--cont)/,
  branch: /^--edit/,
  merge: EDITS,
  'cherry-pick': EDITS,
  revert: EDITS,
  pull: /^(-[a-zA-Z]*e$|--edit|--rebase=i)/,
  submodule: /^foreach$/,
  grep: /^(-O|--open-files-in-pager|--ext)/,
  clone: /^(-u|-c|--config|--template|--separate|--recurse|--recursive)/,
  init: /^--(template|separate)/,
  commit: /^-[a-zA-Z]*[ec]$|^--(edit|reedit)/,
  add: /^(-[a-z]*[epi]$|--edit|--patch|--interactive)/,
  help: /^/,
  archive: /^--(remote|exec|output|format)/,
};
const GIT_RUNS_ALWAYS =
  /^(--upload-pack|--receive-pack|--exec|--ext-diff|--textconv|--ext|--output|--run|ext::)|^\w+::/;

/** A message that stands in the command, or in a file. */
const MESSAGE = /^-[aqsvnzofl]*[mFC]|^--(message|file|reuse-message|no-edit|dry-run)(=|$)/;

/** Whether git asks an editor for a message: which that is, the configuration says. */
function opensEditor(name: string | undefined, rest: Words): boolean {
  const end = rest.findIndex((word) => textOf(word) === '--');
  const texts = (end < 0 ? rest : rest.slice(0, end)).map((word) => textOf(word) ?? '');
  if (name === 'notes' && texts.includes('edit')) return true;
  const hasMessage = texts.some((text) => MESSAGE.test(text));
  if (hasMessage) return name === 'notes' && texts.some((text) => /^(-c|-e|--edit|--reedit)/.test(text));
  if (name === 'commit') {
    const fixup = texts.findIndex((text) => /^--fixup(=|$)/.test(text));
    return (
      fixup < 0 ||
      /^(--fixup=)?(amend|reword):/.test(
        texts
          .slice(fixup, fixup + 2)
          .join(' ')
          .replace('--fixup ', '--fixup='),
      )
    );
  }
  if (name === 'tag') return texts.some((text) => /^(-[a-zA-Z]*[asu]|--(an|si|loc))/.test(text));
  return name === 'notes' && texts.some((text) => /^(add|append)$/.test(text));
}

/** `git -C folder --no-pager push` is `git push`, and its options that name programs are seen. */
const gitCommands: Reading = (args) => {
  const doubts: string[] = [];
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = textOf(args[at]);
    if (text === undefined || !text.startsWith('-')) break;
    if (text === '-C') {
      at += 1;
      if (textOf(args[at]) === undefined) doubts.push('in which folder git runs is not known before');
    } else if (/^(-c|--config-env|--exec-path|--git-dir|--work-tree|--namespace|--attr-source)/.test(text)) {
      doubts.push(`'git ${text.slice(0, 30)}' may make git run anything`);
      if (!text.includes('=') && text !== '--exec-path') at += 1;
    } else if (
      !/^(-p|--paginate|-P|--no-pager|--bare|--no-optional-locks|--literal-pathspecs|--version|-v|--help)$/.test(
        text,
      )
    )
      doubts.push(`'git ${text}' is not understood`);
  }
  const [command, ...rest] = args.slice(at);
  if (command === undefined) return starts({ unclear: doubts });
  const name = textOf(command);
  if (name === undefined || !GIT.has(name))
    doubts.push(`'git ${name ?? '…'}' may be an alias, or run others`);
  const runs = name !== undefined && Object.hasOwn(GIT_RUNS, name) ? GIT_RUNS[name] : undefined;
  for (const word of rest) {
    const text = textOf(word) ?? '';
    if (runs?.test(text) || GIT_RUNS_ALWAYS.test(text))
      doubts.push(`'git ${name} ${text.slice(0, 30)}' may run another program`);
  }
  if (opensEditor(name, rest)) doubts.push(`'git ${name}' opens an editor: give it a message with -m`);
  const plain: Words = [{ kind: 'known', text: 'git' }, command, ...rest];
  return starts({ commands: at > 0 ? [plain] : [], unclear: doubts });
};

/** Programs that a person works with, and that run whatever that person says. */
const interactive: Reading = (_, program) => unclear(`'${program}' runs what it is told while it runs`);
const changesShell: Reading = (_, program) =>
  unclear(`'${program}' changes what later words mean, or runs what is not seen`);
const elsewhere: Reading = (args, program) =>
  anyOf(args, `'${program}' runs things as somebody else, or elsewhere`);

const declare: Reading = (args, program) => {
  for (const word of args) {
    const text = textOf(word);
    const name = /^(\w+)(=|$)/.exec(text ?? '')?.[1];
    if (text?.startsWith('-') && /^-[gprx]+$/.test(text)) continue;
    if (name === undefined || !isHarmlessVariable(name))
      return unclear(`'${program}' sets '${text ?? 'something'}'`);
  }
  return NOTHING;
};

const setsVariable: Reading = (args, program) => {
  const texts = args.map(textOf);
  if (program === 'printf' && texts[0]?.startsWith('-v') === false) return NOTHING;
  if (
    program !== 'printf' &&
    texts.every((text) => text !== undefined && (/^-[a-z]$/.test(text) || isHarmlessVariable(text)))
  )
    return NOTHING;
  return unclear(`'${program}' sets a variable`);
};

/** `wait -p` takes the name of a variable, and calculates what is in brackets behind it. */
const wait: Reading = (args, program) => {
  const texts = args.map((word) => textOf(word) ?? '-p');
  const isPlain = texts.every(
    (text, index) => !/^-[fn]*p/.test(text) || (text === '-p' && isHarmlessVariable(texts[index + 1] ?? '')),
  );
  return isPlain ? NOTHING : unclear(`'${program}' sets a variable`);
};

const test: Reading = (args, program) =>
  args.some((word) => textOf(word) === undefined || ['-v', '-R'].includes(textOf(word) ?? ''))
    ? unclear(`'${program}' may calculate`)
    : NOTHING;

const tar: Reading = (args, program) =>
  args.some((word, index) => {
    const plain = textOf(word);
    // `tar chf` has its options without a dash.
    const text = index === 0 && plain !== undefined && /^[a-zA-Z]+$/.test(plain) ? `-${plain}` : plain;
    return (
      text === undefined ||
      /^(-I|-[a-zA-Z]*[hLkKr]|--dereference|--copy-|--recurse|--use-compress|--to-command|--checkpoint-action|--rsh|--rmt|--hard-deref|--info-script|--new-volume|-F|-[a-zA-Z]*[IF])/.test(
        text,
      )
    );
  })
    ? unclear(`'${program}' may run another program`)
    : NOTHING;

/** Programs that go through folders, and may leave them by links where they are told to follow those. */
function followsLinks(options: RegExp): Reading {
  return (args, program) =>
    args.some((word) => options.test(textOf(word) ?? ''))
      ? unclear(`'${program}' may follow links out of the folder`)
      : NOTHING;
}

const ANY_LONG = /^--[a-z][\w-]*=.*$/;

const runsNode = runsCode(
  /^(-e|-p|-pe|-r|-i|--eval|--print|--require|--import|--loader|--experimental-loader|--interactive|eval|repl)(=|$)/,
);

const { node: script, deno: task, bun } = SCRIPT_RUNNERS;

const PROGRAMS: Readonly<Record<string, Reading>> = {
  ...STARTERS,
  ...PACKAGE_MANAGERS,
  ...each('sh bash dash zsh ksh ash mksh fish csh tcsh rbash', shell),
  ...each(
    'eval source . alias unalias trap enable hash shopt set bind complete compgen mapfile readarray let builtin fc history shift getopts coproc dirs pushd popd',
    changesShell,
  ),
  ...each('export declare typeset local readonly unset', declare),
  ...each('read printf', setsVariable),
  wait,
  ...each('test [', test),
  ...each(
    'sudo doas su runuser pkexec ssh chroot nsenter unshare systemd-run at batch crontab docker podman kubectl screen tmux flatpak bwrap parallel watch expect script strace ltrace gdb perf socat nc ncat entr make cmake ninja',
    elsewhere,
  ),
  ...each(
    'vi vim nvim view vimdiff gvim emacs emacsclient nano ed red ex rvim rview gview pico micro joe kak hx editor sensible-editor sensible-pager pager visudo vipw vigr sudoedit less more most man info mutt ftp sftp lftp telnet gpg busybox toybox',
    interactive,
  ),
  ...each('python pypy', runsCode(/^-[a-zA-Z]*c|^-$/, PYTHON_MODULES)),
  ...each('node nodejs tsx ts-node', (args, program) => both(script(args, program), runsNode(args, program))),
  deno: (args, program) => both(task(args, program), runsNode(args, program)),
  bun: (args, program) => both(bun(args, program), runsNode(args, program)),
  perl,
  ruby: runsCode(/^-[a-zA-Z0-9]*[eEMmIrx]/),
  ...each(
    'php lua luajit osascript R Rscript groovy scala ghc runghc jshell tclsh guile julia ipython bpython ptpython irb raku elixir iex erl octave clojure clj bb sbcl racket coffee janet fennel qjs swipl ocaml gnuplot sage crystal',
    runsCode(/^-|^--(eval|run)/),
  ),
  ...each('zip rsync scp', (args, program) => {
    const started = STARTERS[program]?.(args, program) ?? NOTHING;
    return started === NOTHING ? tar(args, program) : started;
  }),
  ...each('tar bsdtar 7z', tar),
  ...each('grep egrep fgrep ugrep ug', followsLinks(/^-[a-zA-Z]*R|^--dereference/)),
  ...each('cp du chmod chown chgrp stat file', followsLinks(/^-[a-zA-Z]*[LH]|^--dereference/)),
  ...each('diff tree', followsLinks(/^-[a-zA-Z]*[rl]|^--recursive/)),
  env,
  xargs,
  find,
  sed,
  git: gitCommands,
  ...each('fd fdfind', (args, program) =>
    args.some((word) => /^(-[a-zA-Z]*[xXL]|--exec|--follow)/.test(textOf(word) ?? '-x'))
      ? anyOf(args, `'${program}' runs others`)
      : NOTHING,
  ),
  rg: (args, program) =>
    args.some((word) => /^(--(pre|hostname-bin|follow)|-[a-zA-Z]*L)/.test(textOf(word) ?? ''))
      ? anyOf(args, `'${program} --pre' runs others`)
      : NOTHING,
  sort: (args) =>
    args.some((word) => textOf(word)?.startsWith('--compress-prog'))
      ? unclear("'sort' may run another program")
      : NOTHING,
  nohup: runsTheRest({}),
  ...each('nyc c8', runsTheRest({ flags: ANY_LONG })),
  shx: runsTheRest({}),
  setsid: runsTheRest({ flags: /^-[cfw]+$/ }),
  nice: runsTheRest({ flags: /^(-\d+|-n-?\d+|--adjustment=.*)$/, values: /^-n$/ }),
  ionice: runsTheRest({ flags: /^(-t|-[cn]\d)$/, values: /^-[cn]$/ }),
  timeout: runsTheRest({ flags: ANY_LONG, values: /^-[sk]$/, operands: 1 }),
  time: runsTheRest({ flags: /^-[pv]$/ }),
  stdbuf: runsTheRest({ flags: /^-[ioe].+$/, values: /^-[ioe]$/ }),
  taskset: runsTheRest({ operands: 1 }),
  jobs: (args, program) =>
    args.some((word) => /^-\w*x/.test(textOf(word) ?? '-x'))
      ? anyOf(args, `'${program} -x' runs others`)
      : NOTHING,
  command: (args, program) =>
    /^-[vV]+$/.test(textOf(args[0]) ?? '') ? NOTHING : runsTheRest({ flags: /^-p$/ })(args, program),
  exec: runsTheRest({ flags: /^-[cl]$/, values: /^-a$/ }),
};
