import { posix } from 'node:path';
import type { Touch } from '../../contract/touch.js';
import { folderPath } from '../paths/folder-path.js';
import { globMatcher } from '../paths/glob.js';
import { type FolderView, followPath } from './command-shell.js';
import {
  changesOf,
  changesPackage,
  impliesFolder,
  LineChanges,
  programsIn,
  strangeRepository,
} from './implied-folder.js';
import { SCRIPT_FILES, settingsThatRun } from './package-managers.js';
import { type CommandWord, readScript, type ScriptCommand, type ScriptFile } from './read-script.js';
import { type PackageScript, programOf, textOf } from './started.js';
import { startedBy } from './started-programs.js';

type FoundPath = ReturnType<FolderView['resolve']>;

/** How deep commands start others. */
const MOST_LEVELS = 8;
const MOST_TOUCHES = 500;
const MOST_NAMES = 500;

/** Paths that everybody may name. */
const HARMLESS = /^\/dev\/(null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd\/\d+)$/;

/**
 * What a command would touch: every program that it runs, also by way of others, the files that it opens by itself,
 * and what of it is not understood.
 *
 * @param folder Where it runs, absolute.
 */
export function commandTouches(command: string, folder: string, view: FolderView): readonly Touch[] {
  const reader = new TouchReader(view, folder);
  reader.script(command, 0);
  reader.compareChanges();
  const touches = [...reader.touches.values()];
  if (touches.length <= MOST_TOUCHES) return touches;
  return [...touches.slice(0, MOST_TOUCHES), { action: 'unknown', why: 'it does too many things' }];
}

class TouchReader {
  /** By what they say: the same is told once. */
  readonly touches = new Map<string, Touch>();
  readonly #view: FolderView;
  readonly #line = new LineChanges();
  #folder: string | undefined;
  #moves = 0;
  #at = 0;
  #loose = 0;

  constructor(view: FolderView, folder: string) {
    this.#view = view;
    this.#folder = folder;
  }

  script(script: string, level: number): void {
    const { steps, unclear } = readScript(script);
    for (const why of unclear) this.#doubt(why);
    for (const step of steps) {
      // What is done several times, or beside other things, has no place among them.
      this.#loose += step.isAside ? 1 : 0;
      if ('words' in step) this.#command(step, level);
      else this.#file(step);
      this.#loose -= step.isAside ? 1 : 0;
    }
  }

  /** What was read to tell what runs says nothing, where the line changes it before. */
  compareChanges(): void {
    const { resolve } = this.#view;
    for (const why of this.#line.doubts({ resolve, shown: (path) => this.#shown(path) })) this.#doubt(why);
  }

  #place() {
    return { at: this.#at, isLoose: this.#loose > 0 };
  }

  #source(path: string): void {
    this.#line.reads({ ...this.#place(), path });
  }

