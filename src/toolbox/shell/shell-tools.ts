import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import { keyOfPlace } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorResult, ToolResult, toolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { onAbort } from '../../core/kernel/async.js';
import { requiredText } from '../../core/kernel/json.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import { type CommandPlace, commandAccess, readOnlyText } from './command-access.js';
import { type CommandEnd, type CommandRequest, CommandShell, type RunningCommand } from './command-shell.js';
import { LocalShell, type LocalShellOptions } from './local-shell.js';

/** Time limits of the shell tools; a subclass may change them. */
export interface ShellLimits {
  /** The default for commands without a limit; default: 120. */
  readonly seconds: number;
  /** The largest limit that the model may set; default: 1,800. */
  readonly mostSeconds: number;
  /** The limit of background commands; default: 86,400. */
  readonly backgroundSeconds: number;
  /** Background commands of one conversation at the same time; default: 16. */
  readonly backgroundCommands: number;
}

const PROGRESS_MS = 100;
const MOST_PROGRESS = 10_000;

/** How many ended background commands are remembered, in all conversations together. */
const MOST_ENDED = 200;

const ID = 'Id of the command, e.g. command_1';

/** A command that outlives the call that started it. */
interface BackgroundCommand {
  readonly id: string;
  readonly owner: string;
  /** The start of its text, on one line. */
  readonly title: string;
  readonly running: RunningCommand;
  end: CommandEnd | undefined;
  /** The position up to which its output was reported. */
  reported: number;
}

/**
 * Tools that run commands: in the foreground, with progress, and in the background, with their output. They use the
 * injected {@link CommandShell}. Use a policy to restrict them (`toolwright/toolbox/permissions`): without a policy,
 * they run every command of the model, as this user.
 */
@Toolset({ name: 'Shell', description: 'Runs commands in one folder.' })
export class ShellTools {
  protected readonly limits: ShellLimits = {
    seconds: 120,
    mostSeconds: 1_800,
    backgroundSeconds: 86_400,
    backgroundCommands: 16,
  };
  #background: readonly BackgroundCommand[] = [];
  #count = 0;

  constructor(protected readonly shell: CommandShell) {}

  @Tool({
    description:
      'Run a command with Bash and get its output and its exit code. There is no terminal and no input. Run a command that takes long, such as a server, in the background, and read its output with command_output.',
    annotations: { title: 'Run command', destructive: true, openWorld: true },
    timeoutMs: Number.POSITIVE_INFINITY,
    touches: 'commandTouched',
  })
  async runCommand(
    @Param({ name: 'command', description: 'The Bash command', required: true, minLength: 1 })
    command: string,
    @Param({
      name: 'folder',
      description: 'Folder to run it in, relative to the root folder; default: the root folder',
    })
    folder = '.',
    @Param({
      name: 'seconds',
      description: 'Seconds after which the command is stopped',
      type: () => Number,
      minimum: 1,
      required: false,
    })
    seconds?: number,
    @Param({ name: 'background', description: 'Start the command without waiting for its end' })
    background = false,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const { limits, shell } = this;
    const place = this.#place(folder);
    // Read-only programs run in the form that the policy has decided about; a sandbox needs no such form.
    const text = place.isSandboxed ? command : readOnlyText(command, place);
    if (background) {
      const timeoutMs = (seconds ?? limits.backgroundSeconds) * 1_000;
      return this.#startInBackground(command, { command: text, folder, timeoutMs }, context);
    }
    const timeoutMs = Math.min(seconds ?? limits.seconds, limits.mostSeconds) * 1_000;
    let news = '';
    let timer: NodeJS.Timeout | undefined;
    const report = (): void => {
      clearTimeout(timer);
      timer = undefined;
      if (news !== '') context?.progress({ output: news });
      news = '';
    };
    const onOutput = (added: string): void => {
      news = (news + added).slice(-MOST_PROGRESS);
      timer ??= setTimeout(report, PROGRESS_MS);
    };
    const running = shell.start({ command: text, folder, signal: context?.signal, timeoutMs, onOutput });
    const end = await running.ended;
    report();
    return resultOf(running.output.text(), end);
  }

