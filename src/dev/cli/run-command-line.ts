import type { Fields } from '../../core/kernel/json.js';
import { nearestName } from '../../core/kernel/nearest-name.js';
import { visibleText } from '../../core/kernel/visible-text.js';
import {
  type Command,
  type CommandEnvironment,
  FLAG,
  installAdvice,
  parseOptions,
  UserFault,
} from './command.js';

interface ListedCommand {
  readonly usage: string;
  readonly summary: string;
  /** All options, if the usage does not list them. */
  readonly options?: Readonly<Record<string, string>>;
  load(): Promise<{ readonly command: Command }>;
}

const RUNS_OPTIONS = {
  '--store postgres://…|file':
    'where the runs are; postgres://…?schema=shop in another schema than toolwright',
  '--status status': 'list: only those that are running, suspended or ended',
  '--limit n': 'list: how many, from 1 to 1000; 50 without it',
  '--after place': 'list: the page after one that said where the next begins',
  '--json': 'list, show, approvals, schedules: a line of JSON for each',
  '--to id': 'answer: which of several questions; show lists them',
  '--approve': 'answer: yes, the call is made',
  '--arguments json': 'answer --approve: with these arguments; goes with --module',
  '--remember scope':
    'answer --approve: also for later calls of the run, conversation or user; goes with --module',
  '--until time': 'answer --remember: no longer than until then: 2027-01-01T00:00:00Z',
  '--refuse': 'answer: no, the call is not made',
  '--value json': 'answer: to a question',
  '--result json': 'answer: what a call came to that is made elsewhere',
  '--done json': 'answer: a call that was under way was done, and came to that',
  '--not-done': 'answer: it was not, and is made now',
  '--reason text': 'answer --refuse, cancel: why; the model, or the error of the run, tells it',
  '--by name': 'answer: who answers, where that is not the owner; kept with the call',
  '--module file':
    'answer: exports the config of the runs, or is a NestJS module; its tools check what is answered',
  '--on-unknown ask|error|rerun':
    'recover: what becomes of calls of which nobody knows whether they were made',
};

const INSPECT_OPTIONS =
  '[--port n] [--store postgres://…|file] [--tests folder] [--recordings folder] [--by name] [--allow-in-production]';

/** The module of a command is loaded when it is called. */
const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  agent: {
    usage:
      'agent [folder] [--model name] [--url http://…/v1 | --offline] [--config file] [--mode read-only|ask|auto] [--sandbox external] [--continue | --session id | --sessions] [--interactive]',
    summary:
      'an assistant on the terminal over a folder: files, commands, tasks and pages, behind permissions',
    load: () => import('./agent-command.js'),
  },
  call: {
    usage: "call <module> <tool> ['{…}'] [--data json] [--yes] [--json]",
    summary: 'calls a tool through its whole pipeline; asks at the terminal for what the call waits for',
    options: {
      '--data json': 'the data of the call’s context: \'{"userId":"u1"}\'',
      '--yes': 'approves the call',
      '--json': 'prints the result as JSON',
    },
    load: async () => ({ command: (await import('./chat-command.js')).callCommand }),
  },
  dev: {
    usage: `dev <module> ${INSPECT_OPTIONS}`,
    summary: 'serves the inspector for a module, with a chat, and restarts it whenever a source changes',
    load: () => import('./dev-command.js'),
  },
  doctor: {
    usage: 'doctor [--store postgres://…|file] [--module file] [--project tsconfig.json]',
    summary:
      'looks whether the project, its packages, a store and its jobs are as they should be, and says what to do',
    options: {
      '--store postgres://…|file':
        'whether it can be reached, has the tables of this version, and jobs that nobody takes',
      '--module file': 'that of the workers: whether it has the tools of these jobs',
      '--project, --out, --import-ending': 'the generated file, where generate is called with these, too',
    },
    load: () => import('./doctor-command.js'),
  },
  generate: {
    usage:
      'generate [--project tsconfig.json] [--out file] [--import-ending js|ts|none] [--check | --watch] [--strict]',
    summary: 'writes what the types of the toolsets say into a file that the application imports',
    load: () => import('./generate-command.js'),
  },
  chat: {
    usage: 'chat <module> [--model name | --offline] [--data json] [--interactive]',
    summary: 'a conversation over the tools of a built module, on the terminal',
    load: () => import('./chat-command.js'),
  },
  eval: {
    usage:
      'eval <module> <cases.jsonl> [--model name] [--url http://…/v1] [--runs n] [--concurrency n] [--min 0.9] [--baseline file] [--accept] [--out file]',
    summary: 'asks a model a file of cases: does it choose the right tools with the right arguments',
    load: () => import('./eval-command.js'),
  },
  init: {
    usage: 'init',
    summary: 'writes the lines that keep the generated file current into the project’s configuration',
    load: () => import('./init-command.js'),
  },
  inspect: {
    usage: `inspect <module> ${INSPECT_OPTIONS}`,
    summary:
      'serves a page on the tools of a built module, for this machine: call them, watch runs, answer them',
    load: () => import('./inspect-command.js'),
  },
  list: {
    usage: 'list <module> [--strict | --schema]',
    summary:
      'lists the tools of a module with the source and the size of their schemas, their strict forms, or the schemas as JSON',
    load: () => import('./list-command.js'),
  },
  mcp: {
    usage:
      'mcp <module> [--name name] [--allow name|glob …] [--deny name|glob …] | check <url|module> | server-json',
    summary:
      'serves the tools of a built module to an MCP client over standard input and output; checks a server; writes server.json',
    options: {
      '--name name':
        'what clients see; server-json: the name in the registry, where package.json has no mcpName',
      '--allow, --deny name|glob': 'only these tools, all but these',
      '--token token': 'check: signed in, so that protected tools are looked at, too',
      '--json': 'check: the findings as JSON',
      '--url https://…': 'server-json: where the server is reached',
    },
    load: () => import('./mcp-command.js'),
  },
  runs: {
    usage:
      'runs list | show <run> | answer <run> --approve|--refuse|--value json|--result json|--done json|--not-done | cancel <run> | recover <module> | approvals | revoke <approval> | schedules | unschedule <schedule> --store postgres://…|file',
    summary:
      'lists the runs of a store and shows, answers, cancels and recovers them; lists and ends its standing approvals and its schedules',
    options: RUNS_OPTIONS,
    load: () => import('./runs-command.js'),
  },
  worker: {
    usage: 'worker <module> [--store postgres://…|file]',
    summary: 'takes turns of conversations, runs jobs and recovers runs until SIGTERM or SIGINT',
    load: () => import('./worker-command.js'),
  },
};

