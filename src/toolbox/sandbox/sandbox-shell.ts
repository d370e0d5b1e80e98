import { spawnSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import {
  type Dirent,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { checkOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { omitFields } from '../../core/kernel/json.js';
import { nodeHttp } from '../../core/kernel/node-module.js';
import { listOf, optionTable, protecting } from '../../core/kernel/options.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { fitsHost, HOSTS, type HostPattern } from '../network/host-pattern.js';
import { isPublicAddress } from '../network/web-access.js';
import { foldedPath, ifPossible, isWithin, PROTECTED_NAMES, realPath } from '../paths/folder-path.js';
import { CLOSED_PATHS, globMatcher, globReaches, withoutLinks } from '../paths/glob.js';
import type { CommandShell } from '../shell/command-shell.js';
import {
  type Launch,
  LOCAL_SHELL_MEANT,
  LOCAL_SHELL_RULES,
  LocalShell,
  type LocalShellOptions,
} from '../shell/local-shell.js';

/** A path that commands may not read, or not write. */
interface ClosedPath {
  /** Absolute, as commands see it. */
  readonly path: string;
  readonly how: 'unreadable' | 'unwritable';
  readonly isFolder: boolean;
}

/** A file or folder that commands can see: its path for commands, and its path with links resolved. */
interface GivenPath {
  readonly path: string;
  readonly real: string;
}

/** More closed paths would slow down each command. */
const MOST_CLOSED = 1_000;

/**
 * Existing paths in a folder that match patterns, ignoring case; links are not followed. Patterns are matched against
 * the path without its first `namesFrom` characters.
 *
 * @throws Error if there are too many.
 */
function findFitting(folder: string, patterns: readonly string[], namesFrom: number): readonly string[] {
  const folded = patterns.map(foldedPath);
  const fits = folded.map(globMatcher);
  const reaches = folded.map(globReaches);
  const found: string[] = [];
  const visit = (at: string): void => {
    for (const entry of entriesOf(at)) {
      const path = join(at, entry.name);
      const name = foldedPath(path.slice(namesFrom));
      if (fits.some((one) => one(name))) found.push(path);
      else if (entry.isDirectory() && reaches.some((one) => one(name))) visit(path);
      checkCount(found.length);
    }
  };
  if (patterns.length > 0) visit(folder);
  return found;
}

/** Whether a pattern matches an absolute path or one of its parent folders. */
function fitsAround(pattern: string, path: string): boolean {
  const fits = globMatcher(foldedPath(pattern));
  return [path, ...foldersOf(path)].some((one) => fits(foldedPath(one.slice(1))));
}

function relative(patterns: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !isAbsolute(pattern));
}

function absolute(patterns: readonly string[] = []): readonly string[] {
  return patterns.filter(isAbsolute).map(withoutLinks);
}

/** By relative path. */
type ProtectedPaths = ReadonlyMap<string, 'file or folder' | 'link' | 'bare repository'>;

/**
 * Finds protected names in subfolders, and bare repositories, which Git uses without a `.git`. Skips `.git` and
 * `node_modules`.
 */
function findProtected(root: string, names: readonly string[]): ProtectedPaths {
  const found = new Map<string, 'file or folder' | 'link' | 'bare repository'>();
  const visit = (folder: string): void => {
    const entries = entriesOf(join(root, folder));
    const inside = new Set<string>();
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const folded = foldedPath(entry.name);
      inside.add(folded);
      // The exact names in the root are protected even if they do not exist.
      if (names.includes(folded) && !(folder === '' && names.includes(entry.name)))
        found.set(path, entry.isSymbolicLink() ? 'link' : 'file or folder');
      else if (entry.isDirectory() && folded !== '.git' && entry.name !== 'node_modules') visit(path);
    }
    const isBare = inside.has('head') && (inside.has('objects') || inside.has('commondir'));
    if (isBare && names.includes('.git')) found.set(folder || '.', 'bare repository');
  };
  if (names.length > 0) visit('');
  return found;
}

function checkCount(count: number): void {
  if (count > MOST_CLOSED)
    throw new Error(`More than ${MOST_CLOSED} paths are closed to commands: close their folders instead.`);
}

/** Closes a path, or the target of a link, wherever commands see it. */
function closedAt(found: string, how: ClosedPath['how'], given: readonly GivenPath[]): readonly ClosedPath[] {
  const real = realPath(found);
  if (real === undefined) return [];
  const isFolder = statSync(real, { throwIfNoEntry: false })?.isDirectory() === true;
  return given
    .filter((one) => real === one.real || isWithin(real, one.real))
    .map((one) => ({ path: one.path + real.slice(one.real.length), how, isFolder }));
}

function entriesOf(folder: string): readonly Dirent[] {
  return ifPossible(() => readdirSync(folder, { withFileTypes: true })) ?? [];
}

/** How many running commands need a path that was created for them. */
const made = new Map<string, number>();

/**
 * Prevents commands from creating or replacing a name in a folder. If the name is missing, it is created empty until
 * `release`, as a mount point.
 *
 * @throws Error if it is a link, which cannot be a mount point.
 */
function protect(root: string, name: string): ClosedPath & { readonly release: () => void } {
  const path = join(root, name);
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink())
    throw new Error(`'${name}' is a link, which a sandbox cannot protect: remove it.`);
  const isFolder = stat === undefined ? name === '.git' : stat.isDirectory();
  if (stat === undefined) {
    if (isFolder) mkdirSync(path);
    else writeFileSync(path, '', { flag: 'wx' });
    made.set(path, 0);
  }
  const isMade = made.has(path);
  if (isMade) made.set(path, (made.get(path) ?? 0) + 1);
  const release = (): void => {
    const left = (made.get(path) ?? 0) - 1;
    made.set(path, left);
    if (left > 0) return;
    made.delete(path);
    // It may be no longer empty, or have been removed.
    ifPossible(() => {
      if (isFolder) rmdirSync(path);
      else if (lstatSync(path).size === 0) rmSync(path);
    });
  };
  return { path, how: 'unwritable', isFolder, release: isMade ? release : () => {} };
}

