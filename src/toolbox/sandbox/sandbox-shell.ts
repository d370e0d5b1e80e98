import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { checkOptions, refuseOptions } from '../../errors/author-fault.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { FILLED_TEXT, listOf, optionTable, protecting } from '../../kernel/options.js';
import { HOSTS } from '../network/web-access.js';
import { isWithin, PROTECTED_NAMES } from '../paths/folder-path.js';
import type { CommandShell } from '../shell/command-shell.js';
import {
  type Launch,
  LOCAL_SHELL_MEANT,
  LOCAL_SHELL_RULES,
  LocalShell,
  type LocalShellOptions,
} from '../shell/local-shell.js';
import { bubblewrapArguments, proxyEnvironment, type SandboxPlan } from './bubblewrap.js';
import { findClosed, protect } from './closed-paths.js';
import { startHostProxy } from './host-proxy.js';
import { seatbeltProfile } from './seatbelt.js';

/** What {@link sandboxShell} is made from. */
export interface SandboxShellOptions extends Omit<LocalShellOptions, 'sandbox'> {
  /** Patterns of paths in the folder that commands may not read, as `**\/.env*`. */
  readonly unreadable?: readonly string[];
  /** Patterns of paths in the folder that commands may read, and not write. */
  readonly unwritable?: readonly string[];
  /** Of `.git`, `.npmrc`, `.yarnrc`, `.yarnrc.yml` and `.pnpmfile.cjs`, those that commands may write all the same. */
  readonly writable?: readonly string[];
  /** Files and folders elsewhere that commands may read, absolute; beside the programs of the system and of `PATH`. */
  readonly readable?: readonly string[];
  /** Hosts that commands may connect to by HTTP and HTTPS, as `registry.npmjs.org`, `*.example.com`. Default: none. */
  readonly hosts?: readonly string[];
}

const PATTERNS = protecting(listOf(FILLED_TEXT, "['**/.env*']"));
const { sandbox: _, ...SHELL_RULES } = LOCAL_SHELL_RULES;

const OPTIONS = optionTable<SandboxShellOptions>(
  'sandboxShell',
  {
    ...SHELL_RULES,
    unreadable: PATTERNS,
    unwritable: PATTERNS,
    writable: listOf(
      {
        accepts: (value) => (PROTECTED_NAMES as readonly unknown[]).includes(value),
        fix: `one of ${PROTECTED_NAMES.join(', ')}`,
      },
      "['.git']",
    ),
    readable: listOf(
      { accepts: (value) => FILLED_TEXT.accepts(value) && isAbsolute(String(value)), fix: "'/srv/data'" },
      "['/srv/data']",
    ),
    hosts: protecting(HOSTS),
  },
  { ...LOCAL_SHELL_MEANT, network: 'hosts: […]', allow: 'hosts: […]', deny: 'unreadable: […]' },
);

/**
 * A shell whose commands the operating system keeps in: they write nothing but the folder, read nothing of the user but
 * the folder, and have no network, or that to the named hosts. By bubblewrap on Linux and `sandbox-exec` on macOS.
 *
 * @throws InvalidOptionsError (521), and SandboxUnavailable (543) where this machine cannot make a sandbox: it is tried
 *   here with a command that does nothing.
 *
 * @example
 * ```ts
 * const permissions = new Permissions({ mode: 'auto' });
 * const shell = sandboxShell({ folder: process.cwd(), ...permissions.closedPaths() });
 * const tools = new ToolRegistry({ policy: permissions.policy }).register(...shellTools(shell));
 * ```
 */
export function sandboxShell(options: SandboxShellOptions): CommandShell {
  checkOptions(options, OPTIONS);
  return new SandboxShell(options);
}

class SandboxShell extends LocalShell {
  readonly #options: SandboxShellOptions;
  readonly #root: string;
  readonly #proxySocket: string | undefined;
  readonly #bubblewrap: string;
  #temporaryFolder: string | undefined;

