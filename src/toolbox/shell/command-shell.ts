import { onAbort } from '../../core/kernel/async.js';

/** A view of the file system, to find out what a command would access. */
export interface FolderView {
  /** The folder, absolute, without links. */
  readonly root: string;
  /** Its absolute path for file tools and rules, if that is another path. */
  readonly folder?: string;
  /** Resolves an absolute path as the system does: follows links, and resolves `..` after them. */
  resolve(path: string): { readonly path: string; readonly isFolder: boolean };
  /** Names in a folder; `undefined` if it is not a folder. */
  names(path: string): readonly string[] | undefined;
  /** The text of a file; `undefined` if there is none. */
  text(path: string): string | undefined;
}

/** A command to run. */
export interface CommandRequest {
  /** Text for Bash. */
  readonly command: string;
  /** The working directory, relative to the folder of the shell. */
  readonly folder: string;
  /** Abort it to end the command and everything that it has started. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the command is ended. */
  readonly timeoutMs?: number;
  /** Receives the output as it arrives. */
  readonly onOutput?: (text: string) => void;
}

/** The outcome of a command. */
export interface CommandEnd {
  /** `undefined` if a signal ended it. */
  readonly exitCode: number | undefined;
  /** `SIGSEGV`, … */
  readonly signal: string | undefined;
  /** Why it was ended early. */
  readonly endedBy?: 'time' | 'abort';
  readonly durationMs: number;
}

/** A command that was started. */
export interface RunningCommand {
  /** Its output so far. */
  readonly output: OutputView;
  /** Its outcome; never rejects. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it and everything that it has started; resolves once all of it has ended. */
  end(why: 'time' | 'abort'): Promise<void>;
}

/** Ends a command when its signal is aborted, or when its time is over. Returns a function that stops this. */
export function watchLimits(
  { signal, timeoutMs }: CommandRequest,
  end: (why: 'time' | 'abort') => void,
): () => void {
  const unfollow = signal && onAbort(signal, () => end('abort'));
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => end('time'), timeoutMs);
  return () => {
    clearTimeout(timer);
    unfollow?.();
  };
}

/** The output of a command. If it is too long, only its start and end are stored. */
export interface OutputView {
  /** The stored output, with a note about what is missing. */
  text(): string;
  /** The output after a position, and the position to continue from. */
  since(place: number): { readonly text: string; readonly place: number };
}

/** Stores the start and the end of an output of any length. */
export class StoredOutput implements OutputView {
  readonly #half: number;
  #head = '';
  #tail = '';
  #length = 0;

  constructor(characters: number) {
    this.#half = Math.floor(characters / 2);
  }

  add(text: string): void {
    this.#length += text.length;
    const room = Math.max(0, this.#half - this.#head.length);
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    // Not after each line: that would copy the text each time.
    if (this.#tail.length > this.#half * 2) this.#tail = this.#tail.slice(-this.#half);
  }

  text(): string {
    const tail = this.#tail.slice(-this.#half);
    const missing = this.#length - this.#head.length - tail.length;
    return (this.#head + gapOf(missing, '\n') + tail).toWellFormed();
  }

  since(place: number): { readonly text: string; readonly place: number } {
    if (place <= 0) return { text: this.text(), place: this.#length };
    const isWhole = this.#head.length + this.#tail.length === this.#length;
    const stored = isWhole ? this.#head + this.#tail : this.#tail;
    const start = this.#length - stored.length;
    const text = gapOf(start - place, '') + stored.slice(Math.max(0, place - start));
    return { text: text.toWellFormed(), place: this.#length };
  }
}

function gapOf(missing: number, before: string): string {
  return missing > 0 ? `${before}… (${missing} characters omitted)\n` : '';
}

/**
 * Where the shell tools run commands. It is an abstract class, so that it can be injected: register {@link LocalShell},
 * a `sandboxShell` or `virtualShell`, or your own shell for a container or another machine.
 */
export abstract class CommandShell {
  /** Throws if the abstract class itself is instantiated: containers do that with unregistered classes. */
  constructor() {
    if (new.target === CommandShell)
      throw new TypeError(
        'no CommandShell is registered: register a LocalShell for it, or use shellTools({ folder })',
      );
  }

  /** Whether the operating system restricts commands to the folder; mode `auto` of `Permissions` then allows them. */
  get isSandboxed(): boolean {
    return false;
  }

  /** Starts a command; throws if that is impossible. */
  abstract start(request: CommandRequest): RunningCommand;
  /** A view to find out what a command would access. */
  abstract view(): FolderView;
  /** The absolute path of a folder; throws if it is not a folder, or outside. */
  abstract folderAt(path: string): string;
}
