import type { PendingCall } from '../contract/call.js';
import type { ConversationEvent } from '../conversation/events.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord } from '../kernel/json.js';
import { visibleLine, visibleText } from '../kernel/visible-text.js';
import type { ToolLoopResult } from '../loop/events.js';
import type { CommandSurroundings } from './command.js';

const WIDTH = 20;
const LONGEST_LINE = 200;
/** Without a terminal, progress is told in steps of so many hundredths. */
const STEP = 25;

/**
 * What happens in a chat, as a person reads it: the model's text is the answer, and all else goes to the error output.
 * Nothing that a model or a tool says can move the cursor or hide.
 */
export class ChatPrinter {
  readonly #surroundings: CommandSurroundings;
  /** The text of the reply has not ended its line. */
  #isInText = false;
  #hasBar = false;
  readonly #told = new Map<string, number>();

  constructor(surroundings: CommandSurroundings) {
    this.#surroundings = surroundings;
  }

  show(event: ConversationEvent): void {
    switch (event.type) {
      case 'text-delta':
        this.#clearBar();
        this.#surroundings.out(visibleText(event.text));
        this.#isInText = !event.text.endsWith('\n');
        return;
      case 'call-start':
        this.#line(`· ${event.tool} ${jsonLine(event.arguments)}`);
        return;
      case 'call-progress':
        this.#progress(event.callId, event.tool, event.update);
        return;
      case 'call-end':
        this.#told.delete(event.callId);
        this.#line(`  ${event.record.status}: ${event.result.forLLM}`);
        return;
      case 'user-message':
        this.settle();
        this.#surroundings.out(`${visibleText(event.text)}\n`);
        return;
      default:
    }
  }

  /** What a call waits for. */
  wait({ kind, tool, arguments: args, title, description, risk, message }: PendingCall): void {
    this.#line(`? ${kind}: ${tool} ${jsonLine(args)}`);
    if (title !== undefined) this.#line(`  ${title}`);
    if (description !== undefined) this.#line(`  ${description}`);
    if (risk !== undefined) this.#line(`  risk: ${risk}`);
    if (kind === 'approval' && message !== undefined) this.#line(`  ${message}`);
  }

  end({ status, error }: ToolLoopResult): void {
    this.settle();
    if (status !== 'completed') this.#line(`[${status}${error === undefined ? '' : `: ${error.message}`}]`);
  }

  fault(error: unknown): void {
    this.#line(`[${errorMessage(error)}]`);
  }

  /** Whatever stands on the line is over. */
  settle(): void {
    this.#clearBar();
    if (this.#isInText) this.#surroundings.out('\n');
    this.#isInText = false;
  }

  #line(text: string): void {
    this.settle();
    const line = visibleLine(text);
    this.#surroundings.error(`${line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}\n`);
  }

  #progress(callId: string, tool: string, update: unknown): void {
    const part = partOf(update);
    if (part === undefined) {
      this.#line(`  ${tool}: ${typeof update === 'string' ? update : jsonLine(update)}`);
      return;
    }
    const percent = Math.round(part * 100);
    const full = Math.round(part * WIDTH);
    const bar = `  ${visibleLine(tool)} [${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${percent} %`;
    if (this.#surroundings.isTerminal) {
      if (this.#isInText) this.settle();
      this.#surroundings.error(`\r\u001b[K${bar}`);
      this.#hasBar = true;
      return;
    }
    const told = this.#told.get(callId);
    if (told !== undefined && percent < 100 && percent - told < STEP) return;
    this.#told.set(callId, percent);
    this.#line(bar);
  }

  #clearBar(): void {
    if (this.#hasBar) this.#surroundings.error('\r\u001b[K');
    this.#hasBar = false;
  }
}

/** How much is done, from 0 to 1, of `{ done, total }`. */
function partOf(update: unknown): number | undefined {
  if (!isRecord(update)) return undefined;
  const { done, total } = update;
  if (typeof done !== 'number' || typeof total !== 'number' || !(total > 0)) return undefined;
  return Math.min(1, Math.max(0, done / total));
}

/** A model may have sent its arguments as text. */
function jsonLine(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return String(value);
  }
}
