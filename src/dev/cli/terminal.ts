import { constants } from 'node:os';
import { createInterface, type Interface } from 'node:readline';
import { setImmediate as nextPoll } from 'node:timers/promises';
import { styleText } from 'node:util';
import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { type Fields, isRecord, parsedJson } from '../../core/kernel/json.js';
import { visibleLine, visibleText } from '../../core/kernel/visible-text.js';
import { failedResult } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';
import { type CommandEnvironment, report } from './command.js';

const WIDTH = 20;
const LONGEST_LINE = 200;
/** Characters shown of a call that needs an approval; other calls are cut earlier. */
const LONGEST_QUESTION = 4_000;
/** How many of the last output lines of a running command are shown. */
const MOST_OUTPUT_LINES = 5;
/** The marks of tasks that are not open. */
const TASK_MARKS = new Map<unknown, string>([
  ['done', 'x'],
  ['doing', '~'],
]);
/** Without a terminal, progress is printed at every multiple of this percentage. */
const STEP = 25;

/** The fields of events that are shown; which of them an event has depends on its type. */
interface ShownEvent {
  readonly type: string;
  readonly callId: string;
  readonly tool: string;
  readonly text: string;
  readonly arguments: unknown;
  readonly update: unknown;
  readonly status: string;
  readonly result: { readonly forLLM: string };
}

/** Terminals then mark where a paste begins and ends. */
const PASTE_MARKS_ON = '\u001b[?2004h';
const PASTE_MARKS_OFF = '\u001b[?2004l';

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type EndSignal = (typeof END_SIGNALS)[number];

const NOT_REPEATED = 'its process ended during the call: the call may have been done, and is not repeated';

/** The key that remembers an approval for a scope. */
const KEYS: Readonly<Record<RememberScope, string>> = { run: 'r', conversation: 'a', user: 'u' };
const SCOPE_NAMES: Readonly<Record<RememberScope, string>> = {
  run: 'always in this [r]un',
  conversation: '[a]lways in this conversation',
  user: 'always for this [u]ser',
};

/**
 * A chat on the terminal: prints its events, reads lines, and asks the user for answers. The text of the model goes to
 * standard output, everything else to standard error. Text from models and tools cannot move the cursor or hide.
 */
export class Terminal {
  readonly #environment: CommandEnvironment;
  /** Questions are repeated, and input is echoed. */
  readonly #isInteractive: boolean;
  readonly #scopeNames: Readonly<Record<RememberScope, string>>;
  /** The current line of the reply has not ended. */
  #isInText = false;
  #hasBar = false;
  readonly #shownPercent = new Map<string, number>();
  /** Opened on first use: a command that only prints does not read its input. */
  #opened: Interface | undefined;
  /** Lines that were not read yet. */
  readonly #lines: string[] = [];
  /** Lines of a paste that has no end yet: the user ends it with Enter. */
  #pasted: readonly string[] = [];
  /** Takes the next line, or `undefined` at the end of the input. */
  #take: ((line: string | undefined) => void) | undefined;
  /** The current question. */
  #prompt: string | undefined;
  /** Set on Ctrl-D or at the end of the input; earlier lines are still read. */
  #isClosed = false;

  /** `scopeNames`: how the scopes of standing approvals are called. */
  constructor(environment: CommandEnvironment, scopeNames: Partial<Record<RememberScope, string>> = {}) {
    this.#environment = environment;
    const { input = process.stdin } = environment;
    // Piped input is not echoed, even on a terminal.
    this.#isInteractive = environment.isTerminal && (input !== process.stdin || process.stdin.isTTY);
    this.#scopeNames = { ...SCOPE_NAMES, ...scopeNames };
  }

