import { createInterface, type Interface } from 'node:readline';
import { styleText } from 'node:util';
import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import type { CommandEnvironment } from './command.js';

const WIDTH = 20;
const LONGEST_LINE = 200;
/** Characters shown of a call that needs an approval; other calls are cut earlier. */
const LONGEST_QUESTION = 4_000;
/** How many of the last output lines of a running command are shown. */
const MOST_OUTPUT_LINES = 5;
/** Without a terminal, progress is printed at every multiple of this percentage. */
const STEP = 25;

/** Events that are shown. */
type ShownEvent =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'call-start'; readonly tool: string; readonly arguments?: unknown }
  | {
      readonly type: 'call-progress';
      readonly callId: string;
      readonly tool: string;
      readonly update?: unknown;
    }
  | {
      readonly type: 'call-end';
      readonly callId: string;
      readonly status: string;
      readonly result: { readonly forLLM: string };
    }
  | { readonly type: 'user-message'; readonly text: string };

/**
 * Prints the events of a chat for a user: the model's text to standard output, everything else to standard error. Text
 * from models and tools cannot move the cursor or hide.
 */
class ChatPrinter {
  protected readonly environment: CommandEnvironment;
  /** The current line of the reply has not ended. */
  #isInText = false;
  #hasBar = false;
  readonly #shownPercent = new Map<string, number>();

  constructor(environment: CommandEnvironment) {
    this.environment = environment;
  }

  /** Shows an event; other events are ignored. */
  show(given: ShownEvent | JsonObject | { readonly type: string }): void {
    const event = given as ShownEvent;
    switch (event.type) {
      case 'text-delta':
        this.#clearBar();
        this.environment.out(visibleText(event.text));
        this.#isInText = !event.text.endsWith('\n');
        return;
      case 'call-start':
        this.#line(`· ${event.tool} ${jsonLine(event.arguments)}`);
        return;
      case 'call-progress':
        this.#progress(event.callId, event.tool, event.update);
        return;
      case 'call-end':
        this.#shownPercent.delete(event.callId);
        this.#line(`  ${event.status}: ${event.result.forLLM}`);
        return;
      case 'user-message':
        this.settle();
        this.environment.out(`${visibleText(event.text)}\n`);
        return;
      default:
    }
  }

  /** Shows what a call waits for. */
  wait({ kind, tool, arguments: args, title, description, risk, message }: PendingCall): void {
    // The description contains the arguments in readable form.
    this.#line(
      `? ${kind}: ${tool} ${jsonLine(args)}`,
      description === undefined ? LONGEST_QUESTION : LONGEST_LINE,
    );
    if (title !== undefined) this.#line(`  ${title}`);
    if (description !== undefined) this.describe(description);
    if (risk !== undefined) this.#line(`  risk: ${risk}`);
    if (kind === 'approval' && message !== undefined) this.#line(`  ${message}`, LONGEST_QUESTION);
  }

  /** Prints a text with several lines completely; colours a diff if colours are enabled. */
  describe(text: string): void {
    this.settle();
    const lines = text.replace(/\n$/, '').split('\n').map(visibleLine);
    const shown = hasColours(this.environment) ? colouredDifference(lines) : lines;
    this.environment.error(shown.map((line) => `  ${line}\n`).join(''));
  }

  end({ status, error }: { readonly status: string; readonly error?: { readonly message: string } }): void {
    this.settle();
    if (status !== 'completed') this.#line(`[${status}${error === undefined ? '' : `: ${error.message}`}]`);
  }

  fault(error: unknown): void {
    this.#line(`[${errorMessage(error)}]`);
  }

  /** Ends the current line. */
  settle(): void {
    this.#clearBar();
    if (this.#isInText) this.environment.out('\n');
    this.#isInText = false;
  }

  #line(text: string, longest = LONGEST_LINE): void {
    this.settle();
    const line = visibleLine(text);
    this.environment.error(`${line.length > longest ? `${line.slice(0, longest)}…` : line}\n`);
  }

  /** The lines of a command's output or of a task list. */
  #lines(update: unknown): readonly string[] | undefined {
    if (!isRecord(update)) return undefined;
    const { output, tasks } = update;
    if (typeof output === 'string') return output.split('\n').filter(Boolean).slice(-MOST_OUTPUT_LINES);
    if (!Array.isArray(tasks)) return undefined;
    return tasks.map((task) => {
      const { text, status } = Object(task) as { readonly text?: unknown; readonly status?: unknown };
      return `[${status === 'done' ? 'x' : status === 'doing' ? '~' : ' '}] ${text}`;
    });
  }

  #progress(callId: string, tool: string, update: unknown): void {
    const lines = this.#lines(update);
    if (lines !== undefined) {
      for (const line of lines) this.#line(`  | ${line}`);
      return;
    }
    const part = partOf(update);
    if (part === undefined) {
      this.#line(`  ${tool}: ${typeof update === 'string' ? update : jsonLine(update)}`);
      return;
    }
    const percent = Math.round(part * 100);
    const full = Math.round(part * WIDTH);
    const bar = `  ${visibleLine(tool)} [${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${percent} %`;
    if (this.environment.isTerminal) {
      if (this.#isInText) this.settle();
      this.environment.error(`\r\u001b[K${bar}`);
      this.#hasBar = true;
      return;
    }
    const shown = this.#shownPercent.get(callId);
    if (shown !== undefined && percent < 100 && percent - shown < STEP) return;
    this.#shownPercent.set(callId, percent);
    this.#line(bar);
  }

  #clearBar(): void {
    if (this.#hasBar) this.environment.error('\r\u001b[K');
    this.#hasBar = false;
  }
}

