import { isAbsolute, posix } from 'node:path';
import {
  Bash,
  type CpOptions,
  type FileContent,
  type FsStat,
  type IFileSystem,
  InMemoryFs,
  type MkdirOptions,
  MountableFs,
  type RmOptions,
} from 'just-bash';
import { checkOptions } from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { COUNT, instanceOf, optionTable, required } from '../../core/kernel/options.js';
import { type FileInfo, FileSystem, FileSystemError } from '../files/file-system.js';
import { foldedPath, PROTECTED_NAMES } from '../paths/folder-path.js';
import { CLOSED_PATHS, globMatcher, withoutLinks } from '../paths/glob.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type RunningCommand,
  StoredOutput,
  watchLimits,
} from '../shell/command-shell.js';

/** Options of {@link virtualShell}. */
export interface VirtualShellOptions {
  /** The folder that commands see as `/work`. */
  readonly files: FileSystem;
  /** Patterns of paths that commands may not read, such as `**\/.env*`. */
  readonly unreadable?: readonly string[];
  /** Patterns of paths that commands may read but not write. */
  readonly unwritable?: readonly string[];
  /** Characters of output to store per command; default: 60,000. */
  readonly outputCharacters?: number;
}

const OPTIONS = optionTable<VirtualShellOptions>('virtualShell', {
  files: required(instanceOf(FileSystem, 'new DiskFileSystem({ root }), or another FileSystem')),
  unreadable: CLOSED_PATHS,
  unwritable: CLOSED_PATHS,
  outputCharacters: COUNT,
});

/** The path of the folder for commands. */
const ROOT = '/work';

/**
 * A shell without processes: Bash as a library, with its own `grep`, `sort`, `sed`, `jq` and similar programs, on a
 * file system of the file tools. It starts no programs, has no network, and sees nothing but that folder.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const files = new DiskFileSystem({ root: '/srv/project' });
 * const tools = new ToolRegistry().register(...fileTools(files), ...shellTools(virtualShell({ files })));
 * ```
 */
export function virtualShell(options: VirtualShellOptions): CommandShell {
  checkOptions(options, OPTIONS);
  return new VirtualShell(options);
}

class VirtualShell extends CommandShell {
  readonly #files: ShellFiles;
  readonly #outputCharacters: number;

  constructor({ files, outputCharacters = 60_000, ...closed }: VirtualShellOptions) {
    super();
    this.#files = new ShellFiles(files, closed);
    this.#outputCharacters = outputCharacters;
  }

  override get isSandboxed(): boolean {
    return true;
  }

  override view(): FolderView {
    const resolve = (path: string) => ({ path: posix.normalize(path), isFolder: false });
    const folder = this.#files.folder;
    return { root: ROOT, folder, resolve, names: () => undefined, text: () => undefined };
  }

  override folderAt(path: string): string {
    const folder = posix.resolve(ROOT, path);
    if (folder !== ROOT && !folder.startsWith(`${ROOT}/`))
      throw new Error(`'${path}' leads out of the folder.`);
    return folder;
  }

