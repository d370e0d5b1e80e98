import { createInterface, type Interface } from 'node:readline';
import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import { isRecord } from '../../core/kernel/json.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import type { ChatPrinter } from './chat-printer.js';
import type { CommandEnvironment } from './command.js';

/** Reads lines from the terminal, and asks its user. */
export class TerminalLines {
  readonly #environment: CommandEnvironment;
  readonly #printer: ChatPrinter;
  readonly #lines: Interface;
  readonly #next: AsyncIterator<string>;
  #reading: Promise<IteratorResult<string>> | undefined;
  /** The current question. */
  #prompt: string | undefined;
  /** Set on Ctrl-D or at the end of the input; earlier lines are still read. */
  #isClosed = false;

  constructor(environment: CommandEnvironment, printer: ChatPrinter) {
    const { input = process.stdin } = environment;
    // Piped input is not echoed, even on a terminal.
    const isTerminal = environment.isTerminal && (input !== process.stdin || process.stdin.isTTY);
    this.#environment = { ...environment, isTerminal };
    this.#printer = printer;
    this.#lines = createInterface({
      input,
      terminal: isTerminal,
      ...(isTerminal ? { output: process.stderr } : {}),
    });
    this.#lines.once('close', () => {
      this.#isClosed = true;
    });
    this.#next = this.#lines[Symbol.asyncIterator]();
  }

  /** Calls back on Ctrl-C; returns a function that stops this. */
  onInterrupt(interrupt: () => void): () => void {
    this.#lines.on('SIGINT', interrupt);
    process.on('SIGINT', interrupt);
    return () => {
      this.#lines.off('SIGINT', interrupt);
      process.off('SIGINT', interrupt);
    };
  }

  /** The next line; `undefined` at the end of the input, or if `unless` settles first. */
  async ask(question: string, unless?: Promise<undefined>): Promise<string | undefined> {
    this.#printer.settle();
    this.#prompt = question;
    this.#show(question);
    // A read that was started but not awaited returns the next line.
    this.#reading ??= this.#next.next();
    const read = await (unless === undefined ? this.#reading : Promise.race([this.#reading, unless]));
    this.#prompt = undefined;
    if (read === undefined) return undefined;
    this.#reading = undefined;
    if (!this.#environment.isTerminal) this.#environment.error('\n');
    return read.done ? undefined : visibleText(read.value);
  }

  /** Repeats the question after other output. */
  askAgain(): void {
    if (this.#prompt !== undefined && this.#environment.isTerminal && !this.#isClosed)
      this.#lines.prompt(true);
  }

  close(): void {
    this.#lines.close();
  }

  #show(question: string): void {
    if (this.#environment.isTerminal) {
      if (this.#isClosed) return;
      this.#lines.setPrompt(question);
      this.#lines.prompt();
    } else this.#environment.error(question);
  }
}

/** Asks the user; `undefined` without an answer. */
type Ask = (question: string) => Promise<string | undefined>;

/** Where to ask, and what to show. */
interface Asking {
  readonly ask: Ask;
  readonly printer: ChatPrinter;
  readonly environment: CommandEnvironment;
  /** Names of the scopes of standing approvals. */
  readonly scopeNames?: Partial<Record<RememberScope, string>>;
}

/** Answers to all pending calls in order; `undefined` as soon as one is not answered. */
export async function askAll(
  waiting: readonly PendingCall[],
  asking: Asking,
): Promise<readonly Answer[] | undefined> {
  const answers: Answer[] = [];
  for (const pending of waiting) {
    const answer = await askOne(pending, asking);
    if (answer === undefined) return undefined;
    answers.push(answer);
  }
  return answers;
}

async function askOne(pending: PendingCall, asking: Asking): Promise<Answer | undefined> {
  const { id, kind, tool, message } = pending;
  asking.printer.wait(pending);
  if (kind === 'approval') return askApproval(pending, asking);
  if (kind === 'question') {
    const line = await asking.ask(`${visibleLine(message ?? 'Answer')} `);
    return line === undefined ? undefined : { id, value: valueIn(line) };
  }
  if (kind === 'client') {
    const line = await asking.ask(`What did ${tool} give, as JSON? `);
    return line === undefined ? undefined : { id, result: valueIn(line) };
  }
  return askOutcome(pending, asking);
}

const KEPT_OPEN = 'its process died while it ran: it may have been done, and it is not run again';

/** Asks again if the input is not a clear answer. */
async function askOutcome(pending: PendingCall, asking: Asking): Promise<Answer | undefined> {
  const { id, tool, arguments: args } = pending;
  const question = `Its process died while it ran. Was ${tool} ${visibleLine(JSON.stringify(args))} done?`;
  const line = await asking.ask(`${question} [y] it was done / [n] not done, run it again / [r] refuse: `);
  const [, key, words = ''] = /^\s*(y|yes|n|no|r|refuse)\b\s*(.*?)\s*$/is.exec(line ?? '') ?? [];
  if (line === undefined) return undefined;
  const isNo = /^n/i.test(key ?? '');
  // "no idea" must not run the call again.
  if (key === undefined || (isNo && words !== '')) {
    asking.environment.error('toolwright: that is none of y, n and r\n');
    return askOutcome(pending, asking);
  }
  if (isNo) return { id, outcome: 'not-done' };
  if (/^r/i.test(key)) return { id, approved: false, reason: words === '' ? KEPT_OPEN : words };
  const given = words || (await asking.ask('What did it give? Enter where you do not know: '))?.trim();
  if (given === undefined) return undefined;
  const result = given === '' ? 'The user says that it was done. What it gave is not known.' : valueIn(given);
  return { id, outcome: 'done', result };
}

/** The key that remembers an approval for a scope. */
const KEYS: Readonly<Record<RememberScope, string>> = { run: 'r', conversation: 'a', user: 'u' };
const NAMES: Readonly<Record<RememberScope, string>> = {
  run: 'always in this [r]un',
  conversation: '[a]lways in this conversation',
  user: 'always for this [u]ser',
};

/** Every input except an approval is a refusal. */
async function askApproval(pending: PendingCall, asking: Asking): Promise<Answer | undefined> {
  const { id, tool, mayRemember, decisions = ['approve', 'edit', 'refuse'] } = pending;
  const scopes = mayRemember?.scopes ?? [];
  const choices = [
    ...(decisions.includes('approve') ? ['[y]es'] : []),
    ...scopes.map((scope) => asking.scopeNames?.[scope] ?? NAMES[scope]),
    '[n]o',
    ...(decisions.includes('edit') ? ['[e]dit'] : []),
  ];
  const line = (await asking.ask(`Run ${tool}? ${choices.join(', ')}: `))?.trim();
  if (line === undefined) return undefined;
  if (/^y(es)?$/i.test(line)) return { id, approved: true };
  const scope = scopes.find((one) => KEYS[one] === line.toLowerCase());
  if (scope !== undefined) return { id, approved: true, remember: { scope } };
  if (!/^e(dit)?$/i.test(line)) {
    const reason = line.replace(/^no?\b\s*/i, '');
    return { id, approved: false, ...(reason === '' ? {} : { reason }) };
  }
  const written = await asking.ask('Arguments, as JSON on one line: ');
  if (written === undefined) return undefined;
  const args = valueIn(written);
  if (isRecord(args)) return { id, approved: true, arguments: args };
  asking.environment.error('toolwright: that is no JSON object\n');
  return askApproval(pending, asking);
}

/** Parses JSON; other input is text. */
function valueIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}