/** The progress from 0 to 1 in `{ done, total }`. */
function partOf(update: unknown): number | undefined {
  if (!isRecord(update)) return undefined;
  const { done, total } = update;
  if (typeof done !== 'number' || typeof total !== 'number' || !(total > 0)) return undefined;
  return Math.min(1, Math.max(0, done / total));
}

/** A model may have sent its arguments as a string. */
function jsonLine(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return String(value);
  }
}

/** Whether colours are supported and wanted (https://no-color.org). */
export function hasColours({ isTerminal }: Pick<CommandEnvironment, 'isTerminal'>): boolean {
  return isTerminal && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
}

/**
 * The lines of a text, with unified diffs in colours. The hunk headers contain the number of lines, and so the end of
 * each diff.
 */
export function colouredDifference(lines: readonly string[]): readonly string[] {
  let before = 0;
  let after = 0;
  return lines.map((line) => {
    if (before > 0 || after > 0) {
      const [sign] = line;
      if (sign === '-' || sign === ' ') before -= 1;
      if (sign === '+' || sign === ' ') after -= 1;
      return sign === '+' ? styled('green', line) : sign === '-' ? styled('red', line) : line;
    }
    const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (head !== null) {
      before = Number(head[1] ?? 1);
      after = Number(head[2] ?? 1);
      return styled('cyan', line);
    }
    return /^(---|\+\+\+) /.test(line) ? styled('bold', line) : line;
  });
}

/** The caller has checked that colours are enabled. */
function styled(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { validateStream: false });
}

/** Asks the user; `undefined` without an answer. */
type Ask = (question: string) => Promise<string | undefined>;

const NOT_REPEATED = 'its process ended while it ran: it may have been done, and it is not run again';

/** The key that remembers an approval for a scope. */
const KEYS: Readonly<Record<RememberScope, string>> = { run: 'r', conversation: 'a', user: 'u' };
const SCOPE_NAMES: Readonly<Record<RememberScope, string>> = {
  run: 'always in this [r]un',
  conversation: '[a]lways in this conversation',
  user: 'always for this [u]ser',
};

/** The input, and its lines one after the other. */
interface OpenInput {
  readonly lines: Interface;
  readonly next: AsyncIterator<string>;
}

/** Reads lines from the terminal, and asks its user about what it prints. */
export class Terminal extends ChatPrinter {
  /** Questions are repeated, and input is echoed. */
  readonly #isInteractive: boolean;
  readonly #scopeNames: Readonly<Record<RememberScope, string>>;
  /** Opened on first use: a command that only prints does not read its input. */
  #opened: OpenInput | undefined;
  #reading: Promise<IteratorResult<string>> | undefined;
  /** The current question. */
  #prompt: string | undefined;
  /** Set on Ctrl-D or at the end of the input; earlier lines are still read. */
  #isClosed = false;

  /** `scopeNames`: how the scopes of standing approvals are called. */
  constructor(environment: CommandEnvironment, scopeNames: Partial<Record<RememberScope, string>> = {}) {
    super(environment);
    const { input = process.stdin } = environment;
    // Piped input is not echoed, even on a terminal.
    const terminal = environment.isTerminal && (input !== process.stdin || process.stdin.isTTY);
    this.#isInteractive = terminal;
    this.#scopeNames = { ...SCOPE_NAMES, ...scopeNames };
  }