/** Options of {@link sandboxShell}. */
export interface SandboxShellOptions extends Omit<LocalShellOptions, 'sandbox'> {
  /**
   * Patterns of paths that commands may not read, such as `**\/.env*`. A pattern that starts with `/` applies to the
   * system, too.
   */
  readonly unreadable?: readonly string[];
  /** Patterns of paths in the folder that commands may read but not write. */
  readonly unwritable?: readonly string[];
  /** Protected names, such as `.git`, that commands may write anyway. */
  readonly writable?: readonly string[];
  /** Absolute paths elsewhere that commands may read. Programs of the system and `PATH` need no entry. */
  readonly readable?: readonly string[];
  /** Hosts that commands may reach over HTTP and HTTPS, such as `*.example.com`. Default: none. */
  readonly hosts?: readonly string[];
}

const SHELL_RULES = omitFields(LOCAL_SHELL_RULES, 'sandbox');

const OPTIONS = optionTable<SandboxShellOptions>(
  'sandboxShell',
  {
    ...SHELL_RULES,
    unreadable: CLOSED_PATHS,
    unwritable: CLOSED_PATHS,
    writable: listOf(
      {
        accepts: (value) => (PROTECTED_NAMES as readonly unknown[]).includes(value),
        fix: `one of ${PROTECTED_NAMES.join(', ')}`,
      },
      "['.git']",
    ),
    readable: listOf(
      {
        accepts: (value) => typeof value === 'string' && isAbsolute(value) && existsSync(value),
        fix: 'the absolute path of an existing file or folder',
      },
      "['/srv/data']",
    ),
    hosts: protecting(HOSTS),
  },
  { ...LOCAL_SHELL_MEANT, network: 'hosts: […]', allow: 'hosts: […]', deny: 'unreadable: […]' },
);

