import { posix } from 'node:path';
import { Bash, InMemoryFs, MountableFs } from 'just-bash';
import { checkOptions } from '../../errors/author-fault.js';
import { onAbort } from '../../kernel/async.js';
import {
  COUNT,
  FILLED_TEXT,
  instanceOf,
  listOf,
  optionTable,
  protecting,
  required,
} from '../../kernel/options.js';
import { FileSystem } from '../files/file-system.js';
import {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type RunningCommand,
  StoredOutput,
} from '../shell/command-shell.js';

import { ShellFiles } from './shell-files.js';

/** What {@link virtualShell} is made from. */
export interface VirtualShellOptions {
  /** The folder that commands see as `/work`. */
  readonly files: FileSystem;
  /** Patterns of paths that commands may not read, as `**\/.env*`. */
  readonly unreadable?: readonly string[];
  /** Patterns of paths that commands may read, and not write. */
  readonly unwritable?: readonly string[];
  /** How many characters of its output are stored of a command; default: 60,000. */
  readonly outputCharacters?: number;
}

const PATTERNS = protecting(listOf(FILLED_TEXT, "['**/.env*']"));

const OPTIONS = optionTable<VirtualShellOptions>('virtualShell', {
  files: required(instanceOf(FileSystem, 'new DiskFileSystem({ root }), or another FileSystem')),
  unreadable: PATTERNS,
  unwritable: PATTERNS,
  outputCharacters: COUNT,
});

/** Where commands see the folder. */
const ROOT = '/work';

/**
 * A shell without processes: Bash as a library, with its own `grep`, `sort`, `sed`, `jq` and their like, over a file
 * system of the file tools. It starts no program, has no network, and sees nothing but that folder.
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
    return { root: ROOT, resolve, names: () => undefined, text: () => undefined };
  }

  override folderAt(path: string): string {
    const folder = posix.resolve(ROOT, path);
    if (folder !== ROOT && !folder.startsWith(`${ROOT}/`))
      throw new Error(`'${path}' leads out of the folder.`);
    return folder;
  }

  override start({ command, folder, signal, timeoutMs, onOutput }: CommandRequest): RunningCommand {
    const output = new StoredOutput(this.#outputCharacters);
    const begun = performance.now();
    const controller = new AbortController();
    let endedBy: CommandEnd['endedBy'];
    const stop = (why: 'time' | 'abort'): void => {
      endedBy ??= why;
      controller.abort();
    };
    const unfollow = signal === undefined ? undefined : onAbort(signal, () => stop('abort'));
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop('time'), timeoutMs);
    const fs = new MountableFs({
      base: new InMemoryFs(),
      mounts: [{ mountPoint: ROOT, filesystem: this.#files }],
    });
    // Its defence changes globals of the whole process, for interpreters that are not switched on here.
    const bash = new Bash({ fs, cwd: this.folderAt(folder), defenseInDepth: false });
    const run = async (): Promise<number> => {
      try {
        const { stdout, stderr, exitCode } = await bash.exec(command, {
          signal: controller.signal,
          rawScript: true,
        });
        for (const text of [stdout, stderr].filter((one) => one !== '')) {
          output.add(text);
          onOutput?.(text);
        }
        return exitCode;
      } catch (error) {
        output.add(`${error instanceof Error ? error.message : String(error)}\n`);
        return 1;
      }
    };
    const ended = run().then((exitCode): CommandEnd => {
      clearTimeout(timer);
      unfollow?.();
      const why = endedBy === undefined ? {} : { endedBy };
      return { exitCode, signal: undefined, ...why, durationMs: performance.now() - begun };
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