  get #input(): OpenInput {
    if (this.#opened === undefined) {
      const { input = process.stdin } = this.environment;
      const terminal = this.#isInteractive;
      const lines = createInterface({ input, terminal, ...(terminal ? { output: process.stderr } : {}) });
      lines.once('close', () => {
        this.#isClosed = true;
      });
      this.#opened = { lines, next: lines[Symbol.asyncIterator]() };
    }
    return this.#opened;
  }

  /** Calls back on Ctrl-C; returns a function that stops this. */
  onInterrupt(interrupt: () => void): () => void {
    const { lines } = this.#input;
    lines.on('SIGINT', interrupt);
    process.on('SIGINT', interrupt);
    return () => {
      lines.off('SIGINT', interrupt);
      process.off('SIGINT', interrupt);
    };
  }

  /** The next line; `undefined` at the end of the input, or if `unless` settles first. */
  async ask(question: string, unless?: Promise<undefined>): Promise<string | undefined> {
    this.settle();
    this.#prompt = question;
    this.#show(question);
    // A read that was started but not awaited returns the next line.
    this.#reading ??= this.#input.next.next();
    const read = await (unless === undefined ? this.#reading : Promise.race([this.#reading, unless]));
    this.#prompt = undefined;
    if (read === undefined) return undefined;
    this.#reading = undefined;
    if (!this.#isInteractive) this.environment.error('\n');
    return read.done ? undefined : visibleText(read.value);
  }

  /** Answers to all pending calls in order; `undefined` as soon as one is not answered. */
  async askAll(
    waiting: readonly PendingCall[],
    unless?: Promise<undefined>,
  ): Promise<readonly Answer[] | undefined> {
    const answers: Answer[] = [];
    for (const pending of waiting) {
      const answer = await this.#askOne(pending, (question) => this.ask(question, unless));
      if (answer === undefined) return undefined;
      answers.push(answer);
    }
    return answers;
  }

  async #askOne(pending: PendingCall, ask: Ask): Promise<Answer | undefined> {
    const { id, kind, tool, message } = pending;
    this.wait(pending);
    if (kind === 'approval') return this.#askApproval(pending, ask);
    if (kind === 'outcome') return this.#askOutcome(pending, ask);
    const isQuestion = kind === 'question';
    const line = await ask(
      isQuestion ? `${visibleLine(message ?? 'Answer')} ` : `What did ${tool} give, as JSON? `,
    );
    if (line === undefined) return undefined;
    return isQuestion ? { id, value: valueIn(line) } : { id, result: valueIn(line) };
  }

  /** Asks again if the input is not a clear answer. */
  async #askOutcome(pending: PendingCall, ask: Ask): Promise<Answer | undefined> {
    const { id, tool, arguments: args } = pending;
    const question = `Its process ended while it ran. Was ${tool} ${visibleLine(JSON.stringify(args))} done?`;
    const line = await ask(`${question} [y] it was done / [n] not done, run it again / [r] refuse: `);
    const [, key, words = ''] = /^\s*(y|yes|n|no|r|refuse)\b\s*(.*?)\s*$/is.exec(line ?? '') ?? [];
    if (line === undefined) return undefined;
    const isNo = /^n/i.test(key ?? '');
    // "no idea" must not run the call again.
    if (key === undefined || (isNo && words !== '')) {
      this.environment.error('toolwright: answer y, n or r\n');
      return this.#askOutcome(pending, ask);
    }
    if (isNo) return { id, outcome: 'not-done' };
    if (/^r/i.test(key)) return { id, approved: false, reason: words === '' ? NOT_REPEATED : words };
    const given = words || (await ask('What did it give? Enter where you do not know: '))?.trim();
    if (given === undefined) return undefined;
    const result =
      given === '' ? 'The user says that it was done. What it gave is not known.' : valueIn(given);
    return { id, outcome: 'done', result };
  }

  /** Every input except an approval is a refusal. */
  async #askApproval(pending: PendingCall, ask: Ask): Promise<Answer | undefined> {
    const { id, tool, mayRemember, decisions = ['approve', 'edit', 'refuse'] } = pending;
    const scopes = mayRemember?.scopes ?? [];
    const choices = [
      ...(decisions.includes('approve') ? ['[y]es'] : []),
      ...scopes.map((scope) => this.#scopeNames[scope]),
      '[n]o',
      ...(decisions.includes('edit') ? ['[e]dit'] : []),
    ];
    const line = (await ask(`Run ${tool}? ${choices.join(', ')}: `))?.trim();
    if (line === undefined) return undefined;
    if (/^y(es)?$/i.test(line)) return { id, approved: true };
    const scope = scopes.find((one) => KEYS[one] === line.toLowerCase());
    if (scope !== undefined) return { id, approved: true, remember: { scope } };
    if (!/^e(dit)?$/i.test(line)) {
      const reason = line.replace(/^no?\b\s*/i, '');
      return { id, approved: false, ...(reason === '' ? {} : { reason }) };
    }
    const written = await ask('Arguments, as JSON on one line: ');
    if (written === undefined) return undefined;
    const args = valueIn(written);
    if (isRecord(args)) return { id, approved: true, arguments: args };
    this.environment.error('toolwright: that is not a JSON object\n');
    return this.#askApproval(pending, ask);
  }

  /** Repeats the question after other output. */
  askAgain(): void {
    if (this.#prompt !== undefined && this.#isInteractive && !this.#isClosed) this.#input.lines.prompt(true);
  }

  close(): void {
    this.#opened?.lines.close();
  }

  #show(question: string): void {
    if (this.#isInteractive) {
      if (this.#isClosed) return;
      const { lines } = this.#input;
      lines.setPrompt(question);
      lines.prompt();
    } else this.environment.error(question);
  }
}

/** Parses JSON; other input is text. */
function valueIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}
