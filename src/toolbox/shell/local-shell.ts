import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, posix } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as wait } from 'node:timers/promises';
import { checkOptions } from '../../errors/author-fault.js';
import { onAbort } from '../../kernel/async.js';
import { nodeCrypto } from '../../kernel/node-module.js';
import { COUNT, either, exactly, FILLED_TEXT, optionTable, RECORD, required } from '../../kernel/options.js';
import { folderPath } from '../paths/folder-path.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  followPath,
  OutputView,
  type RunningCommand,
} from './command-shell.js';

/** What a {@link LocalShell} is made from. */
export interface LocalShellOptions {
  /** Where commands run, absolute; it has to be there. */
  readonly folder: string;
  /**
   * What commands get as their environment: `clean` (default) is what programs need to run and to talk, and nothing
   * that may be a secret; `inherit` all of this process's; or variables beside the clean ones.
   */
  readonly environment?: 'clean' | 'inherit' | Readonly<Record<string, string>>;
  /** Default: Bash where the machine has it. What commands touch is told by the rules of Bash. */
  readonly bash?: string;
  /** How many characters of its output are kept of a command, half of its beginning and half of its end; default: 60,000. */
  readonly outputCharacters?: number;
}

const OPTIONS = optionTable<LocalShellOptions>(
  'LocalShell',
  {
    folder: required({
      accepts: (value) => FILLED_TEXT.accepts(value) && isAbsolute(String(value)),
      fix: "the absolute path of a folder: process.cwd() or '/srv/project'",
    }),
    environment: either(either(exactly('clean'), exactly('inherit')), {
      accepts: (value) =>
        RECORD.accepts(value) && Object.values(value as object).every((one) => typeof one === 'string'),
      fix: "{ NAME: 'value' }",
    }),
    bash: FILLED_TEXT,
    outputCharacters: COUNT,
  },
  { root: 'folder: …', cwd: 'folder: …', env: 'environment: …', shell: 'bash: …' },
);

const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash'];

/** What programs need to run, and to talk as people of this machine do. */
const CLEAN = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'TMP',
  'TEMP',
  'SystemRoot',
];

/** There is nobody at the terminal, and no terminal. */
const NOBODY_THERE = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'false',
};

/** Variables with which Bash runs or means something else than it is told. */
const NEVER =
  /^(BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|CDPATH|IFS|POSIXLY_CORRECT)$/;

/** For how long output is waited for that something else still holds open. */
const REST_MS = 250;

/** How many characters of output are kept. */
const MOST_CHARACTERS = 60_000;

/** Runs commands on this machine, as this user, each in a group of its own. It is no sandbox. */
export class LocalShell extends CommandShell {
  readonly #folder: string;
  readonly #bash: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #outputCharacters: number;

  /** @throws InvalidOptionsError (521), and what the system says where the folder is not there. */
  constructor(options: LocalShellOptions) {
    super();
    checkOptions(options, OPTIONS);
    const { folder, environment = 'clean', bash, outputCharacters = MOST_CHARACTERS } = options;
    this.#folder = realpathSync.native(folder);
    const found = bash ?? BASHES.find((path) => existsSync(path));
    if (found === undefined)
      throw new Error('There is no Bash on this machine; say where it is: { bash: … }');
    this.#bash = found;
    this.#environment = environmentOf(environment);
    this.#outputCharacters = outputCharacters;
  }

