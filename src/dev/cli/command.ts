/** What a command sees of the world around it. */
export interface CommandEnvironment {
  /** Paths on the command line are relative to it. */
  readonly folder: string;
  out(text: string): void;
  /** Everything that is not the answer: complaints, progress. */
  error(text: string): void;
  /** Somebody watches: progress may be shown. */
  readonly isTerminal: boolean;
  /** The input; default: the standard input. */
  readonly input?: NodeJS.ReadableStream;
  /** Ends commands that run until they are stopped. */
  readonly signal?: AbortSignal;
}

/** A subcommand, loaded only when it is called. */
export interface Command {
  /** The exit code: 0, or 1 where something is wrong with what was looked at. */
  run(args: readonly string[], environment: CommandEnvironment): Promise<number>;
}

/** A mistake of whoever typed the command: one line, and the exit code 2; or 1 where the files are at fault. */
export class UserFault extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
