import { ToolwrightError } from '../../core/errors/toolwright-error.js';
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
    'the store of the runs; postgres://…?schema=shop if their schema is not toolwright',
  '--status status': 'list: only runs that are running, suspended or ended',
  '--limit n': 'list: how many runs, from 1 to 1000; default: 50',
  '--after place': 'list: the next page; the place is printed at the end of a page',
  '--json': 'list, show, approvals, schedules: one line of JSON for each item',
  '--to id': 'answer: the question to answer, if there are several; show lists them',
  '--approve': 'answer: approves the call',
  '--arguments json': 'answer --approve: the arguments of the call instead of its own; requires --module',
  '--remember scope':
    'answer --approve: also approves later calls of the run, conversation or user; requires --module',
  '--until time': 'answer --remember: when the approval expires: 2027-01-01T00:00:00Z',
  '--refuse': 'answer: refuses the call',
  '--value json': 'answer: the answer to a question',
  '--result json': 'answer: the result of a call that is executed elsewhere',
  '--done json': 'answer: an interrupted call was done, with this result',
  '--not-done': 'answer: an interrupted call was not done, and runs now',
  '--reason text':
    'answer --refuse, cancel: the reason, which the model reads or the error of the run contains',
  '--by name': 'answer: who answers, if it is not the owner; stored with the call',
  '--module file':
    'answer: a module that exports the config of the runs, or a NestJS module; its tools check the answer',
  '--on-unknown ask|error|rerun': 'recover: how to continue calls whose outcome is unknown; default: ask',
};

const INSPECT_OPTIONS =
  '[--port n] [--store postgres://…|file] [--tests folder] [--recordings folder] [--by name] [--allow-in-production]';

/** The module of a command is loaded when it is called. */
const COMMANDS: Readonly<Record<string, ListedCommand>> = {
  agent: {
    usage:
      'agent [folder] [--model name] [--url http://…/v1 | --offline] [--config file] [--mode read-only|ask|auto] [--sandbox external] [--continue | --session id | --sessions] [--interactive]',
    summary:
      'runs an assistant on the terminal that works in a folder: files, commands, tasks and pages, with permissions',
    load: () => import('./agent-command.js'),
  },
  call: {
    usage: "call <module> <tool> ['{…}'] [--data json] [--yes] [--json]",
    summary:
      'calls a tool through its whole pipeline; asks on the terminal for the approvals and answers that the call needs',
    options: {
      '--data json': 'the data of the call’s context: \'{"userId":"u1"}\'',
      '--yes': 'approves the call; questions of the tool still need an answer',
      '--json': 'prints the result as JSON; without a result, only the error output has the reason',
    },
    load: async () => ({ command: (await import('./chat-command.js')).callCommand }),
  },
  dev: {
    usage: `dev <module> ${INSPECT_OPTIONS}`,
    summary: 'serves the inspector for a module, with a chat, and restarts it when a source changes',
    load: () => import('./dev-command.js'),
  },
  doctor: {
    usage: 'doctor [--store postgres://…|file] [--module file] [--project tsconfig.json]',
    summary: 'checks the project, its packages, a store and its jobs, and reports what to fix',
    options: {
      '--store postgres://…|file': 'checks its connection and tables, and whether workers take its jobs',
      '--module file': 'the module of the workers: checks that it has the tools of these jobs',
      '--project, --out, --import-ending': 'the options with which generate is called, if any',
    },
    load: () => import('./doctor-command.js'),
  },
  generate: {
    usage:
      'generate [--project tsconfig.json] [--out file] [--import-ending js|ts|none] [--check | --watch] [--strict]',
    summary:
      'writes the schemas of the toolsets, read from their types, into a file that the application imports',
    load: () => import('./generate-command.js'),
  },
  chat: {
    usage: 'chat <module> [--model name | --offline] [--data json] [--interactive]',
    summary: 'starts a chat on the terminal with the tools of a built module',
    load: () => import('./chat-command.js'),
  },
  eval: {
    usage:
      'eval <module> <cases.jsonl> [--model name] [--url http://…/v1] [--runs n] [--concurrency n] [--min 0.9] [--baseline file] [--accept] [--out file]',
    summary: 'checks with a file of cases whether a model chooses the right tools with the right arguments',
    load: () => import('./eval-command.js'),
  },
  init: {
    usage: 'init',
    summary: 'configures the project so that its build keeps the generated file up to date',
    load: () => import('./init-command.js'),
  },
  inspect: {
    usage: `inspect <module> ${INSPECT_OPTIONS}`,
    summary: 'serves a page on this machine to call the tools of a built module, watch runs and answer them',
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
        'the name that clients see; server-json: the name in the registry, if package.json has no mcpName',
      '--allow, --deny name|glob': 'only these tools; all tools except these',
      '--token token': 'check: the token for the server, so that protected tools are checked, too',
      '--json': 'check: the findings as JSON',
      '--url https://…': 'server-json: the address of the remote server',
    },
    load: () => import('./mcp-command.js'),
  },
  runs: {
    usage:
      'runs list | show <run> | answer <run> --approve|--refuse|--value json|--result json|--done json|--not-done | cancel <run> | recover <module> | approvals | revoke <approval> | schedules | unschedule <schedule> --store postgres://…|file',
    summary:
      'lists, shows, answers, cancels and recovers the runs of a store; lists and revokes its standing approvals; lists and cancels its schedules',
    options: RUNS_OPTIONS,
    load: () => import('./runs-command.js'),
  },
  worker: {
    usage: 'worker <module> [--store postgres://…|file]',
    summary: 'processes turns of conversations, runs jobs and recovers runs until SIGTERM or SIGINT',
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
        `there is no command '${name}'${suggested(name, Object.keys(COMMANDS))}; toolwright --help lists the commands`,
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
  if (ToolwrightError.is(error)) return new UserFault(error.message, 1);
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
