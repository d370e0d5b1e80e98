import type { CommandEnvironment } from '../../../src/dev/cli/command.js';
import { runCommandLine } from '../../../src/dev/cli/run-command-line.js';

/** The outcome of a command line. */
export interface CommandRun {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Runs a command line in this process, with a working folder. */
export async function runCommand(
  args: readonly string[],
  folder: string,
  { isTerminal = false, input }: Partial<Pick<CommandEnvironment, 'isTerminal' | 'input'>> = {},
): Promise<CommandRun> {
  let out = '';
  let error = '';
  const code = await runCommandLine(args, {
    folder,
    out: (text) => {
      out += text;
    },
    error: (text) => {
      error += text;
    },
    isTerminal,
    ...(input && { input }),
  });
  return { code, out, error };
}
