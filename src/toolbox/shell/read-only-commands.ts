import type { FolderView } from './command-shell.js';
import type { ParsedCommand } from './parse-command.js';

/** How a program of the built-in list is run so that it only reads. */
export interface ReadOnlyForm {
  /** Its environment, and nothing else. */
  readonly environment: string;
  /** What stands behind its first words: behind the program, behind its command. */
  readonly options: readonly string[];
  /** It reads what is in the folder where it runs, whatever its words name. */
  readonly isDeep: boolean;
}

/** Where programs of the system are: never in the folder. */
const SYSTEM = 'PATH=/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin LC_ALL=C.UTF-8';

/** Each option has to be one of these; all others ask. */
const OPTIONS: Readonly<Record<string, RegExp>> = {
  ls: /^(-[1AaBCFGhiklnopQqRrSstUuXx]+|--(all|almost-all|human-readable|recursive|reverse))$/,
  pwd: /^-[LP]$/,
  cat: /^(-[AbEenstTuv]+|--(number|show-all))$/,
  head: /^(-\d+|-[qv]+|-[cn]-?\d*|--(lines|bytes)=-?\d+)$/,
  tail: /^(-\d+|-[qv]+|-[cn][+-]?\d*|--(lines|bytes)=[+-]?\d+)$/,
  wc: /^(-[clLmw]+|--(lines|words|bytes|chars))$/,
  grep: /^(-[EFGHILchilnoqrsvwxy]+|-[ABCem]\d*|--(ignore-case|line-number|recursive|files-with-matches|count|color=never)|--(include|exclude|exclude-dir)=[^/]*)$/,
  rg: /^(-[cFHIilNnoSsuvwx]+|-[ABCegmtT]\d*|--(count|files|files-with-matches|fixed-strings|hidden|ignore-case|line-number|no-heading|sort=path|word-regexp|stats|json)|--(glob|type)=[^/]*)$/,
  'git status':
    /^(-[bsuz]+|-u(no|normal|all)|--(short|branch|long|porcelain(=v?[12])?|untracked-files(=(no|normal|all))?))$/,
  'git diff':
    /^(-[bpwz]+|-[MU]\d*|--(cached|staged|check|exit-code|find-renames|ignore-all-space|minimal|name-only|name-status|numstat|quiet|shortstat|stat|summary|word-diff|no-color|unified=\d+))$/,
  'git log':
    /^(-\d+|-[bpwz]+|-[nMU]\d*|--(all|abbrev-commit|cherry|date-order|decorate|first-parent|follow|graph|merges|name-only|name-status|no-merges|no-patch|numstat|oneline|patch|reverse|shortstat|stat|no-color)|--(max-count|skip|unified)=\d+|--(since|until|after|before|author|grep)=.*|--pretty=(oneline|short|medium|full|fuller)|--format=(?!.*%G).*)$/s,
  'git show':
    /^(-[bpwz]+|-[MU]\d*|--(abbrev-commit|decorate|name-only|name-status|no-patch|numstat|oneline|patch|shortstat|stat|no-color)|--pretty=(oneline|short|medium|full|fuller)|--format=(?!.*%G).*)$/s,
};

/** How a command is run so that it only reads; `undefined` where it is none of the list, or has another option. */
export function readOnlyForm({ words }: ParsedCommand, view: FolderView): ReadOnlyForm | undefined {
  const texts = words.map(({ text = '' }) => text);
  const isGit = texts[0] === 'git';
  const name = isGit ? texts.slice(0, 2).join(' ') : (texts[0] ?? '');
  const options = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
  if (options === undefined) return undefined;
  // Also behind `--`, which may be the value of an option.
  const given = texts.slice(isGit ? 2 : 1).filter((text) => /^-./.test(text) && text !== '--');
  if (!given.every((text) => options.test(text))) return undefined;
  if (isGit) return gitForm(name, view);
  const isRecursive =
    name === 'rg' || (name === 'grep' && given.some((text) => /^(-[^-]*r|--recursive)/.test(text)));
  return { environment: SYSTEM, options: name === 'rg' ? ['--no-config'] : [], isDeep: isRecursive };
}

const GIT_SYSTEM = `${SYSTEM} GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1`;

function gitForm(name: string, { root, resolve, names, text }: FolderView): ReadOnlyForm | undefined {
  const own = `${root}/.git`;
  const { path, isFolder } = resolve(own);
  // What else there is may lead Git to settings and objects of elsewhere.
  if (path !== own || !isFolder || names(own)?.includes('commondir') === true) return undefined;
  if (text(`${own}/objects/info/alternates`) !== undefined || !isPlainConfig(text(`${own}/config`) ?? ''))
    return undefined;
  const common = `--no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null ${quoted(`--git-dir=${own}`)} ${quoted(`--work-tree=${root}`)}`;
  const shows = name === 'git status' ? '' : '--no-ext-diff --no-textconv ';
  return {
    environment: GIT_SYSTEM,
    options: [common, `${shows}--ignore-submodules=all`],
    isDeep: name !== 'git status',
  };
}

/** Settings with which Git starts no program. */
const PLAIN_SECTION = /^\[(core|init|user|pull|push|(branch|remote) "[^"\\\]]*")\]$/;
const PLAIN_SETTING =
  /^(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|name|email|url|pushurl|fetch|merge|remote|rebase|defaultbranch|default)\s*=[^\\]*$/i;

function isPlainConfig(config: string): boolean {
  return config.split('\n').every((given) => {
    const line = given.trim();
    return line === '' || /^[#;]/.test(line) || PLAIN_SECTION.test(line) || PLAIN_SETTING.test(line);
  });
}

/** What to put into the text so that a command has this form, in order; nothing if it has none. */
export function insertionsFor(
  { words }: ParsedCommand,
  form: ReadOnlyForm | undefined,
): readonly { readonly at: number; readonly text: string }[] {
  if (form === undefined) return [];
  const before = { at: words[0]?.pos ?? 0, text: `/usr/bin/env -i ${form.environment} ` };
  return [before, ...form.options.map((text, index) => ({ at: words[index]?.end ?? 0, text: ` ${text}` }))];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
