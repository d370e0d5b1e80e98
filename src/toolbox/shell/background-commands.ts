import type { ToolContext } from '../../contract/tool-context.js';
import { errorResult, ToolResult, toolResult } from '../../contract/tool-result.js';
import { visibleLine } from '../../kernel/visible-text.js';
import type { CommandEnd, CommandShell, RunningCommand } from './command-shell.js';

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
  readonly folder: string;
  readonly owner: string;
  readonly most: number;
  readonly timeoutMs: number;
  readonly context: ToolContext | undefined;
}

/** How many that have ended are remembered, of all conversations. */
const MOST_ENDED = 200;

/** Commands that were started and not waited for, by conversation. */
export class BackgroundCommands {
  readonly #commands = new Map<string, BackgroundCommand>();
  #count = 0;

  /** Starts one; where somebody hears of completions, its end is told too. */
  start(
    shell: CommandShell,
    { command, folder, owner, most, timeoutMs, context }: BackgroundStart,
  ): ToolResult {
    const running = this.#of(owner).filter(({ end }) => end === undefined);
    if (running.length >= most)
      return errorResult(
        `${running.length} commands run in the background; end one of them first (kill_command).`,
      );
    this.#count += 1;
    const id = `command_${this.#count}`;
    const started = shell.start({ command, folder, timeoutMs });
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
export function describeEnd(output: string, end: CommandEnd): ToolResult {
  const text = output === '' ? '(no output)' : output.replace(/\n$/, '');
  const { exitCode, signal, endedBy, durationMs } = end;
  return new ToolResult({
    forLLM: `${text}\n(${howEnded(end)})`,
    isError: exitCode !== 0 || endedBy !== undefined,
    details: { exitCode, signal, endedBy, durationMs },
  });
}
