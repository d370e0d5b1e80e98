import { posix } from 'node:path';
import type { ResourceAccess } from '../../contract/touch.js';
import { folderPath } from '../paths/folder-path.js';
import type { FolderView } from './command-shell.js';
import { type ParsedCommand, parseCommand } from './parse-command.js';
import { insertionsFor, type ReadOnlyForm, readOnlyForm } from './read-only-commands.js';

/** Where a command runs. */
export interface CommandPlace {
  /** Absolute, in the folder of the view. */
  readonly folder: string;
  readonly view: FolderView;
  /** The operating system keeps the command away from what is not allowed. */
  readonly isSandboxed?: boolean;
}

/**
 * What a command would access: every program that its text names, with the paths that its words may be, and why it is
 * no list or pipeline of simple commands with literal words, if it is none.
 *
 * @example
 * ```ts
 * const shell = new LocalShell({ folder: process.cwd() });
 * commandAccess('git status', { folder: shell.folderAt('.'), view: shell.view() });
 * ```
 */
export function commandAccess(command: string, place: CommandPlace): readonly ResourceAccess[] {
  const { commands, unclear } = parseCommand(command);
  const sandboxed = place.isSandboxed ? ({ isSandboxed: true } as const) : {};
  const all: ResourceAccess[] = commands.map((one) => {
    const form = unclear === undefined ? formOf(one, place) : undefined;
    const mentions = mentionsOf(one, place).concat(form?.isDeep ? [`${shown(place.folder, place)}/`] : []);
    return {
      action: 'run',
      words: one.words.map(({ text }) => text),
      ...(mentions.length === 0 ? {} : { mentions: [...new Set(mentions)] }),
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

/** The command with every built-in read-only program in the form in which it only reads. */
export function readOnlyText(command: string, place: CommandPlace): string {
  const { commands, unclear } = parseCommand(command);
  if (unclear !== undefined) return command;
  const insertions = commands.flatMap((one) => insertionsFor(one, formOf(one, place)));
  const ends = [...insertions.map(({ at }) => at), command.length];
  const rest = insertions.map(({ at, text }, index) => text + command.slice(at, ends[index + 1]));
  return command.slice(0, ends[0]) + rest.join('');
}

function formOf(command: ParsedCommand, place: CommandPlace): ReadOnlyForm | undefined {
  const form = readOnlyForm(command, place.view);
  return form !== undefined && mentionsOf(command, place).every((path) => !path.startsWith('/'))
    ? form
    : undefined;
}

/** What programs end a path with, or begin one behind, within one word: `--file=a`, `a:b`, `x=<b`. */
const PARTS = /[^=,:;@<>]+/g;
const WEB = /(?<![a-z])(?!file:)[a-z][a-z0-9+.-]{0,20}:\/\/\S*/gi;
const MOST_CHARACTERS = 4_096;

/** Paths that the words of a command may be. A word that is not known yet mentions none. */
function mentionsOf({ words, files }: ParsedCommand, place: CommandPlace): readonly string[] {
  return [...words, ...files].flatMap(({ text = '' }, index) => {
    // A program without a path is looked up elsewhere, and rules about commands are for it.
    if (index === 0 && (!text.includes('/') || text.startsWith('/'))) return [];
    const rest = text.replace(WEB, '');
    const option = /^-[^/.~]*(?=[/.~])/.exec(rest)?.[0] ?? '';
    const parts = new Set([rest, ...(rest.match(PARTS) ?? []), rest.slice(option.length)]);
    return [...parts].flatMap((part) => (part === '' ? [] : places(part, place)));
  });
}

function places(text: string, { folder, view }: CommandPlace): readonly string[] {
  if (text === '/dev/null') return [];
  if (text.length > MOST_CHARACTERS || text.includes('\0')) return ['/… (a path that is too long)'];
  // Some programs put the home of the user there.
  if (text.startsWith('~')) return [`/${text}`];
  const absolute = text.startsWith('/') ? text : `${folder}/${text}`;
  // The system goes back from where a link leads to, and some programs by the text.
  const found = [
    view.resolve(absolute),
    ...(text.includes('..') ? [view.resolve(posix.resolve(absolute))] : []),
  ];
  return found.map(({ path, isFolder }) => {
    const inside = shown(path, { view });
    return isFolder && !inside.startsWith('/') ? `${inside}/` : inside;
  });
}

/** Relative to the folder where it is within it. */
function shown(path: string, { view }: Pick<CommandPlace, 'view'>): string {
  const read = folderPath(path, { root: view.root, platform: 'linux' });
  return read.ok ? read.path : path;
}