  #change(words: readonly CommandWord[], mentions: (word: CommandWord) => readonly string[]): void {
    const { reach, words: named = words.slice(1), isSure } = changesOf(words);
    if (reach === 'tree') this.#line.changes({ ...this.#place(), path: this.#view.root, isDeep: true });
    if (reach === 'nothing' || reach === 'tree') return;
    const programs = programsIn(words);
    for (const word of named.filter((one) => !programs.includes(one)))
      for (const path of mentions(word))
        this.#line.changes({
          ...this.#place(),
          path: posix.resolve(this.#view.root, path),
          isDeep: reach === 'folders',
        });
    // It may be any file.
    if (isSure === true && named.some((word) => word.kind === 'unknown'))
      this.#line.changes({ ...this.#place(), path: this.#view.root, isDeep: true });
  }

  #add(touch: Touch): void {
    this.touches.set(JSON.stringify(touch), touch);
  }

  #doubt(why: string): void {
    this.#add({ action: 'unknown', why });
  }

  #command({ words, isAside }: ScriptCommand, level: number): void {
    if (level > MOST_LEVELS) {
      this.#doubt('commands start commands too many times over');
      return;
    }
    this.#at += 1;
    const implied = [
      ...(impliesFolder(words) ? this.#mention('.', 1) : []),
      ...(isPackageChange(words) ? this.#mention('package.json', 1) : []),
    ];
    const named = words.flatMap((word, index) => this.#mentions(word, index));
    const mentions = [...new Set([...named, ...implied])];
    const patterns = words.flatMap((word) => (word.kind === 'files' ? this.#pattern(word.pattern) : []));
    this.#add({
      action: 'run',
      words: words.map((word) => (word.kind === 'files' && !hasManyFolders(word) ? word.text : textOf(word))),
      ...(mentions.length === 0 ? {} : { mentions }),
      ...(patterns.length === 0 ? {} : { patterns }),
      ...this.#programIn(words[0]),
    });
    if (textOf(words[0])?.includes('/') === true) this.#programFile(words[0]);
    if (programOf(words[0]) === 'cd') {
      // Another program of that name changes nothing here.
      this.#move(level > 0 || isAside || textOf(words[0]) !== 'cd' ? [] : words);
      return;
    }
    const { commands, scripts, packageScripts, files, writes, unclear } = startedBy(words);
    for (const why of unclear) this.#doubt(why);
    const isOwn = commands.length + scripts.length + packageScripts.length === 0;
    if (isOwn || programOf(words[0]) === 'git' || isPackageChange(words))
      this.#change(words, (word) => this.#mentions(word, 1));
    this.#sourcesOf(words, level);
    const isRepeated = /^(xargs|find)$/.test(programOf(words[0]) ?? '');
    this.#loose += isRepeated ? 1 : 0;
    for (const file of files) this.#programFile(file);
    for (const path of writes) this.#file({ action: 'write', path });
    for (const inner of commands) if (inner.length > 0) this.#command({ words: inner }, level + 1);
    for (const inner of scripts) this.script(inner, level + 1);
    for (const inner of packageScripts) this.#packageScript(inner, level + 1);
    this.#loose -= isRepeated ? 1 : 0;
  }

  /** Files that say what a command does, beside those that are read here. */
  #sourcesOf(words: readonly CommandWord[], level: number): void {
    for (const word of programsIn(words)) {
      const file = this.#absolute(textOf(word) ?? '');
      if (file !== undefined) this.#source(file.path);
    }
    const program = textOf(words[0]);
    if (program === undefined || this.#folder === undefined) return;
    const isInPath = level > 0 && !program.includes('/');
    const isGit = /^git(-|$)/.test(programOf(words[0]) ?? '');
    const found = isGit ? HOOK_FOLDERS : isInPath ? [`${PROGRAMS}/${program}`] : [];
    const to = isGit
      ? words.filter((_, at) => textOf(words[at - 1]) === '-C').map((word) => textOf(word))
      : [];
    // Each goes on from the one before, and behind some commands it means something else.
    const ways = to.map((one = '.', at) => (one.startsWith('/') ? one : [...to.slice(0, at), one].join('/')));
    const all = [...ways, ...to].map((way) => this.#absolute(way ?? '.')?.path ?? this.#view.root);
    for (const from of [this.#folder, ...all]) {
      const folders = foldersUpward(this.#view, from);
      for (const folder of folders) {
        for (const path of found) this.#source(posix.join(folder, path));
        for (const why of settingsThatRun(program, (name) => this.#view.text(posix.join(folder, name))))
          this.#doubt(why);
      }
      const strange = isGit ? strangeRepository(folders, this.#view) : undefined;
      if (strange !== undefined) this.#doubt(`git may run what '${this.#shown(strange)}' names`);
    }
  }

  /** After one change of folder it is known where it is; after two it might not be. */
  #move(words: readonly CommandWord[]): void {
    const target = words.length === 2 ? textOf(words[1]) : undefined;
    this.#moves += 1;
    if (target === undefined || target === '-' || this.#folder === undefined || this.#moves > 1) {
      this.#folder = undefined;
      this.#doubt('in which folder it goes on is not known before');
      return;
    }
    const to = followPath(target, { from: this.#folder, resolve: this.#view.resolve });
    // Bash takes `..` by the text where it can, and goes nowhere where there is no such folder.
    const isPlain = to.left.every((path) => {
      const real = this.#view.resolve(path);
      return real.isFolder && real.path === path;
    });
    if (!isPlain) this.#doubt(`where '${target}' leads is not known before`);
    if (!to.isFolder) this.#doubt(`'${target}' is no folder`);
    this.#folder = isPlain ? to.path : undefined;
  }

  #file({ action, path }: ScriptFile): void {
    this.#at += 1;
    const text = textOf(path);
    const absolute = text === undefined ? undefined : this.#absolute(text);
    if (absolute === undefined) {
      this.#doubt(`which file it ${action === 'read' ? 'reads' : 'writes'} is not known before`);
      return;
    }
    if (HARMLESS.test(absolute.path)) return;
    this.#add({ action, path: this.#shown(absolute.path) });
    if (action === 'write') this.#line.changes({ ...this.#place(), path: absolute.path, isDeep: false });
  }

  #absolute(text: string): FoundPath | undefined {
    if (!text.startsWith('/') && this.#folder === undefined) return undefined;
    const found = followPath(text, { from: this.#folder ?? '/', resolve: this.#view.resolve });
    for (const path of found.left) this.#line.reads({ ...this.#place(), path, isWay: true });
    return found;
  }

  /** What a path may be: for the system, and for programs that take `..` by the text. */
  #places(text: string): readonly FoundPath[] {
    const found = this.#absolute(text);
    if (found === undefined) return [];
    const read = this.#view.resolve(posix.resolve(this.#folder ?? '/', text));
    return read.path === found.path ? [found] : [found, read];
  }

  /** Relative to the root where it is within it. */
  #shown(path: string): string {
    const read = folderPath(path, { root: this.#view.root, platform: 'linux' });
    return read.ok ? read.path : path;
  }

  /** The paths that a word may be, or have in it: `--file=a`, `-I/b`, `if=c`, `@d`. */
  #mentions(word: CommandWord, index: number): readonly string[] {
    if (word.kind === 'files') return this.#fitting(word.pattern);
    const text = textOf(word);
    if (text === undefined || text === '') return [];
    const parts = [
      text,
      ...[...text.matchAll(/(?<=[=,:@])[^=,:@]+/g)]
        // What follows the scheme of an address is its host.
        .filter((part) => !part[0].startsWith('//') || !BEHIND_SCHEME.test(text.slice(0, part.index)))
        .map(([part]) => part),
      /^-\w(.+)$/.exec(text)?.[1],
      /^-+[\w-]*?([/.~].*)$/.exec(text)?.[1],
    ];
    const paths = parts.filter((part) => part !== undefined && part !== '');
    return [...new Set(paths)].flatMap((path) => this.#mention(String(path), index));
  }

  #mention(text: string, index: number): readonly string[] {
    if (/[\n\0]/.test(text)) return [];
    // Without a folder only what is absolute can be told; that the folder is not known is told already.
    return this.#places(text).flatMap(({ path, isFolder }) => {
      const shown = this.#shown(path);
      const isOutside = shown.startsWith('/');
      // Programs are looked up elsewhere, and most words are no paths.
      if (isOutside && (HARMLESS.test(shown) || (index === 0 && text.startsWith('/')))) return [];
      // An address is the path of a file, too, where somebody has made the folders for it: that matters where it leads out.
      if (!isOutside && ADDRESS.test(text)) return [];
      return [isFolder && !isOutside ? `${shown}/` : shown];
    });
  }

  /** What a pattern stands for now, with links followed: one among them may lead anywhere. */
  #fitting(pattern: string): readonly string[] {
    const { folder, before, names } = this.#split(pattern);
    if (folder === undefined) return [];
    const own = this.#shown(folder.path);
    let found: readonly string[] = [before];
    for (const [index, name] of names.entries()) {
      const fits = globMatcher(name);
      const isLast = index === names.length - 1;
      found = found.flatMap((text) => {
        if (name === '.' || name === '..') return [`${text}${name}/`];
        // Which of these two fit is not the same in every Bash.
        const all = ['.', '..', ...(this.#view.names(this.#absolute(text)?.path ?? '') ?? [])];
        const inside = all.filter((one) => fits(one) && (!one.startsWith('.') || name.startsWith('.')));
        return inside
          .map((one) => text + one)
          .filter((one) => isLast || this.#absolute(one)?.isFolder)
          .map((one) => (isLast ? one : `${one}/`));
      });
      // Too many to be told one by one: the folder stands for them.
      if (found.length > MOST_NAMES) return [own.startsWith('/') ? own : `${own}/`];
    }
    const mentions = found.flatMap((path) => this.#mention(path, 1));
    return own.startsWith('/') ? [own, ...mentions] : mentions;
  }

  /** What a pattern may stand for by then, in one folder; one of more folders is not known before. */
  #pattern(pattern: string): readonly string[] {
    const { folder, names } = this.#split(pattern);
    if (folder === undefined || names.length !== 1) return [];
    return [posix.join(this.#shown(folder.path).replace(/[\\*?[\]{}]/g, '\\$&'), names[0] ?? '')];
  }

  /** The folder before the first name with something to be filled in, and the names from there on. */
  #split(pattern: string) {
    const parts = pattern.split('/');
    const first = parts.findIndex((part) => PLACE.test(part));
    const before = parts.slice(0, first).map((part) => part.replace(/\\(.)/g, '$1'));
    const path = before.length === 0 ? './' : `${before.join('/')}/`;
    return {
      folder: this.#absolute(path),
      before: path,
      names: parts.slice(first).filter((part) => part !== ''),
    };
  }

  /** The file that a program is, whatever way and by whatever link it is named. */
  #programIn(word: CommandWord | undefined): { readonly program?: string } {
    const text = textOf(word);
    const file = text?.includes('/') === true ? this.#absolute(text) : undefined;
    const shown = file === undefined ? '/' : this.#shown(file.path);
    return shown.startsWith('/') ? {} : { program: shown };
  }

  /** A shell script in the folder runs as one for `bash` does, and so does what has yet to be made. */
  #programFile(word: CommandWord | undefined): void {
    const text = textOf(word);
    const file = text === undefined ? undefined : this.#absolute(text);
    if (file === undefined || this.#shown(file.path).startsWith('/')) return;
    const start = this.#view.text(file.path)?.slice(0, 200);
    const isOther = start !== undefined && (/^#!(?!.*sh\b)/.test(start) || start.includes('\0'));
    if (isOther) this.#source(file.path);
    else this.#doubt(`what '${text}' runs does not stand in the command`);
  }

  #packageScript({ name, rest, missing }: PackageScript, level: number): void {
    const scripts = this.#folder === undefined ? undefined : scriptsIn(this.#view, this.#folder);
    for (const folder of this.#folder === undefined ? [] : foldersUpward(this.#view, this.#folder))
      for (const name of SCRIPT_FILES) this.#source(posix.join(folder, name));
    const script = scripts !== undefined && Object.hasOwn(scripts, name) ? scripts[name] : undefined;
    if (scripts === undefined || (typeof script !== 'string' && missing !== 'nothing')) {
      this.#doubt(`there is no script '${name}' to be looked at`);
      return;
    }
    const words = rest.map((word) => textOf(word));
    if (words.includes(undefined)) this.#doubt(`what '${name}' is given is not known before`);
    const quoted = words.map((word) => `'${(word ?? '').replaceAll("'", `'\\''`)}'`);
    // It runs where its package.json is, whatever the script before has done.
    const [folder, moves] = [this.#folder, this.#moves];
    const own = typeof script === 'string' ? [script, ...quoted].join(' ') : undefined;
    for (const part of [scripts[`pre${name}`], own, scripts[`post${name}`]])
      if (typeof part === 'string') {
        [this.#folder, this.#moves] = [folder, 0];
        this.script(part, level);
      }
    [this.#folder, this.#moves] = [folder, moves];
  }
}

/** A place for any character, that is not meant itself. */
const PLACE = /(?<!\\)(?:\\\\)*[*?[]/;

function hasManyFolders({ pattern }: { readonly pattern: string }): boolean {
  return pattern
    .split('/')
    .slice(0, -1)
    .some((part) => PLACE.test(part));
}

/** Not those of files, which are paths. */
const ADDRESS = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i;
const BEHIND_SCHEME = /(?:^|[^a-z0-9+.-])(?!file:)[a-z][a-z0-9+.-]*:$/i;

const PROGRAMS = 'node_modules/.bin';
const HOOK_FOLDERS = ['.husky', '.githooks', 'HEAD'];

function isPackageChange([program, ...args]: readonly CommandWord[]): boolean {
  return (
    /^(npm|pnpm|yarn|yarnpkg|bun)$/.test(programOf(program) ?? '') &&
    changesPackage(args.map((word) => textOf(word) ?? ''))
  );
}

/** A folder, and those that it is in, up to the root. */
function foldersUpward({ root }: FolderView, folder: string): readonly string[] {
  const folders: string[] = [];
  for (let at = folder; at.startsWith(`${root}/`); at = posix.dirname(at)) folders.push(at);
  return folder === root || folders.length > 0 ? [...folders, root] : [];
}

/** Of the nearest `package.json`, upwards to the root. */
function scriptsIn(view: FolderView, folder: string): Readonly<Record<string, unknown>> | undefined {
  for (const at of foldersUpward(view, folder)) {
    const text = view.text(posix.join(at, 'package.json'));
    if (text === undefined) continue;
    try {
      const { scripts } = JSON.parse(text) as { readonly scripts?: Readonly<Record<string, unknown>> };
      return typeof scripts === 'object' && scripts !== null ? scripts : {};
    } catch {
      return undefined;
    }
  }
  return undefined;
}
