import { type Reading, starts, textOf, type Words } from './started.js';

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
  clone: /^(-u|-c|--config|--template|--recurse|--recursive)/,
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
export const gitCommands: Reading = (args) => {
  const doubts: string[] = [];
  let at = 0;
  for (; at < args.length; at += 1) {
    const text = textOf(args[at]);
    if (text === undefined || !text.startsWith('-')) break;
    if (text === '-C') at += 1;
    else if (/^(-c|--config-env|--exec-path|--git-dir|--work-tree|--namespace|--attr-source)/.test(text)) {
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