  override start(request: CommandRequest): RunningCommand {
    const { command, folder, onOutput } = request;
    const output = new StoredOutput(this.#outputCharacters);
    const begun = performance.now();
    const controller = new AbortController();
    let endedBy: CommandEnd['endedBy'];
    const stop = (why: 'time' | 'abort'): void => {
      endedBy ??= why;
      controller.abort();
    };
    const unwatch = watchLimits(request, stop);
    const mounts = [{ mountPoint: ROOT, filesystem: this.#files }];
    const fs = new MountableFs({ base: new InMemoryFs(), mounts });
    // `defenseInDepth` changes globals of the whole process, to protect interpreters that are not enabled here.
    const bash = new Bash({ fs, cwd: this.folderAt(folder), defenseInDepth: false });
    const run = async (): Promise<number> => {
      try {
        const { signal } = controller;
        const { stdout, stderr, exitCode } = await bash.exec(command, { signal, rawScript: true });
        for (const text of [stdout, stderr].filter((one) => one !== '')) {
          output.add(text);
          onOutput?.(text);
        }
        return exitCode;
      } catch (error) {
        output.add(`${errorMessage(error)}\n`);
        return 1;
      }
    };
    const ended = run().then((exitCode): CommandEnd => {
      unwatch();
      return { exitCode, signal: undefined, endedBy, durationMs: performance.now() - begun };
    });
    return {
      output,
      ended,
      async end(why) {
        stop(why);
        await ended;
      },
    };
  }
}

/** Adapts a {@link FileSystem} for `just-bash`. Empty folders exist as long as the shell. */
class ShellFiles implements IFileSystem {
  readonly #files: FileSystem;
  readonly #isUnreadable: (path: string) => boolean;
  readonly #isUnwritable: (path: string) => boolean;
  /** The absolute path that rules have for the folder. */
  readonly folder: string;
  /** Created but still empty folders: the underlying file system has folders only where there are files. */
  readonly #emptyFolders = new Set<string>();

  constructor(files: FileSystem, { unreadable = [], unwritable = [] }: Omit<VirtualShellOptions, 'files'>) {
    this.#files = files;
    this.folder = files.folderOnDisk() ?? ROOT;
    const closed = (patterns: readonly string[]) => anyOf(patterns, this.folder);
    this.#isUnreadable = closed(unreadable);
    this.#isUnwritable = closed([...unwritable, ...PROTECTED_NAMES.map((name) => `**/${name}`)]);
  }

  async readFile(path: string): Promise<string> {
    return new TextDecoder().decode(await this.readFileBuffer(path));
  }

  async readFileBuffer(path: string): Promise<Uint8Array> {
    return this.#named(path, async (own) => (await this.#files.read(own)).bytes);
  }

  async writeFile(path: string, content: FileContent): Promise<void> {
    await this.#changed(path, (own) => this.#files.write(own, bytesOf(content)));
  }

  async appendFile(path: string, content: FileContent): Promise<void> {
    const before = (await this.exists(path)) ? await this.readFileBuffer(path) : new Uint8Array();
    await this.writeFile(path, Buffer.concat([before, bytesOf(content)]));
  }

  async exists(path: string): Promise<boolean> {
    return this.stat(path).then(
      () => true,
      () => false,
    );
  }

  async stat(path: string): Promise<FsStat> {
    return this.#named(path, async (own) => {
      if (own === '.' || this.#emptyFolders.has(own))
        return statOf({ kind: 'folder', size: 0, changedAt: 0 });
      const info = await this.#files.info(own);
      if (info === undefined) throw fault('ENOENT', path);
      return statOf(info);
    });
  }

  async mkdir(path: string, { recursive = false }: MkdirOptions = {}): Promise<void> {
    const isThere = await this.exists(path);
    if (isThere && !recursive) throw fault('EEXIST', path);
    if (!isThere) await this.#changed(path, async (own) => void this.#emptyFolders.add(own));
  }

  async readdir(path: string): Promise<string[]> {
    return this.#named(path, async (own) => {
      const isEmpty = this.#emptyFolders.has(own) && (await this.#files.info(own)) === undefined;
      const entries = isEmpty ? [] : await this.#files.list(own);
      const made = [...this.#emptyFolders].filter((folder) => posix.dirname(folder) === own);
      return [
        ...new Set([...entries.map(({ name }) => name), ...made.map((folder) => posix.basename(folder))]),
      ];
    });
  }

  async rm(path: string, { recursive = false, force = false }: RmOptions = {}): Promise<void> {
    if (!(await this.exists(path))) {
      if (force) return;
      throw fault('ENOENT', path);
    }
    await this.#changed(path, async (own) => {
      for (const folder of this.#emptyFolders)
        if (folder === own || folder.startsWith(`${own}/`)) this.#emptyFolders.delete(folder);
      if ((await this.#files.info(own)) === undefined) return;
      await this.#checkWithin(own, path);
      await this.#files.remove(own, { withContents: recursive });
    });
  }

  async cp(from: string, to: string, { recursive = false }: CpOptions = {}): Promise<void> {
    if (!(await this.stat(from)).isDirectory) return this.writeFile(to, await this.readFileBuffer(from));
    if (!recursive) throw fault('EISDIR', from);
    await this.mkdir(to, { recursive: true });
    for (const name of await this.readdir(from))
      await this.cp(`${from}/${name}`, `${to}/${name}`, { recursive });
  }

  async mv(from: string, to: string): Promise<void> {
    await this.#changed(from, async (own) => {
      await this.#checkWithin(own, from);
      await this.#changed(to, (target) => this.#files.move(own, target));
    });
  }

