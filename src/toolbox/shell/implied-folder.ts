import { posix } from 'node:path';
import { foldedPath } from '../paths/folder-path.js';
import type { FolderView } from './command-shell.js';
import { inFull, programOf, textOf, type Words } from './started.js';

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
  ugrep: { ...GREP, onlyWith: /^/ },
  ug: { ...GREP, onlyWith: /^/ },
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

const SHOWS_CHANGES =
  /^(-[pucmGSLUW]|--(patch|binary|cc|dd|unified|function-context|word-diff|color-words|remerge-diff|diff-merges))/;

/** Commands of git that show or change the files of the whole tree, with the options with which some do. */
const GIT: Readonly<Record<string, RegExp>> = {
  add: /^(-[a-z]*[Au]|--all|--update|--pathspec-from)/,
  // What has no path in it may be any file, by its hash.
  'cat-file': /^(--batch|[^-:][^:]*$)/,
  commit: /^(-[a-z]*[av]|--all|--verbose)/,
  log: SHOWS_CHANGES,
  reflog: SHOWS_CHANGES,
  reset: /^--(hard|merge|keep)/,
  status: /^(-[a-z]*v|--verbose)/,
  ...Object.fromEntries(
    'am apply archive bisect cherry-pick clean diff diff-files diff-index diff-tree fast-export format-patch grep merge pull range-diff rebase restore revert show sparse-checkout stash submodule whatchanged worktree'
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
  const texts = inFull(words)
    .slice(1)
    .map((word) => (word.kind === 'files' ? word.text : (textOf(word) ?? '')));
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
  if (marks === undefined) return false;
  const end = rest.indexOf('--');
  // Of a file that is named by its hash, no path behind it keeps anything back.
  const mayBeFile = name === 'cat-file' || rest.slice(0, end).some((text) => /^[\da-f]{4,64}$/.test(text));
  if (end >= 0 && end < rest.length - 1 && !mayBeFile) return false;
  return marks.test('') || rest.some((text) => marks.test(text));
}

/** What a command may change of what its words name. */
interface Changes {
  /** `files`: no more than it names; `folders`: and what is in folders that it names; `tree`: all of a repository. */
  readonly reach: 'nothing' | 'files' | 'folders' | 'tree';
  /** The words that may name it; default: all. */
  readonly words?: Words;
  /** It is known to write: words that are not known may be any file. */
  readonly isSure?: true;
}

const NOTHING: Changes = { reach: 'nothing' };
const READ = new Set(
  'cat head tail wc grep egrep fgrep rg ag ack ls echo printf test [ true false : cd pwd stat file diff cmp comm cut tr basename dirname realpath readlink du jq od hexdump md5sum sha1sum sha256sum nl tac rev fold sleep date which type find awk gawk mawk nawk mkdir rmdir touch chmod chown'.split(
    ' ',
  ),
);
/** Programs that change what they are given where an option says so. */
const CHANGE_WITH: Readonly<Record<string, RegExp>> = {
  biome: /^--(fix|write|apply|unsafe)/,
  eslint: /^(--fix|-o|--output)/,
  prettier: /^(-w|--write)/,
  sed: /^(-[a-zA-Z]*i|--in-place)/,
  sort: /^(-[a-zA-Z]*o|--o)/,
  tree: /^-[a-zA-Z]*o/,
  tsc: /^--?(out|init|w|b)/i,
};
const FILL_FOLDERS = new Set(
  '7z 7za 7zr 7zz ar brotli bsdcpio bsdtar bunzip2 bzip2 cp cpio curl gtar gunzip gzip install jar lz4 mmv mv patch pax prename rename rsync scp tar unar uncompress unlz4 unrar unxz unzip unzstd wget xz zstd'.split(
    ' ',
  ),
);
const WRITES = new Set(['dd', 'tee', 'truncate', ...FILL_FOLDERS]);
const COPIES = new Set(['cp', 'install', 'rsync', 'scp']);
const TREE: Changes = { reach: 'tree' };
const MANAGERS = new Set(['npm', 'pnpm', 'yarn', 'yarnpkg', 'bun']);
const PACKAGE: Words = [{ kind: 'known', text: 'package.json' }];
const HERE: Words = [{ kind: 'known', text: '.' }];

/** What a command may change by itself; of programs that nobody knows, the files that they are given. */
export function changesOf(words: Words): Changes {
  const changes = changesBy(words);
  const program = programOf(words[0]) ?? '';
  return WRITES.has(program) || Object.hasOwn(CHANGE_WITH, program) ? { ...changes, isSure: true } : changes;
}

function changesBy(words: Words): Changes {
  const program = programOf(words[0]) ?? '';
  const args = inFull(words).slice(1);
  const texts = args.map((word) => (word.kind === 'files' ? word.text : (textOf(word) ?? '')));
  if (READ.has(program)) return NOTHING;
  if (program === 'git') return gitChanges(texts);
  // What is written behind a link is another file than the one that is named.
  if (program === 'ln' || (program === 'cp' && texts.some((text) => CP_LINKS.test(text)))) return TREE;
  if (MANAGERS.has(program))
    return changesPackage(texts) ? { reach: 'files', words: PACKAGE } : { reach: 'files', words: args };
  const option = Object.hasOwn(CHANGE_WITH, program) ? CHANGE_WITH[program] : undefined;
  if (option !== undefined && !texts.some((text) => option.test(text))) return NOTHING;
  if (!FILL_FOLDERS.has(program)) return { reach: 'files', words: args };
  if (COPIES.has(program)) return { reach: 'folders', words: targetsOf(args, program) };
  if (program === 'mv' || (program === 'curl' && !texts.some((text) => NAMED_BY_SERVER.test(text))))
    return { reach: 'folders', words: args };
  const names = dashed(program, texts);
  // What is no extraction writes an archive, and reads folders.
  if (/tar$/.test(program) && !names.some((text) => /^(-[a-zA-Z]*x|--(ext|ge))/.test(text)))
    return { reach: 'files', words: args };
  return { reach: 'folders', words: [...args, ...HERE] };
}

const CP_LINKS = /^(-[a-zA-Z]*[ls]|--(l|sy))/;
/** Or by words that are put together with others: `-sSopackage.json`. */
const NAMED_BY_SERVER = /^(-\w*(O|o\S|K)|--remote-n|--conf)/;

/** `npm pkg set`, `npm init`: they change the `package.json` without naming it. */
export function changesPackage(texts: readonly string[]): boolean {
  const [command = '', ...rest] = texts.filter((text) => !text.startsWith('-'));
  return /^(init|set-script)$/.test(command) || (command === 'pkg' && rest[0] !== 'get');
}

/** What stands behind the first operand, and what `-t` names. */
function targetsOf(args: Words, program: string): Words {
  const named = args.filter((word, index) => {
    const text = textOf(word) ?? '';
    return (
      /^(-[a-zA-Z]*t.|--t[a-z-]*=)/.test(text) ||
      /^(-[a-zA-Z]*t|--t[a-z-]*)$/.test(textOf(args[index - 1]) ?? '')
    );
  });
  // Of `-rtsub`, the folder is no word of its own.
  const isHidden = named.some((word) => /^-[a-zA-Z]+t./.test(textOf(word) ?? ''));
  if (named.length > 0 && program !== 'rsync') return isHidden ? [...args, ...HERE] : named;
  const first = args.findIndex((word) => textOf(word)?.startsWith('-') !== true);
  return args.slice(first + 1);
}

const GIT_READS =
  /^(add|blame|branch|cat-file|commit|count-objects|describe|diff|diff-tree|fetch|fsck|gc|grep|help|log|ls-files|ls-remote|ls-tree|merge-base|notes|push|range-diff|reflog|remote|rev-list|rev-parse|shortlog|show|show-ref|status|tag|version|whatchanged)$/;
const GIT_NAMED = /^(mv|rm|restore|clone|archive|format-patch|bundle)$/;

function gitChanges(texts: readonly string[]): Changes {
  const at = texts.findIndex((text, index) => !text.startsWith('-') && texts[index - 1] !== '-C');
  const name = texts[at] ?? '';
  const rest = texts.slice(at + 1);
  if (at < 0 || GIT_READS.test(name)) return NOTHING;
  if (/^(stash|worktree)$/.test(name) && /^(list|show)$/.test(rest[0] ?? '')) return NOTHING;
  if (name === 'reset' && !rest.some((text) => /^--(hard|merge|keep)/.test(text))) return NOTHING;
  const begins = Object.hasOwn(BEGINS_BRANCH, name) ? BEGINS_BRANCH[name] : undefined;
  if (begins !== undefined && rest.length === 2 && begins.test(rest[0] ?? '')) return NOTHING;
  const hasPatterns = rest.some((text) => /^:|[*?[]|^--pathspec-from/.test(text));
  const isNamed =
    GIT_NAMED.test(name) || (name === 'checkout' && rest.includes('--') && rest.at(-1) !== '--');
  // Its options may say that the words are of another folder.
  return isNamed && !hasPatterns && at === 0 ? { reach: 'folders' } : TREE;
}

const LANGUAGES =
  /^(node|nodejs|tsx|ts-node|deno|bun|python|pypy|ruby|perl|php|lua|luajit|Rscript|groovy|scala|julia|elixir|racket|swipl|ocaml|crystal|osascript|go|java|kotlin|swift|dart|jest|vitest|mocha|ava|tap|pytest|rspec|phpunit)[\d.]*$/;

/** Files whose text is the program: the first word, and of what has options before it, any. */
export function programsIn(words: Words): Words {
  const [first, ...args] = words;
  if (!LANGUAGES.test(programOf(first) ?? '')) return [];
  const operands = args.filter((word) => textOf(word)?.startsWith('-') !== true);
  const isPlain =
    textOf(args[0])?.startsWith('-') === false && !/^(run|test|exec)$/.test(textOf(args[0]) ?? '');
  return isPlain && !RUNS_TESTS.test(programOf(first) ?? '') ? operands.slice(0, 1) : operands;
}

const RUNS_TESTS = /^(jest|vitest|mocha|ava|tap|pytest|rspec|phpunit)$/;

/** A file or folder that a line may change, and where in it. */
interface LineChange {
  readonly at: number;
  readonly isLoose: boolean;
  readonly path: string;
  /** And what is in it. */
  readonly isDeep: boolean;
}

/** What was read, or is read by then, to tell what runs: a file, or a folder with such files. */
interface LineSource extends Omit<LineChange, 'isDeep'> {
  /** A name behind which `..` stands: what it is says where that leads. */
  readonly isWay?: true;
}

const MOST_TOLD = 3;

/** What a line changes of what is looked at to tell what it does. */
export class LineChanges {
  readonly #changes: LineChange[] = [];
  readonly #sources: LineSource[] = [];

  changes(change: LineChange): void {
    this.#changes.push(change);
  }

  reads(source: LineSource): void {
    this.#sources.push(source);
  }

  /** What was read says nothing, where the line changes it before. */
  doubts({
    resolve,
    shown,
  }: {
    readonly resolve: (path: string) => { readonly path: string };
    readonly shown: (path: string) => string;
  }): readonly string[] {
    const [turned, changed] = [new Set<string>(), new Set<string>()];
    for (const source of this.#changes.length === 0 ? [] : this.#sources) {
      const { path } = resolve(source.path);
      const changes = this.#changes.filter(
        (change) => change.at < source.at || (change.at > source.at && (change.isLoose || source.isLoose)),
      );
      if (source.isWay !== true) {
        if (changes.some((change) => mayChange(change, path))) changed.add(`'${shown(path)}'`);
      } else if (changes.some((one) => mayBecome(one, path) || mayBecome(one, source.path)))
        turned.add(`'${shown(source.path)}'`);
    }
    return [
      ...(turned.size === 0 ? [] : [`it may make ${listed(turned)} lead elsewhere`]),
      ...(changed.size === 0
        ? []
        : [`it may change ${listed(changed)}, which ${changed.size === 1 ? 'says' : 'say'} what it runs`]),
    ];
  }
}

function listed(names: ReadonlySet<string>): string {
  return [...[...names].slice(0, MOST_TOLD), ...(names.size > MOST_TOLD ? ['…'] : [])].join(', ');
}

function mayBecome({ path, isDeep }: LineChange, way: string): boolean {
  const [changed, one] = [foldedPath(path), foldedPath(way)];
  return changed === one || (isDeep && one.startsWith(`${changed}/`));
}

/** Also where capitals make no difference. */
function mayChange(change: LineChange, read: string): boolean {
  const [path, source] = [foldedPath(change.path), foldedPath(read)];
  return path === source || path.startsWith(`${source}/`) || (change.isDeep && source.startsWith(`${path}/`));
}

/** The folder whose settings git would take for those of a repository, though anybody may have written them. */
export function strangeRepository(
  folders: readonly string[],
  { names, text, resolve }: Pick<FolderView, 'names' | 'text' | 'resolve'>,
): string | undefined {
  for (const folder of folders) {
    const all = names(folder) ?? [];
    if (['HEAD', 'objects', 'refs'].every((name) => all.includes(name))) return folder;
    if (all.includes('.git')) {
      const linked = /^gitdir:\s*(.*?)\s*$/s.exec(text(`${folder}/.git`) ?? '')?.[1];
      const own = resolve(linked === undefined ? `${folder}/.git` : posix.resolve(folder, linked)).path;
      if (!own.split('/').includes('.git')) return folder;
      // Git passes by a folder of that name with nothing of git in it.
      if (linked !== undefined || names(own)?.includes('HEAD') === true) return undefined;
    }
  }
  return undefined;
}
