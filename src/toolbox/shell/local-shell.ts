import { type ChildProcess, spawn } from 'node:child_process';
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
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../contract/ports.js';
import { checkOptions, warnAuthor } from '../../errors/author-fault.js';
import { onAbort } from '../../kernel/async.js';
import { nodeCrypto } from '../../kernel/node-module.js';
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
} from '../../kernel/options.js';
import { folderPath, isWithin } from '../paths/folder-path.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type RunningCommand,
} from './command-shell.js';
import { KeptOutput } from './kept-output.js';

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
  /**
   * `external`: this process already runs in a container or a machine that nobody minds to lose, so that mode `auto` of
   * `Permissions` lets commands run. It is logged once.
   */
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

/** What programs need to run, and to talk as people of this machine do. */
const CLEAN = 'PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR TMP TEMP SystemRoot'.split(' ');

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
const MOST_OUTPUT = 60_000;

const EXTERNAL = {
  where: 'LocalShell',
  problem:
    "sandbox is 'external': in mode 'auto' commands run without a question, kept in by nothing in this process",
  fix: 'a container or a machine around this process that nobody minds to lose',
};

/** A program to start, and what to do when it has ended. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  /** Beside the environment of the shell. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly onEnd?: () => void;
}

/** Runs commands on this machine, as this user, each in a group of its own. It is no sandbox. */
export class LocalShell extends CommandShell {
  readonly #folder: string;
  readonly #bash: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #outputCharacters: number;
  readonly #isExternal: boolean;

  /** @throws InvalidOptionsError (521), and what the system says where the folder is not there. */
  constructor(options: LocalShellOptions) {
    super();
    checkOptions(options, OPTIONS);
    const { folder, environment = 'clean', bash, outputCharacters = MOST_OUTPUT, logger } = options;
    this.#folder = realpathSync.native(folder);
    const found = bash ?? BASHES.find((path) => existsSync(path));
    if (found === undefined)
      throw new Error('There is no Bash on this machine; say where it is: { bash: … }');
    this.#bash = found;
    this.#environment = environmentOf(environment);
    this.#outputCharacters = outputCharacters;
    this.#isExternal = options.sandbox === 'external';
    if (this.#isExternal) warnAuthor(EXTERNAL, logger);
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
    const names = (path: string) => orNothing(() => readdirSync(path));
    const text = (path: string) => orNothing(() => readFileSync(path, 'utf8'));
    return { root: this.#folder, resolve: resolvePath, names, text };
  }

  /** How Bash is started; a subclass puts it into a sandbox. */
  protected launch(argv: Launch['argv'], _environment: Readonly<Record<string, string>>): Launch {
    return { argv };
  }

  override start({ command, folder, signal, timeoutMs, onOutput }: CommandRequest): RunningCommand {
    const mark = nodeCrypto().randomUUID();
    const output = new KeptOutput(this.#outputCharacters);
    const begun = performance.now();
    const cwd = this.folderAt(folder);
    const bash = [this.#bash, '--noprofile', '--norc', '-c', command] as const;
    const { argv, environment, onEnd } = this.launch([...bash], this.#environment);
    const [program, ...args] = argv;
    const child = spawn(program, args, {
      cwd,
      env: { ...this.#environment, ...environment, [MARK]: mark },
      // A group of its own, which can be told as a whole.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { pid } = child;
    let endedBy: CommandEnd['endedBy'];
    const end = async (why: 'time' | 'abort'): Promise<void> => {
      endedBy ??= why;
      if (pid !== undefined) await endGroup(pid, mark);
    };
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => void end('abort'));
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => void end('time'), timeoutMs);
    // Then there is no time to wait.
    const killNow = (): void => {
      if (pid !== undefined) signalGroup(pid, mark, 'SIGKILL');
    };
    process.once('exit', killNow);
    collect(child, (text) => {
      output.add(text);
      onOutput?.(text);
    });
    const ended = endOf(child).then(async (how) => {
      clearTimeout(timer);
      unfollow?.();
      // Nobody could end later what it has left running.
      if (pid !== undefined) await endGroup(pid, mark);
      process.off('exit', killNow);
      onEnd?.();
      return { ...how, ...(endedBy === undefined ? {} : { endedBy }), durationMs: performance.now() - begun };
    });
    return { output, ended, end };
  }
}

function environmentOf(
  given: 'clean' | 'inherit' | Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const own = Object.entries(process.env).filter(([name]) => given === 'inherit' || CLEAN.includes(name));
  const added = typeof given === 'object' ? Object.entries(given) : [];
  const all = [...own, ...Object.entries(NOBODY_THERE), ...added];
  return Object.fromEntries(
    all.flatMap(([name, value]) => (value === undefined || NEVER.test(name) ? [] : [[name, value]])),
  );
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

const MOST_LINKS = 40;

/** Step by step as the system does: a link is followed, also where it leads to nothing, and `..` goes back from there. */
function resolvePath(path: string): { readonly path: string; readonly isFolder: boolean } {
  const names = path.split('/').reverse();
  let at = '';
  let kind: 'folder' | 'file' | 'missing' = 'folder';
  let links = 0;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      at = at.slice(0, Math.max(0, at.lastIndexOf('/')));
      kind = 'folder';
      continue;
    }
    const next = `${at}/${name}`;
    const stat: Stats | undefined = kind === 'folder' ? orNothing(() => lstatSync(next)) : undefined;
    if (stat?.isSymbolicLink()) {
      links += 1;
      const target = links > MOST_LINKS ? '' : readlinkSync(next);
      names.push(...target.split('/').reverse());
      if (target.startsWith('/')) at = '';
      if (links > MOST_LINKS) return { path: '/… (too many links)', isFolder: false };
      continue;
    }
    at = next;
    kind = stat === undefined ? 'missing' : stat.isDirectory() ? 'folder' : 'file';
  }
  return { path: at || '/', isFolder: kind === 'folder' };
}

/** `undefined` if it is not there, or may not be read. */
function orNothing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The variable by which everything that a command has started is found again, whatever group it went into. */
const MARK = 'TOOLWRIGHT_COMMAND';

const GRACE_MS = 1_500;
const STEP_MS = 20;

/** Ends a process, its group and whatever they have started: first asks, then kills, until nothing is left. */
async function endGroup(leader: number, mark: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const until = performance.now() + GRACE_MS;
    while (performance.now() < until) {
      if (!signalGroup(leader, mark, signal)) return;
      await wait(STEP_MS);
    }
  }
}

/** Whether there was something to signal. */
function signalGroup(leader: number, mark: string, signal: NodeJS.Signals): boolean {
  const left = livingProcesses(leader, mark);
  for (const pid of left) orNothing(() => process.kill(pid, signal));
  return left.length > 0;
}

/** The group and its processes that have not ended; on Linux also those with the mark that have left the group. */
function livingProcesses(leader: number, mark: string): readonly number[] {
  if (process.platform !== 'linux') return orNothing(() => process.kill(-leader, 0)) ? [-leader] : [];
  const wanted = `${MARK}=${mark}`;
  const own = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOf(name, leader, wanted));
  return own.length === 0 ? [] : [-leader, ...own.map(Number)];
}

function isOf(pid: string, leader: number, wanted: string): boolean {
  // Behind the name: its state, its parent, its group. One that has ended waits only for its parent.
  const stat = orNothing(() => readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? '';
  const [, state, group] = /\) (\S) \d+ (\d+) [^)]*$/s.exec(stat) ?? [];
  if (state === undefined || state === 'Z') return false;
  if (Number(group) === leader) return true;
  const environment = orNothing(() => readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? '';
  return environment.split('\0').includes(wanted);
}