/**
 * A shell whose commands the operating system restricts: they write only in the folder, read no files of the user
 * outside of it, and have no network except the named hosts. Uses bubblewrap on Linux and `sandbox-exec` on macOS.
 *
 * @throws InvalidOptionsError (521), and SandboxUnavailable (543) if this machine cannot create a sandbox; a command
 * that does nothing is run to find out.
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
  refuse('folder', `folder is ${isWhat}`, `folder: ${fix}`);
}

function refuse(option: string, problem: string, fix: string): void {
  refuseOptions([{ where: 'sandboxShell', option, problem, fix }]);
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
      [homedir()]: 'home folder of the user',
      [tmpdir()]: 'temporary folder of this process',
      '/usr': 'programs of the system',
    };
    for (const [path, what] of Object.entries(kept)) {
      const real = realPath(path) ?? path;
      if (this.#root === real || isWithin(real, this.#root))
        refuseFolder(
          `${this.#root}, which contains the ${what}: commands must not access that`,
          'the folder of one project',
        );
    }
    const closing = absolute(options.unreadable).find((one) => fitsAround(one, this.#root));
    if (closing !== undefined) {
      const problem = `unreadable has '${closing}', which closes the folder itself`;
      refuse('unreadable', problem, 'patterns of paths in the folder, or elsewhere');
    }
    this.#bubblewrap = findProgram('bwrap', this.#root);
    if (hosts.length > 0 && process.platform === 'darwin') {
      const problem = 'hosts needs network namespaces, which macOS does not have';
      refuse('hosts', problem, 'no hosts, or a container with Linux');
    }
    this.#probe();
    this.#proxySocket = hosts.length === 0 ? undefined : startHostProxy(hosts);
  }

  override get isSandboxed(): boolean {
    return true;
  }

  protected override launch(argv: Launch['argv'], environment: Readonly<Record<string, string>>): Launch {
    const { writable = [] } = this.#options;
    const given = this.#given(environment);
    const names = PROTECTED_NAMES.filter((name) => !writable.includes(name));
    const before = findProtected(this.#root, names);
    const held: ReturnType<typeof protect>[] = [];
    const release = (): void => {
      for (const one of held) one.release();
    };
    try {
      for (const name of names) held.push(protect(this.#root, name));
      const found = [...before].filter(([, kind]) => kind !== 'bare repository');
      const closed = [
        ...held,
        ...found.flatMap(([path]) => closedAt(join(this.#root, path), 'unwritable', given)),
        ...this.#closed(given),
      ];
      checkCount(closed.length);
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

  /** The paths that a command with this environment can see, including the folder. */
  #given(environment: Readonly<Record<string, string>>): readonly GivenPath[] {
    const isMac = process.platform === 'darwin';
    const paths = [...(isMac ? MAC_SYSTEM : LINUX_SYSTEM), ...this.#readable(environment), this.#root];
    return paths.flatMap((path) => {
      const real = realPath(path);
      return real === undefined ? [] : [{ path: isMac ? real : path, real }];
    });
  }

  /**
   * Folders of `PATH` outside of the home folder, and that of this Node.js, each with the library folder beside it; and
   * what the options name.
   */
  #readable({ PATH = '' }: Readonly<Record<string, string>>): readonly string[] {
    const root = this.#root;
    const home = homedir();
    const isOutside = (folder: string): boolean =>
      isAbsolute(folder) && folder !== home && !isWithin(folder, home) && !isWithin(folder, root);
    const own = dirname(process.execPath);
    const folders = [...PATH.split(':').filter(isOutside), ...(own.endsWith('/bin') ? [own] : [])];
    const programs = [...new Set(folders)]
      .flatMap((folder) => [folder, join(dirname(folder), 'lib')])
      .filter((folder) => ![home, root].some((one) => folder === one || isWithin(one, folder)));
    return [...programs, ...(this.#options.readable ?? [])];
  }

  /** The paths that patterns close now. Absolute patterns apply everywhere, relative ones to the user's files. */
  #closed(given: readonly GivenPath[]): readonly ClosedPath[] {
    const { unreadable = [], unwritable = [], readable = [] } = this.#options;
    const root = this.#root;
    const inFolder = (patterns: readonly string[]): readonly string[] => [
      ...findFitting(root, relative(patterns), root.length + 1),
      ...findFitting(root, absolute(patterns), 1),
    ];
    const elsewhere = given.flatMap(({ path, real }) => {
      if (real === root) return [];
      const own = readable.includes(path) ? relative(unreadable) : [];
      const patterns = [...own, ...absolute(unreadable)];
      return patterns.some((one) => fitsAround(one, real)) ? [real] : findFitting(real, patterns, 1);
    });
    return [
      ...inFolder(unwritable).flatMap((path) => closedAt(path, 'unwritable', given)),
      ...[...inFolder(unreadable), ...elsewhere].flatMap((path) => closedAt(path, 'unreadable', given)),
    ];
  }

  /** Reports protected names that a command created: bubblewrap can only protect what exists. */
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
      readable: this.#readable(environment),
      closed,
      proxySocket,
    };
    const closing = ['/bin/bash', '--noprofile', '--norc', '-c', CLOSE_INHERITED, 'bash'] as const;
    if (process.platform === 'darwin')
      return {
        argv: [...closing, '/usr/bin/sandbox-exec', '-p', seatbeltProfile(plan, this.#temporary()), ...argv],
        environment: { TMPDIR: this.#temporary() },
      };
    return {
      argv: [...closing, this.#bubblewrap, ...bubblewrapArguments(plan), ...argv],
      environment: { TMPDIR: '/tmp', ...(proxySocket && PROXY_ENVIRONMENT) },
    };
  }

  /** A temporary folder for all commands of this shell, on systems where each has no `/tmp` of its own. */
  #temporary(): string {
    if (this.#temporaryFolder === undefined) {
      const folder = realpathSync.native(mkdtempSync(join(tmpdir(), 'toolwright-shell-')));
      process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
      this.#temporaryFolder = folder;
    }
    return this.#temporaryFolder;
  }

  /** Runs a command that checks whether the sandbox works. */
  #probe(): void {
    if (process.platform !== 'linux' && process.platform !== 'darwin')
      throw unavailable(`the platform ${process.platform} is not supported`, 'Run it in a container');
    const folder = mkdtempSync(join(tmpdir(), 'toolwright-probe-'));
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'x');
    try {
      const look = `! cat '${secret}' && ! : > '${secret}2' && echo kept in`;
      const { PATH = '', HOME = homedir() } = process.env;
      const env = { PATH, HOME };
      const [program, ...args] = this.#wrapped(['/bin/bash', '--norc', '-c', look], env, []).argv;
      const options = { cwd: this.#root, env, encoding: 'utf8', timeout: PROBE_MS } as const;
      const { error, stdout, stderr } = spawnSync(program, args, options);
      if (stdout.trim() === 'kept in' && !existsSync(`${secret}2`)) return;
      const maker = process.platform === 'darwin' ? 'sandbox-exec' : 'bwrap';
      const said = stderr.trim().split('\n').at(-1) || (error?.message ?? 'it does not restrict commands');
      throw unavailable(
        `${maker} cannot create a sandbox here (${said.slice(0, 200)})`,
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
    `No sandbox for commands: ${why}. ${remedy}, set sandbox: 'external' in a disposable container, or use mode 'ask'.`,
  );
}

/** The path of a program; never in the folder, where a command may have replaced it. */
function findProgram(name: string, root: string): string {
  const folders = (process.env.PATH ?? '')
    .split(':')
    .filter((one) => isAbsolute(one) && !isWithin(one, root));
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined && process.platform === 'linux')
    throw unavailable(`${name} is not installed`, 'Install bubblewrap (apt-get install bubblewrap socat)');
  return found ?? name;
}

/** What commands in a sandbox may access. */
interface SandboxPlan {
  /** The writable folder. */
  readonly root: string;
  /** The user's home folder, which commands see as an empty folder. */
  readonly home: string;
  /** Readable paths, besides the programs of the system. */
  readonly readable: readonly string[];
  readonly closed: readonly ClosedPath[];
  /** The socket of the proxy for allowed hosts; without it, there is no network. */
  readonly proxySocket?: string;
}

/**
 * Closes all inherited file descriptors except the standard three (`node app.js 9</`). Through an inherited folder, a
 * command could read and write outside of the sandbox.
 */
const CLOSE_INHERITED =
  '[ -e /dev/fd/0 ] || exit; for fd in /dev/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done; exec "$@"';

/** The paths of the socket and the port of the proxy inside of the sandbox. */
const INNER_SOCKET = '/run/toolwright-proxy.sock';
const PROXY_PORT = 3128;

/** Files that programs need to know about the machine, without secrets. */
const SETTINGS =
  'alternatives ca-certificates ca-certificates.conf crypto-policies fonts group hosts java ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime machine-id mime.types nsswitch.conf os-release passwd perl pki/ca-trust pki/tls/certs profile protocols python3 resolv.conf services ssl/cert.pem ssl/certs ssl/openssl.cnf terminfo timezone';

/** The parts of the system that commands see. */
const LINUX_SYSTEM = '/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store'
  .split(' ')
  .concat(SETTINGS.split(' ').map((name) => `/etc/${name}`));
const MAC_SYSTEM = '/usr /bin /sbin /opt /etc /Library /System /Applications'.split(' ');

/** Settings of the kernel, which root can write even without capabilities. */
const KERNEL_SETTINGS = 'sys sysrq-trigger irq bus fs acpi scsi'.split(' ').map((name) => `/proc/${name}`);

/**
 * Arguments of bubblewrap for a command: an empty file system plus the paths named here, no network, no capabilities,
 * and a process namespace of its own.
 */
function bubblewrapArguments({ root, home, readable, closed, proxySocket }: SandboxPlan): readonly string[] {
  const read = (path: string): string[] => ['--ro-bind-try', path, path];
  return [
    ...['--unshare-all', '--unshare-user', '--die-with-parent', '--cap-drop', 'ALL'],
    ...LINUX_SYSTEM.flatMap(read),
    ...['--proc', '/proc', ...KERNEL_SETTINGS.flatMap(read)],
    ...['--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp'],
    ...(home === '/' ? [] : ['--tmpfs', home]),
    ...readable.flatMap(read),
    ...['--bind', root, root],
    ...closingArguments(root, closed),
    ...(proxySocket === undefined ? [] : ['--bind', proxySocket, INNER_SOCKET]),
    ...['--remount-ro', '/', '--'],
    ...(proxySocket === undefined ? [] : ['/bin/bash', '--norc', '-c', BRIDGE, 'bash']),
  ];
}

/** Waits until the proxy answers inside the sandbox, and then executes the command. */
const BRIDGE = `socat TCP-LISTEN:${PROXY_PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INNER_SOCKET} & for i in {1..200}; do (exec 3<>/dev/tcp/127.0.0.1/${PROXY_PORT}) 2> /dev/null && break; sleep 0.02; done; exec "$@"`;

/** Environment variables that direct programs to the proxy. */
const PROXY_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    'HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy'
      .split(' ')
      .map((name) => [name, `http://127.0.0.1:${PROXY_PORT}`]),
  ),
  NODE_USE_ENV_PROXY: '1',
};