  resolvePath(base: string, path: string): string {
    return posix.resolve(base, path);
  }

  getAllPaths(): string[] {
    return [];
  }

  async lstat(path: string): Promise<FsStat> {
    return this.stat(path);
  }

  async realpath(path: string): Promise<string> {
    await this.stat(path);
    return posix.resolve('/', path);
  }

  async chmod(path: string): Promise<void> {
    throw fault('EPERM', path);
  }

  async symlink(_target: string, path: string): Promise<void> {
    throw fault('EPERM', path);
  }

  async link(_existing: string, path: string): Promise<void> {
    throw fault('EPERM', path);
  }

  async readlink(path: string): Promise<string> {
    throw fault('EINVAL', path);
  }

  async utimes(path: string): Promise<void> {
    await this.stat(path);
  }

  /** A folder that contains a closed path cannot be moved or removed. */
  async #checkWithin(own: string, path: string): Promise<void> {
    if ((await this.#files.info(own))?.kind !== 'folder') return;
    let closed = false;
    await this.#files.walk(own, ({ path: folder, entries }) => {
      const paths = entries.map(({ name }) => (folder === '.' ? name : `${folder}/${name}`));
      closed ||= paths.some((one) => this.#isUnreadable(one) || this.#isUnwritable(one));
      return closed ? undefined : entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name);
    });
    if (closed) throw fault('EACCES', path);
  }

  async #changed<Value>(path: string, work: (own: string) => Promise<Value>): Promise<void> {
    await this.#named(path, async (own) => {
      if (this.#isUnwritable(own)) throw fault('EACCES', path);
      await work(own);
      for (let folder = posix.dirname(own); folder !== '.'; folder = posix.dirname(folder))
        if ((await this.#files.info(folder)) !== undefined) this.#emptyFolders.delete(folder);
    });
  }

  /** Converts errors to system error codes, which programs expect. */
  async #named<Value>(path: string, work: (own: string) => Promise<Value>): Promise<Value> {
    const own = posix.resolve('/', path).slice(1) || '.';
    if (this.#isUnreadable(own)) throw fault('EACCES', path);
    try {
      return await work(own);
    } catch (error) {
      throw error instanceof FileSystemError ? fault(CODES[error.problem] ?? 'EIO', path) : error;
    }
  }
}

const CODES: Readonly<Record<string, string>> = {
  outside: 'EACCES',
  missing: 'ENOENT',
  link: 'EACCES',
  kind: 'EISDIR',
  exists: 'EEXIST',
  'not-empty': 'ENOTEMPTY',
  'not-permitted': 'EACCES',
};

function bytesOf(content: FileContent): Uint8Array {
  return typeof content === 'string' ? new TextEncoder().encode(content) : content;
}

function fault(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: '${path}'`), { code });
}

function statOf({
  kind,
  size,
  changedAt,
  mode,
}: Pick<FileInfo, 'kind' | 'size' | 'changedAt' | 'mode'>): FsStat {
  const isDirectory = kind === 'folder';
  return {
    ...{ isFile: kind === 'file', isDirectory, isSymbolicLink: kind === 'link', size },
    ...{ mode: mode ?? (isDirectory ? 0o755 : 0o644), mtime: new Date(changedAt) },
  };
}

/** Whether one of the patterns matches a path or one of its parent folders. */
function anyOf(patterns: readonly string[], root: string): (path: string) => boolean {
  const matchers = (all: readonly string[]) => all.map((pattern) => globMatcher(foldedPath(pattern)));
  const own = matchers(patterns);
  const absolute = matchers(
    patterns.filter((one) => isAbsolute(one)).flatMap((one) => [one, withoutLinks(one)]),
  );
  return (path) => {
    const names = foldedPath(path).split('/');
    const ways = names.map((_, index) => names.slice(0, index + 1).join('/'));
    const isClosed = (way: string): boolean =>
      own.some((fits) => fits(way)) || absolute.some((fits) => fits(foldedPath(`${root}/${way}`).slice(1)));
    return ways.some(isClosed);
  };
}
