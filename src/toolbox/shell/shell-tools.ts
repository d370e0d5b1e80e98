import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import { errorResult, ToolResult, toolResult } from '../../contract/tool-result.js';
import type { ResourceAccess } from '../../contract/touch.js';
import { discoverTools } from '../../discovery/discover-tools.js';
import { onAbort } from '../../kernel/async.js';
import { visibleLine } from '../../kernel/visible-text.js';
import { type CommandPlace, commandAccess, readOnlyText } from './command-access.js';
import { type CommandEnd, CommandShell, type RunningCommand } from './command-shell.js';
import { LocalShell, type LocalShellOptions } from './local-shell.js';

/** How long commands of the shell tools may take. A subclass may have others. */
export interface ShellLimits {
  /** Where the model does not say how long; default: 120. */
  readonly seconds: number;
  /** Whatever it says; default: 1,800. */
  readonly mostSeconds: number;
  /** Of a command that runs in the background; default: 86,400. */
  readonly backgroundSeconds: number;
  /** Commands of one conversation that run in the background at the same time; default: 16. */
  readonly backgroundCommands: number;
}

const LIMITS: ShellLimits = {
  seconds: 120,
  mostSeconds: 1_800,
  backgroundSeconds: 86_400,
  backgroundCommands: 16,
};

const PROGRESS_MS = 100;

const ID = 'Id of the command, e.g. command_1';

/**
 * Tools that run commands: in the foreground, with progress, and in the background, with their output. Where they run
 * is the {@link CommandShell} that is injected. What they may run is for a policy to say
 * (`toolwright/toolbox/permissions`): without one, they run what they are told, as this user.
 *
 * @example
 * ```ts
 * tools.register(...shellTools({ folder: process.cwd() }));
 * ```
 */
@Toolset({ name: 'Shell', description: 'Runs commands in one folder.' })
export class ShellTools {
  protected readonly limits: ShellLimits = LIMITS;
  readonly #background = new BackgroundCommands();

  constructor(protected readonly shell: CommandShell) {}

  /** Runs a command to its end, or starts it in the background. */
  @Tool({
    description:
      'Run a command with Bash and get what it writes, and its exit code. There is no terminal and no input. What goes on for long, such as a server, runs in the background: then command_output tells what it has written.',
    annotations: { title: 'Run command', destructive: true, openWorld: true },
    timeoutMs: Number.POSITIVE_INFINITY,
    touches: 'commandTouched',
  })
  async runCommand(
    @Param({ description: 'The command, for Bash', required: true, minLength: 1 }) command: string,
    @Param({ description: 'Folder to run it in, relative; default: the folder itself' }) folder = '.',
    @Param({
      description: 'After how many seconds it is ended',
      type: () => Number,
      minimum: 1,
      required: false,
    })
    seconds?: number,
    @Param({ description: 'Start it, and do not wait for its end' }) background = false,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const { limits, shell } = this;
    const place = this.#place(folder);
    // Built-in read-only programs run in the form that was decided about; in a sandbox everything as it is.
    const text = place.isSandboxed ? command : readOnlyText(command, place);
    if (background) {
      const timeoutMs = (seconds ?? limits.backgroundSeconds) * 1_000;
      const run = (): RunningCommand => shell.start({ command: text, folder, timeoutMs });
      return this.#background.start(context, { command, run, most: limits.backgroundCommands });
    }
    const timeoutMs = Math.min(seconds ?? limits.seconds, limits.mostSeconds) * 1_000;
    const news = new PacedNews((output) => context?.progress({ output }));
    const running = shell.start({
      command: text,
      folder,
      signal: context?.signal,
      timeoutMs,
      onOutput: (text) => news.add(text),
    });
    const end = await running.ended;
    news.flush();
    return describeEnd(running.output.text(), end);
  }

  /** The commands that run in the background, and those that have ended lately. */
  @Tool({
    description: 'List the commands that were started in the background.',
    annotations: { title: 'List commands', readOnly: true },
    touches: 'nothingTouched',
  })
  listCommands(context?: ToolContext): string {
    return this.#background.list(context);
  }