  /** Shows an event; other events are ignored. */
  show(given: object): void {
    const event = given as ShownEvent;
    switch (event.type) {
      case 'text-delta':
        this.#clearBar();
        this.#environment.out(visibleText(event.text));
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
        this.#environment.out(`${visibleText(event.text)}\n`);
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
    const shown = hasColours(this.#environment) ? colouredDifference(lines) : lines;
    this.#environment.error(shown.map((line) => `  ${line}\n`).join(''));
  }

  end(status: string, error: unknown): void {
    this.settle();
    const why = isRecord(error) ? `: ${error.message}` : '';
    if (status !== 'completed') this.#line(`[${status}${why}]`);
  }

  fault(error: unknown): void {
    this.#line(`[${errorMessage(error)}]`);
  }

  /** Ends the current line. */
  settle(): void {
    this.#clearBar();
    if (this.#isInText) this.#environment.out('\n');
    this.#isInText = false;
  }

  #line(text: string, longest = LONGEST_LINE): void {
    this.settle();
    const line = visibleLine(text);
    this.#environment.error(`${line.length > longest ? `${line.slice(0, longest)}…` : line}\n`);
  }

  #progress(callId: string, tool: string, update: unknown): void {
    const { output, tasks, done, total } = isRecord(update) ? update : {};
    if (typeof output === 'string') {
      const lines = output.split('\n').filter(Boolean).slice(-MOST_OUTPUT_LINES);
      for (const line of lines) this.#line(`  | ${line}`);
    } else if (Array.isArray(tasks)) {
      for (const task of tasks) {
        const { text, status } = Object(task) as Fields;
        this.#line(`  | [${TASK_MARKS.get(status) ?? ' '}] ${text}`);
      }
    } else if (typeof done === 'number' && typeof total === 'number' && total > 0)
      this.#bar(callId, tool, Math.min(1, Math.max(0, done / total)));
    else this.#line(`  ${tool}: ${typeof update === 'string' ? update : jsonLine(update)}`);
  }

  /** `part` is from 0 to 1. */
  #bar(callId: string, tool: string, part: number): void {
    const percent = Math.round(part * 100);
    const full = Math.round(part * WIDTH);
    const bar = `  ${visibleLine(tool)} [${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${percent} %`;
    if (this.#environment.isTerminal) {
      if (this.#isInText) this.settle();
      this.#environment.error(`\r\u001b[K${bar}`);
      this.#hasBar = true;
      return;
    }
    const shown = this.#shownPercent.get(callId);
    if (shown !== undefined && percent < 100 && percent - shown < STEP) return;
    this.#shownPercent.set(callId, percent);
    this.#line(bar);
  }

  #clearBar(): void {
    if (this.#hasBar) this.#environment.error('\r\u001b[K');
    this.#hasBar = false;
  }

  get #input(): Interface {
    if (this.#opened !== undefined) return this.#opened;
    const { input = process.stdin } = this.#environment;
    const terminal = this.#isInteractive;
    const marksPastes = terminal && process.env.TERM !== 'dumb';
    const lines = createInterface({ input, terminal, ...(terminal ? { output: process.stderr } : {}) });
    let isPaste = false;
    if (marksPastes) {
      this.#environment.error(PASTE_MARKS_ON);
      input.on('keypress', (_text, { name }) => {
        if (name === 'paste-start' || name === 'paste-end') isPaste = name === 'paste-start';
      });
    }
    lines.on('line', (line) => {
      this.#pasted = [...this.#pasted, line];
      if (!isPaste) this.#receive();
    });
    const end = (): void => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      if (marksPastes) this.#environment.error(PASTE_MARKS_OFF);
      this.#take?.(undefined);
      lines.close();
    };
    // A terminal that the user has closed reports errors.
    lines.on('close', end).on('error', end);
    // At a terminal, Ctrl-C is input.
    lines.on('SIGINT', () => process.emit('SIGINT', 'SIGINT'));
    this.#opened = lines;
    return lines;
  }

