import type { Writable } from 'node:stream';
import { HELP, readCommandLine } from './command-line.js';
import { runBoth } from './run-both.js';
import { runSatellite } from './run-satellite.js';
import { runServer } from './run-server.js';
import { UserFault } from './user-fault.js';

/** Receives the help text and error messages. */
export interface Outputs {
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Runs the command line and returns the exit code. An error is printed as one line. */
export async function runProgram(args: readonly string[], { stdout, stderr }: Outputs): Promise<number> {
  try {
    const command = readCommandLine(args);
    if (command.program === 'help') stdout.write(HELP);
    if (command.program === 'server') await runServer(command);
    if (command.program === 'satellite') await runSatellite(command);
    if (command.program === 'both') await runBoth(command);
    return 0;
  } catch (error) {
    stderr.write(`satellite: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof UserFault ? error.exitCode : 1;
  }
}