  /** What a command in the background has written since it was last asked. */
  @Tool({
    description:
      'Get what a command in the background has written since you last asked, and whether it still runs.',
    annotations: { title: 'Command output', readOnly: true },
    touches: 'nothingTouched',
  })
  commandOutput(
    @Param({ description: ID, required: true }) id: string,
    @Param({ description: 'All that is kept, from the beginning' }) all = false,
    context?: ToolContext,
  ): ToolResult {
    return this.#background.output(context, id, all);
  }

  /** Ends a command in the background and all that it has started. */
  @Tool({
    description: 'End a command that runs in the background, and all that it has started.',
    annotations: { title: 'Kill command', destructive: true, idempotent: true },
    touches: 'nothingTouched',
  })
  killCommand(
    @Param({ description: ID, required: true }) id: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    return this.#background.kill(context, id);
  }

  /** Ends all commands in the background; for when the application ends. */
  async dispose(): Promise<void> {
    await this.#background.killAll();
  }

  /** What a command would access. */
  protected commandTouched({ command, folder = '.' }: JsonObject): readonly ResourceAccess[] {
    return commandAccess(String(command), this.#place(String(folder)));
  }

  /** Of what was started, its start was asked about. */
  protected nothingTouched(): readonly ResourceAccess[] {
    return [];
  }

  #place(folder: string): CommandPlace {
    const { shell } = this;
    return { folder: shell.folderAt(folder), view: shell.view(), isSandboxed: shell.isSandboxed };
  }
}

/** Commands of one conversation are no business of another one. */
function ownerOf(context: ToolContext | undefined): string {
  return JSON.stringify([context?.channel, context?.chatId, context?.conversationId]);
}

/** Tells of much at once, and not of each line. */
class PacedNews {
  readonly #tell: (text: string) => void;
  #rest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  add(text: string): void {
    this.#rest = (this.#rest + text).slice(-MOST_NEWS);
    this.#timer ??= setTimeout(() => this.flush(), PROGRESS_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#rest !== '') this.#tell(this.#rest);
    this.#rest = '';
  }
}

const MOST_NEWS = 10_000;

/**
 * The shell tools of one folder on this machine, or of any {@link CommandShell}, without a container.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * tools.register(...shellTools({ folder: process.cwd() }));
 * ```
 */
export function shellTools(options: LocalShellOptions | CommandShell): ToolDefinition[] {
  const instance = new ShellTools(options instanceof CommandShell ? options : new LocalShell(options));
  // The container of one class has nothing else to give.
  const resolve = <Instance>(): Instance => instance as Instance;
  return discoverTools({ toolsets: [ShellTools], container: { resolve } });
}

/** A command that runs on after the call that started it. */
interface BackgroundCommand {
  readonly id: string;
  readonly owner: string;
  readonly command: string;
  readonly running: RunningCommand;
  end: CommandEnd | undefined;
  /** Up to where its output was reported. */
  told: number;
}

/** A command to be started. */
interface BackgroundStart {
  readonly command: string;
  readonly run: () => RunningCommand;
  /** How many of a conversation may run. */
  readonly most: number;
}

/** How many that have ended are remembered, of all conversations. */
const MOST_ENDED = 200;

/** Commands that were started and not waited for, by conversation. */
class BackgroundCommands {
  #commands: readonly BackgroundCommand[] = [];
  #count = 0;

