import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Surroundings } from './surroundings.js';
import { UserFault } from './user-fault.js';

/** The options of the command line. */
export interface CommandLine {
  readonly action: 'run' | 'help' | 'version';
  /** Absolute path. */
  readonly dataFolder: string;
  readonly json: boolean;
  readonly verbose: boolean;
  /** The words of the request; `undefined` if there are none. */
  readonly request?: string;
}

/** Shown by `--help`. */
export const HELP = `Usage: npm start -- [options] [request]

An assistant for notes, contacts, invoices and reminders.
Without a request it opens a prompt; piped text is the request; with neither it shows a short tour.

Options:
  --data <dir>    where everything is kept (default: $ASSISTANT_DATA, then .assistant)
  --json          print the result of the run as one line of JSON, and nothing else
  --verbose       log to standard error what the framework does
  -h, --help      show this help
  -v, --version   show the version

Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL   the model to use; without a key and a
                                                  base URL an offline stand-in is used
`;

const OPTIONS = {
  data: { type: 'string' },
  json: { type: 'boolean', default: false },
  verbose: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const;

/** Reads the arguments. Throws a {@link UserFault} with exit code 2 if they are wrong. */
export function readCommandLine(
  args: readonly string[],
  { environment, folder }: Pick<Surroundings, 'environment' | 'folder'>,
): CommandLine {
  const { values, positionals } = parse(args);
  const dataFolder = values.data ?? (environment.ASSISTANT_DATA || '.assistant');
  if (dataFolder.trim() === '') throw wrong('--data needs a folder');
  return {
    action: values.help ? 'help' : values.version ? 'version' : 'run',
    dataFolder: resolve(folder, dataFolder),
    json: values.json,
    verbose: values.verbose,
    request: positionals.length > 0 ? positionals.join(' ') : undefined,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Node adds how to pass the option as a positional argument, which users rarely want.
    const [sentence = ''] = (error as Error).message.split(/[.\n]/);
    throw wrong(sentence, error);
  }
}

function wrong(problem: string, cause?: unknown): UserFault {
  return new UserFault(`${problem}; see --help`, { exitCode: 2, cause });
}