  @Tool({
    description: 'List the commands that were started in the background.',
    annotations: { title: 'List commands', readOnly: true },
    touches: 'nothingTouched',
  })
  listCommands(context?: ToolContext): string {
    const lines = this.#commandsOf(context).map(
      (one) => `${one.id} (${one.end === undefined ? 'running' : howEnded(one.end)}): ${one.title}`,
    );
    return lines.join('\n') || 'No command was started in the background.';
  }

  @Tool({
    description:
      'Get the output of a background command since your last call, and whether it is still running.',
    annotations: { title: 'Command output', readOnly: true },
    touches: 'nothingTouched',
  })
  commandOutput(
    @Param({ name: 'id', description: ID, required: true }) id: string,
    @Param({ name: 'all', description: 'Return all stored output, from the beginning' }) all = false,
    context?: ToolContext,
  ): ToolResult {
    const found = this.#commandsOf(context).find((one) => one.id === id);
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    const { text, place } = found.running.output.since(all ? 0 : found.reported);
    found.reported = place;
    const status = found.end === undefined ? 'running' : howEnded(found.end);
    return toolResult(`${text === '' ? '(nothing new)' : text}\n(${status})`);
  }

  @Tool({
    description: 'Stop a background command, and all processes that it has started.',
    annotations: { title: 'Kill command', destructive: true, idempotent: true },
    touches: 'nothingTouched',
  })
  async killCommand(
    @Param({ name: 'id', description: ID, required: true }) id: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const found = this.#commandsOf(context).find((one) => one.id === id);
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    if (found.end !== undefined) return toolResult(`${id} has already ended (${howEnded(found.end)}).`);
    await found.running.end('abort');
    await found.running.ended;
    return toolResult(`${id} and all processes that it had started were stopped.`);
  }

  /** Ends all background commands, when the application ends. */
  async dispose(): Promise<void> {
    const running = this.#background.filter(({ end }) => end === undefined);
    await Promise.all(running.map((one) => one.running.end('abort').then(() => one.running.ended)));
  }

  /** The access of a command. */
  protected commandTouched(args: JsonObject): readonly ResourceAccess[] {
    const { folder = '.' } = args;
    return commandAccess(requiredText(args, 'command'), this.#place(String(folder)));
  }

  /** The policy decided about a background command when it started. */
  protected nothingTouched(): readonly ResourceAccess[] {
    return [];
  }

  #place(folder: string): CommandPlace {
    const { shell } = this;
    return { folder: shell.folderAt(folder), view: shell.view(), isSandboxed: shell.isSandboxed };
  }

  #startInBackground(command: string, request: CommandRequest, context: ToolContext | undefined): ToolResult {
    const count = this.#commandsOf(context).filter(({ end }) => end === undefined).length;
    if (count >= this.limits.backgroundCommands)
      return errorResult(
        `${count} commands are running in the background; stop one of them first (kill_command).`,
      );
    this.#count += 1;
    const id = `command_${this.#count}`;
    const running = this.shell.start(request);
    const owner = keyOfPlace(context);
    const title = visibleLine(command).slice(0, 200);
    const started: BackgroundCommand = { id, owner, title, running, end: undefined, reported: 0 };
    this.#background = [...this.#background, started];
    void running.ended.then((end) => {
      started.end = end;
      const ended = this.#background.filter((one) => one.end !== undefined);
      if (ended.length > MOST_ENDED) this.#background = this.#background.filter((one) => one !== ended[0]);
    });
    const work = async (): Promise<ToolResult> => {
      const unfollow = context && onAbort(context.signal, () => void running.end('abort'));
      const end = await running.ended;
      unfollow?.();
      return resultOf(`${id}: ${title}\n${running.output.text()}`, end);
    };
    const acknowledgement = `${id} runs in the background. command_output returns its output, kill_command stops it.`;
    const given = context?.background(work, acknowledgement);
    if (ToolResult.is(given)) return given;
    // Without a receiver for completions, the call would wait; the model asks for the outcome instead.
    given?.catch(() => {});
    return toolResult(acknowledgement);
  }

  /** Commands belong to the owner and the conversation that started them. */
  #commandsOf(context: ToolContext | undefined): readonly BackgroundCommand[] {
    const owner = keyOfPlace(context);
    return this.#background.filter((command) => command.owner === owner);
  }
}

/**
 * Creates the shell tools for a folder on this machine, or for any {@link CommandShell}, without a container.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * tools.register(...shellTools({ folder: process.cwd() }));
 * ```
 */
export function shellTools(options: LocalShellOptions | CommandShell): ToolDefinition[] {
  return toolsOfInstances(
    new ShellTools(options instanceof CommandShell ? options : new LocalShell(options)),
  );
}

/** The outcome of a command in a few words. */
function howEnded({ exitCode, signal, endedBy, durationMs }: CommandEnd): string {
  const seconds = `${(durationMs / 1_000).toFixed(1)} s`;
  if (endedBy === 'time')
    return `it took too long and was stopped after ${seconds}, with all processes that it had started`;
  if (endedBy === 'abort') return `stopped after ${seconds}, with all processes that it had started`;
  return signal === undefined ? `exit code ${exitCode}, ${seconds}` : `ended by ${signal}, ${seconds}`;
}

/** The output and the outcome of a command. */
function resultOf(output: string, end: CommandEnd): ToolResult {
  const text = output === '' ? '(no output)' : output.replace(/\n$/, '');
  const { exitCode, signal, endedBy, durationMs } = end;
  return new ToolResult({
    forLLM: `${text}\n(${howEnded(end)})`,
    isError: exitCode !== 0 || endedBy !== undefined,
    details: { exitCode, signal, endedBy, durationMs },
  });
}