  override folderAt(path: string): string {
    const read = folderPath(path, { root: this.#folder });
    if (!read.ok) throw new Error(`${read.problem}.`);
    const { path: absolute, isFolder } = followPath(path, { from: this.#folder, resolve: resolveLinks });
    if (!isFolder) throw new Error(`'${read.path}' is no folder.`);
    if (absolute !== this.#folder && !absolute.startsWith(`${this.#folder}/`))
      throw new Error(`'${read.path}' leads out of the folder.`);
    return absolute;
  }

  override view(): FolderView {
    return { root: this.#folder, resolve: resolveLinks, names: namesIn, text: textAt };
  }

  override start({ command, folder, signal, timeoutMs, onOutput }: CommandRequest): RunningCommand {
    const mark = nodeCrypto().randomUUID();
    const output = new KeptOutput(this.#outputCharacters);
    const begun = performance.now();
    const child = spawn(this.#bash, ['--noprofile', '--norc', '-c', command], {
      cwd: this.folderAt(folder),
      env: { ...this.#environment, [MARK]: mark },
      // A group of its own, which can be told as a whole.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let endedBy: CommandEnd['endedBy'];
    const end = async (why: 'time' | 'abort'): Promise<void> => {
      endedBy ??= why;
      if (child.pid !== undefined) await endGroup(child.pid, mark);
    };
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => void end('abort'));
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => void end('time'), timeoutMs);
    const killNow = (): void => {
      if (child.pid !== undefined) killGroupNow(child.pid, mark);
    };
    process.once('exit', killNow);
    collect(child, (text) => {
      output.add(text);
      onOutput?.(text);
    });
    const ended = endOf(child).then(async (how) => {
      clearTimeout(timer);
      unfollow?.();
      // What it has left running would have nobody who knows of it.
      if (child.pid !== undefined) await endGroup(child.pid, mark);
      process.off('exit', killNow);
      return { ...how, ...(endedBy === undefined ? {} : { endedBy }), durationMs: performance.now() - begun };
    });
    return { output, ended, end };
  }
}

function environmentOf(
  given: 'clean' | 'inherit' | Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const own = Object.entries(process.env).filter(([name]) => given === 'inherit' || CLEAN.includes(name));
  const all = { ...Object.fromEntries(own), ...NOBODY_THERE, ...(typeof given === 'object' ? given : {}) };
  const kept = Object.entries(all).filter(([name, value]) => value !== undefined && !NEVER.test(name));
  return Object.fromEntries(kept) as Readonly<Record<string, string>>;
}

/** Both streams, in the order in which they come, without half a character. */
function collect(child: ChildProcess, take: (text: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder('utf8');
    stream?.on('data', (bytes: Buffer) => {
      const text = decoder.write(bytes);
      if (text !== '') take(text);
    });
    stream?.on('error', () => {});
  }
}

/** The process has ended, and its output is there; what others hold open is not waited for. */
function endOf(child: ChildProcess): Promise<Pick<CommandEnd, 'exitCode' | 'signal'>> {
  return new Promise((resolve) => {
    const done = (code: number | null, signal: string | null): void =>
      resolve({ exitCode: code ?? undefined, signal: signal ?? undefined });
    child.once('error', () => done(127, null));
    child.once('close', done);
    child.once('exit', (code, signal) => {
      const timer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
        done(code, signal);
      }, REST_MS);
      child.once('close', () => clearTimeout(timer));
    });
  });
}

/** Links are followed as far as there is something; what is not there yet is in the folder that is. */
function resolveLinks(path: string): { readonly path: string; readonly isFolder: boolean } {
  const missing: string[] = [];
  for (let at = path; ; at = posix.dirname(at)) {
    try {
      const real = realpathSync.native(at);
      const isFolder = missing.length === 0 && statSync(real).isDirectory();
      return { path: posix.join(real, ...missing.reverse()), isFolder };
    } catch {
      if (at === '/' || at === '.') return { path, isFolder: false };
      missing.push(posix.basename(at));
    }
  }
}

function namesIn(path: string): readonly string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    return undefined;
  }
}

function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** The variable by which everything that a command has started is found again, whatever group it went into. */
const MARK = 'TOOLWRIGHT_COMMAND';

const GRACE_MS = 1_500;
const STEP_MS = 20;

/**
 * Ends a process, its group and whatever they have started: first asks, then kills, until nothing is left. What has
 * left the group is found by its mark, on Linux.
 */
async function endGroup(leader: number, mark: string): Promise<void> {
  const signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGKILL'];
  for (const signal of signals) {
    const until = performance.now() + GRACE_MS;
    do {
      const left = [...(signalGroup(leader, signal) ? [leader] : []), ...markedProcesses(mark)];
      if (left.length === 0) return;
      for (const pid of left) signalProcess(pid, signal);
      await wait(STEP_MS);
    } while (performance.now() < until && isAnyLeft(leader, mark));
  }
}

/** Kills at once, where there is no time left to wait: the process itself is ending. */
function killGroupNow(leader: number, mark: string): void {
  signalGroup(leader, 'SIGKILL');
  for (const pid of markedProcesses(mark)) signalProcess(pid, 'SIGKILL');
}

function isAnyLeft(leader: number, mark: string): boolean {
  return signalGroup(leader, 0) || markedProcesses(mark).length > 0;
}

/** Whether there was a group to be told. */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  return signalProcess(-leader, signal);
}

function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Processes of this user that have the mark in their environment and have not ended. */
function markedProcesses(mark: string): readonly number[] {
  if (process.platform !== 'linux') return [];
  const wanted = `${MARK}=${mark}`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && hasMark(name, wanted))
    .map(Number);
}

function hasMark(pid: string, wanted: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(wanted) && !isZombie(pid);
  } catch {
    return false;
  }
}

/** It has ended, and only its parent has not heard of it yet. */
function isZombie(pid: string): boolean {
  return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}

/** Keeps the beginning and the end of a text that may be endless. */
class KeptOutput implements OutputView {
  readonly #most: number;
  #head = '';
  #tail = '';
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(text: string): void {
    this.#length += text.length;
    const half = Math.floor(this.#most / 2);
    const room = half - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    const rest = room > 0 ? text.slice(room) : text;
    this.#tail += rest;
    // Cut now and then: each time would be a copy for every line.
    if (this.#tail.length > half * 2) this.#tail = this.#tail.slice(-half);
  }

  text(): string {
    const half = Math.floor(this.#most / 2);
    const tail = this.#tail.slice(-half);
    const missing = this.#length - this.#head.length - tail.length;
    const gap = missing > 0 ? `\n… (${missing} characters are left out here)\n` : '';
    return (this.#head + gap + tail).toWellFormed();
  }

  since(place: number): { readonly text: string; readonly place: number } {
    if (place <= 0) return { text: this.text(), place: this.#length };
    const behind =
      this.#head.length + this.#tail.length === this.#length ? this.#head + this.#tail : this.#tail;
    const start = this.#length - behind.length;
    const gap = start > place ? `… (${start - place} characters are left out here)\n` : '';
    return { text: (gap + behind.slice(Math.max(0, place - start))).toWellFormed(), place: this.#length };
  }
}
