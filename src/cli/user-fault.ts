/** A mistake of whoever typed the command: one line, and the exit code 2; or 1 where the files are at fault. */
export class UserFault extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
