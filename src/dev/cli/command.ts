/** The environment of a command. */
export interface CommandEnvironment {
  /** The folder for relative paths on the command line. */
  readonly folder: string;
  out(text: string): void;
  /** Writes errors and progress; results go to `out`. */
  error(text: string): void;
  /** Whether to show progress, because a user is watching. */
  readonly isTerminal: boolean;
  /** The input; default: standard input. */
  readonly input?: NodeJS.ReadableStream;
  /** Ends commands that run until they are stopped. */
  readonly signal?: AbortSignal;
}

/** A subcommand, loaded only when it is called. */
export interface Command {
  /** Returns the exit code: 0, or 1 if what was checked has faults. */
  run(args: readonly string[], environment: CommandEnvironment): Promise<number>;
}

/** A mistake of the user: one line and exit code 2, or 1 if files are at fault. */
export class UserFault extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
