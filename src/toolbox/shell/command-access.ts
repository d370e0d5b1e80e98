import { posix } from 'node:path';
import { type CommandArgument, forEachChild, parse, type SyntaxNode, type Word, type WordPart } from 'unbash';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { visibleText } from '../../core/kernel/visible-text.js';
import { folderPath } from '../paths/folder-path.js';
import type { FolderView } from './command-shell.js';

/** Where a command runs. */
export interface CommandPlace {
  /** Absolute, within the folder of the view. */
  readonly folder: string;
  readonly view: FolderView;
  /** The operating system enforces the permissions of the command. */
  readonly isSandboxed?: boolean;
}

/**
 * What a command would access: each program in its text with the paths that its words may be. If the text is not a list
 * or pipeline of simple commands with literal words, the reason is included.
 *
 * @example
 * ```ts
 * const shell = new LocalShell({ folder: process.cwd() });
 * commandAccess('git status', { folder: shell.folderAt('.'), view: shell.view() });
 * ```
 */
export function commandAccess(command: string, place: CommandPlace): readonly ResourceAccess[] {
  const { commands, unclear } = parseCommand(command);
  const { view } = place;
  const sandboxed = place.isSandboxed ? ({ isSandboxed: true } as const) : {};
  const all: ResourceAccess[] = commands.map((one) => {
    const form = unclear === undefined ? readOnlyForm(one, place) : undefined;
    const mentions = [...mentionsOf(one, place), ...(form?.isDeep ? [`${shown(place.folder, view)}/`] : [])];
    return {
      action: 'run',
      words: one.words.map(({ text }) => text),
      ...(mentions.length === 0
        ? {}
        : { mentions: [...new Set(mentions)], folder: view.folder ?? view.root }),
      ...(form === undefined ? {} : { isReadOnly: true }),
      ...sandboxed,
    };
  });
  if (unclear !== undefined) all.push({ action: 'unknown', why: unclear, ...sandboxed });
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

/** @deprecated The old name of {@link commandAccess}. */
export function commandTouches(command: string, folder: string, view: FolderView): readonly ResourceAccess[] {
  return commandAccess(command, { folder, view });
}

/** The command, with each built-in read-only program in the form in which it can only read. */
export function readOnlyText(command: string, place: CommandPlace): string {
  const { commands, unclear } = parseCommand(command);
  if (unclear !== undefined) return command;
  let text = '';
  let copied = 0;
  const insert = (at: number, inserted: string): void => {
    text += command.slice(copied, at) + inserted;
    copied = at;
  };
  for (const one of commands) {
    const form = readOnlyForm(one, place);
    if (form === undefined) continue;
    insert(one.words[0]?.pos ?? 0, `/usr/bin/env -i ${form.environment} `);
    for (const [index, option] of form.options.entries()) insert(one.words[index]?.end ?? 0, ` ${option}`);
  }
  return text + command.slice(copied);
}

/** A word of a command; `text` is `undefined` if it is unknown before the command runs. */
interface ParsedWord {
  readonly text: string | undefined;
  readonly pos: number;
  readonly end: number;
}

/** A program with its arguments, anywhere in the text. */
interface ParsedCommand {
  readonly words: readonly ParsedWord[];
  /** Files that the shell opens for it: `> out`. */
  readonly files: readonly ParsedWord[];
}

const MOST_COMMAND_CHARACTERS = 20_000;

/** The syntax of a list or a pipeline of simple commands. */
const SIMPLE =
  /^(Script|Statement|AndOr|Pipeline|Negation|Command|Word|Redirect|FileDescriptor|Literal|SingleQuoted|DoubleQuoted|AnsiCQuoted)$/;

/** Bash built-ins that change the meaning of the following text, or that run a text. */
const CHANGES_SHELL =
  /^(\.|alias|bg|bind|break|builtin|caller|cd|command|compgen|complete|compopt|continue|declare|dirs|disown|enable|eval|exec|exit|export|fc|fg|getopts|hash|history|jobs|let|local|logout|mapfile|popd|printf|pushd|read|readarray|readonly|return|set|shift|shopt|source|suspend|test|times|trap|type|typeset|ulimit|umask|unalias|unset|wait|\[)$/;

interface ParsedText {
  readonly commands: readonly ParsedCommand[];
  /** Why it is not a list of simple commands with literal words. */
  readonly unclear: string | undefined;
}

/** Parses a Bash text in linear time. */
function parseCommand(command: string): ParsedText {
  if (command.length > MOST_COMMAND_CHARACTERS) return { commands: [], unclear: 'it is too long to check' };
  if (visibleText(command) !== command || /\u200d/.test(command) || !command.isWellFormed())
    return { commands: [], unclear: 'it contains invisible characters' };
  const commands: ParsedCommand[] = [];
  let unclear: string | undefined;
  const visit = (node: SyntaxNode): void => {
    unclear ??= whyUnclear(node);
    if (node.type === 'Command' && node.name !== undefined) {
      const words = [node.name, ...node.args].map(wordOf);
      const files = node.redirects
        .flatMap((one) => (one.type === 'Redirect' && one.target) || [])
        .map(wordOf);
      commands.push({ words, files });
      unclear ??= whyNotLiteral(words);
    }
    forEachChild(node, visit);
  };
  try {
    const script = parse(command);
    const [error] = script.errors ?? [];
    if (error !== undefined) unclear = `it cannot be parsed: ${error.message}`;
    visit(script);
  } catch {
    // The stack limits the depth of parsing.
    unclear ??= 'it is nested too deeply';
  }
  return { commands, unclear };
}

function whyUnclear(node: SyntaxNode): string | undefined {
  if (!SIMPLE.test(node.type)) return `it is more than a list of simple commands (${node.type})`;
  if (node.type === 'Statement' && node.background) return 'a part of it runs in the background';
  if (node.type !== 'Redirect') return undefined;
  const { descriptor, target, operator } = node;
  const text = target && textOf(target);
  const isHarmless =
    text !== undefined &&
    descriptor?.type !== 'FileDescriptorVariable' &&
    (text === '/dev/null' || (/^[<>]&$/.test(operator) && /^\d+$/.test(text)));
  return isHarmless ? undefined : `it redirects to or from '${target?.text ?? 'a file'}'`;
}

function whyNotLiteral(words: readonly ParsedWord[]): string | undefined {
  const [program = '', ...args] = words.map(({ text }) => text);
  if (words.some(({ text }) => text === undefined)) return 'some of its arguments are unknown before it runs';
  if (CHANGES_SHELL.test(program)) return `'${program}' changes the shell itself`;
  const name = posix.basename(program);
  const isRunner = name === 'env' || name === 'xargs';
  const isFind = name === 'find' && args.some((text) => /^-(exec|ok|f|delete)/.test(text ?? ''));
  return isRunner || isFind ? `'${program}' starts other programs` : undefined;
}

function wordOf(word: CommandArgument): ParsedWord {
  return { text: word.type === 'Word' ? textOf(word) : undefined, pos: word.pos, end: word.end };
}

/** Words with `~` are unknown, because Bash expands it. */
function textOf({ text, value, parts }: Word): string | undefined {
  if (/(^|[=:])~/.test(text)) return undefined;
  return parts === undefined || parts.every(isLiteral) ? value : undefined;
}

function isLiteral(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted') return part.parts.every(({ type }) => type === 'Literal');
  return part.type === 'Literal' || part.type === 'SingleQuoted' || part.type === 'AnsiCQuoted';
}

/** Parts of a word between the separators that programs use: `--file=a`, `a:b`, `x=<b`. */
const PARTS = /[^=,:;@<>]+/g;
const WEB = /(?<![a-z])(?!file:)[a-z][a-z0-9+.-]{0,20}:\/\/\S*/gi;
const MOST_PATH_CHARACTERS = 4_096;

/** Paths that the words of a command may refer to; unknown words refer to none. */
function mentionsOf({ words, files }: ParsedCommand, place: CommandPlace): readonly string[] {
  return [...words, ...files].flatMap(({ text = '' }, index) => {
    // A program name without a path is found in `PATH`; rules about commands cover it.
    if (index === 0 && (!text.includes('/') || text.startsWith('/'))) return [];
    const rest = text.replace(WEB, '');
    const option = /^-[^/.~]*(?=[/.~])/.exec(rest)?.[0] ?? '';
    const parts = new Set([rest, ...(rest.match(PARTS) ?? []), rest.slice(option.length)]);
    return [...parts].flatMap((part) => (part === '' ? [] : resolvedPaths(part, place)));
  });
}

function resolvedPaths(text: string, { folder, view }: CommandPlace): readonly string[] {
  if (text === '/dev/null') return [];
  if (text.length > MOST_PATH_CHARACTERS || text.includes('\0')) return ['/… (a path that is too long)'];
  // Some programs expand it to the home folder.
  if (text.startsWith('~')) return [`/${text}`];
  const absolute = text.startsWith('/') ? text : `${folder}/${text}`;
  // The system resolves `..` after the target of a link; some programs resolve it in the text.
  const ways = text.includes('..') ? [absolute, posix.resolve(absolute)] : [absolute];
  return ways.map((way) => {
    const { path, isFolder } = view.resolve(way);
    const inside = shown(path, view);
    return isFolder && !inside.startsWith('/') ? `${inside}/` : inside;
  });
}

/** Relative to the folder if it is within it. */
function shown(path: string, { root }: FolderView): string {
  const read = folderPath(path, { root, platform: 'linux' });
  return read.ok ? read.path : path;
}

/** The read-only form of a built-in program. */
interface ReadOnlyForm {
  /** Its complete environment. */
  readonly environment: string;
  /** Options that follow its first words, which are the program and its subcommand. */
  readonly options: readonly string[];
  /** It reads everything in its folder, whatever its words are. */
  readonly isDeep: boolean;
}

/** Programs of the system, never those in the folder. */
const SYSTEM = 'PATH=/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin LC_ALL=C.UTF-8';
const GIT_SYSTEM = `${SYSTEM} GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1`;

/** The allowed options of read-only programs; a command with other options asks. */
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

/** `undefined` if the command is not on the list, has another option, or contains a path outside of the folder. */
function readOnlyForm(command: ParsedCommand, place: CommandPlace): ReadOnlyForm | undefined {
  const texts = command.words.map(({ text = '' }) => text);
  const isGit = texts[0] === 'git';
  const name = isGit ? texts.slice(0, 2).join(' ') : (texts[0] ?? '');
  const allowed = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
  if (allowed === undefined) return undefined;
  // Also options after `--`, because `--` may be the value of an option.
  const options = texts.slice(isGit ? 2 : 1).filter((text) => /^-./.test(text) && text !== '--');
  if (!options.every((text) => allowed.test(text))) return undefined;
  if (mentionsOf(command, place).some((path) => path.startsWith('/'))) return undefined;
  const isGrepDeep = name === 'grep' && options.some((text) => /^(-[^-]*r|--recursive)/.test(text));
  if (!isGit)
    return {
      environment: SYSTEM,
      options: name === 'rg' ? ['--no-config'] : [],
      isDeep: name === 'rg' || isGrepDeep,
    };
  if (!isPlainRepository(place.view)) return undefined;
  const { root } = place.view;
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  const common = `--no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null ${quoted(`--git-dir=${root}/.git`)} ${quoted(`--work-tree=${root}`)}`;
  const shows = name === 'git status' ? '' : '--no-ext-diff --no-textconv ';
  return {
    environment: GIT_SYSTEM,
    options: [common, `${shows}--ignore-submodules=all`],
    isDeep: name !== 'git status',
  };
}

/** Settings that do not make Git start a program. */
const PLAIN_SECTION = /^\[(core|init|user|pull|push|(branch|remote) "[^"\\\]]*")\]$/;
const PLAIN_SETTING =
  /^(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|name|email|url|pushurl|fetch|merge|remote|rebase|defaultbranch|default)\s*=[^\\]*$/i;

/** The options of the read-only form prevent hooks and submodules; other programs use `lfs` and `annex`. */
const NOT_READ_BY_GIT = ['hooks', 'modules', 'lfs', 'annex'];

/** Whether a folder contains a link, which may lead to objects, refs or settings elsewhere. */
function hasLinks(folder: string, view: FolderView, except: readonly string[] = []): boolean {
  const names = (view.names(folder) ?? []).filter((name) => !except.includes(name));
  return names.some((name) => {
    const own = `${folder}/${name}`;
    const { path, isFolder } = view.resolve(own);
    return path !== own || (isFolder && hasLinks(own, view));
  });
}

/** Whether `.git` is a folder that refers Git to no programs, settings or objects elsewhere. */
function isPlainRepository(view: FolderView): boolean {
  const { root, resolve, names, text } = view;
  const own = `${root}/.git`;
  const { path, isFolder } = resolve(own);
  const isOwn = path === own && isFolder && names(own)?.includes('commondir') !== true;
  if (!isOwn || text(`${own}/objects/info/alternates`) !== undefined) return false;
  if (hasLinks(own, view, NOT_READ_BY_GIT)) return false;
  const config = (text(`${own}/config`) ?? '').split('\n').map((line) => line.trim());
  return config.every(
    (line) => /^([#;].*)?$/.test(line) || PLAIN_SECTION.test(line) || PLAIN_SETTING.test(line),
  );
}
