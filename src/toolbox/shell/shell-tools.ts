import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import { errorResult, ToolResult, toolResult } from '../../contract/tool-result.js';
import type { ResourceAccess } from '../../contract/touch.js';
import { discoverTools } from '../../discovery/discover-tools.js';
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
    const text = this.#textOf(command, folder);
    if (background)
      return this.#background.start(shell, {
        command,
        text,
        folder,
        owner: ownerOf(context),
        most: limits.backgroundCommands,
        timeoutMs: (seconds ?? limits.backgroundSeconds) * 1_000,
        context,
      });
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
    return this.#background.list(ownerOf(context));
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
    return this.#background.output(ownerOf(context), id, all ? 'all' : 'news');
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
    return this.#background.kill(ownerOf(context), id);
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

  /** Built-in read-only programs run in the form that was decided about; in a sandbox everything as it is. */
  #textOf(command: string, folder: string): string {
    return this.shell.isSandboxed ? command : readOnlyText(command, this.#place(folder));
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
  /** Up to where its output was told. */
  told: number;
}

/** A command to be started. */
interface BackgroundStart {
  readonly command: string;
  /** For Bash. */
  readonly text: string;
  readonly folder: string;
  readonly owner: string;
  readonly most: number;
  readonly timeoutMs: number;
  readonly context: ToolContext | undefined;
}

/** How many that have ended are remembered, of all conversations. */
const MOST_ENDED = 200;

/** Commands that were started and not waited for, by conversation. */
class BackgroundCommands {
  readonly #commands = new Map<string, BackgroundCommand>();
  #count = 0;

  /** Starts one; where somebody hears of completions, its end is told too. */
  start(
    shell: CommandShell,
    { command, text, folder, owner, most, timeoutMs, context }: BackgroundStart,
  ): ToolResult {
    const running = this.#of(owner).filter(({ end }) => end === undefined);
    if (running.length >= most)
      return errorResult(
        `${running.length} commands run in the background; end one of them first (kill_command).`,
      );
    this.#count += 1;
    const id = `command_${this.#count}`;
    const started = shell.start({ command: text, folder, timeoutMs });
    const kept: BackgroundCommand = { id, owner, command, running: started, end: undefined, told: 0 };
    this.#commands.set(key(owner, id), kept);
    const ended = started.ended.then((end) => {
      kept.end = end;
      this.#forgetOld();
      return end;
    });
    const acknowledgement = `${id} runs in the background. command_output tells what it writes, kill_command ends it.`;
    return tellOfEnd({ context, ended, kept, acknowledgement }) ?? toolResult(acknowledgement);
  }

  list(owner: string): string {
    const all = this.#of(owner);
    if (all.length === 0) return 'No command was started in the background.';
    return all
      .map(
        ({ id, command, end }) =>
          `${id} (${end === undefined ? 'runs' : howEnded(end)}): ${visibleLine(command).slice(0, 200)}`,
      )
      .join('\n');
  }

  output(owner: string, id: string, which: 'news' | 'all'): ToolResult {
    const found = this.#commands.get(key(owner, id));
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    const { text, place } = found.running.output.since(which === 'all' ? 0 : found.told);
    found.told = place;
    const status = found.end === undefined ? 'it runs' : howEnded(found.end);
    return toolResult(`${text === '' ? '(nothing new)' : text}\n(${status})`);
  }

  async kill(owner: string, id: string): Promise<ToolResult> {
    const found = this.#commands.get(key(owner, id));
    if (found === undefined) return errorResult(`There is no '${id}'.`);
    if (found.end !== undefined) return toolResult(`${id} had ended already (${howEnded(found.end)}).`);
    await found.running.end('abort');
    await found.running.ended;
    return toolResult(`${id} and all that it has started are gone.`);
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#commands.values()].map(({ running, end }) => end ?? running.end('abort')));
  }

  #of(owner: string): readonly BackgroundCommand[] {
    return [...this.#commands.values()].filter((command) => command.owner === owner);
  }

  #forgetOld(): void {
    const ended = [...this.#commands].filter(([, { end }]) => end !== undefined);
    for (const [id] of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) this.#commands.delete(id);
  }
}

function key(owner: string, id: string): string {
  return `${owner} ${id}`;
}

interface Telling {
  readonly context: ToolContext | undefined;
  readonly ended: Promise<CommandEnd>;
  readonly kept: BackgroundCommand;
  readonly acknowledgement: string;
}

/** Where nobody hears of completions, the call would wait for the end: then it is asked for. */
function tellOfEnd({ context, ended, kept, acknowledgement }: Telling): ToolResult | undefined {
  if (context === undefined) return undefined;
  const work = async (): Promise<ToolResult> => {
    const stop = (): void => void kept.running.end('abort');
    context.signal.addEventListener('abort', stop, { once: true });
    const end = await ended;
    context.signal.removeEventListener('abort', stop);
    return describeEnd(
      `${kept.id}: ${visibleLine(kept.command).slice(0, 200)}\n${kept.running.output.text()}`,
      end,
    );
  };
  const given = context.background(work, acknowledgement);
  if (ToolResult.is(given)) return given;
  given.catch(() => {});
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
