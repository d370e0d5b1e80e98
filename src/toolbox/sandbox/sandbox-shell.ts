import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { checkOptions, refuseOptions } from '../../errors/author-fault.js';
import { ToolwrightError } from '../../errors/toolwright-error.js';
import { FILLED_TEXT, listOf, optionTable, protecting } from '../../kernel/options.js';
import { visibleLine } from '../../kernel/visible-text.js';
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
import {
  type ClosedPath,
  closeProtected,
  findClosed,
  findProtected,
  type ProtectedPaths,
  protect,
} from './closed-paths.js';
import { startHostProxy } from './host-proxy.js';

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
  const { folder } = options;
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    refuseFolder(`${folder}, which is not an existing folder`, 'a folder that exists');
  return new SandboxShell(options);
}

function refuseFolder(isWhat: string, fix: string): void {
  refuseOptions([
    { where: 'sandboxShell', option: 'folder', problem: `folder is ${isWhat}`, fix: `folder: ${fix}` },
  ]);
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
    const kept = {
      [homedir()]: 'home of the user',
      [tmpdir()]: 'temporary folder of this process',
      '/usr': 'programs of the system',
    };
    for (const [path, what] of Object.entries(kept)) {
      const real = existsSync(path) ? realpathSync.native(path) : path;
      if (this.#root === real || isWithin(real, this.#root))
        refuseFolder(
          `${this.#root}, with the ${what} in it, which commands may not have`,
          'a folder of one project',
        );
    }
    this.#bubblewrap = findProgram('bwrap', this.#root);
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
    const before = findProtected(this.#root, names);
    const held: ReturnType<typeof protect>[] = [];
    const release = (): void => {
      for (const one of held) one.release();
    };
    try {
      for (const name of names) held.push(protect(this.#root, name));
      const closed = [
        ...held,
        ...closeProtected(this.#root, before),
        ...findClosed(this.#root, unwritable, 'unwritable'),
        ...findClosed(this.#root, unreadable, 'unreadable'),
      ];
      const onEnd = (): string | undefined => {
        release();
        return this.#newNote(before, findProtected(this.#root, names));
      };
      return { ...this.#wrapped(argv, environment, closed), onEnd };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Reports what a command has created and the sandbox could not prevent: bubblewrap closes only what exists. */
  #newNote(before: ProtectedPaths, after: ProtectedPaths): string | undefined {
    const created = [...after].filter(([path, kind]) => before.get(path) !== kind);
    if (created.length === 0) return undefined;
    const shown = created.slice(0, 10).map(([path, kind]) => visibleLine(`${path} (${kind})`));
    const paths = `${shown.join(', ')}${created.length > 10 ? ` and ${created.length - 10} more` : ''}`;
    const note = `New in the folder: ${paths}. Git and package managers run programs that such files name, also outside of the sandbox`;
    (this.#options.logger ?? console).warn(`A command in the sandbox created protected files. ${note}.`);
    return `\n(${note}.)\n`;
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
    const closing = ['/bin/bash', '--noprofile', '--norc', '-c', CLOSE_INHERITED, 'bash'] as const;
    if (process.platform === 'darwin')
      return {
        argv: [...closing, '/usr/bin/sandbox-exec', '-p', seatbeltProfile(plan, this.#temporary()), ...argv],
        environment: { TMPDIR: this.#temporary() },
      };
    return {
      argv: [...closing, this.#bubblewrap, ...bubblewrapArguments(plan), ...argv],
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
        env: { PATH, HOME },
        encoding: 'utf8',
        timeout: PROBE_MS,
      });
      if (stdout.trim() !== 'kept in' || existsSync(`${secret}2`))
        throw unavailable(
          `${process.platform === 'darwin' ? 'sandbox-exec' : 'bwrap'} cannot make one here (${(stderr.trim().split('\n').at(-1) || String(error?.message ?? 'it does not keep commands in')).slice(0, 200)})`,
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

/** What a sandbox lets commands have. */
interface SandboxPlan {
  /** May be written. */
  readonly root: string;
  /** The home of the user for commands: an empty one. */
  readonly home: string;
  /** May be read, beside the programs of the system. */
  readonly readable: readonly string[];
  readonly closed: readonly ClosedPath[];
  /** The socket of the proxy for allowed hosts; without one there is no network. */
  readonly proxySocket?: string;
}

/**
 * Closes all open files but the three standard ones before the sandbox starts: a child inherits what this process has
 * inherited (`node app.js 9</`), and a command could read and write through such a folder outside of the sandbox.
 */
const CLOSE_INHERITED =
  '[ -e /dev/fd/0 ] || exit; for fd in /dev/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done; exec "$@"';

/** Where the socket and the proxy are, for commands. */
const INNER_SOCKET = '/run/toolwright-proxy.sock';
const PROXY_PORT = 3128;

/** Programs and libraries. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store'];

/** What programs need to know of the machine, and nothing that is secret. */
const SETTINGS =
  'alternatives ca-certificates ca-certificates.conf crypto-policies fonts group hosts java ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime machine-id mime.types nsswitch.conf os-release passwd perl pki/ca-trust pki/tls/certs profile protocols python3 resolv.conf services ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone'.split(
    ' ',
  );

/**
 * Arguments of bubblewrap for a command: a file system of its own with nothing in it but what is named here, no
 * network, no capabilities, and no processes but its own.
 */
function bubblewrapArguments({ root, home, readable, closed, proxySocket }: SandboxPlan): readonly string[] {
  const read = (path: string): string[] => ['--ro-bind-try', path, path];
  return [
    ...['--unshare-all', '--unshare-user', '--die-with-parent', '--cap-drop', 'ALL'],
    ...[...SYSTEM, ...SETTINGS.map((name) => `/etc/${name}`)].flatMap(read),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp'],
    ...(home === '/' ? [] : ['--tmpfs', home]),
    ...readable.flatMap(read),
    ...['--bind', root, root],
    ...closingArguments(root, closed),
    ...(proxySocket === undefined ? [] : ['--bind', proxySocket, INNER_SOCKET]),
    ...['--remount-ro', '/', '--'],
    ...(proxySocket === undefined ? [] : ['/bin/bash', '--norc', '-c', BRIDGE, 'bash']),
  ];
}

/** Waits until the proxy answers inside, and goes on as the command. */
const BRIDGE = `socat TCP-LISTEN:${PROXY_PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INNER_SOCKET} & for i in {1..200}; do (exec 3<>/dev/tcp/127.0.0.1/${PROXY_PORT}) 2> /dev/null && break; sleep 0.02; done; exec "$@"`;

/** By which programs find the proxy. */
function proxyEnvironment(): Readonly<Record<string, string>> {
  const url = `http://127.0.0.1:${PROXY_PORT}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'];
  return { ...Object.fromEntries(names.map((name) => [name, url])), NODE_USE_ENV_PROXY: '1' };
}

/** From the outside in. The folders on the way are mounted, too, so that none can be moved away with what is in it. */
function closingArguments(root: string, closed: readonly ClosedPath[]): readonly string[] {
  const ways = closed
    .flatMap(({ path }) => foldersBetween(root, path))
    .map((path) => ({ path, how: 'way' as const }));
  const all = new Map([...ways, ...closed].map((one) => [one.path, one]));
  return [...all.values()]
    .sort((one, other) => one.path.split('/').length - other.path.split('/').length)
    .flatMap((one) => {
      if (one.how === 'way') return ['--bind', one.path, one.path];
      if (one.how === 'unwritable') return ['--ro-bind', one.path, one.path];
      return one.isFolder
        ? ['--perms', '0000', '--tmpfs', one.path, '--remount-ro', one.path]
        : ['--ro-bind', '/dev/null', one.path];
    });
}

function foldersBetween(root: string, path: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(path); isWithin(at, root); at = dirname(at)) folders.push(at);
  return folders;
}

/** Where macOS keeps what belongs to people, and what programs leave for each other. */
const PRIVATE = [
  '/Users',
  '/Volumes',
  '/private/tmp',
  '/private/var',
  '/private/etc/ssh',
  '/Library/Keychains',
];
/** Below those, what programs need. */
const NEEDED = ['/private/var/db/timezone', '/private/var/db/dyld', '/private/var/select'];

/** A profile of `sandbox-exec` for a command: of several rules that fit, the last one counts. */
function seatbeltProfile({ root, readable, closed }: SandboxPlan, temporary: string): string {
  const paths = (rule: string, all: readonly string[]): string =>
    all.length === 0 ? '' : `(${rule} ${all.map((path) => `(subpath ${JSON.stringify(path)})`).join(' ')})`;
  return [
    '(version 1)(allow default)(deny network*)(deny mach-lookup (global-name-regex #"^com\\.apple\\.(SecurityServer|securityd)"))',
    '(deny file-write*)(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
    paths('deny file-read*', PRIVATE),
    // A path is found by way of its folders.
    '(allow file-read-metadata)',
    paths('allow file-read*', [...NEEDED, ...readable, root, temporary]),
    paths('allow file-write*', [root, temporary]),
    paths(
      'deny file-write*',
      closed.map(({ path }) => path),
    ),
    paths(
      'deny file-read*',
      closed.filter(({ how }) => how === 'unreadable').map(({ path }) => path),
    ),
  ].join('');
}
