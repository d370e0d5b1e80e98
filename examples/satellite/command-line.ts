import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { UserFault } from './user-fault.js';

/** The options of the command line. */
export interface CommandLine {
  readonly program: 'server' | 'satellite' | 'both' | 'help';
  /** Absolute path of the folder in which the program stores its data. */
  readonly dataFolder: string;
  readonly port: number;
  /** The address of the server. */
  readonly url: string;
  /** Continue the last conversation. */
  readonly resume: boolean;
  readonly question: string;
}

/** Shown by `--help`. */
export const HELP = `Usage: main.js server [--port 8377] [--data <dir>]
       main.js satellite [--url http://127.0.0.1:8377] [--data <dir>] <question>
       main.js satellite --resume
       main.js <question>        both programs, for one question

Environment:
  SATELLITE_TOKEN   what the server asks for and the satellite sends (default: nothing)
  STATION_URL       a weather station for the satellite to read (default: samples)
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL   the server's model (default: an offline stand-in)
`;

const OPTIONS = {
  port: { type: 'string', default: '8377' },
  url: { type: 'string', default: 'http://127.0.0.1:8377' },
  data: { type: 'string', default: '.satellite' },
  resume: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Reads the arguments. Throws a {@link UserFault} if they are wrong. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parse(args);
  const [first = ''] = positionals;
  const program = first === 'server' || first === 'satellite' ? first : 'both';
  const command: CommandLine = {
    program: values.help ? 'help' : program,
    dataFolder: resolve(values.data),
    port: Number(values.port),
    url: values.url,
    resume: values.resume,
    question: positionals.slice(program === 'both' ? 0 : 1).join(' '),
  };
  const fault = faultIn(command);
  if (fault !== undefined) throw wrong(fault);
  return command;
}

function faultIn({ program, port, url, resume, question }: CommandLine): string | undefined {
  const hasQuestion = question.trim() !== '';
  if (program === 'help') return undefined;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return '--port must be 0 to 65535';
  if (!/^https?:\/\/./i.test(url) || !URL.canParse(url)) return `--url is not an http address: ${url}`;
  if (program === 'server' && hasQuestion) return `the server takes no question: ${question}`;
  if (resume && (program !== 'satellite' || hasQuestion))
    return '--resume is for a satellite without a question';
  if (program === 'satellite' && !hasQuestion && !resume) return 'there is no question';
  return undefined;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/[.\n]/);
    throw wrong(sentence);
  }
}

function wrong(problem: string): UserFault {
  return new UserFault(`${problem}; see --help`, 2);
}
