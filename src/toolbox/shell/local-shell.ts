import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
} from 'node:fs';
import { isAbsolute } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../core/contract/ports.js';
import { checkOptions, warnAuthor } from '../../core/errors/author-fault.js';
import { onAbort } from '../../core/kernel/async.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import {
  COUNT,
  either,
  exactly,
  FILLED_TEXT,
  LOGGER,
  optionTable,
  protecting,
  RECORD,
  type RulesOf,
  required,
} from '../../core/kernel/options.js';
import { folderPath, isWithin } from '../paths/folder-path.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type RunningCommand,
  StoredOutput,
} from './command-shell.js';

/** Options of {@link LocalShell}. */
export interface LocalShellOptions {
  /** Where commands run, absolute; it has to exist. */
  readonly folder: string;
  /** `clean` (default): what programs need, without secrets; `inherit`: all of this process's; or more variables. */
  readonly environment?: 'clean' | 'inherit' | Readonly<Record<string, string>>;
  /** Default: the Bash of this machine. What commands access is determined by the rules of Bash. */
  readonly bash?: string;
  /** Characters of the output that are stored, half of its beginning and half of its end; default: 60,000. */
  readonly outputCharacters?: number;
  /** `external`: this process runs in a disposable container, so that mode `auto` lets commands run. Logged once. */
  readonly sandbox?: 'external';
  readonly logger?: Logger;
}

/** What each option may be. */
export const LOCAL_SHELL_RULES: RulesOf<LocalShellOptions> = {
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
  sandbox: protecting(exactly('external')),
  logger: LOGGER,
};

/** Names that are often given instead. */
export const LOCAL_SHELL_MEANT = {
  root: 'folder: …',
  cwd: 'folder: …',
  env: 'environment: …',
  shell: 'bash: …',
};

const OPTIONS = optionTable<LocalShellOptions>('LocalShell', LOCAL_SHELL_RULES, LOCAL_SHELL_MEANT);

const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash'];

/** What programs need to run, and to communicate in the language of this machine. */
const CLEAN = 'PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR TMP TEMP SystemRoot'.split(' ');

const NO_TERMINAL = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'false',
};

/** Variables that make Bash run something else, or read a command differently. */
const NEVER =
  /^(BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|CDPATH|IFS|POSIXLY_CORRECT)$/;

/** By this variable everything that a command has started is found again, whatever group it went into. */
const MARK = 'TOOLWRIGHT_COMMAND';

/** For how long output is awaited that another process still holds open. */
const REST_MS = 250;
const GRACE_MS = 1_500;
const STEP_MS = 20;
const MOST_LINKS = 40;

/** A program to start, and what to do when it has ended. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  /** Beside the environment of the shell. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What it returns is added to the output. */
  readonly onEnd?: () => string | undefined;
}

/** Runs commands on this machine, as this user, each in a group of its own. It is no sandbox. */
export class LocalShell extends CommandShell {
  readonly #folder: string;
  readonly #bash: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #outputCharacters: number;
  /** Commands run in a container around this process. */
  readonly #isExternal: boolean;

  /** @throws InvalidOptionsError (521), and the error of the system if the folder does not exist. */
  constructor(options: LocalShellOptions) {
    super();
    checkOptions(options, OPTIONS);
    const { environment = 'clean', bash = BASHES.find((path) => existsSync(path)), logger } = options;
    this.#folder = realpathSync.native(options.folder);
    if (bash === undefined) throw new Error('There is no Bash on this machine; say where it is: { bash: … }');
    this.#bash = bash;
    const own = Object.entries(process.env).filter(
      ([name]) => environment === 'inherit' || CLEAN.includes(name),
    );
    const added = typeof environment === 'object' ? Object.entries(environment) : [];
    this.#environment = Object.fromEntries(
      [...own, ...Object.entries(NO_TERMINAL), ...added].flatMap(([name, value]) =>
        value === undefined || NEVER.test(name) ? [] : [[name, value]],
      ),
    );
    this.#outputCharacters = options.outputCharacters ?? 60_000;
    this.#isExternal = options.sandbox === 'external';
    const problem =
      "sandbox is 'external': in mode 'auto' commands run without a question, kept in by nothing in this process";
    const fix = 'a container or a machine around this process that nobody minds to lose';
    if (this.#isExternal) warnAuthor({ where: 'LocalShell', problem, fix }, logger);
  }

  override get isSandboxed(): boolean {
    return this.#isExternal;
  }

  override folderAt(path: string): string {
    const root = this.#folder;
    const read = folderPath(path, { root });
    if (!read.ok) throw new Error(`${read.problem}.`);
    const { path: absolute, isFolder } = resolvePath(isAbsolute(path) ? path : `${root}/${path}`);
    if (!isFolder) throw new Error(`'${read.path}' is no folder.`);
    if (absolute !== root && !isWithin(absolute, root))
      throw new Error(`'${read.path}' leads out of the folder.`);
    return absolute;
  }

