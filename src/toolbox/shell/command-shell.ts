/** Finds out what a command would access in a folder. */
export interface FolderView {
  /** The folder, absolute, without links. */
  readonly root: string;
  /** What an absolute path is in the end, as the system reads it: with links followed, and `..` behind them. */
  resolve(path: string): { readonly path: string; readonly isFolder: boolean };
  /** Names in a folder; `undefined` if it is not one. */
  names(path: string): readonly string[] | undefined;
  /** The text of a file; `undefined` if there is none. */
  text(path: string): string | undefined;
}

/** How a command is run. */
export interface CommandRequest {
  /** For Bash. */
  readonly command: string;
  /** Where, relative to the folder of the shell. */
  readonly folder: string;
  /** Aborted when it has to end; then everything that it has started ends too. */
  readonly signal?: AbortSignal;
  /** Milliseconds after which it is ended. */
  readonly timeoutMs?: number;
  /** Receives what it writes, as it comes. */
  readonly onOutput?: (text: string) => void;
}

/** How a command ended. */
export interface CommandEnd {
  /** `undefined` if a signal ended it. */
  readonly exitCode: number | undefined;
  /** `SIGSEGV`, … */
  readonly signal: string | undefined;
  /** What ended it before its own end. */
  readonly endedBy?: 'time' | 'abort';
  readonly durationMs: number;
}

/** A command that was started. */
export interface RunningCommand {
  /** What it has written so far. */
  readonly output: OutputView;
  /** Its end; never rejects. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it and everything that it has started; resolves when they are gone. */
  end(why: 'time' | 'abort'): Promise<void>;
}

/** What a command has written: its beginning and its end, if it is too long to be stored. */
export interface OutputView {
  /** All of it that is stored, with a line that says what is missing. */
  text(): string;
  /** What came behind a place of it, and the place to go on from. */
  since(place: number): { readonly text: string; readonly place: number };
}

/** Stores the beginning and the end of an output that may be endless. */
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
    // Not at each line: that would be a copy each time.
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
  return missing > 0 ? `${before}… (${missing} characters are left out here)\n` : '';
}

/**
 * Where the shell tools run commands. An abstract class, so that it can be injected: register {@link LocalShell},
 * a `sandboxShell` or `virtualShell`, or one of your own that runs them in a container or on another machine.
 */
export abstract class CommandShell {
  /** Containers make an instance of any class that is not registered. */
  constructor() {
    if (new.target === CommandShell)
      throw new TypeError(
        'no CommandShell is registered: register a LocalShell for it, or use shellTools({ folder })',
      );
  }

  /** Whether the operating system keeps its commands in the folder, so that mode `auto` of `Permissions` lets them run. */
  get isSandboxed(): boolean {
    return false;
  }

  /** Starts a command; throws if that is impossible. */
  abstract start(request: CommandRequest): RunningCommand;
  /** Finds out what a command would access, before it runs. */
  abstract view(): FolderView;
  /** The folder that a path names, absolute; throws if it is none, or outside. */
  abstract folderAt(path: string): string;
}