  /** Starts a command; its end is reported if the conversation takes completions. */
  start(context: ToolContext | undefined, { command, run, most }: BackgroundStart): ToolResult {
    const owner = ownerOf(context);
    const count = this.#of(owner).filter(({ end }) => end === undefined).length;
    if (count >= most)
      return errorResult(`${count} commands run in the background; end one of them first (kill_command).`);
    this.#count += 1;
    const id = `command_${this.#count}`;
    const started: BackgroundCommand = { id, owner, command, running: run(), end: undefined, told: 0 };
    this.#commands = [...this.#commands, started];
    void started.running.ended.then((end) => {
      started.end = end;
      const ended = this.#commands.filter((one) => one.end !== undefined);
      const forgotten = ended.slice(0, Math.max(0, ended.length - MOST_ENDED));
      this.#commands = this.#commands.filter((one) => !forgotten.includes(one));
    });
    const acknowledgement = `${id} runs in the background. command_output tells what it writes, kill_command ends it.`;
    return tellOfEnd(context, started, acknowledgement) ?? toolResult(acknowledgement);
  }

  list(context: ToolContext | undefined): string {
    const lines = this.#of(ownerOf(context)).map((one) => {
      const status = one.end === undefined ? 'runs' : howEnded(one.end);
      return `${one.id} (${status}): ${shortText(one)}`;
    });
    return lines.join('\n') || 'No command was started in the background.';
  }

  output(context: ToolContext | undefined, id: string, all: boolean): ToolResult {
    const found = this.#find(context, id);
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    const { text, place } = found.running.output.since(all ? 0 : found.told);
    found.told = place;
    const status = found.end === undefined ? 'it runs' : howEnded(found.end);
    return toolResult(`${text === '' ? '(nothing new)' : text}\n(${status})`);
  }

  async kill(context: ToolContext | undefined, id: string): Promise<ToolResult> {
    const found = this.#find(context, id);
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    if (found.end !== undefined) return toolResult(`${id} had ended already (${howEnded(found.end)}).`);
    await found.running.end('abort');
    await found.running.ended;
    return toolResult(`${id} and all that it has started are gone.`);
  }

  async killAll(): Promise<void> {
    const running = this.#commands.filter(({ end }) => end === undefined);
    await Promise.all(running.map((one) => one.running.end('abort').then(() => one.running.ended)));
  }

  #of(owner: string): readonly BackgroundCommand[] {
    return this.#commands.filter((command) => command.owner === owner);
  }

  #find(context: ToolContext | undefined, id: string): BackgroundCommand | undefined {
    return this.#of(ownerOf(context)).find((one) => one.id === id);
  }
}

function shortText({ command }: BackgroundCommand): string {
  return visibleLine(command).slice(0, 200);
}

/** Without completions the call would wait for the end: then the model asks for it. */
function tellOfEnd(
  context: ToolContext | undefined,
  started: BackgroundCommand,
  acknowledgement: string,
): ToolResult | undefined {
  const { id, running } = started;
  const work = async (): Promise<ToolResult> => {
    const unfollow = context && onAbort(context.signal, () => void running.end('abort'));
    const end = await running.ended;
    unfollow?.();
    return describeEnd(`${id}: ${shortText(started)}\n${running.output.text()}`, end);
  };
  const given = context?.background(work, acknowledgement);
  if (ToolResult.is(given)) return given;
  given?.catch(() => {});
  return undefined;
}

/** How a command ended, in a few words. */
function howEnded({ exitCode, signal, endedBy, durationMs }: CommandEnd): string {
  const seconds = `${(durationMs / 1_000).toFixed(1)} s`;
  if (endedBy === 'time')
    return `it took too long and was ended after ${seconds}, with all that it had started`;
  if (endedBy === 'abort') return `it was ended after ${seconds}, with all that it had started`;
  return signal === undefined ? `exit code ${exitCode}, ${seconds}` : `ended by ${signal}, ${seconds}`;
}

/** What a command wrote, and how it ended. */
function describeEnd(output: string, end: CommandEnd): ToolResult {
  const text = output === '' ? '(no output)' : output.replace(/\n$/, '');
  const { exitCode, signal, endedBy, durationMs } = end;
  return new ToolResult({
    forLLM: `${text}\n(${howEnded(end)})`,
    isError: exitCode !== 0 || endedBy !== undefined,
    details: { exitCode, signal, endedBy, durationMs },
  });
}
