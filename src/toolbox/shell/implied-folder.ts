import { programOf, textOf, type Words } from './started.js';

/** How a program that goes through folders is told where: without a word about it, it is where it runs. */
interface Search {
  /** Options without which it does not go into folders. */
  readonly onlyWith?: RegExp;
  /** How many words stand before the paths. */
  readonly operands?: number;
  /** Options that say what those words say otherwise. */
  readonly instead?: RegExp;
  /** Options that take nothing; the word behind any other is taken for its value. */
  readonly flags?: RegExp;
}

const LONG = /^--[\w-]+=/;
const GREP: Search = {
  onlyWith: /^(-[a-zA-Z]*[rR]|--recursive|--dereference-recursive|--directories|-[a-zA-Z]*d)/,
  operands: 1,
  instead: /^(-[a-zA-Z]*[ef]|--regexp|--file)/,
  flags:
    /^(-\d+|-[a-zA-Z]*[^ABCDdmefX\W]|--(recursive|ignore-case|line-number|word-regexp|files-with-.*|colou?r))$/,
};
const SEARCHES: Readonly<Record<string, Search>> = {
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  rgrep: { ...GREP, onlyWith: /^/ },
  rg: { operands: 1, instead: /^(-[a-zA-Z]*[ef]|--regexp|--file)/, flags: /^-[ilnwvsSFHNcUpuohI]+$/ },
  ag: { operands: 1, flags: /^-[ilwvsScu]+$/ },
  ack: { operands: 1, flags: /^-[ilwvcH]+$/ },
  fd: { operands: 1, flags: /^-[HIuisaplp0]+$/ },
  fdfind: { operands: 1, flags: /^-[HIuisapl0]+$/ },
  tree: { flags: /^-[adfhpsDC]+$/ },
  du: { flags: /^-[abchkmsSx0]+$/ },
  exa: { onlyWith: /^(-[a-zA-Z1]*[RT]|--(recurse|tree))/, flags: /^-[a-zA-Z1]+$/ },
  eza: { onlyWith: /^(-[a-zA-Z1]*[RT]|--(recurse|tree))/, flags: /^-[a-zA-Z1]+$/ },
  ls: { onlyWith: /^(-[a-zA-Z1]*R|--recursive)/, flags: /^-[a-zA-Z1]+$/ },
};

/** Programs that open files which an archive, a list or a patch names, where a word says so. */
const NAMED_ELSEWHERE: Readonly<Record<string, RegExp>> = {
  '7z': /^([xe]|@.*)$/,
  bsdtar: /^-[a-zA-Z]*[xT]|^--(extract|get|files-from)/,
  cpio: /^/,
  curl: /^(-[a-zA-Z]*K|--config)/,
  du: /^--files0-from/,
  patch: /^/,
  pax: /^/,
  rsync: /^--files-from/,
  sort: /^--files0-from/,
  tar: /^-[a-zA-Z]*[xT]|^--(extract|get|files-from)/,
  unzip: /^/,
  wc: /^--files0-from/,
  wget: /^(-[a-zA-Z]*i|--input-file)/,
  zip: /^(-[a-zA-Z]*@|--names-stdin)/,
};

const SHOWS_CHANGES = /^(-[pucmGSLU]|--(patch|cc|unified|word-diff|color-words|remerge-diff|diff-merges))/;

/** Commands of git that show or change the files of the whole tree, with the options with which some do. */
const GIT: Readonly<Record<string, RegExp>> = {
  add: /^(-[a-z]*[Au]|--all|--update|--pathspec-from)/,
  'cat-file': /^--batch/,
  commit: /^(-[a-z]*[av]|--all|--verbose)/,
  log: SHOWS_CHANGES,
  reflog: SHOWS_CHANGES,
  reset: /^--(hard|merge|keep)/,
  ...Object.fromEntries(
    'am apply archive bisect cherry-pick clean diff diff-tree format-patch grep merge pull range-diff rebase restore revert show sparse-checkout stash submodule whatchanged worktree'
      .split(' ')
      .map((name) => [name, /^/]),
  ),
};

/** Of those that change to another branch: with which a new one begins where one is, and nothing changes. */
const BEGINS_BRANCH: Readonly<Record<string, RegExp>> = {
  checkout: /^-[bB]$/,
  switch: /^(-[cC]|--create|--force-create)$/,
};

/** Whether a command goes through the folder in which it runs without naming it. */
export function impliesFolder(words: Words): boolean {
  const program = programOf(words[0]) ?? '';
  const texts = words.slice(1).map((word) => (word.kind === 'files' ? word.text : (textOf(word) ?? '')));
  if (program === 'git') return gitImplies(texts);
  if (program === 'find') return texts[0] === undefined || texts[0] === '' || texts[0].startsWith('-');
  const elsewhere = Object.hasOwn(NAMED_ELSEWHERE, program) ? NAMED_ELSEWHERE[program] : undefined;
  if (elsewhere !== undefined && ['', ...dashed(program, texts)].some((text) => elsewhere.test(text)))
    return true;
  const search = Object.hasOwn(SEARCHES, program) ? SEARCHES[program] : undefined;
  if (search === undefined) return false;
  const { onlyWith = /^/, operands = 0, instead, flags } = search;
  if (texts.length > 0 ? !texts.some((text) => onlyWith.test(text)) : !onlyWith.test('')) return false;
  const needed = instead !== undefined && texts.some((text) => instead.test(text)) ? 0 : operands;
  return operandsIn(texts, flags) <= needed;
}

/** `tar xf` has its options without a dash. */
function dashed(program: string, [first = '', ...others]: readonly string[]): readonly string[] {
  return [/tar$/.test(program) && /^[a-zA-Z]+$/.test(first) ? `-${first}` : first, ...others];
}

function operandsIn(texts: readonly string[], flags: RegExp | undefined): number {
  let count = 0;
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? '';
    if (text === '--') return count + texts.length - at - 1;
    if (!text.startsWith('-')) count += 1;
    else if (!flags?.test(text) && !LONG.test(text)) at += 1;
  }
  return count;
}

function gitImplies(texts: readonly string[]): boolean {
  const at = texts.findIndex((text, index) => !text.startsWith('-') && texts[index - 1] !== '-C');
  const name = texts[at] ?? '';
  const rest = texts.slice(at + 1);
  // What git is given may be a pattern that it fills in by itself.
  const isMessage = (at: number) => name === 'commit' && /^(-[a-z]*m|--message)$/.test(rest[at - 1] ?? '');
  if (rest.some((text, at) => /^[^\s-][^\s]*[*?[]|^[*?[:]/.test(text) && !isMessage(at))) return true;
  const begins = Object.hasOwn(BEGINS_BRANCH, name) ? BEGINS_BRANCH[name] : undefined;
  if (begins !== undefined) return !rest.includes('--') && !(rest.length === 2 && begins.test(rest[0] ?? ''));
  const marks = Object.hasOwn(GIT, name) ? GIT[name] : undefined;
  if (marks === undefined || (rest.includes('--') && rest.at(-1) !== '--')) return false;
  return marks.test('') || rest.some((text) => marks.test(text));
}
