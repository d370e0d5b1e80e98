import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { RememberScope } from '../../core/contract/standing-approvals.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { failedResult } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { Conversations } from '../../run/conversation/conversations.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';
import type { CommandEnvironment } from './command.js';
import { Terminal } from './terminal.js';

/** A command of a talk; it gets the words after its name. */
interface TalkCommand {
  readonly about: string;
  run(...words: readonly string[]): void | Promise<void>;
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
  /** The end of the last turn. */
  #end: JsonObject | undefined;
  /** Resolves when the turn ends whose questions are asked. */
  #ended = Promise.withResolvers<undefined>();
  #lastStatus = 'completed';
  #isInTurn = false;
  /** Calls that needed an answer. */
  readonly #asked = new Set<unknown>();

  constructor(parts: TalkParts) {
    const { environment, registry, commands, scopeNames } = parts;
    const showTools = () => {
      for (const summary of registry.getSummaries()) environment.out(`${visibleLine(summary)}\n`);
    };
    this.#parts = parts;
    this.#commands = {
      ...(commands && { help: { about: 'lists the commands', run: () => this.#help() } }),
      tools: { about: 'lists the tools', run: showTools },
      ...commands,
    };
    this.#terminal = new Terminal(environment, scopeNames);
  }

  /** Runs until the input ends or the user exits; returns whether the last turn was completed. */
  async talk(): Promise<boolean> {
    const { greeting, prompt } = this.#parts;
    const unfollow = this.#terminal.onInterrupt(() => this.#interrupt());
    this.#report(greeting);
    const showing = this.#showAll();
    try {
      await this.#goOn();
      for (;;) {
        const line = (await this.#terminal.ask('> '))?.trim();
        if (line === undefined || line === '/exit') break;
        if (line === '' || (await this.#isCommand(line))) continue;
        await this.#turn(() => prompt(line));
      }
      return this.#lastStatus === 'completed';
    } finally {
      unfollow();
      this.#terminal.close();
      this.#leaving.abort();
      await showing;
    }
  }

  /** Aborts the running turn; without a turn, ends the command. */
  #interrupt(): void {
    const { conversations, id } = this.#parts;
    if (this.#isInTurn) conversations.abort(id).catch((error: unknown) => this.#terminal.fault(error));
    else this.#terminal.close();
  }

  /** Shows events that are newer than the opening of the talk. */
  async #showAll(): Promise<void> {
    const { conversations, id, onEvent } = this.#parts;
    const before = (await conversations.snapshot(id))?.lastEvent ?? 0;
    try {
      for await (const { number, event } of conversations.events(id, { signal: this.#leaving.signal })) {
        onEvent?.(event);
        if (event.type === 'turn-end') {
          this.#end = event;
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
    // The call was shown with its question, and starts again after the answer.
    if (event.type !== 'call-start' || !this.#asked.has(event.callId)) this.#terminal.show(event);
    if (event.type === 'call-end') this.#showForUser(event);
    if (!this.#isInTurn) this.#terminal.askAgain();
  }

  /** Shows a tool's text for the user; a diff that was shown with the question is not repeated. */
  #showForUser({ callId, result }: JsonObject): void {
    const { forUser, silent } = Object(result) as { readonly forUser?: unknown; readonly silent?: unknown };
    if (typeof forUser !== 'string' || forUser === '' || silent === true) return;
    if (!/^@@ /m.test(forUser)) this.#terminal.show({ type: 'user-message', text: forUser });
    else if (!this.#asked.has(callId)) this.#terminal.describe(forUser);
  }

  /** Continues a turn of an earlier process that is suspended or was interrupted. */
  async #goOn(): Promise<void> {
    const view = await this.#parts.conversations.snapshot(this.#parts.id);
    if (view === undefined) return;
    this.#report(`${view.messages.filter(({ role }) => role === 'user').length} turns so far`);
    if (view.status !== 'idle') await this.#turn(async () => {});
  }

  /** Runs a turn with its questions until the conversation is idle. */
  async #turn(begin: () => Promise<unknown>): Promise<void> {
    this.#isInTurn = true;
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
      const message = isRecord(error) ? { error: { message: String(error.message) } } : {};
      this.#terminal.end({ status: this.#lastStatus, ...message });
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
      await this.#giveUp(pending);
      return;
    }
    try {
      await conversations.answer(id, answers, owned);
    } catch (error) {
      // The input was invalid; the caller asks again.
      this.#terminal.fault(error);
    }
  }

  async #giveUp(pending: readonly PendingCall[]): Promise<void> {
    const { conversations, id, owned } = this.#parts;
    const view = await conversations.snapshot(id);
    // Otherwise, the turn was aborted meanwhile.
    if (view?.status === 'suspended') await conversations.answer(id, pending.map(refusalOf), owned);
  }

  /** Runs the command of a line; returns false if the line is a prompt. */
  async #isCommand(line: string): Promise<boolean> {
    const [name = '', ...words] = line.slice(1).split(/\s+/);
    const command = Object.hasOwn(this.#commands, name) ? this.#commands[name] : undefined;
    if (!line.startsWith('/') || (command === undefined && this.#parts.commands === undefined)) return false;
    try {
      if (command === undefined) this.#report(`there is no /${name}; /help lists the commands`);
      else await command.run(...words);
    } catch (error) {
      this.#report(errorMessage(error));
    }
    return true;
  }

  #help(): void {
    const commands = { ...this.#commands, exit: { about: 'ends; the session can be continued' } };
    for (const [name, { about }] of Object.entries(commands))
      this.#parts.environment.out(`/${name.padEnd(12)} ${about}\n`);
  }

  #report(text: string): void {
    this.#parts.environment.error(`toolwright: ${visibleLine(text)}\n`);
  }
}

/** Whether lines of the input are answers: a pipe or a file has prompts only, unless `--interactive` is given. */
export function canAnswer({ input = process.stdin }: CommandEnvironment, interactive?: boolean): boolean {
  return interactive ?? ('isTTY' in input && input.isTTY === true);
}

/** The answer without a user: a refusal, or, for a call that may have been executed, that its outcome is unknown. */
function refusalOf({ id, kind, tool, message }: PendingCall): Answer {
  if (kind !== 'outcome') return { id, approved: false, reason: 'nobody is there who could answer' };
  const known = message ?? `The call of '${tool}' was interrupted. It is not known whether it was done.`;
  return { id, outcome: 'done', result: failedResult('OutcomeUnknown', known).toJSON() };
}