  constructor(options: SandboxShellOptions) {
    const { unreadable: _1, unwritable: _2, writable: _3, readable: _4, hosts = [], ...own } = options;
    super(own);
    this.#options = options;
    this.#root = this.view().root;
    this.#bubblewrap = findProgram('bwrap', this.#root);
    const home = realpathSync.native(homedir());
    if (this.#root === home || isWithin(home, this.#root))
      refuseOptions([
        {
          ...{ where: 'sandboxShell', option: 'folder' },
          problem: `folder is ${this.#root}, with the home of the user in it, which commands may not read`,
          fix: 'folder: one below the home',
        },
      ]);
    if (hosts.length > 0 && process.platform === 'darwin')
      refuseOptions([
        {
          ...{ where: 'sandboxShell', option: 'hosts' },
          problem: 'hosts needs network namespaces, which macOS does not have',
          fix: 'no hosts, or a container with Linux',
        },
      ]);
    this.#probe();
    this.#proxySocket = hosts.length === 0 ? undefined : startHostProxy(hosts);
  }

  override get isSandboxed(): boolean {
    return true;
  }

  protected override launch(argv: Launch['argv'], environment: Readonly<Record<string, string>>): Launch {
    const { unreadable = [], unwritable = [], writable = [] } = this.#options;
    const names = PROTECTED_NAMES.filter((name) => !writable.includes(name));
    const held: ReturnType<typeof protect>[] = [];
    const release = (): void => {
      for (const one of held) one.release();
    };
    try {
      for (const name of names) held.push(protect(this.#root, name));
      const closed = [
        ...held,
        ...findClosed(this.#root, unwritable, 'unwritable'),
        ...findClosed(this.#root, unreadable, 'unreadable'),
      ];
      return { ...this.#wrapped(argv, environment, closed), onEnd: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #wrapped(
    argv: Launch['argv'],
    environment: Readonly<Record<string, string>>,
    closed: SandboxPlan['closed'],
  ): Launch {
    const proxySocket = this.#proxySocket;
    const plan: SandboxPlan = {
      root: this.#root,
      home: isAbsolute(environment.HOME ?? '') ? String(environment.HOME) : homedir(),
      readable: [...programFolders(environment.PATH ?? '', this.#root), ...(this.#options.readable ?? [])],
      closed,
      ...(proxySocket === undefined ? {} : { proxySocket }),
    };
    if (process.platform === 'darwin')
      return {
        argv: ['/usr/bin/sandbox-exec', '-p', seatbeltProfile(plan, this.#temporary()), ...argv],
        environment: { TMPDIR: this.#temporary() },
      };
    return {
      argv: [this.#bubblewrap, ...bubblewrapArguments(plan), ...argv],
      environment: { TMPDIR: '/tmp', ...(proxySocket === undefined ? {} : proxyEnvironment()) },
    };
  }

  /** Where there is no `/tmp` of its own for a command: one for all of this shell. */
  #temporary(): string {
    if (this.#temporaryFolder === undefined) {
      const folder = realpathSync.native(mkdtempSync(join(tmpdir(), 'toolwright-shell-')));
      process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
      this.#temporaryFolder = folder;
    }
    return this.#temporaryFolder;
  }

  /** A command that does nothing but look whether it is kept in. */
  #probe(): void {
    if (process.platform !== 'linux' && process.platform !== 'darwin')
      throw unavailable(`there is none for ${process.platform}`, 'Run it in a container');
    const folder = mkdtempSync(join(tmpdir(), 'toolwright-probe-'));
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'x');
    try {
      const look = `! cat '${secret}' && ! : > '${secret}2' && echo kept in`;
      const { PATH = '', HOME = homedir() } = process.env;
      const { argv } = this.#wrapped(['/bin/bash', '--norc', '-c', look], { PATH, HOME }, []);
      const [program, ...args] = argv;
      const { error, stdout, stderr } = spawnSync(program, args, {
        cwd: this.#root,
        encoding: 'utf8',
        timeout: PROBE_MS,
      });
      if (stdout.trim() !== 'kept in' || existsSync(`${secret}2`))
        throw unavailable(
          `${basename(program)} cannot make one here (${(stderr.trim().split('\n').at(-1) || String(error?.message ?? 'it does not keep commands in')).slice(0, 200)})`,
          'Allow user namespaces',
        );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

const PROBE_MS = 20_000;

function unavailable(why: string, remedy: string): ToolwrightError {
  return new ToolwrightError(
    'SandboxUnavailable',
    `No sandbox for commands: ${why}. ${remedy}, state sandbox: 'external' in a disposable container, or use mode 'ask'.`,
  );
}

/** Where a program is; never in the folder, where a command may have put another one. */
function findProgram(name: string, root: string): string {
  const folders = (process.env.PATH ?? '')
    .split(':')
    .filter((one) => isAbsolute(one) && !isWithin(one, root));
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined && process.platform === 'linux')
    throw unavailable(`${name} is not installed`, 'Install bubblewrap (apt-get install bubblewrap socat)');
  return found ?? name;
}

/** Folders of `PATH` outside of the home, and the one of this Node.js, each with the libraries beside it. */
function programFolders(path: string, root: string): readonly string[] {
  const home = homedir();
  const own = dirname(process.execPath);
  const isOutside = (folder: string): boolean =>
    isAbsolute(folder) && folder !== home && !isWithin(folder, home) && !isWithin(folder, root);
  return [...new Set([...path.split(':').filter(isOutside), ...(own.endsWith('/bin') ? [own] : [])])]
    .flatMap((folder) => [folder, join(dirname(folder), 'lib')])
    .filter((folder) => ![home, root].some((one) => folder === one || isWithin(one, folder)));
}
