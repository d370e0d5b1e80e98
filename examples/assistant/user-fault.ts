/** An error that the user can fix: printed as one line without a stack. */
export class UserFault extends Error {
  /** 2 for a wrong command line, as shells do; otherwise 1. */
  readonly exitCode: number;

  constructor(
    message: string,
    { exitCode = 1, cause }: { readonly exitCode?: number; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}