  override view(): FolderView {
    const names = (path: string) => ifPossible(() => readdirSync(path));
    const text = (path: string) => ifPossible(() => readFileSync(path, 'utf8'));
    return { root: this.#folder, resolve: resolvePath, names, text };
  }

  /** How Bash is started; a subclass puts it into a sandbox. */
  protected launch(argv: Launch['argv'], _environment: Readonly<Record<string, string>>): Launch {
    return { argv };
  }

  override start({ command, folder, signal, timeoutMs, onOutput }: CommandRequest): RunningCommand {
    const mark = nodeCrypto().randomUUID();
    const output = new StoredOutput(this.#outputCharacters);
    const begun = performance.now();
    const cwd = this.folderAt(folder);
    const { argv, environment, onEnd } = this.launch(
      [this.#bash, '--noprofile', '--norc', '-c', command],
      this.#environment,
    );
    const [program, ...args] = argv;
    const child: ChildProcess = spawn(program, args, {
      cwd,
      env: { ...this.#environment, ...environment, [MARK]: mark },
      // A group of its own, which can be signalled as a whole.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid, stdout, stderr } = child;
    const write = (text: string): void => {
      output.add(text);
      onOutput?.(text);
    };
    for (const stream of [stdout, stderr]) {
      stream?.on('error', () => {});
      // It decodes whole characters only.
      stream?.setEncoding('utf8').on('data', write);
    }
    let endedBy: CommandEnd['endedBy'];
    const end = (why: 'time' | 'abort'): Promise<void> => {
      endedBy ??= why;
      return endGroup(pid, mark);
    };
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => void end('abort'));
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => void end('time'), timeoutMs);
    const killAtExit = (): void => void signalGroup(pid, mark, 'SIGKILL');
    process.once('exit', killAtExit);
    const closed = once(child, 'close').catch(() => {});
    const exited = once(child, 'exit').catch(() => [127, null]);
    const ended = exited.then(async ([exitCode, killedBy]): Promise<CommandEnd> => {
      await Promise.race([closed, wait(REST_MS, undefined, { ref: false })]);
      stdout?.destroy();
      stderr?.destroy();
      clearTimeout(timer);
      unfollow?.();
      // What it has left running could not be ended later.
      await endGroup(pid, mark);
      process.off('exit', killAtExit);
      const note = onEnd?.();
      if (note !== undefined) write(note);
      const why = endedBy === undefined ? {} : { endedBy };
      const durationMs = performance.now() - begun;
      return { exitCode: exitCode ?? undefined, signal: killedBy ?? undefined, ...why, durationMs };
    });
    return { output, ended, end };
  }
}

/** Step by step as the system does: a link is followed, also if its target is missing, and `..` goes back from there. */
function resolvePath(path: string): { readonly path: string; readonly isFolder: boolean } {
  const names = path.split('/').reverse();
  let at = '';
  let isFolder = true;
  let links = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      at = at.slice(0, at.lastIndexOf('/'));
      isFolder = true;
      continue;
    }
    const next = `${at}/${name}`;
    const stat: Stats | undefined = isFolder ? ifPossible(() => lstatSync(next)) : undefined;
    if (stat?.isSymbolicLink()) {
      links += 1;
      if (links > MOST_LINKS) return { path: '/… (too many links)', isFolder: false };
      const target = readlinkSync(next);
      names.push(...target.split('/').reverse());
      if (target.startsWith('/')) at = '';
    } else {
      at = next;
      isFolder = stat?.isDirectory() === true;
    }
  }
  return { path: at || '/', isFolder };
}

/** `undefined` if it throws. */
function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Ends a group and what carries its mark: asks first, then kills, until nothing is left. */
async function endGroup(leader: number | undefined, mark: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const until = performance.now() + GRACE_MS;
    while (performance.now() < until) {
      if (!signalGroup(leader, mark, signal)) return;
      await wait(STEP_MS);
    }
  }
}

/** Signals a group, and on Linux also what has left it but carries its mark; returns whether there was any of it. */
function signalGroup(leader: number | undefined, mark: string, signal: NodeJS.Signals): boolean {
  if (leader === undefined) return false;
  if (process.platform !== 'linux') return ifPossible(() => process.kill(-leader, signal)) === true;
  const living = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOfGroup(name, leader, mark));
  for (const pid of living.length > 0 ? [-leader, ...living.map(Number)] : [])
    ifPossible(() => process.kill(pid, signal));
  return living.length > 0;
}

function isOfGroup(pid: string, leader: number, mark: string): boolean {
  // Behind the name: its state, its parent, its group. A zombie only waits for its parent.
  const stat = ifPossible(() => readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? '';
  const [, state, group] = /\) (\S) \d+ (\d+) [^)]*$/s.exec(stat) ?? [];
  if (state === undefined || state === 'Z') return false;
  if (Number(group) === leader) return true;
  const environment = ifPossible(() => readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? '';
  return environment.split('\0').includes(`${MARK}=${mark}`);
}