/**
 * Mounts from the outermost path to the innermost; paths in an unreadable folder need no mount. The parent folders
 * become mounts, too, so that commands cannot move them away with their contents.
 */
function closingArguments(root: string, closed: readonly ClosedPath[]): readonly string[] {
  const hidden = new Set(closed.filter(({ how }) => how === 'unreadable').map(({ path }) => path));
  const seen = closed.filter(({ path }) => !foldersOf(path).some((folder) => hidden.has(folder)));
  const ways = seen
    .flatMap(({ path }) => foldersOf(path).filter((folder) => isWithin(folder, root)))
    .map((path) => ({ path, how: 'way' as const }));
  const all = new Map([...ways, ...seen].map((one) => [one.path, one]));
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

/** The parent folders of a path, the innermost first. */
function foldersOf(path: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(path); at !== '/'; at = dirname(at)) folders.push(at);
  return folders;
}

/** Private data of users and programs on macOS. */
const PRIVATE = '/Users /Volumes /private/tmp /private/var /private/etc/ssh /Library/Keychains'.split(' ');
/** Parts of those paths that programs need. */
const NEEDED = ['/private/var/db/timezone', '/private/var/db/dyld', '/private/var/select'];

/** A profile of `sandbox-exec`; the last matching rule decides. */
function seatbeltProfile({ root, readable, closed }: SandboxPlan, temporary: string): string {
  const paths = (rule: string, all: readonly string[]): string =>
    all.length === 0 ? '' : `(${rule} ${all.map((path) => `(subpath ${JSON.stringify(path)})`).join(' ')})`;
  return [
    '(version 1)(allow default)(deny network*)(deny mach-lookup (global-name-regex #"^com\\.apple\\.(SecurityServer|securityd)"))',
    '(deny file-write*)(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
    paths('deny file-read*', PRIVATE),
    // Path lookup needs the metadata of all parent folders.
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

/**
 * Starts an HTTP proxy that connects only to the named hosts, on a socket in a folder of its own. Hosts that only a
 * pattern with `*` matches must not be in a private network.
 *
 * @returns The path of the socket.
 */
function startHostProxy(hosts: readonly HostPattern[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolwright-proxy-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const socket = join(folder, 'proxy.sock');
  const server = nodeHttp().createServer((request, response) => void forward(request, response, hosts));
  server.on('connect', (request, client, head) => void tunnel(request, client, { head, hosts }));
  server.listen(socket).unref();
  return socket;
}

/** The checked address to connect to; `undefined` if connecting is forbidden. */
async function addressFor(url: URL, hosts: readonly HostPattern[]): Promise<string | undefined> {
  if (!fitsHost(hosts, url)) return undefined;
  const { address } = await lookup(url.hostname.replace(/^\[(.*)\]$/, '$1'));
  const isNamed = fitsHost(
    hosts.filter((pattern) => !pattern.includes('*')),
    url,
  );
  return isNamed || isPublicAddress(address) ? address : undefined;
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  hosts: readonly HostPattern[],
): Promise<void> {
  try {
    const url = new URL(request.url ?? '');
    const address = url.protocol === 'http:' ? await addressFor(url, hosts) : undefined;
    if (address === undefined) {
      response.writeHead(403).end('The sandbox does not allow connections to this host.\n');
      return;
    }
    const { 'proxy-connection': _, ...headers } = request.headers;
    const outgoing = nodeHttp().request({
      ...{ host: address, port: url.port || 80, path: url.pathname + url.search, method: request.method },
      headers: { ...headers, host: url.host },
    });
    outgoing.on('response', (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers);
      incoming.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    request.pipe(outgoing);
  } catch {
    response.writeHead(502).end();
  }
}

async function tunnel(
  { url = '' }: IncomingMessage,
  client: Duplex,
  { head, hosts }: { readonly head: Buffer; readonly hosts: readonly HostPattern[] },
): Promise<void> {
  client.on('error', () => client.destroy());
  try {
    const target = new URL(`https://${url}`);
    const address = await addressFor(target, hosts);
    if (address === undefined) {
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    const server = connect(Number(target.port) || 443, address, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.write(head);
      server.pipe(client).pipe(server);
    });
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
  } catch {
    client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  }
}
