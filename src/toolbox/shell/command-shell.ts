/** What has to be known of a folder to tell what a command would access in it. */
export interface FolderView {
  /** The folder, absolute, without links. */
  readonly root: string;
  /** What an absolute path is in the end, as the system reads it: with links followed, and `..` behind them. */
  resolve(path: string): { readonly path: string; readonly isFolder: boolean };
  /** Names in a folder; nothing where it is none. */
  names(path: string): readonly string[] | undefined;
  /** The text of a file; nothing where there is none. */
  text(path: string): string | undefined;
}

/** How a command is run. */
export interface CommandRequest {
  /** For Bash. */
  readonly command: string;
  /** Where, relative to the folder of the shell. */
  readonly folder: string;
  /** Aborted when it has to end; then all that it has started ends too. */
  readonly signal?: AbortSignal;
  /** Milliseconds after which it is ended. */
  readonly timeoutMs?: number;
  /** Hears of what it writes, as it comes. */
  readonly onOutput?: (text: string) => void;
}

/** How a command ended. */
export interface CommandEnd {
  /** Nothing where a signal ended it. */
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
  /** Ends it and all that it has started; done when they are gone. */
  end(why: 'time' | 'abort'): Promise<void>;
}

/** What a command has written: its beginning and its end, where it is too long to be kept. */
export interface OutputView {
  /** All of it that is kept, with a line that says what is missing. */
  text(): string;
  /** What came behind a place of it, and the place to go on from. */
  since(place: number): { readonly text: string; readonly place: number };
}

/**
 * Where the shell tools run commands. An abstract class, so that it can be injected: register {@link LocalShell},
 * a `sandboxShell` or `virtualShell`, or one of your own that runs them in a container or on another machine.
 */
export abstract class CommandShell {
  /** Containers make an instance of any class that nobody has registered. */
  constructor() {
    if (new.target === CommandShell)
      throw new TypeError(
        'no CommandShell is registered: register a LocalShell for it, or use shellTools({ folder })',
      );
  }

  /**
   * Whether the operating system keeps its commands away from everything but the folder, so that mode `auto` of
   * `Permissions` can let them run. Default: no.
   */
  get isSandboxed(): boolean {
    return false;
  }

  /** Starts a command; throws where that cannot be. */
  abstract start(request: CommandRequest): RunningCommand;
  /** What tells what a command would access, before it runs. */
  abstract view(): FolderView;
  /** The folder that a path names, absolute; throws where it is none, or outside. */
  abstract folderAt(path: string): string;
}