  /** Passes on the lines of a paste, or a single line. */
  #receive(): void {
    const text = this.#pasted.join('\n');
    this.#pasted = [];
    const take = this.#take;
    this.#take = undefined;
    if (take === undefined) this.#lines.push(text);
    else take(text);
  }

  /** Calls back on signals that end the process, with the exit code for them; returns a function that stops this. */
  onSignal(listener: (signal: EndSignal, exitCode: number) => void): () => void {
    const unfollow = END_SIGNALS.map((signal) => {
      const listen = () => listener(signal, 128 + constants.signals[signal]);
      process.on(signal, listen);
      return () => process.off(signal, listen);
    });
    return () => {
      for (const stop of unfollow) stop();
    };
  }

  /**
   * The next line; `undefined` at the end of the input, or if `unless` settles first. At a terminal, lines that were
   * written before a question was shown do not answer it; they are the next prompts.
   */
  async ask(
    question: string,
    { isPrompt = false, unless }: { readonly isPrompt?: boolean; readonly unless?: Promise<undefined> } = {},
  ): Promise<string | undefined> {
    const lines = this.#input;
    const isFresh = this.#isInteractive && !isPrompt;
    const draft = isFresh ? await this.#takeDraft() : undefined;
    this.settle();
    this.#prompt = question;
    if (!this.#isInteractive) this.#environment.error(question);
    else if (!this.#isClosed) {
      lines.setPrompt(question);
      lines.prompt(true);
    }
    let line = isFresh ? undefined : this.#lines.shift();
    if (line === undefined && !this.#isClosed) {
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      this.#take = resolve;
      line = await (unless === undefined ? promise : Promise.race([promise, unless]));
      this.#take = undefined;
    }
    this.#prompt = undefined;
    if (!this.#isInteractive) this.#environment.error('\n');
    if (draft !== undefined && !this.#isClosed) {
      this.#pasted = draft.pasted;
      lines.write(draft.line);
    }
    return line === undefined ? undefined : visibleText(line);
  }

  /** Reads everything that was written until now; removes and returns the prompt that has no end yet. */
  async #takeDraft() {
    const lines = this.#input;
    // The input arrives between two polls.
    await nextPoll();
    await nextPoll();
    const draft = { pasted: this.#pasted, line: lines.line };
    this.#pasted = [];
    if (!this.#isClosed) for (const name of ['e', 'u']) lines.write(null, { ctrl: true, name });
    return draft;
  }

  /** Answers to all pending calls in order; `undefined` as soon as one is not answered. */
  async askAll(
    waiting: readonly PendingCall[],
    unless?: Promise<undefined>,
  ): Promise<readonly Answer[] | undefined> {
    const ask = (question: string) => this.ask(question, unless && { unless });
    const answers: Answer[] = [];
    for (const pending of waiting) {
      const { id, kind, tool, message } = pending;
      this.wait(pending);
      let answer: Answer | undefined;
      if (kind === 'approval') answer = await this.#askApproval(pending, ask);
      else if (kind === 'outcome') answer = await this.#askOutcome(pending, ask);
      else {
        const isQuestion = kind === 'question';
        const question = isQuestion ? `${visibleLine(message ?? 'Answer')} ` : `Result of ${tool}, as JSON: `;
        const line = await ask(question);
        if (line !== undefined)
          answer = isQuestion ? { id, value: valueIn(line) } : { id, result: valueIn(line) };
      }
      if (answer === undefined) return undefined;
      answers.push(answer);
    }
    return answers;
  }

  /** Asks again if the input is not a clear answer. */
  async #askOutcome(
    pending: PendingCall,
    ask: (question: string) => Promise<string | undefined>,
  ): Promise<Answer | undefined> {
    const { id, tool, arguments: args } = pending;
    const question = `Its process ended during the call. Was ${tool} ${visibleLine(JSON.stringify(args))} done?`;
    const line = await ask(`${question} [y] it was done / [n] not done, run it again / [r] refuse: `);
    const [, key, rest = ''] = /^\s*(y|yes|n|no|r|refuse)\b\s*(.*?)\s*$/is.exec(line ?? '') ?? [];
    if (line === undefined) return undefined;
    const isNo = /^n/i.test(key ?? '');
    // "no idea" must not run the call again.
    if (key === undefined || (isNo && rest !== '')) {
      report(this.#environment, 'answer y, n or r');
      return this.#askOutcome(pending, ask);
    }
    if (isNo) return { id, outcome: 'not-done' };
    if (/^r/i.test(key)) return { id, approved: false, reason: rest === '' ? NOT_REPEATED : rest };
    const given = rest || (await ask('What was its result? Press Enter if you do not know: '))?.trim();
    if (given === undefined) return undefined;
    const result =
      given === '' ? 'The user reports that the call was done. Its result is unknown.' : valueIn(given);
    return { id, outcome: 'done', result };
  }

  /** Every input except an approval is a refusal. */
  async #askApproval(
    pending: PendingCall,
    ask: (question: string) => Promise<string | undefined>,
  ): Promise<Answer | undefined> {
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
    report(this.#environment, 'the arguments must be a JSON object');
    return this.#askApproval(pending, ask);
  }

  /** Repeats the question after other output. */
  askAgain(): void {
    if (this.#prompt !== undefined && this.#isInteractive && !this.#isClosed) this.#input.prompt(true);
  }

  close(): void {
    this.#opened?.close();
  }
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

/** Parses JSON; other input is text. */
function valueIn(line: string): unknown {
  const value = parsedJson(line);
  return value === undefined ? line : value;
}

/** A command of a talk; it gets the arguments after its name. */
interface TalkCommand {
  readonly about: string;
  run(...args: readonly string[]): void | Promise<void>;
}

interface TalkParts {
  readonly id: string;
  readonly conversations: Conversations;
  readonly environment: CommandEnvironment;
  readonly greeting: string;
  readonly registry: ToolRegistry;
  /** Commands besides `/tools` and `/exit`; without any, all other lines are prompts. */
  readonly commands?: Readonly<Record<string, TalkCommand>>;
  /** Whether a user can answer; otherwise every line is a prompt, and questions are refused. */
  readonly isAnswered: boolean;
  /** Options of answers. */
  readonly owned?: { readonly owner?: unknown };
  /** Names of the scopes of standing approvals. */
  readonly scopeNames?: Partial<Record<RememberScope, string>>;
  /** Enters a prompt. */
  prompt(text: string): Promise<unknown>;
  /** Called for each event, those of earlier processes included. */
  onEvent?(event: JsonObject): void;
}

/** Reads prompts, answers and commands from a terminal, and prints the events of a conversation. */
export class TerminalTalk {
  readonly #parts: TalkParts;
  readonly #commands: Readonly<Record<string, TalkCommand>>;
  readonly #terminal: Terminal;
  readonly #leaving = new AbortController();
  /** Number of the last event that was shown. */
  #shown = 0;
  #isShowing = true;
  #whenShown: () => void = () => {};
  /** The end of the last turn that has ended since the prompt. */
  #end: JsonObject | undefined;
  /** Resolves when the turn ends whose questions are asked. */
  #ended = Promise.withResolvers<undefined>();
  #lastStatus = 'completed';
  /** The exit code for the signal that ends the command. */
  #endedBy: number | undefined;
  #isInTurn = false;
  /** The turn has ended, but another turn may follow before the next prompt. */
  #hasEnded = false;
  /** Calls that needed an answer. */
  readonly #asked = new Set<unknown>();

  constructor(parts: TalkParts) {
    const { environment, registry, commands, scopeNames } = parts;
    const showTools = () => {
      for (const summary of registry.getSummaries()) environment.out(`${visibleLine(summary)}\n`);
    };
    const showCommands = () => {
      const all = { ...this.#commands, exit: { about: 'ends the session, which can be continued later' } };
      for (const [name, { about }] of Object.entries(all)) environment.out(`/${name.padEnd(12)} ${about}\n`);
    };
    this.#parts = parts;
    this.#commands = {
      ...(commands && { help: { about: 'lists the commands', run: showCommands } }),
      tools: { about: 'lists the tools', run: showTools },
      ...commands,
    };
    this.#terminal = new Terminal(environment, scopeNames);
  }

  /** Runs until the input ends or the user exits; returns the exit code: 0 if the last turn was completed. */
  async talk(): Promise<number> {
    const { conversations, id, greeting, prompt } = this.#parts;
    const unfollow = this.#terminal.onSignal((signal, exitCode) => {
      if (signal !== 'SIGINT') this.#endedBy ??= exitCode;
      this.#interrupt().catch((error: unknown) => this.#terminal.fault(error));
    });
    report(this.#parts.environment, greeting);
    const showing = this.#showAll();
    try {
      const view = await conversations.snapshot(id);
      if (view !== undefined) {
        report(
          this.#parts.environment,
          `${view.messages.filter(({ role }) => role === 'user').length} turns so far`,
        );
        // A turn of an earlier process is suspended or was interrupted.
        if (view.status !== 'idle') await this.#turn(async () => {});
      }
      for (;;) {
        const line = (await this.#terminal.ask('> ', { isPrompt: true }))?.trim();
        if (line === undefined || line === '/exit' || this.#endedBy !== undefined) break;
        if (line === '' || (await this.#isCommand(line))) continue;
        await this.#turn(() => prompt(line));
      }
      return this.#endedBy ?? (this.#lastStatus === 'completed' ? 0 : 1);
    } finally {
      unfollow();
      this.#terminal.close();
      this.#leaving.abort();
      await showing;
    }
  }

  /** Ctrl-C aborts the running turn; without a turn, it ends the command. The other signals do both. */
  async #interrupt(): Promise<void> {
    const { conversations, id } = this.#parts;
    if (this.#endedBy !== undefined) {
      await conversations.abort(id).finally(() => this.#terminal.close());
      return;
    }
    if (this.#isInTurn && !this.#hasEnded) {
      if (await conversations.abort(id)) return;
      // The prompt waits for its turn; otherwise the turn has ended, and its end is not shown yet.
      if ((await conversations.snapshot(id))?.status === 'running') return;
    }
    this.#terminal.close();
  }

  /** Shows events that are newer than the opening of the talk. */
  async #showAll(): Promise<void> {
    const { conversations, id, onEvent } = this.#parts;
    const before = (await conversations.snapshot(id))?.lastEvent ?? 0;
    try {
      for await (const { number, event } of conversations.events(id, { signal: this.#leaving.signal })) {
        onEvent?.(event);
        if (event.type === 'turn-start') {
          this.#hasEnded = false;
          // Its prompt was entered when the signal came.
          if (this.#endedBy !== undefined) await conversations.abort(id);
        }
        if (event.type === 'turn-end' && number > before) {
          this.#end = event;
          this.#hasEnded = true;
          // For example, because the turn was aborted while its questions were asked.
          this.#ended.resolve(undefined);
        }
        if (number > before) this.#show(event);
        this.#shown = number;
        this.#whenShown();
      }
    } catch (error) {
      if (!this.#leaving.signal.aborted) this.#terminal.fault(error);
    } finally {
      // Nothing more will be shown, so nothing must wait for it.
      this.#isShowing = false;
      this.#ended.resolve(undefined);
      this.#whenShown();
    }
  }

  #show(event: JsonObject): void {
    const { type, callId, result } = event;
    const wasAsked = this.#asked.has(callId);
    // The call was shown with its question, and starts again after the answer.
    if (type !== 'call-start' || !wasAsked) this.#terminal.show(event);
    const { forUser, silent } = Object(result) as Fields;
    if (type === 'call-end' && typeof forUser === 'string' && forUser !== '' && silent !== true) {
      if (!/^@@ /m.test(forUser)) this.#terminal.show({ type: 'user-message', text: forUser });
      // A diff that was shown with the question is not repeated.
      else if (!wasAsked) this.#terminal.describe(forUser);
    }
    if (!this.#isInTurn) this.#terminal.askAgain();
  }

  /** Runs a turn with its questions until the conversation is idle. */
  async #turn(begin: () => Promise<unknown>): Promise<void> {
    this.#isInTurn = true;
    this.#hasEnded = false;
    this.#end = undefined;
    try {
      await begin();
      let view = await this.#settled();
      while (view?.status === 'suspended') {
        await this.#answer(view);
        view = await this.#settled();
      }
      // TypeScript does not see that events have set the end meanwhile.
      const { status = 'completed', error } = (this.#end as JsonObject | undefined) ?? {};
      this.#lastStatus = String(status);
      this.#terminal.end(this.#lastStatus, error);
    } catch (error) {
      this.#lastStatus = 'failed';
      this.#terminal.fault(error);
    } finally {
      this.#isInTurn = false;
    }
  }

  /** The conversation once it is idle or suspended and all its events were shown. */
  async #settled(): Promise<ConversationView | undefined> {
    const view = await this.#parts.conversations.idle(this.#parts.id);
    while (this.#isShowing && this.#shown < (view?.lastEvent ?? 0))
      await new Promise<void>((resolve) => {
        this.#whenShown = resolve;
      });
    return view;
  }

  /** Asks for answers to the pending calls. */
  async #answer({ pending }: ConversationView): Promise<void> {
    const { conversations, id, owned, isAnswered } = this.#parts;
    for (const { callId } of pending) this.#asked.add(callId);
    this.#ended = Promise.withResolvers();
    const answers = isAnswered ? await this.#terminal.askAll(pending, this.#ended.promise) : undefined;
    if (!isAnswered) for (const call of pending) this.#terminal.wait(call);
    if (answers === undefined) {
      const view = await conversations.snapshot(id);
      // Otherwise, the turn was aborted meanwhile.
      if (view?.status === 'suspended') await conversations.answer(id, pending.map(refusalOf), owned);
      return;
    }
    try {
      await conversations.answer(id, answers, owned);
    } catch (error) {
      // The input was invalid; the caller asks again.
      this.#terminal.fault(error);
    }
  }

  /** Runs the command of a line; returns false if the line is a prompt. */
  async #isCommand(line: string): Promise<boolean> {
    const [name = '', ...args] = line.slice(1).split(/\s+/);
    const command = Object.hasOwn(this.#commands, name) ? this.#commands[name] : undefined;
    if (!line.startsWith('/') || (command === undefined && this.#parts.commands === undefined)) return false;
    try {
      if (command === undefined)
        report(this.#parts.environment, `there is no command /${name}; /help lists the commands`);
      else await command.run(...args);
    } catch (error) {
      report(this.#parts.environment, errorMessage(error));
    }
    return true;
  }
}

/** Whether lines of the input are answers: a pipe or a file has prompts only, unless `--interactive` is given. */
export function canAnswer({ input = process.stdin }: CommandEnvironment, interactive?: boolean): boolean {
  return interactive ?? ('isTTY' in input && input.isTTY === true);
}

/** The answer without a user: a refusal, or, for a call that may have been executed, that its outcome is unknown. */
function refusalOf({ id, kind, tool, message }: PendingCall): Answer {
  if (kind !== 'outcome') return { id, approved: false, reason: 'no user is available to answer' };
  const known = message ?? `The call of '${tool}' was interrupted. It is not known whether it was done.`;
  return { id, outcome: 'done', result: failedResult('OutcomeUnknown', known).toJSON() };
}