/**
 * Runs a command line and returns the exit code. Mistakes of the user are printed in one line; other errors are
 * mistakes of this program and are rethrown.
 */
export async function runCommandLine(
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<number> {
  const asked = args[0] === 'help' ? [...args.slice(1), '--help'] : args;
  const [name, ...rest] = asked;
  const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (name === undefined || name.startsWith('-')) {
      const { help: isAsked } = parseOptions(asked, { help: { ...FLAG, short: 'h' } });
      const commands = Object.values(COMMANDS).map(
        ({ usage, summary }) => `  toolwright ${usage}\n      ${summary}\n`,
      );
      const help = ['Usage:', ...commands, '  toolwright --help | --version', ''].join('\n');
      (isAsked ? environment.out : environment.error)(help);
      return isAsked ? 0 : 2;
    }
    if (command === undefined)
      throw new UserFault(
        `there is no command '${name}'${suggested(name, Object.keys(COMMANDS))}; toolwright --help lists them`,
      );
    if (rest.includes('--help') || rest.includes('-h')) {
      const { usage, summary, options = {} } = command;
      const width = Math.max(...Object.keys(options).map((option) => option.length));
      const lines = Object.entries(options).map(([option, what]) => `  ${option.padEnd(width)}  ${what}\n`);
      environment.out(
        `toolwright ${usage}\n\n${summary}\n${lines.length === 0 ? '' : `\n${lines.join('')}`}`,
      );
      return 0;
    }
    const loaded = await command.load();
    return await loaded.command(rest, environment);
  } catch (error) {
    const fault = userFault(error, command);
    if (fault === undefined) throw error;
    environment.error(`toolwright: ${visibleText(fault.message)}\n`);
    return fault.exitCode;
  }
}

/** The first sentence of an error of `parseArgs` explains what is wrong with the command line. */
function userFault(error: unknown, command: ListedCommand | undefined): UserFault | undefined {
  if (error instanceof UserFault) return error;
  const advice = installAdvice(error);
  if (advice !== undefined) return new UserFault(advice, 1);
  const { code, message } = Object(error) as Fields;
  if (!String(code).startsWith('ERR_PARSE_ARGS')) return undefined;
  const { usage = '--help | --version', options = {} } = command ?? {};
  const [, unknown = ''] = /^Unknown option '(--[^']+)'/.exec(String(message)) ?? [];
  const known = `${usage} ${Object.keys(options)}`.match(/--[\w-]+/g) ?? [];
  return new UserFault(`${String(message).split('. ')[0]}${suggested(unknown, known)}: toolwright ${usage}`);
}

function suggested(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === undefined ? '' : ` (did you mean ${near}?)`;
}
