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
import { FOLDER, folderPath, ifPossible, isWithin } from '../paths/folder-path.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type RunningCommand,
  StoredOutput,
  watchLimits,
} from './command-shell.js';

/** Options of {@link LocalShell}. */
export interface LocalShellOptions {
  /** The absolute path of an existing folder, in which commands run. */
  readonly folder: string;
  /**
   * `clean` (default): only variables that programs need, no secrets; `inherit`: all of this process; or further ones.
   */
  readonly environment?: 'clean' | 'inherit' | Readonly<Record<string, string>>;
  /** Path of Bash; default: that of this machine. The access of commands is determined by the rules of Bash. */
  readonly bash?: string;
  /** Characters of output to store; default: 60,000. */
  readonly outputCharacters?: number;
  /** `external`: this process runs in a disposable container. This is logged once. */
  readonly sandbox?: 'external';
  readonly logger?: Logger;
}

export const LOCAL_SHELL_RULES: RulesOf<LocalShellOptions> = {
  folder: required(FOLDER),
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

/** Frequent wrong names. */
export const LOCAL_SHELL_MEANT = {
  root: 'folder: …',
  cwd: 'folder: …',
  env: 'environment: …',
  shell: 'bash: …',
};

const OPTIONS = optionTable<LocalShellOptions>('LocalShell', LOCAL_SHELL_RULES, LOCAL_SHELL_MEANT);

const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash'];

/** Variables that programs need to run and to use the right language. */
const CLEAN = 'PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR TMP TEMP SystemRoot'.split(' ');

const NO_TERMINAL = {
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'false',
};

/** Variables that make Bash run something else, or parse a command differently. */
const NEVER =
  /^(BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|CDPATH|IFS|POSIXLY_CORRECT)$/;

/** This variable marks everything that a command has started, even in another process group. */
const MARK = 'TOOLWRIGHT_COMMAND';

/** How long to wait for output while another process still has it open. */
const REST_MS = 250;
const GRACE_MS = 1_500;
const STEP_MS = 20;
const MOST_LINKS = 40;

/** A program to start. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  /** Added to the environment of the shell. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Called after the end; its text is added to the output. */
  readonly onEnd?: () => string | undefined;
}

/** Runs commands on this machine as this user, each in a process group of its own. It is not a sandbox. */
export class LocalShell extends CommandShell {
  readonly #folder: string;
  readonly #bash: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #outputCharacters: number;
  /** This process runs in a container. */
  readonly #isExternal: boolean;

  /** @throws InvalidOptionsError (521), and the system's error if the folder does not exist. */
  constructor(options: LocalShellOptions) {
    super();
    checkOptions(options, OPTIONS);
    const { environment = 'clean', bash = BASHES.find((path) => existsSync(path)), logger } = options;
    this.#folder = realpathSync.native(options.folder);
    if (bash === undefined) throw new Error('Bash was not found on this machine; set its path: { bash: … }');
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
      "sandbox is 'external': in mode 'auto', commands run without a question, and this process does not restrict them";
    const fix = 'a disposable container or machine for this process';
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
    if (!isFolder) throw new Error(`'${read.path}' is not a folder.`);
    if (absolute !== root && !isWithin(absolute, root))
      throw new Error(`'${read.path}' leads out of the folder.`);
    return absolute;
  }

  override view(): FolderView {
    const names = (path: string) => ifPossible(() => readdirSync(path));
    const text = (path: string) => ifPossible(() => readFileSync(path, 'utf8'));
    return { root: this.#folder, resolve: resolvePath, names, text };
  }

  /** How to start Bash; a subclass adds a sandbox. */
  protected launch(argv: Launch['argv'], _environment: Readonly<Record<string, string>>): Launch {
    return { argv };
  }

  override start(request: CommandRequest): RunningCommand {
    const { command, folder, onOutput } = request;
    const mark = crypto.randomUUID();
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
      // A process group of its own, to signal all of it.
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
      // With an encoding, the stream emits only whole characters.
      stream?.setEncoding('utf8').on('data', write);
    }
    let endedBy: CommandEnd['endedBy'];
    const end = (why: 'time' | 'abort'): Promise<void> => {
      endedBy ??= why;
      return endGroup(pid, mark);
    };
    const unwatch = watchLimits(request, end);
    const killAtExit = (): void => void signalGroup(pid, mark, 'SIGKILL');
    process.once('exit', killAtExit);
    const closed = once(child, 'close').catch(() => {});
    const exited = once(child, 'exit').catch(() => [127, null]);
    const ended = exited.then(async ([exitCode, killedBy]): Promise<CommandEnd> => {
      await Promise.race([closed, wait(REST_MS, undefined, { ref: false })]);
      stdout?.destroy();
      stderr?.destroy();
      unwatch();
      // Processes that the command left running could not be ended later.
      await endGroup(pid, mark);
      process.off('exit', killAtExit);
      const note = onEnd?.();
      if (note !== undefined) write(note);
      const durationMs = performance.now() - begun;
      return { exitCode: exitCode ?? undefined, signal: killedBy ?? undefined, endedBy, durationMs };
    });
    return { output, ended, end };
  }
}

/** Resolves a path as the system does: links are followed even to missing targets, and `..` starts at the target. */
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

/** Ends a process group and all marked processes: first with SIGTERM, then with SIGKILL. */
async function endGroup(leader: number | undefined, mark: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const until = performance.now() + GRACE_MS;
    while (performance.now() < until) {
      if (!signalGroup(leader, mark, signal)) return;
      await wait(STEP_MS);
    }
  }
}

/** Signals a process group and, on Linux, marked processes outside of it; returns whether there were any. */
function signalGroup(leader: number | undefined, mark: string, signal: NodeJS.Signals): boolean {
  if (leader === undefined) return false;
  if (process.platform !== 'linux') return ifPossible(() => process.kill(-leader, signal)) === true;
  const living = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOfGroup(name, leader, mark));
  for (const pid of living.length > 0 ? [-leader, ...living.map(Number)] : [])
    ifPossible(() => process.kill(pid, signal));
  return living.length > 0;
}

function isOfGroup(pid: string, leader: number, mark: string): boolean {
  // After the name: state, parent, group. A zombie has ended already.
  const stat = ifPossible(() => readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? '';
  const [, state, group] = /\) (\S) \d+ (\d+) [^)]*$/s.exec(stat) ?? [];
  if (state === undefined || state === 'Z') return false;
  if (Number(group) === leader) return true;
  const environment = ifPossible(() => readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? '';
  return environment.split('\0').includes(`${MARK}=${mark}`);
}
